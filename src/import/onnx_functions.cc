#include "import/onnx_functions.h"

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/units.h"

namespace berth {
namespace {

using onnx::AttributeProto;
using onnx::FunctionProto;
using onnx::GraphProto;
using onnx::NodeProto;
using Nodes = google::protobuf::RepeatedPtrField<NodeProto>;

// Functions that call functions multiply: a few lines can mean more nodes than a machine holds, or the same constant
// more often.
constexpr size_t kMostNodes = 2'000'000;
constexpr size_t kMostBytes = size_t{4} << 30;
constexpr int kMostDepth = 100;

class Inliner {
 public:
  Inliner(const onnx::ModelProto& model, const std::string& path) : path_(path) {
    for (const FunctionProto& function : model.functions()) {
      functions_.emplace(
          Key{function.domain(), function.name(), Text(function, kFunctionOverload)},
          Function{.proto = function, .bytes = function.ByteSizeLong(), .defaults = DefaultsOf(function)});
    }
  }

  void Expand(GraphProto& graph, int depth) {
    Nodes nodes;
    nodes.Swap(graph.mutable_node());
    Expand(nodes, *graph.mutable_node(), depth);
  }

 private:
  // Fields that may be younger than the library's description of the format, which then keeps them unread.
  static constexpr int kFunctionAttributes = 11, kFunctionOverload = 13, kNodeOverload = 8;

  using Key = std::tuple<std::string, std::string, std::string>;  // domain, name, overload
  struct Function {
    FunctionProto proto;
    size_t bytes = 0;
    std::vector<AttributeProto> defaults;  // of attributes that a call leaves out
  };

  template <typename Visit>  // visit(the bytes of the field), of a text or of messages
  static void ForEach(const google::protobuf::Message& message, int number, const Visit& visit) {
    if (const auto* known = message.GetDescriptor()->FindFieldByNumber(number)) {
      const auto* reflection = message.GetReflection();
      if (!known->is_repeated()) visit(reflection->GetString(message, known));
      for (int i = 0; known->is_repeated() && i < reflection->FieldSize(message, known); ++i) {
        visit(reflection->GetRepeatedMessage(message, known, i).SerializeAsString());
      }
      return;
    }
    const auto& fields = message.GetReflection()->GetUnknownFields(message);
    for (int i = 0; i < fields.field_count(); ++i) {
      const auto& field = fields.field(i);
      if (field.number() == number && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
        visit(field.length_delimited());
      }
    }
  }

  static std::string Text(const google::protobuf::Message& message, int number) {
    std::string text;
    ForEach(message, number, [&](const std::string& bytes) { text = bytes; });
    return text;
  }

  std::vector<AttributeProto> DefaultsOf(const FunctionProto& function) const {
    std::vector<AttributeProto> defaults;
    ForEach(function, kFunctionAttributes, [&](const std::string& bytes) {
      if (!defaults.emplace_back().ParseFromString(bytes)) {
        throw Error("{}: function '{}' has a default that is no attribute", path_, function.name());
      }
    });
    return defaults;
  }

  // Moves `nodes` to `out`, calls replaced.
  void Expand(Nodes& nodes, Nodes& out, int depth) {
    if (depth > kMostDepth)
      throw Error("{}: its functions call each other more than {} deep; they must not be recursive", path_, kMostDepth);
    for (NodeProto& node : nodes) {
      if (++count_ > kMostNodes) throw Error("{}: its functions expand to more than {} nodes", path_, kMostNodes);
      for (AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) Expand(*attribute.mutable_g(), depth + 1);
      }
      const auto found = functions_.find({node.domain(), node.op_type(), Text(node, kNodeOverload)});
      if (found == functions_.end()) {
        out.Add()->Swap(&node);
        continue;
      }
      CountBytes(found->second.bytes);
      Nodes body = found->second.proto.node();
      for (const AttributeProto& each : found->second.defaults) {
        if (Given(node, each.name()) == nullptr) *node.add_attribute() = each;
      }
      Bind(found->second.proto, node, body);
      Expand(body, out, depth + 1);
    }
  }

  // Gives the nodes of a function's body the names of this call's tensors, and its attributes.
  void Bind(const FunctionProto& function, const NodeProto& call, Nodes& body) {
    const std::string prefix =
        fmt::format("{}/", call.name().empty() ? fmt::format("{}_{}", call.op_type(), ++calls_) : call.name());
    std::unordered_map<std::string, std::string> names;
    for (int i = 0; i < function.input_size(); ++i)
      names[function.input(i)] = i < call.input_size() ? call.input(i) : "";
    for (int i = 0; i < function.output_size(); ++i) {
      const bool used = i < call.output_size() && !call.output(i).empty();
      names[function.output(i)] = used ? call.output(i) : prefix + function.output(i);
    }
    size_t longest = prefix.size();
    for (const auto& [from, to] : names) longest = std::max(longest, to.size());
    CountGiven(body, call, longest);
    for (NodeProto& node : body) Rename(node, names, prefix, call);
  }

