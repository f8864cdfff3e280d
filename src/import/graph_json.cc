// Berth's own graph format: docs/graph-format.md.

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/json_object.h"
#include "import/import.h"

namespace berth {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "berth-graph";
constexpr int64_t kVersion = 1;

// --- Writing -----------------------------------------------------------------------------------------------

std::string Quoted(std::string_view text) { return json(text).dump(-1, ' ', false, json::error_handler_t::replace); }

template <typename Names>
std::string List(const Names& names) {
  std::string text = "[";
  for (const std::string_view name : names) {
    if (text.size() > 1) text += ", ";
    text += Quoted(name);
  }
  return text + "]";
}

// , "key": [one object per line]
class Lines {
 public:
  Lines(std::string& text, std::string_view key) : text_(text) {
    fmt::format_to(std::back_inserter(text_), ",\n  \"{}\": [", key);
  }
  ~Lines() { text_ += first_ ? "]" : "\n  ]"; }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  void Add(std::string_view line) {
    text_ += first_ ? "\n    " : ",\n    ";
    text_ += line;
    first_ = false;
  }

 private:
  std::string& text_;
  bool first_ = true;
};

std::string OpLine(const Graph& graph, OpId op, const std::vector<std::vector<std::string_view>>& inputs_of) {
  const OpWork& work = graph.work(op);
  std::string text = fmt::format(
      "{{\"name\": {}, \"type\": {}, \"class\": \"{}\", \"data_type\": \"{}\", \"flops\": {}, \"bytes_read\": {}, "
      "\"bytes_written\": {}",
      Quoted(graph.op_name(op)), Quoted(graph.op_type(op)), kOpClassNames[static_cast<size_t>(work.op_class)],
      kDataTypeNames[static_cast<size_t>(work.data_type)], json(work.flops).dump(), work.bytes_read,
      work.bytes_written);
  if (work.workspace_bytes != 0) text += fmt::format(", \"workspace_bytes\": {}", work.workspace_bytes);
  if (work.steps != 1) text += fmt::format(", \"steps\": {}", work.steps);
  if (work.bytes_only) text += ", \"bytes_only\": true";
  if (work.sizes != Certainty::kKnown)
    text += fmt::format(", \"sizes\": \"{}\"", kCertaintyNames[static_cast<size_t>(work.sizes)]);
  if (graph.is_backward(op)) text += ", \"backward\": true";
  std::vector<std::string_view> names;
  for (const TensorId tensor : graph.inputs_of(op)) names.push_back(graph.tensor_name(tensor));
  if (!names.empty()) text += ", \"consumes\": " + List(names);
  if (!inputs_of[Index(op)].empty()) text += ", \"inputs\": " + List(inputs_of[Index(op)]);
  names.clear();
  for (const ParameterId parameter : graph.parameters_of(op)) names.push_back(graph.parameter_name(parameter));
  if (!names.empty()) text += ", \"parameters\": " + List(names);
  text += ", \"outputs\": [";
  for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
    const TensorId tensor = MakeId<TensorId>(t);
    fmt::format_to(std::back_inserter(text), "{}{{\"name\": {}, \"bytes\": {}", t == graph.first_output(op) ? "" : ", ",
                   Quoted(graph.tensor_name(tensor)), graph.tensor_bytes(tensor));
    if (const auto shape = graph.tensor_shape(tensor); !shape.empty()) {
      fmt::format_to(std::back_inserter(text), ", \"shape\": [{}]", fmt::join(shape, ", "));
    }
    if (graph.is_constant(tensor)) text += ", \"constant\": true";
    text += graph.is_output(tensor) ? ", \"result\": true}" : "}";
  }
  return text + "]}";
}

// --- Reading -----------------------------------------------------------------------------------------------

using Positions = std::unordered_map<std::string, size_t>;

class Reader {
 public:
  Reader(const json& document, const std::string& path) : document_(document), path_(path), builder_("") {}

  static std::vector<int64_t> Shape(JsonObject& output) {
    std::vector<int64_t> shape;
    for (const json& dimension : output.List("shape")) {
      if (!dimension.is_number_integer() || dimension.get<int64_t>() < 0)
        throw output.Mistake("shape", "expected whole numbers of at least 0");
      shape.push_back(dimension.get<int64_t>());
    }
    return shape;
  }

