#include "placement/plan_file.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/file.h"
#include "base/json_object.h"
#include "base/version.h"

namespace berth {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kFormatVersion = 2;

// Paths and names of files need not be UTF-8; what is not becomes the replacement character.
std::string Dump(const ordered_json& value, int indent = -1) {
  return value.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

// One line per op, so that people can read, edit and diff a plan.
void AppendOps(const PlanFile& file, std::string& text) {
  const Plan& plan = file.plan;
  text += "  \"ops\": [";
  for (size_t i = 0; i < file.ops.size(); ++i) {
    text += i == 0 ? "\n" : ",\n";
    fmt::format_to(std::back_inserter(text), "    {{\"op\": {}, \"device\": {}", Dump(file.ops[i]),
                   Dump(file.devices[Index(plan.device[i])]));
    if (!plan.cause.empty()) fmt::format_to(std::back_inserter(text), ", \"cause\": {}", plan.cause[i]);
    if (!plan.priority.empty()) text += ", \"priority\": " + Dump(plan.priority[i]);
    text += '}';
  }
  text += file.ops.empty() ? "]" : "\n  ]";
}

void AppendSequence(const PlanFile& file, std::string& text) {
  ordered_json ops = ordered_json::array(), transfers = ordered_json::array();
  for (const OpId op : file.sequence->ops) ops.push_back(Index(op));
  for (const auto& [producer, output, to] : file.sequence->transfers) {
    transfers.push_back({Index(producer), output, file.devices[Index(to)]});
  }
  text += ",\n  \"sequence\": {\n    \"ops\": " + Dump(ops) + ",\n    \"transfers\": " + Dump(transfers) + "\n  }";
}

// --- Reading
// -------------------------------------------------------------------------------------------------------------

// A text as a list of its lines, which people can read in JSON.
std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  for (; !text.empty(); text.remove_prefix(std::min(lines.back().size() + 1, text.size()))) {
    lines.emplace_back(text.substr(0, text.find('\n')));
  }
  return lines;
}

std::vector<std::string> Texts(JsonObject& object, std::string_view key) {
  std::vector<std::string> texts;
  for (const json& item : object.List(key)) {
    if (!item.is_string()) throw object.Mistake(key, "expected a list of texts");
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

using DeviceNumbers = std::map<std::string, DeviceId, std::less<>>;

DeviceId DeviceNamed(const DeviceNumbers& devices, const std::string& name, const JsonObject& where) {
  const auto found = devices.find(name);
  if (found == devices.end()) {
    std::vector<std::string> known;
    for (const auto& [other, id] : devices) known.push_back(other);
    throw where.Mistake("device",
                        fmt::format("'{}' is no device of this plan; there are: {}", name, fmt::join(known, ", ")));
  }
  return found->second;
}

void ReadOps(JsonObject& top, const DeviceNumbers& devices, PlanFile& file) {
  Plan& plan = file.plan;
  const json& ops = top.List("ops");
  const auto texts = static_cast<int64_t>(plan.cause_texts.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    JsonObject op(ops[i], file.path, fmt::format("ops[{}]", i));
    file.ops.push_back(op.Text("op"));
    plan.device.push_back(DeviceNamed(devices, op.Text("device"), op));
    if (texts > 0) plan.cause.push_back(static_cast<uint16_t>(op.Int("cause", 0, texts - 1)));
    if (op.Has("priority") != (i == 0 ? op.Has("priority") : !plan.priority.empty())) {
      throw op.Mistake("priority", "either all ops have one or none");
    }
    if (op.Has("priority")) plan.priority.push_back(op.Number("priority"));
    op.Finish();
  }
}

void ReadSequence(JsonObject sequence, const DeviceNumbers& devices, PlanFile& file) {
  PlanFile::Order& order = file.sequence.emplace();
  const auto position = [&](const json& item, std::string_view key) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() >= file.ops.size()) {
      // Not dumped, whatever it is: nlohmann's dump() calls itself for each level, and a file may have a million.
      throw sequence.Mistake(key, fmt::format("{} is no position in ops, which has {}",
                                              item.is_number() ? item.dump() : item.type_name(), file.ops.size()));
    }
    return MakeId<OpId>(item.get<size_t>());
  };
  for (const json& item : sequence.List("ops")) order.ops.push_back(position(item, "ops"));
  for (const json& item : sequence.List("transfers")) {
    if (!item.is_array() || item.size() != 3 || !item[1].is_number_unsigned() || item[1].get<uint64_t>() > INT32_MAX ||
        !item[2].is_string()) {
      throw sequence.Mistake("transfers", "expected [position of the producer, which of its tensors, destination]");
    }
    order.transfers.push_back({.producer = position(item[0], "transfers"),
                               .output = item[1].get<int32_t>(),
                               .to = DeviceNamed(devices, item[2].get<std::string>(), sequence)});
  }
  sequence.Finish();
}

// --- Binding
// -------------------------------------------------------------------------------------------------------------

// For each op of the graph its position in the file by its name; nothing where the file has not each of these names
// once.
std::optional<std::vector<size_t>> PositionsByName(const PlanFile& file, const Graph& graph) {
  std::unordered_map<std::string_view, size_t> by_name;
  for (size_t i = 0; i < file.ops.size(); ++i) by_name.emplace(file.ops[i], i);
  std::vector<size_t> positions;
  for (const OpId op : graph.ops()) {
    const auto found = by_name.find(graph.op_name(op));
    if (found == by_name.end()) return std::nullopt;
    positions.push_back(found->second);
    by_name.erase(found);
  }
  return positions;
}

std::vector<DeviceId> DevicesInCluster(const PlanFile& file, const Cluster& cluster) {
  std::vector<DeviceId> devices;
  for (size_t i = 0; i < file.devices.size(); ++i) {
    const std::string& name = file.devices[i];
    std::optional<DeviceId> same;
    std::vector<std::string> known;
    for (const DeviceId id : cluster.ids()) {
      known.push_back(cluster.device(id).name);
      if (cluster.device(id).name == name) same = id;
    }
    const bool used =
        std::find(file.plan.device.begin(), file.plan.device.end(), MakeId<DeviceId>(i)) != file.plan.device.end();
    if (!same && used) {
      throw Error("{}: the plan uses device '{}', which cluster {} does not have; it has: {}", file.path, name,
                  cluster.name(), fmt::join(known, ", "));
    }
    devices.push_back(same.value_or(DeviceId{}));
  }
  return devices;
}

Sequence BindSequence(const PlanFile& file, const Graph& graph, const std::vector<OpId>& op_of,
                      const std::vector<DeviceId>& device_of) {
  Sequence sequence;
  for (const OpId op : file.sequence->ops) sequence.ops.push_back(op_of[Index(op)]);
  for (const auto& [producer, output, to] : file.sequence->transfers) {
    const OpId op = op_of[Index(producer)];
    const size_t tensor = graph.first_output(op) + static_cast<size_t>(output);
    if (tensor >= graph.end_output(op)) {
      throw Error("{}: sequence.transfers: op '{}' has no tensor {}", file.path, graph.op_name(op), output);
    }
    sequence.transfers.emplace_back(MakeId<TensorId>(tensor), device_of[Index(to)]);
  }
  return sequence;
}

}  // namespace

