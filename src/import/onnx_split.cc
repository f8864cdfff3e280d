#include "import/onnx_split.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/version.h"
#include "import/onnx_model.h"
#include "import/onnx_nodes.h"

namespace berth {
namespace {

namespace fs = std::filesystem;
using onnx::GraphProto;
using onnx::NodeProto;
using onnx::TensorProto;
using onnx::ValueInfoProto;

// Readers map the file into memory page by page.
constexpr int64_t kPage = 4096;

bool IsExternal(const TensorProto& tensor) { return tensor.data_location() == TensorProto::EXTERNAL; }

// Calls visit(tensor) for each that the node holds, those of its bodies too.
void ForEachTensor(NodeProto& node, const std::function<void(TensorProto&)>& visit) {
  const auto visit_graph = [&](GraphProto& graph) {
    for (TensorProto& tensor : *graph.mutable_initializer()) visit(tensor);
    for (NodeProto& inner : *graph.mutable_node()) ForEachTensor(inner, visit);
  };
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.has_t()) visit(*attribute.mutable_t());
    for (TensorProto& tensor : *attribute.mutable_tensors()) visit(tensor);
    if (attribute.has_g()) visit_graph(*attribute.mutable_g());
    for (GraphProto& graph : *attribute.mutable_graphs()) visit_graph(graph);
  }
}

// A place in a file beside the model.
struct Stored {
  std::string file;
  int64_t offset = 0, length = 0;
  auto operator<=>(const Stored&) const = default;
};

int64_t NumberOf(const onnx::StringStringEntryProto& entry, const std::string& where) {
  int64_t number = 0;
  const std::string& text = entry.value();
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size() || number < 0) {
    throw Error("{}: {} of its external data is '{}'; a number of bytes was expected", where, entry.key(), text);
  }
  return number;
}

}  // namespace

class OnnxSplit::Divider {
 public:
  Divider(std::string_view content, std::string path, const ImportOptions& options, const Graph& graph)
      : path_(std::move(path)),
        model_(ParseOnnx(content, path_)),
        types_(FindTensorTypes(model_, path_, options)),
        nodes_(model_.graph(), graph) {
    const GraphProto& main = model_.graph();
    for (const ValueInfoProto& info : main.value_info()) infos_.emplace(info.name(), &info);
    for (const ValueInfoProto& info : main.output()) infos_.emplace(info.name(), &info);
    for (const TensorProto& tensor : main.initializer()) initializer_.emplace(tensor.name(), &tensor);
    for (const auto& sparse : main.sparse_initializer()) sparse_.emplace(sparse.values().name(), &sparse);
    for (const ValueInfoProto& info : main.input()) {
      infos_.insert_or_assign(info.name(), &info);
      input_.insert(info.name());
    }
  }

  const OnnxNodes& nodes() const { return nodes_; }

  std::vector<OnnxPort> Inputs() const {
    std::vector<OnnxPort> ports;
    for (const ValueInfoProto& info : model_.graph().input()) {
      if (!IsInitializer(info.name())) ports.push_back(Port(info.name()));
    }
    return ports;
  }
  std::vector<OnnxPort> Outputs() const {
    std::vector<OnnxPort> ports;
    for (const ValueInfoProto& info : model_.graph().output()) ports.push_back(Port(info.name()));
    return ports;
  }

  std::vector<OnnxPart> Divide(std::span<const std::vector<int32_t>> parts, const std::string& weights) {
    weights_ = weights;
    moved_.clear();
    end_ = 0;
    std::vector<std::set<std::string>> made(parts.size()), taken(parts.size());
    std::vector<std::vector<size_t>> members(parts.size());
    for (size_t part = 0; part < parts.size(); ++part) {
      members[part] = WithConstants(parts[part], part == 0);
      for (const size_t node : members[part]) {
        for (const std::string& output : Node(node).output()) made[part].insert(output);
      }
      for (const size_t node : members[part]) {
        for (const std::string& name : nodes_.reads[node]) {
          if (!made[part].contains(name) && !IsInitializer(name)) taken[part].insert(name);
        }
      }
    }
    // Taken from another part, or from outside.
    std::set<std::string> wanted;
    for (const auto& names : taken) wanted.insert(names.begin(), names.end());
    for (const ValueInfoProto& output : model_.graph().output()) wanted.insert(output.name());

    std::vector<OnnxPart> result;
    for (size_t part = 0; part < parts.size(); ++part) {
      std::vector<std::string> given;
      for (const size_t node : members[part]) {
        // Constants that several parts have are taken from none.
        const bool constant = nodes_.constant[node];
        for (const std::string& name : Node(node).output()) {
          const bool out = constant ? part == 0 && IsOutput(name) : wanted.contains(name);
          if (!name.empty() && out) given.push_back(name);
        }
      }
      if (part == 0) {
        for (const ValueInfoProto& output : model_.graph().output()) {
          if (IsInitializer(output.name())) given.push_back(output.name());
        }
      }
      result.push_back(Make(part, members[part], {taken[part].begin(), taken[part].end()}, std::move(given)));
    }
    return result;
  }

