#include "worker/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <openvino/frontend/onnx/extension/conversion.hpp>
#include <openvino/op/ops.hpp>
#include <openvino/pass/constant_folding.hpp>
#include <openvino/pass/manager.hpp>
#include <optional>
#include <regex>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"

namespace berth {
namespace {

constexpr size_t kFewestOfAWeight = 16;
constexpr uint64_t kWeightSeed = 7, kInputSeed = 3;

bool IsHelper(const ov::Node& node) {
  return ov::is_type<ov::op::v0::Constant>(&node) || ov::is_type<ov::op::v0::Parameter>(&node) ||
         ov::is_type<ov::op::v0::Result>(&node);
}

// --- Reading -----------------------------------------------------------------------------------------------

// An IR's .xml without its .bin: weights of zeros, which are filled later.
std::shared_ptr<ov::Model> ReadWithoutWeights(const std::string& path, ov::Core& core) {
  const std::string xml = ReadFile(path, {.what = "model"});
  static const std::regex kData(R"re(offset="(\d+)"[^>]*\bsize="(\d+)"|\bsize="(\d+)"[^>]*offset="(\d+)")re");
  size_t bytes = 0;
  for (std::sregex_iterator at(xml.begin(), xml.end(), kData), end; at != end; ++at) {
    const bool offset_first = (*at)[1].matched;
    bytes = std::max(bytes, std::stoul((*at)[offset_first ? 1 : 4]) + std::stoul((*at)[offset_first ? 2 : 3]));
  }
  ov::Tensor weights(ov::element::u8, {bytes});
  if (bytes > 0) std::memset(weights.data(), 0, bytes);
  return core.read_model(xml, weights);
}

// At inference Dropout passes on what it is given; OpenVINO refuses the form with a `training_mode` input.
void AddDropout(ov::Core& core) {
  core.add_extension(std::make_shared<ov::frontend::onnx::ConversionExtension>(
      "Dropout", [](const ov::frontend::NodeContext& node) -> ov::OutputVector { return {node.get_input(0)}; }));
}

// --- Weights -----------------------------------------------------------------------------------------------

template <typename Element>
bool AllEqual(const ov::op::v0::Constant& constant) {
  const auto* values = constant.get_data_ptr<Element>();
  const size_t count = ov::shape_size(constant.get_shape());
  return std::all_of(values, values + count, [&](const Element& value) { return value == values[0]; });
}

// Calls `use` with an element of the type that weights have; answers nothing of any other type.
template <typename Use>
auto WithWeightType(ov::element::Type type, Use&& use) -> std::optional<decltype(use(float{}))> {
  if (type == ov::element::f32) return use(float{});
  if (type == ov::element::f16) return use(ov::float16{});
  if (type == ov::element::bf16) return use(ov::bfloat16{});
  return std::nullopt;
}

bool LooksMissing(const ov::op::v0::Constant& constant) {
  if (ov::shape_size(constant.get_shape()) < kFewestOfAWeight) return false;
  return WithWeightType(constant.get_element_type(),
                        [&]<typename Element>(Element) { return AllEqual<Element>(constant); })
      .value_or(false);
}

// Matrices and kernels as He et al. 2015 draw them, so that values neither grow nor vanish through the layers; vectors,
// among which are variances and scales, around 0.6 and above 0.5.
template <typename Element>
std::shared_ptr<ov::op::v0::Constant> Filled(const ov::op::v0::Constant& constant, Random random) {
  const ov::Shape& shape = constant.get_shape();
  const auto wide = std::ranges::count_if(shape, [](size_t size) { return size > 1; });
  double fan_in = 1;
  for (size_t axis = 1; axis < shape.size(); ++axis) fan_in *= static_cast<double>(shape[axis]);
  std::vector<Element> values(ov::shape_size(shape));
  for (Element& value : values) {
    const double drawn =
        wide > 1 ? random.Normal() * std::sqrt(2 / std::max(1.0, fan_in)) : 0.5 + std::abs(0.1 * random.Normal());
    value = static_cast<Element>(static_cast<float>(drawn));
  }
  return std::make_shared<ov::op::v0::Constant>(constant.get_element_type(), shape, values);
}

size_t FillWeights(ov::Model& model) {
  const Random random(kWeightSeed);
  size_t filled = 0;
  for (const std::shared_ptr<ov::Node>& node : model.get_ordered_ops()) {
    const auto constant = ov::as_type_ptr<ov::op::v0::Constant>(node);
    if (!constant || !LooksMissing(*constant)) continue;
    const Random own = random.Fork(filled++);
    const auto replacement = WithWeightType(constant->get_element_type(), [&]<typename Element>(Element) {
                               return Filled<Element>(*constant, own);
                             }).value();
    replacement->set_friendly_name(constant->get_friendly_name());
    replacement->output(0).set_names(constant->output(0).get_names());
    ov::replace_node(constant, replacement);
  }
  return filled;
}

// Normal numbers; ones where they are integers: a valid index, a mask that hides nothing.
std::vector<ov::Tensor> MakeInputs(const ov::Model& model) {
  std::vector<ov::Tensor> inputs;
  for (const std::shared_ptr<ov::op::v0::Parameter>& parameter : model.get_parameters()) {
    Random random = Random(kInputSeed).Fork(inputs.size());
    const ov::element::Type type = parameter->get_element_type();
    ov::Tensor tensor(type, parameter->get_shape());
    const size_t count = tensor.get_size();
    const auto fill = [&]<typename Element>(Element, auto&& next) {
      auto* values = tensor.data<Element>();
      for (size_t i = 0; i < count; ++i) values[i] = static_cast<Element>(next());
    };
    const auto normal = [&] { return static_cast<float>(random.Normal()); };
    const auto one = [] { return 1; };
    if (type == ov::element::f32) {
      fill(float{}, normal);
    } else if (type == ov::element::f16) {
      fill(ov::float16{}, normal);
    } else if (type == ov::element::bf16) {
      fill(ov::bfloat16{}, normal);
    } else if (type == ov::element::f64) {
      fill(double{}, normal);
    } else if (type == ov::element::i64) {
      fill(int64_t{}, one);
    } else if (type == ov::element::i32) {
      fill(int32_t{}, one);
    } else if (type == ov::element::i16) {
      fill(int16_t{}, one);
    } else if (type == ov::element::u64) {
      fill(uint64_t{}, one);
    } else if (type == ov::element::u32) {
      fill(uint32_t{}, one);
    } else if (type == ov::element::u16) {
      fill(uint16_t{}, one);
    } else if (type == ov::element::i8 || type == ov::element::u8 || type == ov::element::boolean) {
      std::memset(tensor.data(), 1, tensor.get_byte_size());
    } else {
      throw Error("input '{}' holds {}, which nothing here can make", parameter->get_friendly_name(),
                  type.get_type_name());
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

// --- Names -------------------------------------------------------------------------------------------------

void NameOps(const nlohmann::json& ops, LoadedModel& loaded) {
  std::unordered_map<std::string, int32_t> by_tensor, by_name;
  for (size_t op = 0; op < ops.size(); ++op) {
    by_name.emplace(ops[op].at("name"), static_cast<int32_t>(op));
    for (const nlohmann::json& tensor : ops[op].at("tensors")) by_tensor.emplace(tensor, static_cast<int32_t>(op));
  }
  std::vector<bool>& found = loaded.found;
  found.assign(ops.size(), false);
  for (const std::shared_ptr<ov::Node>& node : loaded.nodes) {
    int32_t op = -1;
    for (const ov::Output<ov::Node>& output : node->outputs()) {
      for (const std::string& name : output.get_names()) {
        const auto known = by_tensor.find(name);
        if (known == by_tensor.end()) continue;
        found[static_cast<size_t>(known->second)] = true;
        // A tensor that only passes an Identity has both names: the op that computes is the earlier one.
        op = op < 0 ? known->second : std::min(op, known->second);
      }
    }
    if (op < 0) {
      if (const auto known = by_name.find(node->get_friendly_name()); known != by_name.end()) op = known->second;
    }
    loaded.op_of.push_back(op);
    loaded.named.push_back(op >= 0);
    if (op >= 0) found[static_cast<size_t>(op)] = true;
  }

  // What has no name of its own goes with its first consumer, at the end of the graph with its producer.
  const std::vector<std::vector<int32_t>> before = loaded.Predecessors();
  std::vector<int32_t> first_consumer(loaded.nodes.size(), -1);
  for (size_t node = loaded.nodes.size(); node-- > 0;) {
    for (const int32_t from : before[node]) first_consumer[static_cast<size_t>(from)] = static_cast<int32_t>(node);
  }
  for (size_t node = loaded.nodes.size(); node-- > 0;) {
    int32_t& op = loaded.op_of[node];
    if (op < 0 && first_consumer[node] >= 0) op = loaded.op_of[static_cast<size_t>(first_consumer[node])];
  }
  for (size_t node = 0; node < loaded.nodes.size(); ++node) {
    int32_t& op = loaded.op_of[node];
    if (op < 0 && !before[node].empty()) op = loaded.op_of[static_cast<size_t>(before[node].front())];
    op = std::max(op, 0);
  }
  loaded.ops = ops.size();
  for (size_t op = 0; op < ops.size(); ++op) {
    if (found[op]) {
      ++loaded.ops_found;
    } else if (loaded.ops_missing.size() < 5) {
      loaded.ops_missing.push_back(ops[op].at("name"));
    }
  }
}

}  // namespace

std::shared_ptr<ov::Model> ReadModelFile(const std::string& path, ov::Core& core, const LoadOptions& options) {
  AddDropout(core);
  const std::filesystem::path file(path);
  std::filesystem::path weights = file;
  if (file.extension() == ".xml" && !std::filesystem::exists(weights.replace_extension(".bin"))) {
    if (options.as_in_file) throw Error("its weights are not there: {}", weights.string());
    return ReadWithoutWeights(path, core);
  }
  return core.read_model(path);
}

void FoldConstants(const std::shared_ptr<ov::Model>& model) {
  ov::pass::Manager passes;
  passes.register_pass<ov::pass::ConstantFolding>();
  passes.run_passes(model);
}

std::unordered_set<std::string> NamesOf(const ov::Output<ov::Node>& input) {
  std::unordered_set<std::string> names = input.get_names();
  names.insert(input.get_node()->get_friendly_name());
  for (const std::string& name : std::vector<std::string>(names.begin(), names.end())) {
    if (name.ends_with(":0")) names.insert(name.substr(0, name.size() - 2));
  }
  return names;
}

void SetSizes(ov::Model& model, const nlohmann::json& inputs) {
  std::map<ov::Output<ov::Node>, ov::PartialShape> shapes;
  for (const ov::Output<ov::Node>& input : model.inputs()) {
    ov::PartialShape shape = input.get_partial_shape();
    for (const std::string& name : NamesOf(input)) {
      if (!inputs.contains(name)) continue;
      const auto sizes = inputs.at(name).get<std::vector<int64_t>>();
      if (shape.rank().is_dynamic() || shape.rank().get_length() == static_cast<int64_t>(sizes.size())) {
        shape = ov::PartialShape(std::vector<ov::Dimension>(sizes.begin(), sizes.end()));
      }
    }
    if (shape.rank().is_dynamic()) shape = ov::PartialShape{};
    for (ov::Dimension& size : shape) {
      if (size.is_dynamic()) size = 1;
    }
    shapes.emplace(input, shape);
  }
  model.reshape(shapes);
}

int32_t LoadedModel::OpOf(const ov::Node& node) const {
  const auto known = [&](const ov::Node* other) -> int32_t {
    const auto found_at = number.find(other);
    return found_at == number.end() ? -1 : op_of[static_cast<size_t>(found_at->second)];
  };
  int32_t op = known(&node);
  if (op < 0 && ov::is_type<ov::op::v0::Result>(&node)) op = known(node.get_input_node_ptr(0));
  for (const ov::Output<const ov::Node>& output : node.outputs()) {
    for (const ov::Input<ov::Node>& consumer : output.get_target_inputs()) {
      if (op < 0) op = known(consumer.get_node());
    }
  }
  return op;
}

std::vector<std::vector<int32_t>> LoadedModel::Predecessors() const {
  std::vector<std::vector<int32_t>> before(nodes.size());
  for (size_t node = 0; node < nodes.size(); ++node) {
    for (const ov::Output<ov::Node>& input : nodes[node]->input_values()) {
      if (const auto known = number.find(input.get_node()); known != number.end())
        before[node].push_back(known->second);
    }
    std::ranges::sort(before[node]);
    before[node].erase(std::ranges::unique(before[node]).begin(), before[node].end());
  }
  return before;
}

std::string Brief(const std::exception& exception) {
  constexpr size_t kMost = 300;
  std::string brief;
  std::string_view text = exception.what();
  while (!text.empty() && brief.size() < kMost) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t")));
    // Where in OpenVINO's sources something was found out.
    if (line.empty() || line.starts_with("Exception from ") || line.starts_with("Check '")) continue;
    // A heading, above what says more.
    if (line == "Summary:" || line == "Model wasn't fully converted.") continue;
    brief += (brief.empty() ? "" : brief.back() == ':' ? " " : "; ") + std::string(line);
  }
  if (brief.empty()) brief = exception.what();
  return brief.size() > kMost ? brief.substr(0, kMost) + "..." : brief;
}

LoadedModel LoadModel(const nlohmann::json& question, ov::Core& core, const LoadOptions& options) {
  const std::string path = question.at("model");
  LoadedModel loaded;
  try {
    loaded.model = ReadModelFile(path, core, options);
    SetSizes(*loaded.model, question.at("inputs"));
    FoldConstants(loaded.model);
    if (!options.as_in_file) {
      loaded.weights_filled = FillWeights(*loaded.model);
      loaded.inputs = MakeInputs(*loaded.model);
    }
  } catch (const Error& error) {
    throw Error("{}: {}", path, error.what());
  } catch (const std::exception& exception) {
    throw Error("{}: OpenVINO does not take it: {}", path, Brief(exception));
  }
  for (const std::shared_ptr<ov::Node>& node : loaded.model->get_ordered_ops()) {
    if (IsHelper(*node)) continue;
    loaded.number.emplace(node.get(), static_cast<int32_t>(loaded.nodes.size()));
    loaded.nodes.push_back(node);
  }
  NameOps(question.at("ops"), loaded);
  if (loaded.ops_found * 2 < loaded.ops) {
    throw Error(
        "{}: OpenVINO's reading has {} of the {} ops that were placed (it lacks '{}'); what is {} would not be the "
        "plan",
        path, loaded.ops_found, loaded.ops, loaded.ops_missing.empty() ? "" : loaded.ops_missing.front(),
        options.as_in_file ? "written" : "measured");
  }
  return loaded;
}

}  // namespace berth