PlanFile MakePlanFile(const Problem& problem, const Plan& plan) {
  const Graph& graph = problem.graph();
  PlanFile file;
  file.berth_version = kVersion;
  file.graph_fingerprint = graph.structural_fingerprint();
  file.cluster_fingerprint = problem.cluster().fingerprint();
  file.problem_fingerprint = problem.fingerprint();
  for (const DeviceId device : problem.cluster().ids()) file.devices.push_back(problem.cluster().device(device).name);
  for (const OpId op : graph.ops()) file.ops.emplace_back(graph.op_name(op));
  file.plan = plan;
  file.plan.sequence.reset();
  if (plan.sequence) {
    PlanFile::Order& order = file.sequence.emplace();
    order.ops = plan.sequence->ops;
    for (const auto& [tensor, to] : plan.sequence->transfers) {
      const OpId producer = graph.producer(tensor);
      order.transfers.push_back({.producer = producer,
                                 .output = static_cast<int32_t>(Index(tensor) - graph.first_output(producer)),
                                 .to = to});
    }
  }
  return file;
}

std::string WritePlanFile(const PlanFile& file) {
  const auto fingerprint = [](uint64_t word) { return fmt::format("{:016x}", word); };
  const ordered_json head = {
      {"berth_plan", kFormatVersion},
      {"berth_version", file.berth_version},
      {"model",
       {{"name", file.model},
        {"shapes", file.shapes},
        {"batch", file.batch},
        {"format", file.format},
        {"mode", file.mode},
        {"optimizer", file.optimizer},
        {"fingerprint", fingerprint(file.graph_fingerprint)}}},
      {"cluster",
       {{"name", file.cluster},
        {"fingerprint", fingerprint(file.cluster_fingerprint)},
        {"devices", file.devices},
        {"device_file", Lines(file.device_file)}}},
      {"costs", {{"name", file.costs}, {"problem_fingerprint", fingerprint(file.problem_fingerprint)}}},
      {"constraints", file.constraints},
      {"evaluator", file.evaluator},
      {"objective", file.objective},
      {"planner", file.planner},
      {"seed", file.seed},
      {"budget", file.budget},
      {"ended", kSearchEndNames[static_cast<size_t>(file.ended)]},
      {"result",
       {{"score_seconds", file.score_seconds},
        {"lower_bound_seconds", file.lower_bound_seconds},
        {"feasible", file.feasible},
        {"optimal", file.optimal}}},
      {"cause_texts", file.plan.cause.empty() ? std::vector<std::string>() : file.plan.cause_texts},
  };
  std::string text = Dump(head, 2);
  text.resize(text.rfind("\n}"));
  text += ",\n";
  AppendOps(file, text);
  if (file.sequence) AppendSequence(file, text);
  return text + "\n}\n";
}