  bool has_stored_weights() const { return !moved_.empty(); }

  void CopyWeights(const std::string& path) const {
    if (moved_.empty()) return;
    std::ofstream out(path, std::ios::binary);
    std::vector<char> buffer(1 << 20);
    for (const auto& [stored, at] : moved_) {
      std::ifstream in(fs::path(path_).parent_path() / stored.file, std::ios::binary);
      in.seekg(stored.offset);
      out.seekp(at);
      for (int64_t left = stored.length; left > 0 && in && out;) {
        const auto count = static_cast<std::streamsize>(std::min<int64_t>(left, std::ssize(buffer)));
        in.read(buffer.data(), count);
        out.write(buffer.data(), in.gcount());
        left -= in.gcount();
      }
      if (!in) throw Error("{}: its weights in {} cannot be read to their end", path_, stored.file);
    }
    out.close();
    if (!out) throw Error("{}: cannot be written; is there room for {} bytes?", path, end_);
  }

 private:
  const NodeProto& Node(size_t position) const { return model_.graph().node(static_cast<int>(position)); }
  bool IsInitializer(const std::string& name) const { return initializer_.contains(name) || sparse_.contains(name); }
  bool IsOutput(const std::string& name) const {
    return std::ranges::any_of(model_.graph().output(), [&](const auto& output) { return output.name() == name; });
  }

  OnnxPort Port(const std::string& name) const {
    OnnxPort port{.name = name, .type = {}, .shape = {}};
    if (const auto known = types_.find(name); known != types_.end()) {
      port.type = ElementTypeName(known->second.type);
      if (known->second.known_dims) port.shape = known->second.dims;
    }
    return port;
  }

  // In topological order, with the constants that they need; outputs that are constant are the first part's.
  std::vector<size_t> WithConstants(const std::vector<int32_t>& numbers, bool first) const {
    std::set<size_t> members;
    std::vector<size_t> stack;
    const auto add = [&](const std::string& name) {
      const auto made = nodes_.maker.find(name);
      if (made == nodes_.maker.end() || !nodes_.constant[made->second] || !members.insert(made->second).second) return;
      stack.push_back(made->second);
    };
    for (const int32_t number : numbers) {
      const size_t node = nodes_.position[static_cast<size_t>(number)];
      members.insert(node);
      stack.push_back(node);
    }
    if (first) {
      for (const ValueInfoProto& output : model_.graph().output()) add(output.name());
    }
    while (!stack.empty()) {
      const size_t node = stack.back();
      stack.pop_back();
      for (const std::string& name : nodes_.reads[node]) add(name);
    }
    std::vector<size_t> sorted;
    for (const size_t node : nodes_.order) {
      if (members.contains(node)) sorted.push_back(node);
    }
    return sorted;
  }

  OnnxPart Make(size_t part, const std::vector<size_t>& members, std::vector<std::string> inputs,
                std::vector<std::string> outputs) {
    onnx::ModelProto model;
    model.set_ir_version(model_.ir_version());
    model.set_producer_name("Berth");
    model.set_producer_version(std::string(kVersion));
    *model.mutable_opset_import() = model_.opset_import();
    *model.mutable_metadata_props() = model_.metadata_props();
    GraphProto& graph = *model.mutable_graph();
    graph.set_name(fmt::format("{}_{}", model_.graph().name().empty() ? "part" : model_.graph().name(), part));
    std::set<std::string> constants;
    for (const std::string& name : outputs) {
      if (IsInitializer(name)) constants.insert(name);
    }
    for (const size_t node : members) {
      NodeProto& copy = *graph.add_node();
      copy = Node(node);
      ForEachTensor(copy, [&](TensorProto& tensor) { Relocate(tensor); });
      for (const std::string& name : nodes_.reads[node]) {
        if (IsInitializer(name)) constants.insert(name);
      }
    }
    for (const std::string& name : inputs) *graph.add_input() = Describe(name);
    for (const std::string& name : outputs) *graph.add_output() = Describe(name);
    for (const std::string& name : constants) {
      // Files of old list them among the inputs, too.
      if (input_.contains(name)) *graph.add_input() = *infos_.at(name);
      if (const auto sparse = sparse_.find(name); sparse != sparse_.end()) {
        *graph.add_sparse_initializer() = *sparse->second;
      } else {
        TensorProto& copy = *graph.add_initializer();
        copy = *initializer_.at(name);
        CheckData(copy);
        Relocate(copy);
      }
    }
    for (const auto& quantized : model_.graph().quantization_annotation()) {
      const std::string& name = quantized.tensor_name();
      const bool here = constants.contains(name) || std::ranges::any_of(members, [&](size_t node) {
                          return std::ranges::count(Node(node).output(), name) > 0 ||
                                 std::ranges::count(Node(node).input(), name) > 0;
                        });
      if (here) *graph.add_quantization_annotation() = quantized;
    }
    return {.model = model.SerializeAsString(), .inputs = std::move(inputs), .outputs = std::move(outputs)};
  }