  Graph Read() {
    JsonObject top(document_, path_);
    if (top.Text("format") != kFormat) throw top.Mistake("format", fmt::format("expected \"{}\"", kFormat));
    if (top.Int("version", 1, INT64_MAX) != kVersion) {
      throw top.Mistake("version",
                        fmt::format("this program reads version {}; a newer Berth may read this file", kVersion));
    }
    builder_ = GraphBuilder(top.Text("name"));
    ReadEntities(top, "parameters", parameters_, [&](JsonObject&, int64_t bytes, std::string name) {
      return builder_.AddParameter(bytes, std::move(name));
    });
    ReadEntities(top, "inputs", inputs_, [&](JsonObject& object, int64_t bytes, std::string name) {
      const size_t input = builder_.AddInput(bytes, std::move(name));
      const std::vector<int64_t> shape = object.Has("shape") ? Shape(object) : std::vector<int64_t>{};
      builder_.SetInputShape(input, shape, object.Has("type") ? object.Text("type") : std::string());
      return input;
    });
    const json& ops = top.List("ops");
    if (ops.empty()) throw top.Mistake("ops", "there is none; a graph has at least one op");
    // Tensors first: an op may stand before those that make what it consumes.
    for (size_t i = 0; i < ops.size(); ++i) ReadOp(ops[i], i);
    for (size_t i = 0; i < ops.size(); ++i) ReadUses(ops[i], i);
    if (top.Has("notes")) ReadNotes(top);
    top.Finish();
    return builder_.Build(path_);
  }

 private:
  std::string Place(std::string_view list, size_t i) const { return fmt::format("{}[{}]", list, i); }

  static int64_t ReadBytes(JsonObject& object) { return object.Int("bytes", 0, kMostTensorBytes); }

  template <typename Add>
  void ReadEntities(JsonObject& top, std::string_view key, Positions& positions, const Add& add) {
    if (!top.Has(key)) return;
    const json& list = top.List(key);
    for (size_t i = 0; i < list.size(); ++i) {
      JsonObject object(list[i], path_, Place(key, i));
      const std::string name = Name(object);
      if (!positions.emplace(name, add(object, ReadBytes(object), name)).second) throw Twice(object, name);
      object.Finish();
    }
  }

  static std::string Name(JsonObject& object) {
    std::string name = object.Text("name");
    if (name.empty()) throw object.Mistake("name", "is empty; every name must be said");
    return name;
  }

  static Error Twice(const JsonObject& object, std::string_view name) {
    return object.Mistake("name", fmt::format("'{}' is there twice", name));
  }

  void ReadOp(const json& value, size_t i) {
    JsonObject object(value, path_, Place("ops", i));
    const std::string name = Name(object);
    if (!ops_.emplace(name, i).second) throw Twice(object, name);
    OpWork work;
    work.flops = object.Number("flops");
    if (!std::isfinite(work.flops) || work.flops < 0) throw object.Mistake("flops", "expected a number of at least 0");
    work.bytes_read = object.Int("bytes_read", 0, kMostGraphBytes);
    work.bytes_written = object.Int("bytes_written", 0, kMostGraphBytes);
    if (object.Has("workspace_bytes")) work.workspace_bytes = object.Int("workspace_bytes", 0, kMostGraphBytes);
    if (object.Has("steps")) work.steps = object.Int("steps", 1, kMostSteps);
    if (object.Has("bytes_only")) work.bytes_only = object.Bool("bytes_only");
    if (object.Has("sizes")) work.sizes = static_cast<Certainty>(Choice(object, "sizes", kCertaintyNames));
    work.op_class = static_cast<OpClass>(Choice(object, "class", kOpClassNames));
    work.data_type = static_cast<DataType>(Choice(object, "data_type", kDataTypeNames));
    const size_t op = builder_.AddOp(name, object.Text("type"), work);
    if (object.Has("backward") && object.Bool("backward")) builder_.MarkBackward(op);
    const json& outputs = object.List("outputs");
    for (size_t k = 0; k < outputs.size(); ++k) {
      JsonObject output(outputs[k], path_, fmt::format("ops[{}].outputs[{}]", i, k));
      const std::string tensor = Name(output);
      const bool result = output.Has("result") && output.Bool("result");
      const size_t added = builder_.AddTensor(op, ReadBytes(output), tensor, result);
      if (!tensors_.emplace(tensor, added).second) throw Twice(output, tensor);
      if (output.Has("constant") && output.Bool("constant")) builder_.MarkConstant(added);
      if (output.Has("shape")) builder_.SetShape(added, Shape(output));
      output.Finish();
    }
    for (const std::string_view key : {"consumes", "inputs", "parameters"}) {
      if (object.Has(key)) object.List(key);
    }
    object.Finish();
  }