PlanFile ParsePlanFile(std::string_view text, const std::string& path) {
  const auto is_none = [&](std::string_view why) {
    return Error("{}: is no plan file of Berth's ({}); `berth plan MODEL -o FILE` writes one", path, why);
  };
  if (const size_t first = text.find_first_not_of(" \t\r\n"); first != std::string_view::npos && text[first] != '{') {
    throw is_none("it is no JSON object");
  }
  const json document = ParseJson(text, path);
  if (!document.is_object() || !document.contains("berth_plan")) {
    throw is_none("no key berth_plan");
  }
  PlanFile file;
  file.path = path;
  JsonObject top(document, path);
  if (const int64_t version = top.Int("berth_plan", 1, INT64_MAX); version != kFormatVersion) {
    throw top.Mistake("berth_plan", fmt::format("this Berth reads plans of version {}, not {}; make a new one with "
                                                "`berth plan`",
                                                kFormatVersion, version));
  }
  file.berth_version = top.Text("berth_version");

  JsonObject model = top.Object("model");
  file.model = model.Text("name");
  file.shapes = Texts(model, "shapes");
  file.batch = model.Text("batch");
  file.format = model.Text("format");
  file.mode = model.Text("mode");
  file.optimizer = model.Text("optimizer");
  file.graph_fingerprint = model.Fingerprint("fingerprint");
  model.Finish();

  JsonObject cluster = top.Object("cluster");
  file.cluster = cluster.Text("name");
  file.cluster_fingerprint = cluster.Fingerprint("fingerprint");
  file.devices = Texts(cluster, "devices");
  DeviceNumbers devices;
  for (size_t i = 0; i < file.devices.size(); ++i) {
    if (!devices.emplace(file.devices[i], MakeId<DeviceId>(i)).second) {
      throw cluster.Mistake("devices", fmt::format("'{}' is there twice", file.devices[i]));
    }
  }
  for (const std::string& line : Texts(cluster, "device_file")) file.device_file += line + '\n';
  cluster.Finish();

  JsonObject costs = top.Object("costs");
  file.costs = costs.Text("name");
  file.problem_fingerprint = costs.Fingerprint("problem_fingerprint");
  costs.Finish();

  file.constraints = Texts(top, "constraints");
  file.evaluator = top.Text("evaluator");
  file.objective = top.Text("objective");
  file.planner = top.Text("planner");
  file.seed = top.Word("seed");
  file.budget = top.Text("budget");
  const std::string ended = top.Text("ended");
  const auto* const end = std::ranges::find(kSearchEndNames, ended);
  if (end == kSearchEndNames.end()) {
    throw top.Mistake("ended",
                      fmt::format("there is no '{}'; expected one of {}", ended, fmt::join(kSearchEndNames, ", ")));
  }
  file.ended = static_cast<SearchEnd>(end - kSearchEndNames.begin());

  JsonObject result = top.Object("result");
  file.score_seconds = result.Number("score_seconds");
  file.lower_bound_seconds = result.Number("lower_bound_seconds");
  file.feasible = result.Bool("feasible");
  file.optimal = result.Bool("optimal");
  result.Finish();

  file.plan.cause_texts = Texts(top, "cause_texts");
  ReadOps(top, devices, file);
  if (top.Has("sequence")) ReadSequence(top.Object("sequence"), devices, file);
  top.Finish();
  return file;
}

