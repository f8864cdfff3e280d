// One node of an ONNX graph as shape inference and folding see it: the inputs resolved.
#pragma once

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "import/onnx_value.h"
#include "import/op_table.h"

namespace berth {

struct OnnxNode {
  const onnx::NodeProto& proto;
  std::string_view type;    // its op type
  std::string_view domain;  // "" for ai.onnx
  int64_t opset;            // the version of its domain that the file imports
  Attributes attributes;
  std::vector<const OnnxValue*> inputs;  // null: not given
  std::string where;                     // "model.onnx: node 'conv1' (Conv)"
  // The least certain content that was asked for: what is made of it is as doubtful. It is noted where it is asked for,
  // so that no rule can forget it.
  mutable Certainty consulted = Certainty::kKnown;

  const OnnxValue* Input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  // The content of a small constant input; null when there is none.
  const Content* InputContent(size_t i) const {
    const OnnxValue* input = Input(i);
    if (input == nullptr || !input->content) return nullptr;
    consulted = std::max(consulted, input->content_certainty);
    return &*input->content;
  }
  // The least certain of the inputs' sizes and of the contents that were asked for.
  Certainty InputCertainty() const {
    Certainty worst = consulted;
    for (const OnnxValue* input : inputs) {
      if (input != nullptr) worst = std::max(worst, input->certainty);
    }
    return worst;
  }
};

// Graph-valued attributes are left out; tensors appear as their elements when they are few.
Attributes ReadAttributes(const onnx::NodeProto& node);

// A negative axis counts from the back; throws Error when it is outside.
size_t Axis(const OnnxNode& node, int64_t axis, size_t rank);
// `axes` given as the attribute of that name or, since opset 13 or 18, as input `input`; empty when neither is there.
// `known` is cleared when they are an input without content.
std::vector<int64_t> Axes(const OnnxNode& node, size_t input, bool& known);

}  // namespace berth