  template <size_t kCount>
  static size_t Choice(JsonObject& object, std::string_view key, const std::array<std::string_view, kCount>& names) {
    const std::string text = object.Text(key);
    for (size_t i = 0; i < kCount; ++i) {
      if (names[i] == text) return i;
    }
    throw object.Mistake(key, fmt::format("there is no '{}'; expected one of {}", text, fmt::join(names, ", ")));
  }

  void ReadUses(const json& value, size_t i) {
    Use(value, i, "consumes", tensors_, "no op makes the tensor", [&](size_t at) { builder_.Consume(at, i); });
    Use(value, i, "inputs", inputs_, "the graph has no input", [&](size_t at) { builder_.UseInput(at, i); });
    Use(value, i, "parameters", parameters_, "the graph has no parameter",
        [&](size_t at) { builder_.UseParameter(at, i); });
  }

  template <typename Apply>
  void Use(const json& value, size_t i, const char* key, const Positions& positions, std::string_view mistake,
           const Apply& apply) const {
    const auto list = value.find(key);
    if (list == value.end()) return;
    for (const json& name : *list) {
      const JsonObject object(value, path_, Place("ops", i));
      if (!name.is_string()) throw object.Mistake(key, "expected a list of names");
      const auto found = positions.find(name.get_ref<const std::string&>());
      if (found == positions.end())
        throw object.Mistake(key, fmt::format("{} '{}'", mistake, name.get_ref<const std::string&>()));
      apply(found->second);
    }
  }

  void ReadNotes(JsonObject& top) {
    for (const json& note : top.List("notes")) {
      if (!note.is_string()) throw top.Mistake("notes", "expected a list of texts");
      builder_.AddNote(note.get<std::string>());
    }
  }

  const json& document_;
  const std::string& path_;
  GraphBuilder builder_;
  Positions ops_, tensors_, parameters_, inputs_;
};

}  // namespace

Graph ReadGraphJson(std::string_view content, const std::string& path) {
  const json document = ParseJson(content, path);
  return Reader(document, path).Read();
}

std::string WriteGraphJson(const Graph& graph) {
  std::string text = fmt::format("{{\n  \"format\": \"{}\",\n  \"version\": {},\n  \"name\": {}", kFormat, kVersion,
                                 Quoted(graph.name()));
  {
    Lines lines(text, "inputs");
    for (const InputId input : graph.inputs()) {
      std::string line =
          fmt::format("{{\"name\": {}, \"bytes\": {}", Quoted(graph.input_name(input)), graph.input_bytes(input));
      const bool has_type = !graph.input_type(input).empty();
      // A type without dimensions is a scalar's.
      if (has_type || !graph.input_shape(input).empty()) {
        line += fmt::format(", \"shape\": [{}]", fmt::join(graph.input_shape(input), ", "));
      }
      if (has_type) line += fmt::format(", \"type\": {}", Quoted(graph.input_type(input)));
      lines.Add(line + "}");
    }
  }
  {
    Lines lines(text, "parameters");
    for (const ParameterId parameter : graph.parameters()) {
      lines.Add(fmt::format("{{\"name\": {}, \"bytes\": {}}}", Quoted(graph.parameter_name(parameter)),
                            graph.parameter_bytes(parameter)));
    }
  }
  std::vector<std::vector<std::string_view>> inputs_of(graph.num_ops());
  for (const InputId input : graph.inputs()) {
    for (const OpId op : graph.input_consumers(input)) inputs_of[Index(op)].push_back(graph.input_name(input));
  }
  {
    Lines lines(text, "ops");
    for (size_t position = 0; position < graph.num_ops(); ++position)
      lines.Add(OpLine(graph, graph.op_at_file_position(position), inputs_of));
  }
  if (!graph.notes().empty()) {
    Lines lines(text, "notes");
    for (const std::string& note : graph.notes()) lines.Add(Quoted(note));
  }
  return text + "\n}\n";
}

}  // namespace berth
