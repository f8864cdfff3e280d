#include "import/onnx_arguments.h"

#include <algorithm>

#include "base/error.h"

namespace berth {

std::vector<int64_t> SplitSizes(const OnnxNode& node, size_t axis) {
  if (const Content* content = node.InputContent(1)) return ToInts(*content);
  if (node.Input(1) != nullptr) return {};
  if (node.attributes.Has("split")) {
    const auto sizes = node.attributes.Ints("split");
    return {sizes.begin(), sizes.end()};
  }
  // Equal parts; since opset 18 the last may be smaller.
  const int64_t parts = node.proto.output_size(), size = node.inputs[0]->dims[axis];
  if (parts == 0) return {};
  const int64_t part = size / parts + (size % parts != 0 ? 1 : 0);
  std::vector<int64_t> sizes;
  for (int64_t k = 0; k < parts; ++k) sizes.push_back(std::clamp<int64_t>(size - k * part, 0, part));
  return sizes;
}

std::optional<SliceCut> ReadSlice(const OnnxNode& node) {
  const Dims& dims = node.inputs[0]->dims;
  const auto list = [&](size_t input, std::string_view name) -> std::optional<std::vector<int64_t>> {
    if (const Content* content = node.InputContent(input)) return ToInts(*content);
    if (node.Input(input) != nullptr) return std::nullopt;
    const std::span<const int64_t> ints = node.attributes.Ints(name);
    return std::vector<int64_t>(ints.begin(), ints.end());
  };
  const auto starts = list(1, "starts"), ends = list(2, "ends"), axes = list(3, "axes"), steps = list(4, "steps");
  if (!starts || !ends || !axes || !steps) return std::nullopt;
  if (starts->size() != ends->size()) {
    throw Error("{}: it has {} starts and {} ends", node.where, starts->size(), ends->size());
  }
  SliceCut cut{std::vector<int64_t>(dims.size(), 0), std::vector<int64_t>(dims.size(), 1), dims};
  for (size_t k = 0; k < starts->size(); ++k) {
    const size_t axis = Axis(node, k < axes->size() ? (*axes)[k] : static_cast<int64_t>(k), dims.size());
    const int64_t step = k < steps->size() ? (*steps)[k] : 1, size = dims[axis];
    if (step == 0) throw Error("{}: a step of 0 never ends", node.where);
    // From the back, and then into the tensor; where it walks backwards, the end before the first element is -1.
    const auto place = [&](int64_t at, int64_t least, int64_t most) {
      return std::clamp<int64_t>(at < 0 ? std::max<int64_t>(at, -size - 1) + size : at, least, most);
    };
    const bool back = step < 0;
    const int64_t start = place((*starts)[k], 0, back ? std::max<int64_t>(size - 1, 0) : size);
    const int64_t end = place((*ends)[k], back ? -1 : 0, back ? size - 1 : size);
    const int64_t room = back ? start - end : end - start;
    // -(step + 1) does not overflow where -step would.
    const auto stride = static_cast<uint64_t>(back ? -(step + 1) : step - 1) + 1;
    cut.start[axis] = start;
    cut.step[axis] = step;
    cut.size[axis] = room <= 0 || size == 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(room) - 1) / stride) + 1;
  }
  return cut;
}

std::optional<Padding> ReadPadding(const OnnxNode& node) {
  std::vector<int64_t> pads;
  if (const Content* content = node.InputContent(1)) {
    pads = ToInts(*content);
  } else if (node.Input(1) == nullptr) {
    const auto attribute = node.attributes.Ints(node.attributes.Has("pads") ? "pads" : "paddings");
    pads.assign(attribute.begin(), attribute.end());
  } else {
    return std::nullopt;
  }
  const size_t rank = node.inputs[0]->dims.size();
  std::vector<int64_t> axes(rank);
  for (size_t axis = 0; axis < rank; ++axis) axes[axis] = static_cast<int64_t>(axis);
  if (const Content* content = node.InputContent(3)) {
    axes = ToInts(*content);
  } else if (node.Input(3) != nullptr) {
    return std::nullopt;
  }
  Padding padding;
  if (pads.size() != 2 * axes.size()) {
    padding.problem = fmt::format("it pads {} axes with {} numbers", axes.size(), pads.size());
    return padding;
  }
  padding.before.assign(rank, 0);
  padding.behind.assign(rank, 0);
  for (size_t k = 0; k < axes.size(); ++k) {
    const size_t axis = Axis(node, axes[k], rank);
    padding.before[axis] = pads[k];
    padding.behind[axis] = pads[k + axes.size()];
  }
  return padding;
}

std::optional<std::vector<size_t>> TransposeOrder(const OnnxNode& node, size_t rank) {
  std::vector<size_t> order(rank);
  const auto perm = node.attributes.Ints("perm");
  if (!node.attributes.Has("perm")) {
    for (size_t axis = 0; axis < rank; ++axis) order[axis] = rank - 1 - axis;
    return order;
  }
  if (perm.size() != rank) return std::nullopt;
  std::vector<bool> seen(rank, false);
  for (size_t axis = 0; axis < rank; ++axis) {
    if (perm[axis] < 0 || perm[axis] >= static_cast<int64_t>(rank)) return std::nullopt;
    order[axis] = static_cast<size_t>(perm[axis]);
    if (seen[order[axis]]) return std::nullopt;
    seen[order[axis]] = true;
  }
  return order;
}

}  // namespace berth