  void CountBytes(size_t bytes) {
    bytes_ += bytes;
    if (bytes_ > kMostBytes)
      throw Error("{}: its functions expand to more than {}", path_, ToString(Bytes{kMostBytes}));
  }

  // What the caller adds to nodes of a body, counted before any of it is copied: one attribute, or a part of all names,
  // may be longer than the whole function. `longest`: what a name becomes, or gets in front.
  void CountGiven(const Nodes& nodes, const NodeProto& call, size_t longest) {
    for (const NodeProto& node : nodes) {
      CountBytes(longest * static_cast<size_t>(node.input_size() + node.output_size() + 1));
      for (const AttributeProto& attribute : node.attribute()) {
        if (attribute.ref_attr_name().empty()) {
          if (!attribute.has_g()) continue;
          const GraphProto& graph = attribute.g();
          CountBytes(longest * static_cast<size_t>(graph.input_size() + graph.output_size() + graph.initializer_size() +
                                                   graph.sparse_initializer_size()));
          CountGiven(graph.node(), call, longest);
        } else if (const AttributeProto* given = Given(call, attribute.ref_attr_name())) {
          CountBytes(given->ByteSizeLong());
        }
      }
    }
  }

  void Rename(NodeProto& node, const std::unordered_map<std::string, std::string>& names, const std::string& prefix,
              const NodeProto& call) {
    const auto rename = [&](std::string* name) {
      if (name->empty()) return;
      const auto found = names.find(*name);
      *name = found != names.end() ? found->second : prefix + *name;
    };
    for (std::string& name : *node.mutable_input()) rename(&name);
    for (std::string& name : *node.mutable_output()) rename(&name);
    if (!node.name().empty()) node.set_name(prefix + node.name());
    auto& attributes = *node.mutable_attribute();
    for (int i = 0; i < attributes.size();) {
      AttributeProto& attribute = attributes[i];
      const bool refers = !attribute.ref_attr_name().empty();
      if (refers && !Substitute(attribute, call)) {
        attributes.DeleteSubrange(i, 1);
        continue;
      }
      // What the caller gives has the caller's names, and refers to the caller's attributes.
      if (attribute.has_g() && !refers) {
        GraphProto& graph = *attribute.mutable_g();
        for (auto& info : *graph.mutable_input()) rename(info.mutable_name());
        for (auto& info : *graph.mutable_output()) rename(info.mutable_name());
        for (auto& tensor : *graph.mutable_initializer()) rename(tensor.mutable_name());
        for (auto& sparse : *graph.mutable_sparse_initializer()) rename(sparse.mutable_values()->mutable_name());
        for (NodeProto& inner : *graph.mutable_node()) Rename(inner, names, prefix, call);
      }
      ++i;
    }
  }

  static const AttributeProto* Given(const NodeProto& call, const std::string& name) {
    const auto found = std::ranges::find(call.attribute(), name, &AttributeProto::name);
    return found == call.attribute().end() ? nullptr : &*found;
  }

  // False where the caller does not give the attribute that is referred to.
  static bool Substitute(AttributeProto& attribute, const NodeProto& call) {
    const AttributeProto* given = Given(call, attribute.ref_attr_name());
    if (given == nullptr) return false;
    const std::string name = attribute.name();
    attribute = *given;
    attribute.set_name(name);
    return true;
  }

  const std::string& path_;
  std::map<Key, Function> functions_;
  size_t count_ = 0;  // nodes so far
  size_t bytes_ = 0;  // of the bodies that were copied, and of names and attributes of their callers in them
  size_t calls_ = 0;
};

}  // namespace

void InlineFunctions(onnx::ModelProto& model, const std::string& path) {
  if (model.functions_size() == 0) return;
  Inliner(model, path).Expand(*model.mutable_graph(), 0);
  for (const FunctionProto& function : model.functions()) {
    for (const auto& import : function.opset_import()) {
      const auto& known = model.opset_import();
      const bool declared =
          std::ranges::any_of(known, [&](const auto& other) { return other.domain() == import.domain(); });
      if (!declared) *model.add_opset_import() = import;
    }
  }
}

}  // namespace berth
