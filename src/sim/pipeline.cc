// The evaluator `pipeline`: samples follow one another through all devices; the device with the largest load sets the
// pace.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/parameters.h"
#include "sim/exact_sum.h"
#include "sim/simulators.h"
#include "sim/static_memory.h"

namespace berth {
namespace {

using Number = FixedPoint::Number;

constexpr size_t kPasses = 2;  // forward, backward
enum Part : size_t { kCompute, kSend, kReceive, kParts };

// What a device does for one sample, by pass and part.
struct Load {
  std::array<std::array<Number, kParts>, kPasses> part{};
};

struct PipelineOptions {
  bool overlap;
  bool separate_passes;
  bool memory;
};

// The rules: which transfers a placement makes, how long they take and whom they occupy.
//
// On an ordinary cluster each transfer (tensor, destination) occupies its sender and its receiver for its length, not
// at the same time: they work on different samples. Where the problem has staging costs (Tarnawski et al. 2020, section
// 3; dp.cpp and ip.py of msr-fiddle/dnn-partitioning) a tensor that is consumed elsewhere costs its producer's device
// its staging once, and each device that consumes it once more; devices on the host pay nothing.
class PipelineRules {
 public:
  PipelineRules(const Problem& problem, const PipelineOptions& options)
      : problem_(problem), options_(options), fixed_(LargestSum(problem)) {}

  const Problem& problem() const { return problem_; }
  const FixedPoint& fixed() const { return fixed_; }

  size_t PassOf(OpId op) const { return problem_.graph().is_backward(op) ? 1 : 0; }

  // What one tensor costs, its producer being on `from`, as calls of charge(device, part, length, to). `consumes(d)`
  // says whether a consumer is on d. A send that serves all destinations at once has to == device. O(devices).
  template <typename Consumes, typename Charge>
  void ForEachCharge(TensorId tensor, DeviceId from, const Consumes& consumes, const Charge& charge) const {
    if (!problem_.has_staging()) {
      for (const DeviceId d : problem_.cluster().ids()) {
        if (d == from || !consumes(d)) continue;
        const double length = problem_.transfer_time(tensor, from, d);
        charge(from, kSend, length, d);
        charge(d, kReceive, length, d);
      }
      return;
    }
    const double length = problem_.staging(tensor);
    bool is_sent = false;
    for (const DeviceId d : problem_.cluster().ids()) {
      if (d == from || !consumes(d)) continue;
      if (!is_sent && !problem_.on_host(from)) charge(from, kSend, length, from);
      is_sent = true;
      if (!problem_.on_host(d)) charge(d, kReceive, length, d);
    }
  }

  double Time(std::span<const Load> loads) const {
    if (options_.separate_passes) return fixed_.ToDouble(LargestOfPass(loads, 0) + LargestOfPass(loads, 1));
    Number largest = 0;
    for (const Load& load : loads) {
      Load both;
      for (size_t part = 0; part < kParts; ++part) both.part[0][part] = load.part[0][part] + load.part[1][part];
      largest = std::max(largest, OfPass(both, 0));
    }
    return fixed_.ToDouble(largest);
  }

  Number LargestOfPass(std::span<const Load> loads, size_t pass) const {
    Number largest = 0;
    for (const Load& load : loads) largest = std::max(largest, OfPass(load, pass));
    return largest;
  }

 private:
  Number OfPass(const Load& load, size_t pass) const {
    const auto& part = load.part[pass];
    return options_.overlap ? std::max({part[kCompute], part[kSend], part[kReceive]})
                            : part[kCompute] + part[kSend] + part[kReceive];
  }

  // All finite times together, the most that could be on one device.
  static double LargestSum(const Problem& problem) {
    double sum = 0;
    for (const OpId op : problem.graph().ops()) {
      double largest = 0;
      for (const double time : problem.op_times(op)) {
        if (time < kCannotRun) largest = std::max(largest, time);
      }
      sum += largest;
    }
    for (const TensorId tensor : problem.graph().tensors()) {
      double largest = problem.has_staging() ? problem.staging(tensor) : 0;
      if (!problem.has_staging()) {
        for (const DeviceId from : problem.cluster().ids()) {
          for (const DeviceId to : problem.cluster().ids()) {
            if (from != to) largest = std::max(largest, problem.transfer_time(tensor, from, to));
          }
        }
      }
      sum += largest * static_cast<double>(problem.num_devices());
    }
    return sum;
  }

