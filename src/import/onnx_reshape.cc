#include "import/onnx_reshape.h"

#include <algorithm>

#include "base/error.h"

namespace berth {
namespace {

// Axis `axis` of a shape covers the strides from `begin` to `end`, counted in elements of the axes before it.
struct AxisRange {
  int64_t begin = 1, end = 1;
};

std::vector<AxisRange> RangesOf(const Dims& dims) {
  std::vector<AxisRange> ranges;
  int64_t product = 1;
  for (const int64_t dim : dims) {
    ranges.push_back({product, product * dim});
    product *= dim;
  }
  return ranges;
}

// The output axis that takes over what input axis `axis` has grown by.
std::optional<size_t> Taker(const ReshapeAtOtherSizes& reshape, size_t axis) {
  const std::vector<AxisRange> from = RangesOf(reshape.file_input), to = RangesOf(reshape.file_output);
  const AxisRange range = from[axis];
  const bool itself = reshape.changes.contains({reshape.file_input[axis], reshape.input[axis]});
  const bool unit = range.begin == range.end;
  // The axis itself, where it is still one; the k-th axis of size one at a boundary stays the k-th.
  if (itself) {
    size_t before = 0, seen = 0;
    for (size_t i = 0; i < axis; ++i)
      before += unit && from[i].begin == range.begin && from[i].end == range.end ? 1 : 0;
    std::optional<size_t> last;
    for (size_t i = 0; i < to.size(); ++i) {
      if (to[i].begin != range.begin || to[i].end != range.end) continue;
      last = i;
      if (seen++ == before) return i;
    }
    if (last) return last;
  } else {
    // A batch of one was merged into this axis: it comes out where there is an axis of size one.
    for (size_t i = 0; i < to.size(); ++i) {
      if (to[i].begin == to[i].end && to[i].begin >= range.begin && to[i].end <= range.end) return i;
    }
  }
  for (size_t i = to.size(); i-- > 0;) {
    if (to[i].begin > range.begin) continue;
    const bool boundary = to[i].begin == range.begin && (unit || !itself);
    return boundary && i + 1 == to.size() && i > 0 ? i - 1 : i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Dims> ResolveReshape(const OnnxNode& node, const Dims& input, Dims target) {
  const bool keeps_zero = node.attributes.Int("allowzero", 0) != 0;
  const int64_t elements = CheckedElements(input, node.where);
  size_t rest = target.size();
  Dims known;
  for (size_t axis = 0; axis < target.size(); ++axis) {
    if (target[axis] == 0 && !keeps_zero && axis < input.size()) target[axis] = input[axis];
    if (target[axis] == -1 && rest == target.size()) {
      rest = axis;
    } else if (target[axis] < 0) {
      throw Error("{}: reshapes to {}, which has a negative size", node.where, ToString(target));
    } else {
      known.push_back(target[axis]);
    }
  }
  const int64_t product = CheckedElements(known, node.where);
  if (rest == target.size()) return product == elements ? std::optional(target) : std::nullopt;
  if (product == 0 || elements % product != 0) return std::nullopt;
  target[rest] = elements / product;
  return target;
}

bool IsFixedAs(const Dims& target, const Dims& file_output) {
  if (target.size() != file_output.size()) return false;
  for (size_t axis = 0; axis < target.size(); ++axis) {
    if (target[axis] > 0 && target[axis] != file_output[axis]) return false;
  }
  return true;
}

std::optional<Dims> FollowReshape(const ReshapeAtOtherSizes& reshape) {
  const Dims &before = reshape.file_input, &now = reshape.input;
  if (before.size() != now.size() || std::ranges::count(before, 0) > 0 || std::ranges::count(now, 0) > 0)
    return std::nullopt;
  Dims output = reshape.file_output;
  std::vector<int64_t> divisor(output.size(), 1);
  for (size_t axis = 0; axis < before.size(); ++axis) {
    if (before[axis] == now[axis]) continue;
    const std::optional<size_t> taker = Taker(reshape, axis);
    if (!taker || __builtin_mul_overflow(output[*taker], now[axis], &output[*taker]) ||
        __builtin_mul_overflow(divisor[*taker], before[axis], &divisor[*taker])) {
      return std::nullopt;
    }
  }
  for (size_t axis = 0; axis < output.size(); ++axis) {
    if (output[axis] % divisor[axis] != 0) return std::nullopt;
    output[axis] /= divisor[axis];
  }
  const std::string_view where = "a reshaped tensor";
  return CheckedElements(output, where) == CheckedElements(now, where) ? std::optional(std::move(output))
                                                                       : std::nullopt;
}

}  // namespace berth