PlanFile ReadPlanFile(const std::string& path) { return ParsePlanFile(ReadFile(path, kPlanKind), path); }

Plan BindPlan(const PlanFile& file, const Problem& problem, std::vector<std::string>& warnings, bool other_sizes) {
  const Graph& graph = problem.graph();
  if (file.ops.size() != graph.num_ops()) {
    throw Error("{}: is a plan for {} ops, but {} has {}; make a new plan with `berth plan`", file.path,
                file.ops.size(), graph.name(), graph.num_ops());
  }
  const bool changed = file.graph_fingerprint != graph.structural_fingerprint();
  const std::optional<std::vector<size_t>> position_of = PositionsByName(file, graph);
  if (changed && !(other_sizes && position_of)) {
    throw Error(
        "{}: {} has changed since this plan was made (its structure or sizes); make a new plan with `berth plan`",
        file.path, graph.name());
  }
  if (changed) {
    warnings.push_back(fmt::format("{} was made for other sizes, or for another version, of {}: this is a what-if",
                                   file.path, graph.name()));
  }
  if (file.cluster_fingerprint != problem.cluster().fingerprint()) {
    warnings.push_back(
        fmt::format("{} was made for other machines ({}) than those of {}, which are used: this is a what-if",
                    file.path, file.cluster, problem.cluster().name()));
  } else if (!changed && file.problem_fingerprint != problem.fingerprint()) {
    warnings.push_back(fmt::format("{} was made with other constraints or op times (here: {}): this is a what-if",
                                   file.path, problem.cost_source()));
  }

  const std::vector<DeviceId> device_of = DevicesInCluster(file, problem.cluster());
  Plan plan;
  plan.cause_texts = file.plan.cause_texts;
  std::vector<OpId> op_of(graph.num_ops());
  for (const OpId op : graph.ops()) {
    // Of ops that were renamed it is the same, which the equal structure allows.
    const size_t i = position_of ? (*position_of)[Index(op)] : Index(op);
    op_of[i] = op;
    plan.device.push_back(device_of[Index(file.plan.device[i])]);
    if (!file.plan.cause.empty()) plan.cause.push_back(file.plan.cause[i]);
    if (!file.plan.priority.empty()) plan.priority.push_back(file.plan.priority[i]);
  }
  if (file.sequence) plan.sequence = BindSequence(file, graph, op_of, device_of);
  return plan;
}

}  // namespace berth
