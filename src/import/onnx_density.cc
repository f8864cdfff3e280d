#include "import/onnx_density.h"

#include <algorithm>
#include <string_view>

namespace berth {
namespace {

// Each element of the output is one of the input.
bool Moves(std::string_view type) {
  constexpr std::string_view kTypes[] = {"Identity",  "Reshape", "Flatten", "Squeeze",       "Unsqueeze",
                                         "Transpose", "Gather",  "Slice",   "Split",         "Cast",
                                         "CastLike",  "Expand",  "Tile",    "GatherElements"};
  return std::ranges::count(kTypes, type) > 0;
}

double ElementsOf(const OnnxValue& value) { return Elements(value.dims); }

// A constant that is zero everywhere, or the density that is known of it.
double DensityOf(const OnnxValue& value) {
  if (value.density >= 0 || !value.content || value.content->empty()) return value.density;
  const auto set = std::ranges::count_if(*value.content, [](long double number) { return number != 0; });
  return static_cast<double>(set) / static_cast<double>(value.content->size());
}

}  // namespace

void CarryDensity(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  if (!node.domain.empty() || outputs.empty() || node.Input(0) == nullptr || !outputs[0].known_dims) return;
  const OnnxValue& first = *node.Input(0);
  const OnnxValue* second = node.Input(1);
  OnnxValue& output = outputs[0];
  const std::string_view type = node.type;
  if (Moves(type)) {
    for (OnnxValue& part : outputs) {
      part.choices = first.choices;
      part.density = first.density;
    }
  } else if (type == "TopK" || type == "ArgMax" || type == "ArgMin") {
    const int64_t rank = static_cast<int64_t>(first.dims.size());
    const int64_t given = node.attributes.Int("axis", type == "TopK" ? -1 : 0), axis = given < 0 ? given + rank : given;
    OnnxValue& indices = outputs[type == "TopK" && outputs.size() > 1 ? 1 : 0];
    if (axis >= 0 && axis < rank && (type != "TopK" || outputs.size() > 1)) {
      indices.choices = first.dims[static_cast<size_t>(axis)];
    }
  } else if (type == "OneHot") {
    const double depth = ElementsOf(first) > 0 ? ElementsOf(output) / ElementsOf(first) : 0;
    if (depth >= 1) output.density = 1 / depth;
  } else if (type == "Equal" && second != nullptr) {
    const int64_t choices = std::max(first.choices, second->choices);
    if (choices > 0 && (first.constant || second->constant)) output.density = 1 / static_cast<double>(choices);
  } else if (type == "Not" && first.density >= 0) {
    output.density = 1 - first.density;
  } else if (type == "Greater" && first.density >= 0 && second != nullptr && DensityOf(*second) == 0) {
    output.density = first.density;
  } else if (type == "ConstantOfShape") {
    bool zero = true;
    for (const onnx::AttributeProto& attribute : node.proto.attribute()) zero &= attribute.name() != "value";
    if (zero) output.density = 0;
  } else if ((type == "ScatterElements" || type == "Scatter") && second != nullptr && second->choices > 0) {
    const double before = DensityOf(first), elements = ElementsOf(first);
    if (before >= 0 && elements > 0) output.density = std::min(1.0, before + ElementsOf(*second) / elements);
  } else if ((type == "ReduceMax" || type == "ReduceSum") && first.density >= 0 && ElementsOf(output) > 0) {
    // Different choices of one token: at most one of the elements that are put together is set.
    output.density = std::min(1.0, first.density * ElementsOf(first) / ElementsOf(output));
  }
}

}  // namespace berth
