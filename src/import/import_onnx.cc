// ONNX files: parsed, set to the sizes asked for, walked (onnx_graph.h), and made a Graph.

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <limits>
#include <set>

#include "base/error.h"
#include "import/import.h"
#include "import/onnx_functions.h"
#include "import/onnx_graph.h"
#include "import/onnx_model.h"
#include "import/onnx_shapes.h"

namespace berth {
namespace {

// --- Parsing -----------------------------------------------------------------------------------------------

onnx::ModelProto Parse(std::string_view content, const std::string& path) {
  if (content.empty()) throw Error("{}: is empty; an ONNX model was expected", path);
  if (content.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    throw Error("{}: has {} bytes; an ONNX file ends at 2 GiB, keep the weights in files of their own", path,
                content.size());
  }
  onnx::ModelProto model;
  google::protobuf::io::ArrayInputStream array(content.data(), static_cast<int>(content.size()));
  google::protobuf::io::CodedInputStream stream(&array);
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  if (!model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    throw Error("{}: is no ONNX model, or a damaged one: it cannot be read beyond about byte {} of {}", path,
                stream.CurrentPosition(), content.size());
  }
  if (!model.has_graph() || model.graph().node_size() == 0) {
    throw Error("{}: is read as ONNX, but has no graph with nodes; check that it is the model's file", path);
  }
  return model;
}

// What is newer than the library is read by the newest rules that are known.
std::map<std::string, int64_t, std::less<>> ReadVersions(const onnx::ModelProto& model, NoteList& notes) {
  if (model.ir_version() > kNewestIrVersion) {
    notes.Add("written for a newer ONNX, read as far as it is known",
              fmt::format("IR version {} (known: {})", model.ir_version(), kNewestIrVersion));
  }
  std::map<std::string, int64_t, std::less<>> opsets;
  for (const onnx::OperatorSetIdProto& import : model.opset_import()) {
    opsets[import.domain() == "ai.onnx" ? "" : import.domain()] = std::clamp<int64_t>(import.version(), 1, 1'000'000);
  }
  const int64_t opset = opsets.try_emplace("", kNewestOpset).first->second;
  if (opset > kNewestOpset) {
    notes.Add("written for a newer ONNX, read as far as it is known",
              fmt::format("opset {} (known: {})", opset, kNewestOpset));
  }
  return opsets;
}

// --- Sizes of the inputs -----------------------------------------------------------------------------------

// Declares what is fed from outside: the graph's inputs without initialisers, which files of IR version 3 list too.
class Inputs {
 public:
  Inputs(const onnx::ModelProto& model, OnnxScope& scope, OnnxWalk& walk) : walk_(walk) {
    for (const onnx::ValueInfoProto& info : model.graph().input()) {
      if (scope.IsDeclared(info.name())) continue;
      infos_.push_back(&info);
    }
  }

  // Throws Error for a --batch that no input plainly has.
  void Declare(OnnxScope& scope, const NamedSizes& shapes, std::optional<int64_t> batch) {
    if (batch) BindBatch(shapes, *batch);
    BindSymbols(shapes);
    for (const onnx::ValueInfoProto* info : infos_) {
      const std::string where = fmt::format("{}: input '{}'", walk_.path, info->name());
      OnnxValue value = ReadDeclared(*info);
      const auto& shape = info->type().tensor_type().shape();
      if (const auto asked = shapes.find(info->name()); asked != shapes.end()) {
        value.dims = asked->second;
      } else if (!info->type().tensor_type().has_shape()) {
        walk_.notes.Add("inputs whose shape the file does not say, taken as one element (set it with --shape)",
                        info->name());
        value.dims.clear();
        value.certainty = Certainty::kUnknown;
      } else {
        const auto axis = batch_axis_.find(info);
        for (int i = 0; i < shape.dim_size(); ++i) {
          if (!IsOpen(shape.dim(i))) continue;
          if (axis != batch_axis_.end() && axis->second == static_cast<size_t>(i)) continue;
          const std::string& symbol = shape.dim(i).dim_param();
          value.dims[static_cast<size_t>(i)] = SizeOf(symbol, info->name(), i);
          // One sample at a time is a choice; one word or one pixel is a guess.
          if (!symbols_.contains(symbol) && !IsBatch(symbol, i)) value.certainty = Certainty::kUnknown;
        }
        if (axis != batch_axis_.end()) value.dims[axis->second] = *batch;
      }
      value.known_dims = true;
      CheckedBytes(value.dims, value.type, where);
      positions_.push_back(scope.Declare(std::move(value)));
    }
  }

