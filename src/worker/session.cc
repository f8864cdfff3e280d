#include "worker/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "exec/statistics.h"
#include "worker/detect.h"
#include "worker/ir_writer.h"
#include "worker/kernels.h"
#include "worker/model_reader.h"
#include "worker/op_clock.h"
#include "worker/outputs.h"

namespace berth {
namespace {

// Of a GPU or NPU, as its plugin tells it; 0 where it does not.
double MemoryOf(const ov::Core& core, const std::string& runs_on) {
  const std::string name = runs_on.substr(0, runs_on.find('.')) + "_DEVICE_TOTAL_MEM_SIZE";
  try {
    return static_cast<double>(core.get_property(runs_on, name).as<uint64_t>());
  } catch (const std::exception&) {
    return 0;
  }
}

// Copies, since the next run writes into the request's own.
std::vector<ov::Tensor> Kept(const std::vector<ov::Tensor>& tensors) {
  std::vector<ov::Tensor> copies;
  for (const ov::Tensor& tensor : tensors) {
    copies.emplace_back();
    if (!tensor) continue;
    copies.back() = ov::Tensor(tensor.get_element_type(), tensor.get_shape());
    tensor.copy_to(copies.back());
  }
  return copies;
}

// A model with counters and, in turns with it, without. The first run of each warms up.
class ProfiledRuns {
 public:
  template <typename Make>  // make(counters)
  ProfiledRuns(const LoadedModel& model, const std::vector<double>& flops, CounterOf counters, const Make& make)
      : counted_(make(true)), plain_(make(false)), clock_(model, counted_->compiled(), flops, counters) {
    RunCounted();
    plain_->Run();
  }

  void Run() {
    RunCounted();
    const OneRun run = plain_->Run();
    seconds_.push_back(run.seconds);
    stolen_.push_back(run.stolen);
  }

  // By run.
  void SetSlowdowns(const std::vector<double>& slowdowns) { clock_.SetSlowdowns(slowdowns); }

  nlohmann::json Describe() const {
    nlohmann::json ops = nlohmann::json::array();
    const std::vector<double> by_op = clock_.Seconds();
    for (size_t op = 0; op < by_op.size(); ++op) ops.push_back({by_op[op], static_cast<int>(clock_.kinds()[op])});
    return {{"ops", ops},        {"kernels", clock_.OpsOfKernels()}, {"totals", clock_.Totals()}, {"seconds", seconds_},
            {"stolen", stolen_}, {"unassigned", clock_.Unassigned()}};
  }

 private:
  void RunCounted() {
    const double seconds = counted_->Run().seconds;
    clock_.Add(counted_->request().get_profiling_info(), seconds);
  }

  std::unique_ptr<WholeRunner> counted_, plain_;
  OpClock clock_;
  std::vector<double> seconds_, stolen_;
};

// By the plugin of each device. Of HETERO's subgraphs on several plugins nobody asks which is which: as of a CPU.
CounterOf CountersOf(const std::vector<RuntimeDevice>& devices) {
  return std::ranges::any_of(devices, &RuntimeDevice::is_cpu) ? CounterOf::kAllRuns : CounterOf::kLastRun;
}

// What does not compile or run is `answer`'s alone, and ends `runner`.
template <typename Runs, typename Act>
void Attempt(nlohmann::json& answer, std::unique_ptr<Runs>& runner, const Act& act) {
  try {
    act();
  } catch (const std::exception& exception) {
    answer = {{"error", Error("{}", Brief(exception)).what()}};
    runner.reset();
  }
}

// The run whose time is the one in the middle.
const OneRun& Middle(const std::vector<OneRun>& runs) {
  std::vector<size_t> order(runs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return runs[i].seconds; });
  return runs[order[order.size() / 2]];
}

}  // namespace

nlohmann::json WorkerSession::Answer(const nlohmann::json& question) {
  try {
    const std::string what = question.at("do");
    if (what == "open") return Open(question);
    if (what == "run") return Run(question);
    if (what == "profile") return Profile(question);
    if (what == "op_times") return ProfileHetero(question);
    if (what == "write_ir") return WriteIr(question, core_);
    if (what == "read_ir") return ReadAsIr(question, core_);
    if (what == "tensor_sizes") return ReadTensorSizes(question, core_);
    if (what == "kernels") {
      BERTH_CHECK(model_, "a model is opened first");
      const RuntimeDevice& device = devices_.at(question.at("device").get<size_t>());
      const ov::CompiledModel compiled = CompileFor(core_, model_->model, device);
      return {{"kernels", DescribeKernels(*model_, compiled)}};
    }
    if (what == "devices") {
      nlohmann::json devices = nlohmann::json::array();
      for (const std::string& name : core_.get_available_devices()) {
        devices.push_back({{"runs_on", name}, {"memory_bytes", MemoryOf(core_, name)}});
      }
      return {{"devices", devices}};
    }
    if (what == "detect") return Detect(core_, ReadDevices(question.at("devices"), core_), question.at("seconds"));
    throw Error("there is no question '{}'", what);
  } catch (const Error& error) {
    return {{"error", error.what()}};
  } catch (const std::exception& exception) {
    return {{"error", Error("{}", Brief(exception)).what()}};
  }
}