  // Type and, where it is certain, shape: the plan's, where the file leaves it open or has another.
  ValueInfoProto Describe(const std::string& name) const {
    const auto info = infos_.find(name);
    const auto known = types_.find(name);
    ValueInfoProto description;
    if (info != infos_.end()) description = *info->second;
    if (known == types_.end() || known->second.type == 0) {
      const bool has_type =
          info != infos_.end() && description.has_type() &&
          (!description.type().has_tensor_type() || description.type().tensor_type().elem_type() != 0);
      if (has_type) return description;
      throw Error(
          "{}: tensor '{}' would go from one part to another, but is a sequence or of an unknown type; place the ops "
          "that make and read it on one device (--colocate)",
          path_, name);
    }
    description.set_name(name);
    auto& tensor = *description.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(known->second.type);
    tensor.clear_shape();
    if (!known->second.known_dims) return description;
    tensor.mutable_shape();
    for (const int64_t size : known->second.dims) tensor.mutable_shape()->add_dim()->set_dim_value(size);
    return description;
  }

  // What is in a file beside the model will be in the parts' own.
  void Relocate(TensorProto& tensor) {
    if (!IsExternal(tensor)) return;
    const std::string where = fmt::format("{}: tensor '{}'", path_, tensor.name());
    Stored stored{.file = {}, .length = -1};
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() == "location") stored.file = entry.value();
      if (entry.key() == "offset") stored.offset = NumberOf(entry, where);
      if (entry.key() == "length") stored.length = NumberOf(entry, where);
    }
    // As ONNX has it: a path below the model's folder.
    const fs::path location = stored.file;
    const bool outside = location.is_absolute() || std::ranges::count(location, "..") > 0;
    if (stored.file.empty() || outside) {
      throw Error("{}: its data is in '{}'; a file in the model's folder was expected", where, stored.file);
    }
    std::error_code code;
    const fs::path file = fs::path(path_).parent_path() / location;
    const auto size = static_cast<int64_t>(fs::file_size(file, code));
    if (code) throw Error("{}: its data is in {}, which cannot be read: {}", where, file.string(), code.message());
    if (stored.length < 0) stored.length = size - stored.offset;
    if (stored.length < 0 || stored.offset > size - stored.length) {
      throw Error("{}: its data ends beyond {}, which has {} bytes", where, file.string(), size);
    }
    const auto [moved, fresh] = moved_.try_emplace(stored, end_);
    if (fresh) end_ = (end_ + stored.length + kPage - 1) / kPage * kPage;
    tensor.clear_external_data();
    const auto set = [&](const char* key, std::string value) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(std::move(value));
    };
    set("location", weights_);
    set("offset", std::to_string(moved->second));
    set("length", std::to_string(stored.length));
  }

  // Models without weights are planned, but none runs.
  void CheckData(const TensorProto& tensor) const {
    const bool empty = std::ranges::count(tensor.dims(), 0) > 0;
    const bool there = IsExternal(tensor) || tensor.has_raw_data() || tensor.float_data_size() > 0 ||
                       tensor.int32_data_size() > 0 || tensor.string_data_size() > 0 || tensor.int64_data_size() > 0 ||
                       tensor.double_data_size() > 0 || tensor.uint64_data_size() > 0;
    if (!there && !empty) {
      throw Error("{}: weight '{}' has no data, so no runtime can run the parts; export the model with its weights",
                  path_, tensor.name());
    }
  }

  std::string path_, weights_;
  onnx::ModelProto model_;
  TensorTypes types_;
  OnnxNodes nodes_;
  std::set<std::string> input_;
  std::unordered_map<std::string, const TensorProto*> initializer_;
  std::unordered_map<std::string, const onnx::SparseTensorProto*> sparse_;
  std::unordered_map<std::string, const ValueInfoProto*> infos_;
  std::map<Stored, int64_t> moved_;  // where they are in the new file
  int64_t end_ = 0;                  // of that
};

OnnxSplit::OnnxSplit(std::string_view content, std::string path, const ImportOptions& options, const Graph& graph)
    : divider_(std::make_unique<Divider>(content, std::move(path), options, graph)) {}
OnnxSplit::~OnnxSplit() = default;

const std::vector<std::vector<int32_t>>& OnnxSplit::predecessors() const { return divider_->nodes().predecessors; }
const std::vector<OpId>& OnnxSplit::op() const { return divider_->nodes().op; }
size_t OnnxSplit::ops_within_others() const { return divider_->nodes().ops_within_others; }
std::vector<OnnxPort> OnnxSplit::inputs() const { return divider_->Inputs(); }
std::vector<OnnxPort> OnnxSplit::outputs() const { return divider_->Outputs(); }
std::vector<OnnxPart> OnnxSplit::Divide(std::span<const std::vector<int32_t>> nodes, const std::string& weights) {
  return divider_->Divide(nodes, weights);
}
bool OnnxSplit::has_stored_weights() const { return divider_->has_stored_weights(); }
void OnnxSplit::CopyWeights(const std::string& path) const { divider_->CopyWeights(path); }

}  // namespace berth