  const std::vector<size_t>& positions() const { return positions_; }

 private:
  // The axes of the inputs that are not given a shape of their own; which inputs have none is noted.
  void BindBatch(const NamedSizes& shapes, int64_t batch) {
    const bool named = std::ranges::any_of(infos_, [](const onnx::ValueInfoProto* info) {
      return std::ranges::any_of(info->type().tensor_type().shape().dim(),
                                 [](const auto& dim) { return NamesBatch(dim.dim_param()); });
    });
    for (const onnx::ValueInfoProto* info : infos_) {
      if (shapes.contains(info->name())) continue;
      if (const auto axis = BatchAxis(*info, named)) {
        batch_axis_[info] = *axis;
        const std::string& symbol = info->type().tensor_type().shape().dim(static_cast<int>(*axis)).dim_param();
        if (!symbol.empty()) symbols_.emplace(symbol, batch);
      } else {
        walk_.notes.Add(
            "inputs whose batch axis is not plain, which --batch leaves as they are (set them with --shape)",
            info->name());
      }
    }
    if (!infos_.empty() && shapes.size() >= infos_.size()) {
      throw Error("--batch {}: every input of {} has a --shape of its own; leave one of the two out", batch,
                  walk_.path);
    }
    if (batch_axis_.empty() && shapes.empty()) {
      std::vector<std::string> names;
      for (const onnx::ValueInfoProto* info : infos_) names.push_back(info->name());
      throw Error(
          "--batch {}: {} has no input of which it is plain which axis is the batch; set sizes with --shape: {}", batch,
          walk_.path, fmt::join(names, ", "));
    }
  }

  static bool NamesBatch(std::string_view symbol) {
    std::string lower;
    for (const char c : symbol) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return lower.find("batch") != std::string::npos || lower == "n" || lower == "b" || lower == "bs";
  }

  // Of an open size: the first axis, or what has its symbol or the name of a batch.
  bool IsBatch(const std::string& symbol, int axis) const {
    if (axis == 0 || NamesBatch(symbol)) return true;
    return !symbol.empty() && std::ranges::any_of(infos_, [&](const onnx::ValueInfoProto* info) {
      const auto& dims = info->type().tensor_type().shape().dim();
      return !dims.empty() && dims[0].dim_param() == symbol;
    });
  }

  // A symbol that an exporter made up: s0, dim_0, unk__12, or none at all.
  static bool IsAnonymous(std::string_view symbol) {
    const std::string_view word = symbol.substr(0, symbol.find_first_of("0123456789"));
    constexpr std::string_view kWords[] = {"", "s", "d", "dim", "dim_", "unk__", "dynamic_axes_", "?"};
    return std::ranges::count(kWords, word) > 0;
  }

  // Where one input names its batch, those that do not have none. Else the first axis, where it is open, or one of
  // several axes and of size one, or of an image or a larger tensor.
  static std::optional<size_t> BatchAxis(const onnx::ValueInfoProto& info, bool named) {
    const auto& shape = info.type().tensor_type().shape();
    for (int i = 0; i < shape.dim_size(); ++i) {
      if (NamesBatch(shape.dim(i).dim_param())) return static_cast<size_t>(i);
    }
    if (named || shape.dim_size() < 2) return std::nullopt;
    const auto& first = shape.dim(0);
    const bool open = IsOpen(first) && IsAnonymous(first.dim_param());
    const bool fixed = !IsOpen(first) && (first.dim_value() == 1 || shape.dim_size() >= 4);
    return open || fixed ? std::optional<size_t>(0) : std::nullopt;
  }