nlohmann::json WorkerSession::Open(const nlohmann::json& question) {
  model_.reset();
  reference_.clear();
  no_reference_.clear();
  devices_ = ReadDevices(question.at("devices"), core_);
  paces_ = PaceMeter(core_, devices_);
  model_ = LoadModel(question, core_);
  flops_.clear();
  for (const nlohmann::json& op : question.at("ops")) flops_.push_back(op.at("flops"));
  return {{"ops", model_->ops},
          {"ops_found", model_->ops_found},
          {"ops_missing", model_->ops_missing},
          {"weights_filled", model_->weights_filled},
          {"version", std::string(ov::get_openvino_version().buildNumber)}};
}

std::vector<int32_t> WorkerSession::PlacementOf(const nlohmann::json& question) const {
  auto device_of_op = question.at("device").get<std::vector<int32_t>>();
  if (device_of_op.size() != flops_.size()) {
    throw Error("a placement of {} ops, where the model has {}", device_of_op.size(), flops_.size());
  }
  for (const int32_t device : device_of_op) {
    if (device < 0 || std::cmp_greater_equal(device, devices_.size())) {
      throw Error("a placement names device {}, where there are {}", device, devices_.size());
    }
  }
  return device_of_op;
}

std::unique_ptr<Runner> WorkerSession::Make(const nlohmann::json& way) {
  const std::string how = way.at("how");
  if (how == "parallel") return RunParallel(*model_, core_, devices_, PlacementOf(way));
  if (how == "hetero") return RunHetero(*model_, core_, devices_, PlacementOf(way));
  if (how == "alone") return RunAlone(*model_, core_, devices_.at(way.at("device").get<size_t>()));
  return RunByItself(*model_, core_, devices_, how, way.value("first", ""));
}

std::set<size_t> WorkerSession::DevicesOf(const nlohmann::json& way) const {
  const std::string how = way.at("how");
  if (how == "alone") return {way.at("device").get<size_t>()};
  if (how == "parallel") return way.at("device").get<std::set<size_t>>();
  std::set<size_t> processors;
  for (size_t device = 0; device < devices_.size(); ++device) {
    if (devices_[device].is_cpu()) processors.insert(device);
  }
  if (how == "threads") return processors;
  // HETERO's subgraphs of processors are run by the thread that calls, on the first device's cores. What runs where by
  // itself nobody tells.
  if (how == "hetero" && processors.size() == devices_.size()) return {0};
  return {};
}

std::vector<double> WorkerSession::SlowdownsOf(const std::set<size_t>& devices, const std::vector<OneRun>& runs,
                                               const std::vector<size_t>& before, const nlohmann::json& answer) const {
  if (std::ranges::none_of(devices, [&](size_t device) { return paces_.Knows(device); })) return {};
  std::vector<Part> parts;
  for (const nlohmann::json& part : answer.value("parts", nlohmann::json::array())) {
    parts.push_back({.device = part.at("device"), .before = part.at("before")});
  }
  std::vector<double> slowdowns, of_device(devices_.size(), 1);
  for (size_t run = 0; run < runs.size(); ++run) {
    double mean = 0;
    for (const size_t device : devices) {
      of_device[device] = paces_.SlowdownOf(device, before[run]);
      mean += of_device[device] / static_cast<double>(devices.size());
    }
    slowdowns.push_back(
        runs[run].parts.empty() ? mean : runs[run].seconds / EndAtOtherSpeeds(parts, runs[run].parts, of_device));
  }
  return slowdowns;
}

ov::element::Type WorkerSession::PrecisionOfWay(const nlohmann::json& way) const {
  const std::string how = way.at("how");
  if (how == "auto") return ov::element::f32;
  if (how == "alone") return devices_.at(way.at("device").get<size_t>()).precision;
  if (how == "default") return CoarsestPrecision(devices_);
  if (how == "threads") return CoarsestPrecision(Processors(devices_));
  std::vector<RuntimeDevice> devices;
  for (const size_t device : way.at("device").get<std::set<size_t>>()) devices.push_back(devices_.at(device));
  return CoarsestPrecision(devices);
}

void WorkerSession::Compare(const std::vector<ov::Tensor>& outputs, ov::element::Type precision,
                            nlohmann::json& answer) {
  if (reference_.empty() && no_reference_.empty()) {
    try {
      RuntimeDevice exact = devices_.front();
      exact.precision = ov::element::f32;
      const auto whole = RunAlone(*model_, core_, exact);
      whole->Run();
      reference_ = Kept(whole->Outputs());
    } catch (const std::exception& exception) {
      no_reference_ = Error("{}", Brief(exception)).what();
    }
  }
  if (no_reference_.empty()) {
    answer["outputs"] = CompareOutputs(reference_, outputs, OutputTolerance(precision));
  } else {
    answer["no_reference"] = no_reference_;
  }
}