  const Problem& problem_;
  PipelineOptions options_;
  FixedPoint fixed_;
};

struct PipelineWorkspace : Workspace {
  std::vector<Load> loads;          // by device
  std::vector<size_t> last_tensor;  // by device: 1 + the tensor last found to be consumed there
  std::vector<std::array<std::array<double, kParts>, kPasses>> lane_end;
  StaticMemory::Workspace memory;
};

// Moves change loads by what they touch. O(degree x devices) each; the memory for counting is tensors x devices.
class PipelineSession : public Session {
 public:
  PipelineSession(const PipelineRules& rules, const StaticMemory* memory, const PlanView& start)
      : rules_(rules),
        memory_(memory),
        devices_(rules.problem().num_devices()),
        device_(start.device.begin(), start.device.end()),
        committed_(device_),
        loads_(devices_),
        consumers_(rules.problem().graph().num_tensors() * devices_),
        users_(rules.problem().graph().num_parameters() * devices_),
        bytes_(devices_) {
    const Graph& graph = rules_.problem().graph();
    for (const OpId op : graph.ops()) ChargeOp(op, device_[Index(op)], 1);
    for (const TensorId tensor : graph.tensors()) {
      for (const OpId op : graph.consumers(tensor)) ++consumers_[Index(tensor) * devices_ + Index(device_[Index(op)])];
      ChargeTensor(tensor, 1);
    }
    for (const ParameterId parameter : graph.parameters()) {
      for (const OpId op : graph.parameter_consumers(parameter)) AddUser(parameter, device_[Index(op)]);
    }
    score_ = Rate();
  }

  // Priorities change nothing here.
  Score TryChange(const PlanChange& change) override {
    Revert();
    for (const auto& [op, device] : change.moves) {
      undo_.emplace_back(op, device_[Index(op)]);
      Move(op, device);
    }
    tried_ = Rate();
    return tried_;
  }

  void Commit() override {
    for (const auto& [op, before] : undo_) committed_[Index(op)] = device_[Index(op)];
    if (!undo_.empty()) score_ = tried_;
    undo_.clear();
  }

  const Score& score() const override { return score_; }
  std::span<const DeviceId> device() const override { return committed_; }

 private:
  void Revert() {
    for (; !undo_.empty(); undo_.pop_back()) Move(undo_.back().first, undo_.back().second);
  }

  Score Rate() const {
    Score score{.time = rules_.Time(loads_)};
    if (memory_ != nullptr) memory_->Judge(bytes_, score);
    return score;
  }

  void Charge(DeviceId device, size_t pass, Part part, double length, int sign) {
    Number& load = loads_[Index(device)].part[pass][part];
    load += sign > 0 ? rules_.fixed().From(length) : -rules_.fixed().From(length);
  }

  void ChargeOp(OpId op, DeviceId device, int sign) {
    Charge(device, rules_.PassOf(op), kCompute, rules_.problem().op_time(op, device), sign);
  }

  void ChargeTensor(TensorId tensor, int sign) {
    const OpId producer = rules_.problem().graph().producer(tensor);
    const size_t pass = rules_.PassOf(producer);
    const int32_t* const count = consumers_.data() + Index(tensor) * devices_;
    rules_.ForEachCharge(
        tensor, device_[Index(producer)], [&](DeviceId d) { return count[Index(d)] > 0; },
        [&](DeviceId device, Part part, double length, DeviceId) { Charge(device, pass, part, length, sign); });
  }

  void Move(OpId op, DeviceId to) {
    const DeviceId from = device_[Index(op)];
    if (from == to) return;
    const Graph& graph = rules_.problem().graph();
    ChargeOp(op, from, -1);
    ChargeOp(op, to, 1);
    for (const TensorId tensor : graph.inputs_of(op)) {
      ChargeTensor(tensor, -1);
      --consumers_[Index(tensor) * devices_ + Index(from)];
      ++consumers_[Index(tensor) * devices_ + Index(to)];
      ChargeTensor(tensor, 1);
    }
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) ChargeTensor(MakeId<TensorId>(t), -1);
    device_[Index(op)] = to;
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) ChargeTensor(MakeId<TensorId>(t), 1);
    for (const ParameterId parameter : graph.parameters_of(op)) {
      if (--users_[Index(parameter) * devices_ + Index(from)] == 0)
        bytes_[Index(from)] -= graph.parameter_bytes(parameter);
      AddUser(parameter, to);
    }
  }