  // A symbol means the same number everywhere: a --shape for one input sets it for all.
  void BindSymbols(const NamedSizes& shapes) {
    for (const auto& [name, dims] : shapes) {
      const auto found = std::ranges::find(
          infos_, name, [](const onnx::ValueInfoProto* info) -> const std::string& { return info->name(); });
      if (found == infos_.end()) {
        std::vector<std::string> names;
        for (const onnx::ValueInfoProto* info : infos_) names.push_back(info->name());
        const std::string_view near = Closest(name, names);
        throw Error("--shape {}=...: {} has no input of that name; {} inputs are: {}", name, walk_.path,
                    near.empty() ? "its" : fmt::format("did you mean '{}'? Its", near), fmt::join(names, ", "));
      }
      if (!(*found)->type().tensor_type().has_shape()) continue;
      const auto& shape = (*found)->type().tensor_type().shape();
      if (shape.dim_size() != static_cast<int>(dims.size())) {
        throw Error("--shape {}={}: this input of {} has {} dimensions, not {}", name, fmt::join(dims, ","), walk_.path,
                    shape.dim_size(), dims.size());
      }
      for (int i = 0; i < shape.dim_size(); ++i) {
        if (shape.dim(i).dim_param().empty()) continue;
        const auto [symbol, fresh] = symbols_.emplace(shape.dim(i).dim_param(), dims[static_cast<size_t>(i)]);
        if (!fresh && symbol->second != dims[static_cast<size_t>(i)]) {
          throw Error("--shape {}={}: '{}' is {} here and {} in another --shape; it must be one number", name,
                      fmt::join(dims, ","), symbol->first, dims[static_cast<size_t>(i)], symbol->second);
        }
      }
    }
  }

  int64_t SizeOf(const std::string& symbol, const std::string& input, int axis) {
    if (const auto bound = symbols_.find(symbol); !symbol.empty() && bound != symbols_.end()) return bound->second;
    walk_.notes.Add(
        "sizes that the file leaves open, taken as 1 (set them with --shape, the batch with --batch)",
        symbol.empty() ? fmt::format("dimension {} of {}", axis, input) : fmt::format("{} of {}", symbol, input));
    return 1;
  }

  OnnxWalk& walk_;
  std::vector<const onnx::ValueInfoProto*> infos_;
  std::map<std::string, int64_t, std::less<>> symbols_;
  std::map<const onnx::ValueInfoProto*, size_t> batch_axis_;
  std::vector<size_t> positions_;
};

// Sizes of inputs in the file, and what they are now.
SizeChanges Changes(const OnnxWalk& walk, const std::vector<size_t>& inputs) {
  SizeChanges changes;
  for (const size_t position : inputs) {
    const OnnxValue& value = walk.pool[position];
    const auto before = walk.file_shapes->dims.find(value.name);
    if (before == walk.file_shapes->dims.end() || before->second.size() != value.dims.size()) continue;
    for (size_t axis = 0; axis < value.dims.size(); ++axis) {
      if (before->second[axis] != value.dims[axis]) changes.emplace(before->second[axis], value.dims[axis]);
    }
  }
  return changes;
}

// --- From walk to graph ------------------------------------------------------------------------------------

// Ops whose results nobody uses are left out: what is only asked for its shape never runs.
std::vector<bool> Needed(const OnnxScope& scope, const OnnxWalk& walk, const std::set<size_t>& outputs) {
  const std::vector<OnnxOp>& ops = scope.ops();
  std::vector<bool> needed(ops.size(), false);
  std::vector<size_t> stack;
  const auto need = [&](size_t position) {
    const OnnxValue& value = walk.pool[position];
    if (value.constant || value.node < 0 || value.scope != scope.id() || needed[static_cast<size_t>(value.node)])
      return;
    needed[static_cast<size_t>(value.node)] = true;
    stack.push_back(static_cast<size_t>(value.node));
  };
  for (const size_t output : outputs) need(output);
  while (!stack.empty()) {
    const size_t op = stack.back();
    stack.pop_back();
    for (const size_t position : ops[op].uses) need(position);
  }
  return needed;
}

// The first file of its own that the model says its weights lie in and that is not beside it; else empty. Weights of
// branches and loop bodies are not looked at: exporters put them into the same file.
std::string MissingWeights(const onnx::ModelProto& model, const std::string& path) {
  std::set<std::string, std::less<>> seen;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) continue;
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() != "location" || !seen.insert(entry.value()).second) continue;
      std::error_code ignored;
      if (!std::filesystem::exists(std::filesystem::path(path).parent_path() / entry.value(), ignored)) {
        return entry.value();
      }
    }
  }
  return {};
}

