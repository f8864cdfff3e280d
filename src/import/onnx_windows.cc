#include "import/onnx_windows.h"

#include <algorithm>

#include "base/error.h"

namespace berth {
namespace {

constexpr int64_t kMost = int64_t{1} << 31;  // of every attribute; products of three fit into 64 bits with care

// The attribute's number per spatial axis; throws Error for numbers outside of least .. 2^31.
std::optional<std::vector<int64_t>> PerAxis(const OnnxNode& node, std::string_view name, size_t count,
                                            int64_t otherwise, int64_t least) {
  if (!node.attributes.Has(name)) return std::vector<int64_t>(count, otherwise);
  const auto ints = node.attributes.Ints(name);
  for (const int64_t number : ints) {
    if (number < least || number > kMost)
      throw Error("{}: {} has {}; it must be from {} to 2^31", node.where, name, number, least);
  }
  if (ints.size() != count) return std::nullopt;
  return std::vector<int64_t>(ints.begin(), ints.end());
}

// What Conv, ConvTranspose and the poolings have in common.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads;  // pads: all begins, then all ends
  std::string_view auto_pad;

  int64_t Extent(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
  int64_t Padding(size_t axis) const { return pads[axis] + pads[axis + kernel.size()]; }
};

std::optional<Window> ReadWindow(const OnnxNode& node, size_t weight, std::string& problem) {
  const Value *input = node.Input(0), *filter = weight > 0 ? node.Input(weight) : nullptr;
  if (input == nullptr || (weight > 0 && filter == nullptr)) {
    problem = "an input is missing";
    return std::nullopt;
  }
  if (input->dims.size() < 3 || (filter != nullptr && filter->dims.size() != input->dims.size())) {
    problem = fmt::format("an input of {}{} has no such window", ToString(input->dims),
                          filter != nullptr ? " under a filter of " + ToString(filter->dims) : "");
    return std::nullopt;
  }
  const size_t axes = input->dims.size() - 2;
  auto kernel = PerAxis(node, "kernel_shape", axes, 1, 1);
  const auto strides = PerAxis(node, "strides", axes, 1, 1), dilations = PerAxis(node, "dilations", axes, 1, 1),
             pads = PerAxis(node, "pads", 2 * axes, 0, -kMost);
  if (!kernel || !strides || !dilations || !pads) {
    problem = fmt::format("its attributes are not for {} axes", axes);
    return std::nullopt;
  }
  if (filter != nullptr) kernel->assign(filter->dims.begin() + 2, filter->dims.end());
  for (const int64_t size : *kernel) {
    if (size < 0 || size > kMost) {
      problem = "its filter is too large";
      return std::nullopt;
    }
  }
  return Window{*kernel, *strides, *dilations, *pads, node.attributes.Text("auto_pad", "NOTSET")};
}

}  // namespace

std::optional<Dims> WindowShape(const OnnxNode& node, size_t weight, std::string& problem) {
  const std::optional<Window> window = ReadWindow(node, weight, problem);
  if (!window) return std::nullopt;
  const Dims& input = node.Input(0)->dims;
  const bool rounds_up = node.attributes.Int("ceil_mode", 0) != 0;
  Dims dims = {input[0], weight > 0 ? node.Input(weight)->dims[0] : input[1]};
  for (size_t axis = 0; axis + 2 < input.size(); ++axis) {
    const int64_t size = input[axis + 2], stride = window->strides[axis];
    if (window->auto_pad == "SAME_UPPER" || window->auto_pad == "SAME_LOWER") {
      dims.push_back(size / stride + (size % stride != 0 ? 1 : 0));
      continue;
    }
    const int64_t padding = window->auto_pad == "VALID" ? 0 : window->Padding(axis);
    const int64_t room = size + padding - window->Extent(axis);
    if (room < 0) {
      throw Error("{}: a window of {} does not fit into {} with a padding of {}; check the sizes of the inputs",
                  node.where, window->Extent(axis), size, padding);
    }
    int64_t count = room / stride + 1;
    // A window that would begin in the padding behind the input is none.
    if (rounds_up && room % stride != 0 && count * stride < size + window->pads[axis]) ++count;
    dims.push_back(count);
  }
  return dims;
}

std::optional<Dims> ConvTransposeShape(const OnnxNode& node, std::string& problem) {
  const std::optional<Window> window = ReadWindow(node, 1, problem);
  if (!window) return std::nullopt;
  const Dims& input = node.Input(0)->dims;
  const size_t axes = input.size() - 2;
  const int64_t group = node.attributes.Int("group", 1);
  const auto extra = PerAxis(node, "output_padding", axes, 0, 0), asked = PerAxis(node, "output_shape", axes, 0, 0);
  if (group < 1 || group > kMost || !extra || !asked) {
    problem = fmt::format("its attributes are not for {} axes", axes);
    return std::nullopt;
  }
  Dims dims = {input[0], 0};
  if (__builtin_mul_overflow(node.Input(1)->dims[1], group, &dims[1])) return std::nullopt;
  for (size_t axis = 0; axis < axes; ++axis) {
    int64_t size = 0;
    if (__builtin_mul_overflow(input[axis + 2] - (window->auto_pad.starts_with("SAME") ? 0 : 1), window->strides[axis],
                               &size))
      return std::nullopt;
    if (!window->auto_pad.starts_with("SAME")) size += (*extra)[axis] + window->Extent(axis) - window->Padding(axis);
    dims.push_back(node.attributes.Has("output_shape") ? (*asked)[axis] : size);
  }
  return dims;
}

}  // namespace berth
