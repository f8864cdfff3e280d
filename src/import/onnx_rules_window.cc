// Shapes of ops that slide a window or sample an image: convolutions, poolings, regions, other sizes.

#include <cmath>

#include "base/error.h"
#include "import/onnx_rule.h"

namespace berth {
namespace {

using onnx::TensorProto;

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

// An attribute that must be one number from 1 to 2^31.
int64_t PositiveAttribute(const OnnxNode& node, std::string_view name, int64_t otherwise) {
  const int64_t number = node.attributes.Int(name, otherwise);
  if (number < 1 || number > kMost) throw Error("{}: {} is {}; it must be from 1 to 2^31", node.where, name, number);
  return number;
}

// --- Convolutions and poolings -----------------------------------------------------------------------------

// What they have in common.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads;  // pads: all begins, then all ends
  std::string_view auto_pad;

  int64_t Extent(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
  int64_t Padding(size_t axis) const { return pads[axis] + pads[axis + kernel.size()]; }
  bool Same() const { return auto_pad.starts_with("SAME"); }
};

// `weight` is the input that holds the filter, or 0 for a pooling. None, with the reason in i.problem, when ranks do
// not go together. Throws Error for attributes that no such op can have.
std::optional<Window> ReadWindow(Inference& i, size_t weight) {
  const bool filtered = weight > 0;
  if (!i.Has(0) || (filtered && !i.Has(weight))) {
    i.problem = "an input is missing";
    return std::nullopt;
  }
  if (i.Rank(0) < 3 || (filtered && i.Rank(weight) != i.Rank(0))) {
    i.problem = fmt::format("an input of {}{} has no such window", ToString(i.DimsOf(0)),
                            filtered ? " under a filter of " + ToString(i.DimsOf(weight)) : "");
    return std::nullopt;
  }
  const size_t axes = i.Rank(0) - 2;
  auto kernel = PerAxis(i.node, "kernel_shape", axes, 1, 1);
  const auto strides = PerAxis(i.node, "strides", axes, 1, 1), dilations = PerAxis(i.node, "dilations", axes, 1, 1),
             pads = PerAxis(i.node, "pads", 2 * axes, 0, -kMost);
  if (!kernel || !strides || !dilations || !pads) {
    i.problem = fmt::format("its attributes are not for {} axes", axes);
    return std::nullopt;
  }
  if (filtered) kernel->assign(i.DimsOf(weight).begin() + 2, i.DimsOf(weight).end());
  for (const int64_t size : *kernel) {
    if (size < 0 || size > kMost) {
      i.problem = "its filter is too large";
      return std::nullopt;
    }
  }
  return Window{*kernel, *strides, *dilations, *pads, i.node.attributes.Text("auto_pad", "NOTSET")};
}

bool ChannelsFit(Inference& i, int64_t channels, int64_t wanted) {
  if (channels == wanted) return true;
  return i.Fail(
      fmt::format("its filter is for {} channels, its input {} has {}", wanted, ToString(i.DimsOf(0)), channels));
}

// Output dimensions under a window.
std::optional<Dims> Slide(Inference& i, const Window& window, int64_t channels) {
  const Dims& input = i.DimsOf(0);
  const bool rounds_up = i.node.attributes.Int("ceil_mode", 0) != 0;
  Dims dims = {input[0], channels};
  for (size_t axis = 0; axis + 2 < input.size(); ++axis) {
    const int64_t size = input[axis + 2], stride = window.strides[axis];
    if (window.Same()) {
      dims.push_back(DivideUp(size, stride));
      continue;
    }
    const int64_t padding = window.auto_pad == "VALID" ? 0 : window.Padding(axis);
    const int64_t room = size + padding - window.Extent(axis);
    if (room < 0) {
      throw Error("{}: a window of {} does not fit into {} with a padding of {}; check the sizes of the inputs",
                  i.node.where, window.Extent(axis), size, padding);
    }
    int64_t count = room / stride + 1;
    // A window that would begin in the padding behind the input is none.
    if (rounds_up && room % stride != 0 && count * stride < size + window.pads[axis]) ++count;
    dims.push_back(count);
  }
  return dims;
}

template <size_t kWeight>
bool Convolution(Inference& i) {
  const std::optional<Window> window = ReadWindow(i, kWeight);
  if (!window) return false;
  const Dims& filter = i.DimsOf(kWeight);
  const int64_t group = PositiveAttribute(i.node, "group", 1);
  if (!ChannelsFit(i, i.DimsOf(0)[1], Multiply(filter[1], group, i.node))) return false;
  const int32_t type = i.node.type == "ConvInteger"   ? TensorProto::INT32
                       : i.node.type == "QLinearConv" ? i.TypeOf(7)
                                                      : i.TypeOf(0);
  std::optional<Dims> dims = Slide(i, *window, filter[0]);
  return dims && i.Set(0, type, std::move(*dims));
}

// Its second output, of MaxPool alone, is where each maximum was.
bool Pooling(Inference& i) {
  const std::optional<Window> window = ReadWindow(i, 0);
  if (!window) return false;
  const std::optional<Dims> dims = Slide(i, *window, i.DimsOf(0)[1]);
  return dims && i.Set(0, i.TypeOf(0), *dims) && i.Set(1, TensorProto::INT64, *dims);
}

// stride (n - 1) + extent - padding, per axis: what a window leaves when it is slid backwards.
std::optional<int64_t> SlideBack(const Window& window, size_t axis, int64_t size) {
  int64_t result = 0;
  if (__builtin_mul_overflow(size - 1, window.strides[axis], &result) ||
      __builtin_add_overflow(result, window.Extent(axis), &result) ||
      __builtin_sub_overflow(result, window.Padding(axis), &result)) {
    return std::nullopt;
  }
  return result;
}

bool ConvTranspose(Inference& i) {
  const std::optional<Window> window = ReadWindow(i, 1);
  if (!window) return false;
  const Dims &input = i.DimsOf(0), &filter = i.DimsOf(1);
  const size_t axes = input.size() - 2;
  const int64_t group = PositiveAttribute(i.node, "group", 1);
  const auto extra = PerAxis(i.node, "output_padding", axes, 0, 0), asked = PerAxis(i.node, "output_shape", axes, 0, 0);
  if (!extra || !asked) return i.Fail(fmt::format("its attributes are not for {} axes", axes));
  if (!ChannelsFit(i, input[1], filter[0])) return false;
  Dims dims = {input[0], Multiply(filter[1], group, i.node)};
  for (size_t axis = 0; axis < axes; ++axis) {
    if (i.node.attributes.Has("output_shape")) {
      dims.push_back((*asked)[axis]);
    } else if (window->Same()) {
      dims.push_back(Multiply(input[axis + 2], window->strides[axis], i.node));
    } else {
      const std::optional<int64_t> size = SlideBack(*window, axis, input[axis + 2]);
      if (!size) return false;
      dims.push_back(Add(*size, (*extra)[axis], i.node));
    }
  }
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

// The whole shape is given, or it is that which the pooling had.
bool MaxUnpool(Inference& i) {
  if (const Content* shape = i.node.InputContent(2)) return i.Set(0, i.TypeOf(0), ToInts(*shape));
  const std::optional<Window> window = ReadWindow(i, 0);
  if (!window) return false;
  if (i.In(2) != nullptr) i.Guess();
  Dims dims = {i.DimsOf(0)[0], i.DimsOf(0)[1]};
  for (size_t axis = 0; axis + 2 < i.Rank(0); ++axis) {
    const std::optional<int64_t> size = SlideBack(*window, axis, i.DimsOf(0)[axis + 2]);
    if (!size) return false;
    dims.push_back(*size);
  }
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

bool GlobalPooling(Inference& i) {
  if (!i.Has(0, 2)) return false;
  Dims dims = i.DimsOf(0);
  std::fill(dims.begin() + 2, dims.end(), 1);
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

// --- Regions and samples -----------------------------------------------------------------------------------

bool MaxRoiPool(Inference& i) {
  const auto sizes = i.node.attributes.Ints("pooled_shape");
  if (!i.Has(0, 2) || !i.Has(1, 1)) return false;
  Dims dims = {i.DimsOf(1)[0], i.DimsOf(0)[1]};
  dims.insert(dims.end(), sizes.begin(), sizes.end());
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

bool RoiAlign(Inference& i) {
  if (!i.Has(0, 2) || !i.Has(1, 1)) return false;
  return i.Set(0, i.TypeOf(0),
               {i.DimsOf(1)[0], i.DimsOf(0)[1], PositiveAttribute(i.node, "output_height", 1),
                PositiveAttribute(i.node, "output_width", 1)});
}

// A grid (N, D1, .., Dr, r) of places in (N, C, ..).
bool GridSample(Inference& i) {
  if (!i.Has(0, 3) || !i.Has(1, 3) || i.Rank(0) != i.Rank(1)) return i.Fail("its grid is not for its input");
  Dims dims = {i.DimsOf(0)[0], i.DimsOf(0)[1]};
  dims.insert(dims.end(), i.DimsOf(1).begin() + 1, i.DimsOf(1).end() - 1);
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

// The size is (N, C, ..); the grid has a place, of as many numbers as there are spatial axes, per position.
bool AffineGrid(Inference& i) {
  const Content* size = i.node.InputContent(1);
  if (size == nullptr || size->size() < 3) return i.Lack("its size is not known");
  const std::vector<int64_t> sizes = ToInts(*size);
  Dims dims = {sizes[0]};
  dims.insert(dims.end(), sizes.begin() + 2, sizes.end());
  dims.push_back(static_cast<int64_t>(sizes.size()) - 2);
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

// Columns (N, C blocks, L) back into an image; of unknown blocks C is.
bool Col2Im(Inference& i) {
  if (!i.Has(0, 3)) return false;
  const Content *image = i.node.InputContent(1), *block = i.node.InputContent(2);
  if (image == nullptr || block == nullptr) return i.Lack("the sizes of its image or of its blocks are not known");
  int64_t area = 1;
  for (const int64_t side : ToInts(*block)) area = Multiply(area, side, i.node);
  const int64_t columns = i.DimsOf(0)[1];
  if (area < 1 || columns % area != 0) return i.Fail(fmt::format("{} rows are no blocks of {}", columns, area));
  Dims dims = {i.DimsOf(0)[0], columns / area};
  const std::vector<int64_t> sizes = ToInts(*image);
  dims.insert(dims.end(), sizes.begin(), sizes.end());
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

// --- Other sizes -------------------------------------------------------------------------------------------

bool DepthToSpace(Inference& i) {
  const int64_t block = PositiveAttribute(i.node, "blocksize", 0);
  if (!i.Has(0)) return false;
  const Dims& input = i.DimsOf(0);
  if (input.size() != 4) return i.Fail(fmt::format("{} has no four dimensions", ToString(input)));
  const int64_t area = Multiply(block, block, i.node);
  if (input[1] % area != 0) return i.Fail(fmt::format("{} channels are no blocks of {}", input[1], area));
  return i.Set(0, i.TypeOf(0),
               {input[0], input[1] / area, Multiply(input[2], block, i.node), Multiply(input[3], block, i.node)});
}

bool SpaceToDepth(Inference& i) {
  const int64_t block = PositiveAttribute(i.node, "blocksize", 0);
  if (!i.Has(0)) return false;
  const Dims& input = i.DimsOf(0);
  if (input.size() != 4) return i.Fail(fmt::format("{} has no four dimensions", ToString(input)));
  if (input[2] % block != 0 || input[3] % block != 0)
    return i.Fail(fmt::format("{} is not made of blocks of {}", ToString(input), block));
  return i.Set(
      0, i.TypeOf(0),
      {input[0], Multiply(input[1], Multiply(block, block, i.node), i.node), input[2] / block, input[3] / block});
}

// The axes that an attribute names; all where it names none.
std::vector<size_t> AxesAttribute(Inference& i) {
  std::vector<size_t> axes;
  for (const int64_t axis : i.node.attributes.Ints("axes")) axes.push_back(Axis(i.node, axis, i.Rank(0)));
  if (i.node.attributes.Has("axes")) return axes;
  for (size_t axis = 0; axis < i.Rank(0); ++axis) axes.push_back(axis);
  return axes;
}

bool CenterCropPad(Inference& i) {
  if (!i.Has(0)) return false;
  Dims dims = i.DimsOf(0);
  const std::vector<size_t> axes = AxesAttribute(i);
  const Content* sizes = i.node.InputContent(1);
  if (sizes == nullptr) {
    i.Guess();
    return i.Set(0, i.TypeOf(0), std::move(dims));
  }
  if (sizes->size() != axes.size()) return i.Fail(fmt::format("{} sizes for {} axes", sizes->size(), axes.size()));
  for (size_t k = 0; k < axes.size(); ++k) dims[axes[k]] = ToInt((*sizes)[k]);
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

// Sizes from one scale per axis. Files are written with the scale in single precision: a quotient that is meant to be
// whole may be a hair below.
int64_t Scaled(int64_t size, long double scale) {
  return ToInt(std::floor(static_cast<long double>(static_cast<float>(size) * static_cast<float>(scale))));
}

// What it is resized to is given as scales or as sizes. The policies other than stretch keep the proportions: one scale
// for all axes, the smallest or the largest that was asked for.
bool Resize(Inference& i) {
  if (!i.Has(0)) return false;
  const Dims& input = i.DimsOf(0);
  const Content *scales = i.node.InputContent(i.node.opset < 11 ? 1 : 2), *sizes = i.node.InputContent(3);
  const bool by_scales = scales != nullptr && !scales->empty();
  const Content* given = by_scales ? scales : sizes;
  if (given == nullptr) {
    i.Guess();
    return i.Set(0, i.TypeOf(0), input);
  }
  const std::vector<size_t> axes = AxesAttribute(i);
  if (given->size() != axes.size()) return i.Fail(fmt::format("{} sizes for {} axes", given->size(), axes.size()));
  Dims dims = input;
  const std::string_view policy = i.node.attributes.Text("keep_aspect_ratio_policy", "stretch");
  if (by_scales || policy == "stretch") {
    for (size_t k = 0; k < axes.size(); ++k) {
      dims[axes[k]] = by_scales ? Scaled(input[axes[k]], (*given)[k]) : ToInt((*given)[k]);
    }
    return i.Set(0, i.TypeOf(0), std::move(dims));
  }
  if (axes.empty()) return i.Set(0, i.TypeOf(0), input);
  std::vector<long double> factors;
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t size = input[axes[k]];
    factors.push_back(size == 0 ? 1 : (*given)[k] / static_cast<long double>(size));
  }
  const auto [least, most] = std::ranges::minmax_element(factors);
  const long double factor = policy == "not_larger" ? *least : *most;
  for (const size_t axis : axes) {
    dims[axis] = ToInt(std::floor(static_cast<long double>(input[axis]) * factor + 0.5L));
  }
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

// Before opset 9 the scales are an attribute.
bool Upsample(Inference& i) {
  if (!i.Has(0)) return false;
  Dims dims = i.DimsOf(0);
  Content scales;
  if (const Content* content = i.node.InputContent(1)) {
    scales = *content;
  } else if (i.In(1) == nullptr) {
    const auto reals = i.node.attributes.Reals("scales");
    scales.assign(reals.begin(), reals.end());
  } else {
    i.Guess();
    return i.Set(0, i.TypeOf(0), std::move(dims));
  }
  if (scales.size() != dims.size()) return i.Fail(fmt::format("{} scales for {} axes", scales.size(), dims.size()));
  for (size_t axis = 0; axis < dims.size(); ++axis) dims[axis] = Scaled(dims[axis], scales[axis]);
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

constexpr ShapeRuleEntry kWindowShapeRules[] = {
    {"Conv", Convolution<1>},
    {"FusedConv", Convolution<1>},
    {"ConvInteger", Convolution<1>},
    {"DeformConv", Convolution<1>},
    {"QLinearConv", Convolution<3>},
    {"ConvTranspose", ConvTranspose},
    {"MaxPool", Pooling},
    {"AveragePool", Pooling},
    {"LpPool", Pooling},
    {"MaxUnpool", MaxUnpool},
    {"GlobalAveragePool", GlobalPooling},
    {"GlobalLpPool", GlobalPooling},
    {"GlobalMaxPool", GlobalPooling},
    {"MaxRoiPool", MaxRoiPool},
    {"RoiAlign", RoiAlign},
    {"GridSample", GridSample},
    {"AffineGrid", AffineGrid},
    {"Col2Im", Col2Im},
    {"DepthToSpace", DepthToSpace},
    {"SpaceToDepth", SpaceToDepth},
    {"CenterCropPad", CenterCropPad},
    {"Resize", Resize},
    {"Upsample", Upsample},
};

}  // namespace

std::span<const ShapeRuleEntry> WindowShapeRules() { return kWindowShapeRules; }

}  // namespace berth