nlohmann::json WorkerSession::Run(const nlohmann::json& question) {
  BERTH_CHECK(model_, "a model is opened first");
  const nlohmann::json& ways = question.at("ways");
  const size_t rounds = question.at("rounds");
  std::vector<std::unique_ptr<Runner>> runners(ways.size());
  nlohmann::json answers = nlohmann::json::array();
  std::vector<std::vector<OneRun>> runs(ways.size());
  std::vector<std::vector<size_t>> paces(ways.size());  // by run, the measurement before it
  for (size_t way = 0; way < ways.size(); ++way) {
    answers.push_back(nlohmann::json::object());
    Attempt(answers[way], runners[way], [&] {
      runners[way] = Make(ways[way]);
      runners[way]->Run();
      answers[way] = runners[way]->Describe();
      const ov::element::Type precision = PrecisionOfWay(ways[way]);
      answers[way]["precision"] = precision.get_type_name();
      if (question.value("compare", false)) Compare(runners[way]->Outputs(), precision, answers[way]);
    });
  }
  // In another order each round: what ran before leaves caches and clocks as it used them.
  Random random(1);
  std::vector<size_t> order(ways.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::set<size_t> used;
  for (size_t way = 0; way < ways.size(); ++way) {
    if (runners[way]) used.merge(DevicesOf(ways[way]));
  }
  paces_.Begin(used);
  for (size_t round = 0; round < rounds; ++round) {
    random.Shuffle(std::span(order));
    for (const size_t way : order) {
      if (!runners[way]) continue;
      Attempt(answers[way], runners[way], [&] {
        const size_t pace = paces_.Before();
        runs[way].push_back(runners[way]->Run());
        paces[way].push_back(pace);
      });
    }
  }
  paces_.End();
  for (size_t way = 0; way < ways.size(); ++way) {
    if (!runners[way] || runs[way].empty()) continue;
    std::vector<double> seconds, stolen;
    for (const OneRun& run : runs[way]) seconds.push_back(run.seconds), stolen.push_back(run.stolen);
    nlohmann::json part_runs = nlohmann::json::array(), part_seconds = nlohmann::json::array();
    for (const PartRun& part : Middle(runs[way]).parts) part_runs.push_back({part.begin, part.end});
    for (size_t part = 0; part < part_runs.size(); ++part) {
      const size_t device = answers[way].at("parts").at(part).at("device");
      std::vector<double> took;
      for (size_t run = 0; run < runs[way].size(); ++run) {
        const PartRun& one = runs[way][run].parts[part];
        took.push_back((one.end - one.begin) / paces_.SlowdownOf(device, paces[way][run]));
      }
      part_seconds.push_back(Median(took));
    }
    answers[way].update(
        {{"seconds", seconds}, {"stolen", stolen}, {"part_runs", part_runs}, {"part_seconds", part_seconds}});
    const std::vector<double> slowdown = SlowdownsOf(DevicesOf(ways[way]), runs[way], paces[way], answers[way]);
    if (!slowdown.empty()) answers[way]["slowdown"] = slowdown;
  }
  return {{"ways", answers}};
}

nlohmann::json WorkerSession::Profile(const nlohmann::json& question) {
  BERTH_CHECK(model_, "a model is opened first");
  const nlohmann::json& devices = question.at("devices");
  nlohmann::json answers = nlohmann::json::array();
  std::vector<std::unique_ptr<ProfiledRuns>> profiled(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    answers.push_back(nlohmann::json::object());
    Attempt(answers[i], profiled[i], [&] {
      const RuntimeDevice& device = devices_.at(devices[i].get<size_t>());
      profiled[i] = std::make_unique<ProfiledRuns>(*model_, flops_, CountersOf({device}), [&](bool counters) {
        return RunAlone(*model_, core_, device, counters);
      });
    });
  }
  std::vector<std::vector<size_t>> paces(devices.size());  // by round, the measurement before it
  paces_.Begin(devices.get<std::set<size_t>>());
  for (size_t round = 0; round < question.at("rounds"); ++round) {
    for (size_t i = 0; i < profiled.size(); ++i) {
      if (!profiled[i]) continue;
      Attempt(answers[i], profiled[i], [&] {
        paces[i].push_back(paces_.Before());
        profiled[i]->Run();
      });
    }
  }
  paces_.End();
  for (size_t i = 0; i < profiled.size(); ++i) {
    if (!profiled[i]) continue;
    const size_t device = devices[i];
    std::vector<double> slowdowns;
    for (const size_t pace : paces[i]) slowdowns.push_back(paces_.SlowdownOf(device, pace));
    profiled[i]->SetSlowdowns(slowdowns);
    answers[i] = profiled[i]->Describe();
    if (paces_.Knows(device)) answers[i]["slowdown"] = slowdowns;
  }
  return {{"devices", answers}};
}

nlohmann::json WorkerSession::ProfileHetero(const nlohmann::json& question) {
  BERTH_CHECK(model_, "a model is opened first");
  ProfiledRuns profiled(*model_, flops_, CountersOf(devices_), [&](bool counters) {
    return RunHetero(*model_, core_, devices_, PlacementOf(question), counters);
  });
  for (size_t round = 0; round < question.at("rounds"); ++round) profiled.Run();
  return profiled.Describe();
}

}  // namespace berth