Graph MakeGraph(const onnx::ModelProto& model, const OnnxScope& scope, const OnnxWalk& walk,
                const std::vector<size_t>& inputs) {
  std::set<size_t> outputs;
  for (const onnx::ValueInfoProto& output : model.graph().output()) {
    if (!output.name().empty()) outputs.insert(scope.Find(output.name()));
  }
  const std::vector<bool> needed = Needed(scope, walk, outputs);

  // The file's order, which the walk may have left.
  std::vector<size_t> order;
  for (size_t op = 0; op < needed.size(); ++op) {
    if (needed[op]) order.push_back(op);
  }
  if (order.empty()) throw Error("{}: no op of it depends on its inputs, so there is nothing to place", walk.path);
  std::ranges::stable_sort(order, {}, [&](size_t op) { return scope.ops()[op].position; });

  // By the file: exporters name their graphs "torch_jit" or "main_graph".
  GraphBuilder builder(std::filesystem::path(walk.path).stem().string());
  std::map<size_t, size_t> tensor, parameter, input;  // by position in the pool
  for (const size_t position : inputs) {
    const OnnxValue& value = walk.pool[position];
    input[position] = builder.AddInput(CheckedBytes(value, walk.path), std::string(value.name));
    builder.SetInputShape(input[position], value.dims, std::string(ElementTypeName(value.type)));
  }
  for (const size_t op : order) {
    const OnnxOp& source = scope.ops()[op];
    const std::string& domain = source.proto->domain();
    const bool standard = domain.empty() || domain == "ai.onnx";
    const size_t added = builder.AddOp(
        source.proto->name(), standard ? source.proto->op_type() : domain + "." + source.proto->op_type(), source.work);
    for (const size_t position : source.outputs) {
      const OnnxValue& value = walk.pool[position];
      tensor[position] =
          builder.AddTensor(added, CheckedBytes(value, walk.path), std::string(value.name), outputs.contains(position));
      builder.SetShape(tensor[position], value.dims);
    }
  }
  for (size_t added = 0; added < order.size(); ++added) {
    for (const size_t position : scope.ops()[order[added]].uses) {
      const OnnxValue& value = walk.pool[position];
      if (value.constant) {
        const auto [found, fresh] = parameter.try_emplace(position, 0);
        if (fresh) found->second = builder.AddParameter(value.stored_bytes, std::string(value.name));
        builder.UseParameter(found->second, added);
      } else if (value.node >= 0) {
        builder.Consume(tensor.at(position), added);
      } else {
        builder.UseInput(input.at(position), added);
      }
    }
  }
  std::vector<std::string> notes;
  walk.notes.Append(notes);
  for (std::string& note : notes) builder.AddNote(std::move(note));
  if (const std::string missing = MissingWeights(model, walk.path); !missing.empty()) {
    builder.AddNote(fmt::format(
        "the weights file {} is missing: planning does not need it; put it beside the model to run or export that",
        missing));
  }
  return builder.Build(walk.path);
}

// What another reader says of the sizes of tensors, at those that the inputs of `walk` have.
OtherReader::Sizes AskOther(const OtherReader& other, const OnnxWalk& walk, const std::vector<size_t>& inputs) {
  NamedSizes sizes;
  for (const size_t position : inputs) sizes.emplace(walk.pool[position].name, walk.pool[position].dims);
  try {
    return other.TensorSizes(walk.path, sizes);
  } catch (const Error& error) {
    return {.refused = error.what()};
  }
}