  void AddUser(ParameterId parameter, DeviceId device) {
    if (++users_[Index(parameter) * devices_ + Index(device)] != 1) return;
    bytes_[Index(device)] += rules_.problem().graph().parameter_bytes(parameter);
  }

  const PipelineRules& rules_;
  const StaticMemory* memory_;
  size_t devices_;
  std::vector<DeviceId> device_;  // with what was tried
  std::vector<DeviceId> committed_;
  std::vector<std::pair<OpId, DeviceId>> undo_;  // what was tried: ops and where they were, in order
  std::vector<Load> loads_;
  std::vector<int32_t> consumers_;  // tensor x device: how many of its consumers are there
  std::vector<int32_t> users_;      // parameter x device
  std::vector<int64_t> bytes_;      // by device
  Score score_, tried_;
};

class Pipeline : public Evaluator {
 public:
  Pipeline(const Problem& problem, const PipelineOptions& options, std::string name)
      : Evaluator(problem), options_(options), name_(std::move(name)), rules_(problem, options), memory_(problem) {
    facts_ = {.model = PipelineFacts{.overlap = options.overlap, .separate_passes = options.separate_passes},
              .tracks_memory = options.memory,
              .uses_priorities = false,
              .objective = {.name = "throughput"}};
  }

  const EvaluatorFacts& facts() const override { return facts_; }
  const std::string& name() const override { return name_; }
  std::unique_ptr<Workspace> NewWorkspace() const override { return std::make_unique<PipelineWorkspace>(); }

  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    auto& work = static_cast<PipelineWorkspace&>(workspace);
    work.loads.assign(problem().num_devices(), {});
    const auto add = [&](DeviceId device, size_t pass, Part part, double length) {
      work.loads[Index(device)].part[pass][part] += rules_.fixed().From(length);
    };
    Walk(
        plan, work, [&](OpId, DeviceId d, size_t pass, double length) { add(d, pass, kCompute, length); },
        [&](TensorId, DeviceId d, size_t pass, Part part, double length, DeviceId) { add(d, pass, part, length); });
    Score score{.time = rules_.Time(work.loads)};
    if (options_.memory) memory_.Count(plan.device, work.memory, score);
    if (!starts.empty()) {
      LayOut(
          plan, work, [&](OpId op, DeviceId, double start, double) { starts[Index(op)] = start; },
          [](TensorId, DeviceId, Part, double, double, DeviceId) {});
    }
    return score;
  }

  Timeline Trace(const PlanView& plan) const override {
    PipelineWorkspace work;
    Timeline timeline;
    timeline.score = ScorePlan(plan, work, {});
    timeline.ops.resize(problem().num_ops());
    LayOut(
        plan, work,
        [&](OpId op, DeviceId d, double start, double end) {
          timeline.ops[Index(op)] = {.device = d, .start = start, .end = end};
        },
        [&](TensorId tensor, DeviceId d, Part part, double start, double end, DeviceId to) {
          const OpId producer = problem().graph().producer(tensor);
          timeline.transfers.push_back({.tensor = tensor,
                                        .from = part == kSend ? d : plan.device[Index(producer)],
                                        .to = to,
                                        .start = start,
                                        .end = end,
                                        .part = part == kSend ? TransferPart::kSend : TransferPart::kReceive});
        });
    std::ranges::stable_sort(timeline.transfers, {}, [](const TransferRun& run) {
      return std::tuple(run.start, Index(run.tensor), Index(run.to));
    });
    if (options_.memory) memory_.Trace(plan.device, timeline);
    return timeline;
  }

  std::unique_ptr<Session> NewSession(const PlanView& start, Workspace&) const override {
    return std::make_unique<PipelineSession>(rules_, options_.memory ? &memory_ : nullptr, start);
  }

 private:
  // Everything that devices do for one sample, ops in their order, each op's tensors behind it. O(ops + edges).
  template <typename OnOp, typename OnTransfer>
  void Walk(const PlanView& plan, PipelineWorkspace& work, const OnOp& on_op, const OnTransfer& on_transfer) const {
    const Graph& graph = problem().graph();
    work.last_tensor.assign(problem().num_devices(), 0);
    for (const OpId op : graph.ops()) {
      const DeviceId from = plan.device[Index(op)];
      const size_t pass = rules_.PassOf(op);
      on_op(op, from, pass, problem().op_time(op, from));
      for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
        const auto tensor = MakeId<TensorId>(t);
        bool leaves = false;
        for (const OpId consumer : graph.consumers(tensor)) {
          const DeviceId d = plan.device[Index(consumer)];
          leaves |= d != from;
          work.last_tensor[Index(d)] = t + 1;
        }
        if (!leaves) continue;
        rules_.ForEachCharge(
            tensor, from, [&](DeviceId d) { return work.last_tensor[Index(d)] == t + 1; },
            [&](DeviceId d, Part part, double length, DeviceId to) { on_transfer(tensor, d, pass, part, length, to); });
      }
    }
  }

  // One period of the steady state: what a device does lies one after another from 0, in three lanes where it overlaps;
  // with separate passes the backward pass begins when the last device has ended its forward pass.
  template <typename OnOp, typename OnTransfer>
  void LayOut(const PlanView& plan, PipelineWorkspace& work, const OnOp& on_op, const OnTransfer& on_transfer) const {
    double second_pass = 0;
    if (options_.separate_passes) {
      LayOutFrom(
          0, plan, work, [](OpId, DeviceId, double, double) {},
          [](TensorId, DeviceId, Part, double, double, DeviceId) {});
      for (const auto& passes : work.lane_end) second_pass = std::max(second_pass, std::ranges::max(passes[0]));
    }
    LayOutFrom(second_pass, plan, work, on_op, on_transfer);
  }

  template <typename OnOp, typename OnTransfer>
  void LayOutFrom(double second_pass, const PlanView& plan, PipelineWorkspace& work, const OnOp& on_op,
                  const OnTransfer& on_transfer) const {
    work.lane_end.assign(problem().num_devices(), {{{0, 0, 0}, {second_pass, second_pass, second_pass}}});
    const auto lay = [&](DeviceId device, size_t pass, Part part, double length) {
      double& end =
          work.lane_end[Index(device)][options_.separate_passes ? pass : 0][options_.overlap ? part : kCompute];
      const double start = end;
      end += length;
      return std::pair(start, end);
    };
    Walk(
        plan, work,
        [&](OpId op, DeviceId d, size_t pass, double length) {
          const auto [start, end] = lay(d, pass, kCompute, length);
          on_op(op, d, start, end);
        },
        [&](TensorId tensor, DeviceId d, size_t pass, Part part, double length, DeviceId to) {
          const auto [start, end] = lay(d, pass, part, length);
          on_transfer(tensor, d, part, start, end, to);
        });
  }

  PipelineOptions options_;
  std::string name_;
  EvaluatorFacts facts_;
  PipelineRules rules_;
  StaticMemory memory_;
};

}  // namespace

void RegisterPipeline(EvaluatorCatalog& catalog) {
  catalog.Add(
      {.name = "pipeline",
       .sentence = "the largest load of a device in a steady-state pipeline: the time per sample",
       .source = "Tarnawski et al. 2020, section 3",
       .parameters = {Switch(
                          "overlap", "false",
                          "computing, sending and receiving at the same time: the largest of the three, not their sum"),
                      Choice(
                          "passes", {"sum", "max"},
                          "training: a device's forward and backward loads added (PipeDream), or the largest forward "
                          "load plus the largest backward load (GPipe)"),
                      Choice("memory", {"msr", "none"},
                             "what counts as a device's memory: the parameters of its ops, or nothing")}},
      [](const Params& params, const EvaluatorContext& context) -> std::unique_ptr<Evaluator> {
        const Problem& problem = context.problem;
        return std::make_unique<Pipeline>(problem,
                                          PipelineOptions{.overlap = params.Bool("overlap"),
                                                          .separate_passes = params.Text("passes") == "max",
                                                          .memory = params.Text("memory") == "msr"},
                                          params.canonical());
      });
}

}  // namespace berth
