#include "report/json.h"

#include <cmath>
#include <map>

#include "placement/objective_text.h"
#include "report/model_page.h"
#include "report/notes.h"

namespace berth {
namespace {

// Appends without the linear look-up for an equal key that ordered_json's own insertion makes; the keys here are
// unique.
void Append(Json::object_t& object, std::string_view key, Json value) {
  static_cast<Json::object_t::Container&>(object).emplace_back(std::string(key), std::move(value));
}

const std::string& NameOf(const Problem& problem, DeviceId device) { return problem.cluster().device(device).name; }

Json Assignment(const Problem& problem, const Plan& plan) {
  Json::object_t assignment;
  for (const OpId op : problem.graph().ops()) {
    Append(assignment, problem.graph().op_name(op), NameOf(problem, plan.device[Index(op)]));
  }
  return assignment;
}

Json PeakMemory(const Problem& problem, const Timeline& timeline) {
  Json peaks = Json::object();
  for (size_t d = 0; d < timeline.memory.size(); ++d) {
    peaks[NameOf(problem, MakeId<DeviceId>(d))] = timeline.memory[d].peak_bytes;
  }
  return peaks;
}

// By device, with what it holds when its memory is fullest.
Json MemoryJson(const Problem& problem, const Timeline& timeline) {
  Json devices = Json::object();
  for (size_t d = 0; d < timeline.memory.size(); ++d) {
    const DeviceMemory& memory = timeline.memory[d];
    Json::array_t holders;
    for (const MemoryHolder& holder : memory.holders) {
      const HolderNames names = NamesOf(problem.graph(), holder);
      holders.push_back({{"kind", names.kind}, {"bytes", holder.bytes}});
      if (!names.name.empty()) holders.back()["name"] = names.name;
      if (!names.op.empty()) holders.back()["op"] = names.op;
    }
    devices[NameOf(problem, MakeId<DeviceId>(d))] = {{"peak_bytes", memory.peak_bytes},
                                                     {"peak_seconds", problem.ToSeconds(memory.peak_time).value},
                                                     {"holders", std::move(holders)}};
  }
  return devices;
}

Json QuantityJson(const Quantity& quantity) {
  Json json = {{"value", quantity.value}, {"provenance", kProvenanceNames[static_cast<size_t>(quantity.provenance)]}};
  if (!quantity.source.empty()) json["source"] = quantity.source;
  if (quantity.has_range()) json["range"] = {quantity.low, quantity.high};
  return json;
}

// Null where there is none.
Json DoubtfulJson(const Graph& graph, Certainty certainty) {
  const auto doubtful = FindDoubtful(graph, certainty);
  if (!doubtful) return {};
  return {{"ops", doubtful->ops},
          {"share_of_ops", doubtful->share_of_ops},
          {"share_of_work", doubtful->share_of_work},
          {"first_op", graph.op_name(doubtful->first)}};
}

// Of a portfolio's members, in the order in which they were asked.
Json ContributionsJson(const Problem& problem, const Objective& objective,
                       std::span<const Contribution> contributions) {
  Json json = Json::array();
  for (const Contribution& each : contributions) {
    json.push_back({{"planner", each.planner},
                    {"evaluations", each.evaluations},
                    {"wall_seconds", each.seconds},
                    {"feasible", each.score.fits()},
                    {"objective_value", FiniteOrNull(ObjectiveNumber(problem, objective, each.score.value()))},
                    {"led", each.led}});
  }
  return json;
}

}  // namespace

Json FiniteOrNull(double number) { return std::isfinite(number) ? Json(number) : Json(); }

std::string DumpJson(const Json& json) {
  BERTH_CHECK(json.is_object() && !json.empty(), "an answer in JSON is an object");
  // Into the text, because an answer may be large.
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  return fmt::format("{{\n  \"format_version\": {},{}\n", kJsonVersion, std::string_view(text).substr(1));
}

Json PlanJson(const Evaluator& evaluator, const PlanReport& report) {
  const Problem& problem = evaluator.problem();
  const auto seconds = [&](double units) { return problem.ToSeconds(units).value; };
  const Score& score = report.timeline.score;
  const Objective& objective = evaluator.facts().objective;
  Json devices = Json::array();
  for (const DeviceId device : problem.cluster().ids()) {
    const DeviceUse& use = report.summary.devices[Index(device)];
    devices.push_back({{"device", NameOf(problem, device)},
                       {"ops", use.ops},
                       {"busy_seconds", seconds(use.busy)},
                       {"received_bytes", use.bytes_in},
                       {"sent_bytes", use.bytes_out}});
  }
  return {{"model", problem.graph().name()},
          {"cluster", problem.cluster().name()},
          {"costs", problem.cost_source()},
          {"planner", report.planner},
          {"evaluator", evaluator.name()},
          {"unknown_shapes", DoubtfulJson(problem.graph(), Certainty::kUnknown)},
          {"feasible", score.fits()},
          {"infeasible_because", report.timeline.infeasible_because},
          {"score_seconds", seconds(score.time)},
          {"lower_bound_seconds", seconds(report.bound.time)},
          {"lower_bound_reason", report.bound.reason},
          {"objective", objective.name},
          {"objective_value", FiniteOrNull(ObjectiveNumber(problem, objective, score.value()))},
          {"objective_bound", ObjectiveNumber(problem, objective, report.bound.value())},
          {"gap", FiniteOrNull(report.gap())},
          {"guesses", report.guesses ? GuessJson(*report.guesses) : Json()},
          {"optimal", report.optimal()},
          {"energy_joules", report.summary.joules > 0 ? Json(report.summary.joules) : Json()},
          {"evaluations", report.result.evaluations},
          {"failed_evaluations", report.result.failures},
          {"last_failure", report.result.failure},
          {"set_up_evaluations", report.set_up},
          {"runs", score.runs},
          {"spread_seconds", seconds(score.spread)},
          {"wall_seconds", report.result.wall_seconds},
          {"seed", report.seed},
          {"budget", report.budget},
          {"ended", kSearchEndNames[static_cast<size_t>(report.ended)]},
          {"constraints", report.constraints},
          {"limited_by", DescribeLimit(problem, report.summary)},
          {"transfer_count", report.summary.transfers},
          {"transfer_bytes", report.summary.transfer_bytes},
          {"excess_bytes", score.excess_bytes},
          {"memory_rule", MemoryRule(evaluator.facts())},
          {"peak_memory_bytes", PeakMemory(problem, report.timeline)},
          {"devices", std::move(devices)},
          {"contributions", ContributionsJson(problem, objective, report.result.contributions)},
          {"note", report.result.note},
          {"hints", HonestyNotes(evaluator)},
          {"assignment", Assignment(problem, report.result.plan)}};
}

Json SimulationJson(const Evaluator& evaluator, const PlanReport& report) {
  const Problem& problem = evaluator.problem();
  const Graph& graph = problem.graph();
  const auto seconds = [&](double units) { return problem.ToSeconds(units).value; };
  Json json = PlanJson(evaluator, report);
  Json::array_t ops, transfers;
  for (const OpId op : graph.ops()) {
    const OpRun& run = report.timeline.ops[Index(op)];
    ops.push_back({{"name", graph.op_name(op)},
                   {"device", NameOf(problem, run.device)},
                   {"start_seconds", seconds(run.start)},
                   {"end_seconds", seconds(run.end)}});
  }
  for (const TransferRun& transfer : report.timeline.transfers) {
    transfers.push_back({{"tensor", TransferName(graph, transfer)},
                         {"from", NameOf(problem, transfer.from)},
                         {"to", NameOf(problem, transfer.to)},
                         {"start_seconds", seconds(transfer.start)},
                         {"end_seconds", seconds(transfer.end)},
                         {"bytes", TransferBytes(graph, transfer)}});
  }
  json["subgraphs"] = report.timeline.subgraphs;
  json["ops"] = std::move(ops);
  json["transfers"] = std::move(transfers);
  return json;
}

Json ComparisonJson(const Evaluator& evaluator, const Comparison& comparison) {
  const Problem& problem = evaluator.problem();
  Json json = PlanJson(evaluator, comparison.winner().report);
  const ComparisonRow* simple = comparison.best_simple();
  json["best_simple"] = simple == nullptr ? Json() : Json(simple->report.planner);
  json["single_device_seconds"] = SinglesJson(problem, comparison.single_device_time());
  Json results = Json::array();
  for (const ComparisonRow& row : comparison.rows) {
    Json result = PlanJson(evaluator, row.report);
    result["simple"] = row.simple;
    Json speedups = Json::object();
    for (const DeviceId device : problem.cluster().ids()) {
      const double single = comparison.single_device_time()[Index(device)];
      speedups[NameOf(problem, device)] = FiniteOrNull(single / row.report.timeline.score.time);
    }
    result["speedup_over"] = std::move(speedups);
    results.push_back(std::move(result));
  }
  json["results"] = std::move(results);
  Json refusals = Json::array();
  for (const auto& [planner, reason] : comparison.refusals)
    refusals.push_back({{"planner", planner}, {"reason", reason}});
  json["refused"] = std::move(refusals);
  return json;
}

Json ExplanationJson(const Evaluator& evaluator, const PlanReport& report, const Explanation& explanation) {
  const Problem& problem = evaluator.problem();
  const Graph& graph = problem.graph();
  Json json = PlanJson(evaluator, report);
  Json::array_t ops;
  for (const auto& [op, others] : explanation.ops) {
    Json alternatives = Json::array();
    for (const Alternative& other : others) {
      Json entry = {{"device", NameOf(problem, other.device)}, {"can_run", other.can_run}, {"allowed", other.allowed}};
      if (other.can_run) {
        entry["feasible"] = other.score.fits();
        entry["score_seconds"] = problem.ToSeconds(other.score.time).value;
        entry["delta_seconds"] = problem.ToSeconds(other.score.time - report.timeline.score.time).value;
        entry["objective_value"] = ObjectiveNumber(problem, evaluator.facts().objective, other.score.value());
      }
      alternatives.push_back(std::move(entry));
    }
    const OpRun& run = report.timeline.ops[Index(op)];
    ops.push_back({{"name", graph.op_name(op)},
                   {"type", graph.op_type(op)},
                   {"device", NameOf(problem, run.device)},
                   {"start_seconds", problem.ToSeconds(run.start).value},
                   {"end_seconds", problem.ToSeconds(run.end).value},
                   {"cause", report.result.plan.cause_of(op)},
                   {"alternatives", std::move(alternatives)}});
  }
  json["ops"] = std::move(ops);
  Json path = Json::array();
  for (const PathStep& step : report.summary.path) {
    const std::string_view name = step.is_transfer ? TransferName(graph, report.timeline.transfers[step.index])
                                                   : graph.op_name(MakeId<OpId>(step.index));
    path.push_back({{"kind", step.is_transfer ? "transfer" : "op"},
                    {"name", name},
                    {"start_seconds", problem.ToSeconds(step.start).value},
                    {"end_seconds", problem.ToSeconds(step.end).value}});
  }
  json["critical_path"] = std::move(path);
  json["memory"] = MemoryJson(problem, report.timeline);
  return json;
}

Json GraphJson(const Graph& graph) {
  struct Type {
    int64_t ops = 0, bytes = 0, bytes_only = 0;
    double flops = 0;
  };
  std::map<std::string_view, Type> types;
  for (const OpId op : graph.ops()) {
    Type& type = types[graph.op_type(op)];
    const OpWork& work = graph.work(op);
    ++type.ops;
    type.flops += work.flops;
    type.bytes += work.bytes_read + work.bytes_written;
    type.bytes_only += work.bytes_only ? 1 : 0;
  }
  Json op_types = Json::object(), details = Json::array(), costed_by_bytes = Json::array();
  for (const auto& [name, type] : types) {
    op_types[std::string(name)] = type.ops;
    details.push_back({{"type", name},
                       {"ops", type.ops},
                       {"flops", type.flops},
                       {"bytes_moved", type.bytes},
                       {"costed_by_bytes_only", type.bytes_only}});
    if (type.bytes_only > 0) costed_by_bytes.push_back(name);
  }
  Json inputs = Json::array();
  for (const InputId input : graph.inputs()) {
    const bool stated = !graph.input_type(input).empty();
    inputs.push_back({{"name", graph.input_name(input)},
                      {"bytes", graph.input_bytes(input)},
                      {"shape", stated ? Json(graph.input_shape(input)) : Json()},
                      {"type", stated ? Json(graph.input_type(input)) : Json()}});
  }
  const double ops = static_cast<double>(graph.num_ops());
  return {{"model", graph.name()},
          {"ops", graph.num_ops()},
          {"edges", graph.num_edges()},
          {"tensors", graph.num_tensors()},
          {"parameters", graph.num_parameters()},
          {"flops", graph.total_flops()},
          {"parameter_bytes", graph.total_parameter_bytes()},
          {"tensor_bytes", graph.total_tensor_bytes()},
          {"average_degree", ops > 0 ? static_cast<double>(graph.num_edges()) / ops : 0},
          {"unknown_shapes", DoubtfulJson(graph, Certainty::kUnknown)},
          {"estimated_shapes", DoubtfulJson(graph, Certainty::kEstimated)},
          {"op_types", std::move(op_types)},
          {"op_type_details", std::move(details)},
          {"costed_by_bytes_only", std::move(costed_by_bytes)},
          {"inputs", std::move(inputs)},
          {"fingerprint", fmt::format("{:016x}", graph.structural_fingerprint())},
          {"notes", graph.notes()}};
}

Json SinglesJson(const Problem& problem, const std::vector<double>& times) {
  Json singles = Json::object();
  for (const DeviceId device : problem.cluster().ids()) {
    singles[NameOf(problem, device)] = FiniteOrNull(problem.ToSeconds(times[Index(device)]).value);
  }
  return singles;
}

Json TypeTimesJson(const Problem& problem) {
  Json types = Json::object();
  for (const TypeTimes& type : TimesByType(problem)) {
    Json devices = Json::object();
    for (const DeviceId device : problem.cluster().ids()) {
      devices[NameOf(problem, device)] = FiniteOrNull(type.seconds[Index(device)]);
    }
    types[std::string(type.op_type)] = std::move(devices);
  }
  return types;
}

Json ClusterJson(const Cluster& cluster) {
  Json devices = Json::array(), links = Json::array();
  for (const DeviceId id : cluster.ids()) {
    const Device& device = cluster.device(id);
    Json peak = Json::object(), efficiency = Json::object(), cut_read = Json::object(), cut_write = Json::object();
    for (const auto& [type, quantity] : device.peak) peak[type] = QuantityJson(quantity);
    for (const auto& [op_class, quantity] : device.efficiency) efficiency[op_class] = QuantityJson(quantity);
    for (const auto& [op_class, quantity] : device.cut_read) cut_read[op_class] = QuantityJson(quantity);
    for (const auto& [op_class, quantity] : device.cut_write) cut_write[op_class] = QuantityJson(quantity);
    devices.push_back({{"name", device.name},
                       {"kind", device.kind},
                       {"memory_bytes", device.memory ? QuantityJson(*device.memory) : Json()},
                       {"precision", device.precision},
                       {"pace_seconds", device.pace > 0 ? Json(device.pace) : Json()},
                       {"peak_flops_per_second", std::move(peak)},
                       {"memory_bandwidth_bytes_per_second", QuantityJson(device.memory_bandwidth)},
                       {"op_overhead_seconds", QuantityJson(device.op_overhead)},
                       {"efficiency", std::move(efficiency)},
                       {"half_rate_outputs", QuantityJson(device.half_rate_outputs)},
                       {"part_overhead_seconds", QuantityJson(device.part_overhead)},
                       {"cut_read_bytes_per_second", std::move(cut_read)},
                       {"cut_write_bytes_per_second", std::move(cut_write)},
                       {"supports", device.supports},
                       {"lacks", device.lacks},
                       {"watts_idle", QuantityJson(device.watts_idle)},
                       {"watts_busy", QuantityJson(device.watts_busy)},
                       {"interchangeable_with", cluster.device(cluster.class_of(id)).name}});
    for (const DeviceId to : cluster.ids()) {
      if (to == id) continue;
      const Link& link = cluster.link(id, to);
      links.push_back({{"from", device.name},
                       {"to", cluster.device(to).name},
                       {"latency_seconds", QuantityJson(link.latency)},
                       {"bandwidth_bytes_per_second", QuantityJson(link.bandwidth)},
                       {"domain", link.domain}});
    }
  }
  return {{"cluster", cluster.name()},
          {"fingerprint", fmt::format("{:016x}", cluster.fingerprint())},
          {"devices", std::move(devices)},
          {"links", std::move(links)}};
}

}  // namespace berth