// Walks through the model at the sizes that are asked for, and returns finish(walk, scope, positions of the inputs).
template <typename Finish>
auto WalkAt(const onnx::ModelProto& model, const std::string& path, const ImportOptions& options,
            const Finish& finish) {
  const auto walk_through = [&](const NamedSizes& shapes, std::optional<int64_t> batch, ShapeRecord* file_shapes,
                                const OtherReader::Sizes* other, const auto& end) {
    OnnxWalk walk{.path = path, .opsets = {}};
    walk.opsets = ReadVersions(model, walk.notes);
    walk.file_shapes = file_shapes;
    walk.other = other;
    OnnxScope scope(walk, model.graph(), nullptr);
    scope.DeclareInitializers();
    Inputs inputs(model, scope, walk);
    inputs.Declare(scope, shapes, batch);
    if (file_shapes != nullptr) file_shapes->changes = Changes(walk, inputs.positions());
    scope.Run();
    if (other != nullptr && !other->refused.empty())
      walk.notes.Add("another reader was asked for the shapes that are not known, in vain", other->refused);
    return end(walk, scope, inputs.positions());
  };
  // Again with what another reader says, where this one had to guess.
  const auto walk_surely = [&](const NamedSizes& shapes, std::optional<int64_t> batch, ShapeRecord* file_shapes) {
    using Result = std::invoke_result_t<Finish, const OnnxWalk&, const OnnxScope&, const std::vector<size_t>&>;
    std::optional<OtherReader::Sizes> other;
    std::optional<Result> result = walk_through(
        shapes, batch, file_shapes, nullptr,
        [&](const OnnxWalk& walk, const OnnxScope& scope, const std::vector<size_t>& inputs) -> std::optional<Result> {
          if (walk.guessed && options.other != nullptr) other = AskOther(*options.other, walk, inputs);
          if (other) return std::nullopt;
          return finish(walk, scope, inputs);
        });
    return result ? std::move(*result) : walk_through(shapes, batch, file_shapes, &*other, finish);
  };
  if (options.shapes.empty() && !options.batch) return walk_surely({}, {}, nullptr);

  // Twice where other sizes are asked for: the first walk tells what the sizes in the file mean.
  ShapeRecord file_shapes;
  walk_through({}, {}, nullptr, nullptr, [&](const OnnxWalk& walk, const OnnxScope&, const std::vector<size_t>&) {
    for (const OnnxValue& value : walk.pool) {
      file_shapes.dims.emplace(value.name, value.dims);
      if (value.certainty != Certainty::kKnown) file_shapes.uncertain.emplace(value.name);
    }
  });
  return walk_surely(options.shapes, options.batch, &file_shapes);
}

}  // namespace

onnx::ModelProto ParseOnnx(std::string_view content, const std::string& path) {
  onnx::ModelProto model = Parse(content, path);
  InlineFunctions(model, path);
  return model;
}

TensorTypes FindTensorTypes(const onnx::ModelProto& model, const std::string& path, const ImportOptions& options) {
  return WalkAt(model, path, options, [](const OnnxWalk& walk, const OnnxScope& scope, const std::vector<size_t>&) {
    TensorTypes types;
    for (const OnnxValue& value : walk.pool) {
      if (value.scope != scope.id() || value.is_sequence || value.is_optional) continue;
      types.emplace(value.name, TensorType{.type = value.type,
                                           .dims = value.dims,
                                           .known_dims = value.known_dims && value.certainty == Certainty::kKnown});
    }
    return types;
  });
}

Graph ReadOnnx(std::string_view content, const std::string& path, const ImportOptions& options) {
  const onnx::ModelProto model = ParseOnnx(content, path);
  return WalkAt(model, path, options,
                [&](const OnnxWalk& walk, const OnnxScope& scope, const std::vector<size_t>& inputs) {
                  return MakeGraph(model, scope, walk, inputs);
                });
}

}  // namespace berth
