#include "exec/openvino.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "exec/statistics.h"

namespace berth {
namespace {

constexpr double kOpenLimit = 300;  // seconds; a large model is read in ten

nlohmann::json OpsOf(const Graph& graph) {
  nlohmann::json ops = nlohmann::json::array();
  for (const OpId op : graph.ops()) {
    nlohmann::json tensors = nlohmann::json::array();
    for (size_t tensor = graph.first_output(op); tensor < graph.end_output(op); ++tensor) {
      tensors.push_back(graph.tensor_name(MakeId<TensorId>(tensor)));
    }
    ops.push_back({{"name", graph.op_name(op)}, {"tensors", tensors}, {"flops", graph.work(op).flops}});
  }
  return ops;
}

nlohmann::json InputsOf(const Graph& graph) {
  nlohmann::json inputs = nlohmann::json::object();
  for (const InputId input : graph.inputs()) {
    const auto shape = graph.input_shape(input);
    if (!shape.empty()) inputs[std::string(graph.input_name(input))] = std::vector<int64_t>(shape.begin(), shape.end());
  }
  return inputs;
}

nlohmann::json DevicesOf(const Cluster& cluster) {
  nlohmann::json devices = nlohmann::json::array();
  for (const DeviceId id : cluster.ids()) {
    devices.push_back(RuntimeDeviceJson(cluster.device(id)));
  }
  return devices;
}

// The process is another program, and may be of another version.
template <typename Id>
Id ReadId(const nlohmann::json& number, size_t count, std::string_view what) {
  const auto index = number.get<int64_t>();
  if (index < 0 || std::cmp_greater_equal(index, count)) {
    throw Error("berth-openvino tells of {} {}, where there are {}; it is of another version, install it with berth",
                what, index, count);
  }
  return MakeId<Id>(static_cast<size_t>(index));
}

void CheckCount(size_t told, size_t count, std::string_view what) {
  if (told == count) return;
  throw Error("berth-openvino tells of {}, where {} were asked for; it is of another version, install it with berth",
              Counted(static_cast<int64_t>(told), what), count);
}

void CheckRuns(const std::vector<double>& seconds, size_t least) {
  CheckCount(std::min(seconds.size(), least), least, "run");
}

// Of each of so many runs; empty where it was not measured.
std::vector<double> SlowdownOf(const nlohmann::json& answer, size_t runs) {
  std::vector<double> slowdown = answer.value("slowdown", std::vector<double>{});
  if (!slowdown.empty()) CheckCount(slowdown.size(), runs, "run");
  return slowdown;
}

// The share of the time of runs in which another process had the core, the mean over the threads that compute.
double StolenShare(const nlohmann::json& answer) {
  const auto sum = [&](const char* key) {
    const auto by_round = answer.at(key).get<std::vector<double>>();
    return std::accumulate(by_round.begin(), by_round.end(), 0.0);
  };
  const double seconds = sum("seconds");
  return seconds > 0 ? sum("stolen") / seconds : 0;
}

// Ops and totals come so already.
void TellAtFilePace(const std::vector<double>& slowdown, OpMeasurement& measurement) {
  if (slowdown.empty()) return;
  const double as_measured = Median(measurement.seconds);
  measurement.seconds = Quotients(measurement.seconds, slowdown);
  measurement.slowdown = as_measured / Median(measurement.seconds);
}

std::vector<size_t> Numbers(std::span<const DeviceId> devices) {
  std::vector<size_t> numbers;
  for (const DeviceId device : devices) numbers.push_back(Index(device));
  return numbers;
}

}  // namespace

double Measurement::seconds_at_file_pace() const { return Median(Quotients(seconds, slowdown)); }

double Measurement::typical_slowdown() const { return slowdown.empty() ? 1 : Median(seconds) / seconds_at_file_pace(); }

nlohmann::json RuntimeDeviceJson(const Device& device) {
  return {{"name", device.name},
          {"runs_on", RunsOn(device)},
          {"cores", device.cores},
          {"precision", device.precision},
          {"pace", device.pace}};
}

std::string RunsOn(const Device& device) {
  if (!device.runs_on.empty()) return device.runs_on;
  if (device.kind == "cpu") return "CPU";
  if (device.kind == "gpu" || device.kind == "igpu") return "GPU";
  if (device.kind == "npu") return "NPU";
  throw Error(
      "device {} is of kind {}, which no runtime here drives; say in the device file where it runs, like "
      "`runs_on: CPU`",
      device.name, device.kind);
}

bool CanRunModels() { return !ProgramBeside("berth-openvino").empty(); }

std::string OpenVinoProgram(std::string_view purpose) {
  std::string program = ProgramBeside("berth-openvino");
  if (program.empty()) {
    throw Error(
        "{} needs OpenVINO, which is not in this build: ./dev build fetches it, where there is one for the processor",
        purpose);
  }
  return program;
}

nlohmann::json ModelQuestion(const Graph& graph, const std::string& model_file) {
  if (model_file.empty()) {
    throw Error("{}: is a formula; only the model of a file can be run", graph.name());
  }
  const auto backward = [&](OpId op) { return graph.is_backward(op); };
  if (std::ranges::any_of(graph.ops(), backward)) {
    throw Error(
        "{}: is a step of training, and OpenVINO runs inference alone; leave --mode training out, or plan "
        "again without it",
        graph.name());
  }
  return {{"model", WorkerPath(model_file)}, {"inputs", InputsOf(graph)}, {"ops", OpsOf(graph)}};
}

OpenVino::OpenVino(const Problem& problem, const std::string& model_file, std::string program)
    : problem_(problem),
      model_file_(model_file),
      question_(ModelQuestion(problem.graph(), model_file)),
      program_(std::move(program)) {
  question_.update({{"do", "open"}, {"devices", DevicesOf(problem.cluster())}});
  if (program_.empty()) program_ = OpenVinoProgram();
  Open(kOpenLimit);
}

void OpenVino::Open(double limit, const StopCheck& stop) {
  is_open_ = false;
  worker_ = std::make_unique<WorkerProcess>(program_);
  const nlohmann::json answer = worker_->AskAbout(model_file_, question_, limit, stop);
  opened_ = {.ops = answer.at("ops"),
             .ops_found = answer.at("ops_found"),
             .ops_missing = answer.at("ops_missing"),
             .weights_filled = answer.at("weights_filled"),
             .version = answer.at("version")};
  is_open_ = true;
}

nlohmann::json OpenVino::Ask(const nlohmann::json& question, const Options& options) {
  if (!alive() || worker_->DiedMeanwhile()) {
    try {
      Open(kOpenLimit, options.stop);
    } catch (const Error& error) {
      return {{"error", error.what()}};
    }
  }
  return worker_->Ask(question, std::min(options.limit, most_seconds_), options.stop);
}

std::vector<Measurement> OpenVino::Run(const std::vector<RunWay>& ways, const Options& options) {
  std::vector<Measurement> measurements = RunTogether(ways, options);
  const auto stopped = [&] { return options.stop && options.stop(); };
  if (alive() || (ways.size() == 1 && !options.compare)) return measurements;
  const std::string died = measurements.front().error;
  // Compared with nothing: what they are compared with, the whole model on one device, may be what ended the process.
  const double share = std::min(options.limit, most_seconds_) / static_cast<double>(ways.size());
  const Options once{.rounds = 1, .limit = share, .stop = options.stop};
  std::vector<RunWay> rest;
  std::vector<size_t> place;
  for (size_t way = 0; way < ways.size() && !stopped(); ++way) {
    Measurement alone = RunTogether({ways[way]}, once).front();
    if (alive()) {
      rest.push_back(ways[way]);
      place.push_back(way);
    } else {
      measurements[way] = std::move(alone);
    }
  }
  if (stopped()) return measurements;
  size_t together = rest.size();
  if (rest.size() == ways.size()) {
    if (options.compare) {
      measurements = RunUncompared(ways, options, died);
      if (alive() || stopped()) return measurements;
    }
    // Each survives by itself: together they are too much.
    together = 1;
  }
  std::vector<Measurement> again;
  for (size_t first = 0; first < rest.size() && !stopped(); first += together) {
    const std::vector<RunWay> some(rest.begin() + static_cast<ptrdiff_t>(first),
                                   rest.begin() + static_cast<ptrdiff_t>(first + together));
    std::vector<Measurement> measured = RunTogether(some, options);
    if (options.compare && !alive() && !stopped()) {
      measured = RunUncompared(some, options, measured.front().error);
    }
    std::ranges::move(measured, std::back_inserter(again));
  }
  if (again.size() < rest.size()) return measurements;
  for (size_t i = 0; i < rest.size(); ++i) measurements[place[i]] = std::move(again[i]);
  return measurements;
}

std::vector<Measurement> OpenVino::RunUncompared(const std::vector<RunWay>& ways, const Options& options,
                                                 const std::string& because) {
  Options uncompared = options;
  uncompared.compare = false;
  std::vector<Measurement> measurements = RunTogether(ways, uncompared);
  for (Measurement& one : measurements) {
    if (one.error.empty()) one.no_reference = because;
  }
  return measurements;
}

std::vector<Measurement> OpenVino::RunTogether(const std::vector<RunWay>& ways, const Options& options) {
  nlohmann::json list = nlohmann::json::array();
  for (const RunWay& way : ways) {
    nlohmann::json one = {{"how", way.how}};
    if (!way.device.empty()) one["device"] = Numbers(way.device);
    if (way.how == "alone") one["device"] = Index(way.on);
    if (!way.first.empty()) one["first"] = way.first;
    list.push_back(one);
  }
  const nlohmann::json answer =
      Ask({{"do", "run"}, {"ways", list}, {"rounds", options.rounds}, {"compare", options.compare}}, options);
  std::vector<Measurement> measurements;
  for (size_t way = 0; way < ways.size(); ++way) {
    measurements.push_back(answer.contains("error") ? Measurement{.error = answer.at("error")}
                                                    : Read(answer.at("ways").at(way)));
    if (measurements.back().error.empty()) CheckRuns(measurements.back().seconds, options.rounds);
  }
  return measurements;
}

Measurement OpenVino::Read(const nlohmann::json& answer) const {
  if (answer.contains("error")) return {.error = answer.at("error")};
  const Graph& graph = problem_.graph();
  Measurement measurement{.seconds = answer.at("seconds"),
                          .stolen = StolenShare(answer),
                          .precision = answer.at("precision"),
                          .subgraphs = answer.at("subgraphs")};
  measurement.slowdown = SlowdownOf(answer, measurement.seconds.size());
  if (answer.contains("outputs")) {
    const nlohmann::json& outputs = answer.at("outputs");
    measurement.outputs = {.equal = outputs.at("equal"),
                           .largest_difference = outputs.at("largest_difference"),
                           .tolerance = outputs.at("tolerance"),
                           .finite = outputs.at("finite")};
  }
  measurement.no_reference = answer.value("no_reference", "");
  if (!answer.contains("parts")) return measurement;

  const nlohmann::json& parts = answer.at("parts");
  for (size_t i = 0; i < parts.size(); ++i) {
    MeasuredPart part{.device = ReadId<DeviceId>(parts[i].at("device"), problem_.num_devices(), "device")};
    for (const nlohmann::json& op : parts[i].at("ops")) part.ops.push_back(ReadId<OpId>(op, problem_.num_ops(), "op"));
    std::ranges::sort(part.ops);
    part.begin = answer.at("part_runs").at(i).at(0);
    part.end = answer.at("part_runs").at(i).at(1);
    part.seconds = answer.at("part_seconds").at(i);
    measurement.parts.push_back(std::move(part));
  }
  std::map<std::string, TensorId, std::less<>> by_name;
  for (const TensorId tensor : graph.tensors()) by_name.emplace(graph.tensor_name(tensor), tensor);
  // When the last of what a part reads was made.
  std::vector<double> complete(measurement.parts.size(), 0);
  for (const nlohmann::json& one : answer.at("transfers")) {
    double& last = complete.at(one.at("to_part").get<size_t>());
    last = std::max(last, measurement.parts.at(one.at("from_part").get<size_t>()).end);
  }
  for (const nlohmann::json& one : answer.at("transfers")) {
    const MeasuredPart& from = measurement.parts.at(one.at("from_part").get<size_t>());
    const MeasuredPart& to = measurement.parts.at(one.at("to_part").get<size_t>());
    MeasuredTransfer transfer{.from = from.device, .to = to.device, .bytes = one.at("bytes")};
    for (const std::string& name : one.at("names").get<std::vector<std::string>>()) {
      const auto known = by_name.find(name);
      if (known == by_name.end()) continue;
      // Of a tensor and what Identities call it, its producer's.
      transfer.tensor = std::min(transfer.tensor.value_or(known->second), known->second);
    }
    // The reader may have been busy with another part until later, or have waited for another tensor.
    double free = complete[one.at("to_part").get<size_t>()];
    for (const MeasuredPart& part : measurement.parts) {
      if (part.device == to.device && part.end <= to.begin) free = std::max(free, part.end);
    }
    transfer.begin = transfer.end = from.end;
    if (free <= from.end) transfer.end = std::max(from.end, to.begin);
    measurement.transfers.push_back(transfer);
  }
  return measurement;
}

std::vector<OpMeasurement> OpenVino::Profile(std::span<const DeviceId> devices, const Options& options) {
  const nlohmann::json answer =
      Ask({{"do", "profile"}, {"devices", Numbers(devices)}, {"rounds", options.rounds}}, options);
  if (answer.contains("error")) return std::vector(devices.size(), OpMeasurement{.error = answer.at("error")});
  CheckCount(answer.at("devices").size(), devices.size(), "device");
  std::vector<OpMeasurement> measurements;
  for (const nlohmann::json& device : answer.at("devices")) {
    const DeviceId on = devices[measurements.size()];
    measurements.push_back(ReadOps(device));
    measurements.back().pace = problem_.cluster().device(on).pace;
    if (!measurements.back().error.empty()) continue;
    CheckRuns(measurements.back().seconds, 1);
    TellAtFilePace(SlowdownOf(device, measurements.back().seconds.size()), measurements.back());
  }
  return measurements;
}

OpMeasurement OpenVino::ProfileHetero(std::span<const DeviceId> device, const Options& options) {
  OpMeasurement measured =
      ReadOps(Ask({{"do", "op_times"}, {"device", Numbers(device)}, {"rounds", options.rounds}}, options));
  if (measured.error.empty()) return measured;
  for (const OpId op : problem_.graph().ops()) {
    const double time = problem_.op_time(op, device[Index(op)]);
    measured.op_seconds.push_back(time < kCannotRun ? time * problem_.seconds_per_unit() : 0);
  }
  return measured;
}

std::vector<MeasuredKernel> OpenVino::Kernels(DeviceId device) {
  const nlohmann::json answer = Ask({{"do", "kernels"}, {"device", Index(device)}}, {.limit = kOpenLimit});
  if (answer.contains("error")) throw Error("{}: {}", problem_.graph().name(), answer.at("error").get<std::string>());
  std::vector<MeasuredKernel> kernels;
  for (const nlohmann::json& one : answer.at("kernels")) {
    MeasuredKernel kernel{.type = one.at("type")};
    for (const nlohmann::json& op : one.at("ops")) kernel.ops.push_back(ReadId<OpId>(op, problem_.num_ops(), "op"));
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

OpMeasurement OpenVino::ReadOps(const nlohmann::json& answer) const {
  if (answer.contains("error")) return {.error = answer.at("error")};
  constexpr std::array<const char*, 5> kKinds = {"absent", "none", "own", "shared", "joined"};
  OpMeasurement measurement{.totals = answer.at("totals"),
                            .seconds = answer.at("seconds"),
                            .stolen = StolenShare(answer),
                            .unassigned = answer.at("unassigned")};
  CheckCount(answer.at("ops").size(), problem_.num_ops(), "op");
  for (const nlohmann::json& op : answer.at("ops")) {
    measurement.op_seconds.push_back(op.at(0));
    measurement.kind.emplace_back(kKinds.at(op.at(1).get<size_t>()));
  }
  for (const nlohmann::json& kernel : answer.at("kernels")) {
    std::vector<OpId>& ops = measurement.kernels.emplace_back();
    for (const nlohmann::json& op : kernel) ops.push_back(ReadId<OpId>(op, problem_.num_ops(), "op"));
  }
  return measurement;
}

Timeline MakeMeasuredTimeline(const Problem& problem, std::span<const DeviceId> device, const Measurement& measurement,
                              std::span<const double> op_seconds) {
  const Graph& graph = problem.graph();
  const double unit = problem.seconds_per_unit();
  Timeline timeline;
  timeline.subgraphs = measurement.subgraphs;
  timeline.ops.resize(graph.num_ops());
  std::vector<bool> placed(graph.num_ops(), false);
  for (const MeasuredPart& part : measurement.parts) {
    double sum = 0;
    const auto weight = [&](OpId op) { return std::max(problem.op_time(op, part.device), 1e-12); };
    for (const OpId op : part.ops) sum += weight(op);
    double at = part.begin;
    for (const OpId op : part.ops) {
      const double end = op == part.ops.back() ? part.end : at + (part.end - part.begin) * weight(op) / sum;
      if (!placed[Index(op)]) timeline.ops[Index(op)] = {.device = part.device, .start = at / unit, .end = end / unit};
      placed[Index(op)] = true;
      at = end;
    }
  }
  double at = 0;
  double scale = 0;
  if (!op_seconds.empty()) {
    const double sum = std::accumulate(op_seconds.begin(), op_seconds.end(), 0.0);
    if (sum > 0) scale = Median(measurement.seconds) / sum;
  }
  for (const OpId op : graph.ops()) {
    OpRun& run = timeline.ops[Index(op)];
    if (scale > 0) {
      run = {.device = device[Index(op)], .start = at, .end = at + op_seconds[Index(op)] * scale / unit};
      at = run.end;
    } else if (!placed[Index(op)]) {
      for (const TensorId tensor : graph.inputs_of(op)) {
        run.start = std::max(run.start, timeline.ops[Index(graph.producer(tensor))].end);
      }
      run = {.device = device[Index(op)], .start = run.start, .end = run.start};
    }
  }
  for (const MeasuredTransfer& transfer : measurement.transfers) {
    if (!transfer.tensor) continue;
    timeline.transfers.push_back({.tensor = *transfer.tensor,
                                  .from = transfer.from,
                                  .to = transfer.to,
                                  .start = transfer.begin / unit,
                                  .end = transfer.end / unit});
  }
  std::ranges::sort(timeline.transfers, {},
                    [](const TransferRun& run) { return std::tuple(run.start, run.tensor, run.to); });
  return timeline;
}

}  // namespace berth
