#include "import/onnx_node.h"

#include "base/error.h"

namespace berth {

using onnx::AttributeProto;

Attributes ReadAttributes(const onnx::NodeProto& node) {
  Attributes attributes;
  for (const AttributeProto& attribute : node.attribute()) {
    const std::string& name = attribute.name();
    // By what is there, not by the type field: files before IR 2 have none.
    if (attribute.has_i()) {
      attributes.Set(name, std::vector<int64_t>{attribute.i()});
    } else if (attribute.has_s()) {
      attributes.Set(name, attribute.s());
    } else if (attribute.has_f()) {
      attributes.Set(name, std::vector<double>{static_cast<double>(attribute.f())});
    } else if (attribute.floats_size() > 0) {
      attributes.Set(name, std::vector<double>(attribute.floats().begin(), attribute.floats().end()));
    } else if (!attribute.has_t() && !attribute.has_g() && attribute.strings_size() == 0) {
      attributes.Set(name, std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
    }
  }
  return attributes;
}

size_t Axis(const OnnxNode& node, int64_t axis, size_t rank) {
  const int64_t count = static_cast<int64_t>(rank);
  if (axis < -count || axis >= count)
    throw Error("{}: axis {} is outside of the {} that its input has", node.where, axis, rank);
  return static_cast<size_t>(axis < 0 ? axis + count : axis);
}

std::vector<int64_t> Axes(const OnnxNode& node, size_t input, bool& known) {
  if (const Content* content = node.InputContent(input)) return ToInts(*content);
  if (node.Input(input) != nullptr) known = false;
  const std::span<const int64_t> axes = node.attributes.Ints("axes");
  return {axes.begin(), axes.end()};
}

}  // namespace berth
