// The evaluator `parallel`: devices work side by side, one op at a time each. docs/semantics.md has its rules.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sim/complete_timeline.h"
#include "sim/device_sets.h"
#include "sim/flat_problem.h"
#include "sim/memory_level.h"
#include "sim/ready_ops.h"
#include "sim/simulators.h"
#include "sim/slots.h"
#include "sim/transfers.h"

namespace berth {
namespace {

struct OpState {
  double duration;
  int32_t missing;  // inputs that are not on its device
  int32_t device;
};

// What every kind of run needs; a run takes of the rest what its rules ask for.
struct ParallelWorkspace : Workspace {
  std::vector<OpState> ops;
  std::vector<int32_t> first_op;   // per device: where its ops would start in a list of all, by device
  Slots slots;                     // when the op of each device ends, and then when the transfer that it sends does
  DeviceSets changed;              // devices that were freed, or got a ready op, since ops were last started
  std::vector<int32_t> running;    // per device: its op
  std::vector<int32_t> last_sent;  // per device: the tensor last found to go there
  MemoryLevel memory;

  FirstCome first_come;
  ByPriority by_priority;
  InSequence in_sequence;

  Unlimited unlimited;
  EgressPorts egress;
  Ports ports;
  SequencedPorts sequenced_egress{false};
  SequencedPorts sequenced_ports{true};
};

// One run through time. Ready says which op a device starts, Transfers which transfers start (ready_ops.h,
// transfers.h).
template <typename Ready, typename Transfers, bool kMemory>
class Run {
  static constexpr size_t kFetched = 4;  // consumers whose state is fetched ahead: most tensors have no more

 public:
  Run(const FlatProblem& flat, ParallelWorkspace& workspace, Ready& ready, Transfers& transfers,
      std::span<double> starts, std::vector<TransferRun>* record)
      : flat_(flat), work_(workspace), ready_(ready), transfers_(transfers), starts_(starts), record_(record) {}

  Score Simulate(const PlanView& plan) {
    Prepare(plan);
    while (true) {
      StartTransfers();
      StartOps();
      const double next = NextEnd();
      if (next == kNever) break;
      now_ = next;
      EndAll();
    }
    // Ops are left when a sequence contradicts itself, or when one is on a device that cannot run it.
    if (ended_ != flat_.num_ops() || !transfers_.Idle()) return {.time = kNever, .feasible = false, .excess_bytes = 0};
    Score score{.time = now_};
    if constexpr (kMemory) work_.memory.Finish(now_, score);
    return score;
  }

 private:
  void Prepare(const PlanView& plan) {
    const auto devices = static_cast<size_t>(flat_.num_devices());
    work_.ops.resize(plan.device.size());
    work_.first_op.assign(devices + 1, 0);
    work_.slots.Reset(Transfers::kUsesSlots ? 2 * devices : devices);
    work_.changed.Reset(1, devices);
    work_.running.resize(devices);
    work_.last_sent.assign(devices, -1);
    std::fill(starts_.begin(), starts_.end(), kNever);
    for (int32_t v = 0; v < flat_.num_ops(); ++v) {
      const auto d = static_cast<int32_t>(plan.device[static_cast<size_t>(v)]);
      work_.ops[static_cast<size_t>(v)] = {flat_.op_time(v, d), flat_.num_inputs_of(v), d};
      ++work_.first_op[static_cast<size_t>(d) + 1];
    }
    for (size_t d = 0; d < devices; ++d) work_.first_op[d + 1] += work_.first_op[d];
    ready_.Reset(plan, work_.first_op);
    transfers_.Reset(flat_, plan, work_.slots);
    if constexpr (kMemory) work_.memory.Reset(flat_, plan);

    for (int32_t v = 0; v < flat_.num_ops(); ++v) {
      const OpState& op = work_.ops[static_cast<size_t>(v)];
      if (op.missing == 0) BecomesReady(v, op.device);
    }
    for (int32_t t = 0; t < flat_.num_inputs(); ++t) {
      if constexpr (kMemory) work_.memory.Arriving(t, 0, 0);
      Publish(t, 0);
    }
  }

  void StartTransfers() {
    transfers_.Start(now_, [this](int32_t t, int32_t from, int32_t to, double end) {
      if constexpr (kMemory) work_.memory.Arriving(t, to, now_);
      if (record_ != nullptr) {
        const bool is_input = t < flat_.num_inputs();
        record_->push_back({.tensor = is_input ? static_cast<TensorId>(t) : flat_.tensor_id(t),
                            .from = static_cast<DeviceId>(from),
                            .to = static_cast<DeviceId>(to),
                            .start = now_,
                            .end = end,
                            .is_input = is_input});
      }
    });
  }

  void StartOps() {
    work_.changed.TakeEach(0, [this](int32_t d) {
      if (work_.slots[static_cast<size_t>(d)] != kNever || !ready_.Has(d)) return;
      const int32_t v = ready_.Pop(d);
      work_.slots.Set(static_cast<size_t>(d), now_ + work_.ops[static_cast<size_t>(v)].duration);
      work_.running[static_cast<size_t>(d)] = v;
      if (!starts_.empty()) starts_[static_cast<size_t>(v)] = now_;
      if constexpr (kMemory) work_.memory.OpStarts(v, d, now_);
      // Its end will ask for these; until then other things end.
      for (const int32_t c : flat_.users_of(v).first(std::min(kFetched, flat_.users_of(v).size()))) {
        __builtin_prefetch(work_.ops.data() + c, 1);
      }
    });
  }

  double NextEnd() const {
    if constexpr (Transfers::kUsesSlots) {
      return work_.slots.Least();
    } else {
      return std::min(work_.slots.Least(), transfers_.NextEnd());
    }
  }

  void EndAll() {
    const auto on_end = [this](int32_t t, int32_t from, int32_t to) {
      if constexpr (kMemory) work_.memory.Release(t, from, now_);
      Arrive(t, to);
    };
    work_.slots.ForEachAt(now_, [&](size_t slot) {
      const auto device = static_cast<int32_t>(slot);
      if constexpr (Transfers::kUsesSlots) {
        if (device >= flat_.num_devices()) return transfers_.End(device - flat_.num_devices(), on_end);
      }
      EndOp(device);
    });
    if constexpr (!Transfers::kUsesSlots) transfers_.EndAll(now_, on_end);
  }

  void EndOp(int32_t d) {
    work_.slots.Set(static_cast<size_t>(d), kNever);
    work_.changed.Add(0, d);
    ++ended_;
    const int32_t v = work_.running[static_cast<size_t>(d)];
    for (int32_t t = flat_.first_output(v); t < flat_.first_output(v + 1); ++t) Publish(t, d);
    if constexpr (kMemory) work_.memory.OpEnds(v, d, now_);
  }

  void BecomesReady(int32_t v, int32_t d) {
    ready_.Push(d, v, now_);
    work_.changed.Add(0, d);
  }

  // A tensor is there, on the device of its producer: consumers on this device have it, each other one is sent it once.
  void Publish(int32_t t, int32_t from) {
    if constexpr (kMemory) work_.memory.TensorBegins(t);
    for (const int32_t c : flat_.consumers(t)) {
      OpState& op = work_.ops[static_cast<size_t>(c)];
      if constexpr (kMemory) work_.memory.Hold(t, op.device);
      if (op.device == from) {
        if (--op.missing == 0) BecomesReady(c, from);
      } else {
        Send(t, from, op.device);
      }
    }
    if (flat_.tensor(t).is_output) {
      if constexpr (kMemory) work_.memory.Hold(t, from);
      if (flat_.io_on_host() && from != 0) {
        if constexpr (kMemory) work_.memory.Hold(t, 0);
        Send(t, from, 0);
      }
    }
    if constexpr (kMemory) work_.memory.Drop(t, from, now_);
  }

  void Send(int32_t t, int32_t from, int32_t to) {
    int32_t& last = work_.last_sent[static_cast<size_t>(to)];
    if (last == t) return;
    last = t;
    if constexpr (kMemory) work_.memory.Hold(t, from);
    transfers_.Request(t, from, to, now_);
  }

  void Arrive(int32_t t, int32_t to) {
    for (const int32_t c : flat_.consumers(t)) {
      OpState& op = work_.ops[static_cast<size_t>(c)];
      const bool here = op.device == to;
      op.missing -= here;
      if (here && op.missing == 0) BecomesReady(c, to);
    }
  }

  const FlatProblem& flat_;
  ParallelWorkspace& work_;
  Ready& ready_;
  Transfers& transfers_;
  std::span<double> starts_;
  std::vector<TransferRun>* record_;
  double now_ = 0;
  int32_t ended_ = 0;
};

class Parallel : public Evaluator {
 public:
  Parallel(const Problem& problem, std::string name, const EvaluatorFacts& facts)
      : Evaluator(problem), name_(std::move(name)), facts_(facts), flat_(problem, facts.io_on_host) {}

  const EvaluatorFacts& facts() const override { return facts_; }
  const std::string& name() const override { return name_; }
  std::unique_ptr<Workspace> NewWorkspace() const override { return std::make_unique<ParallelWorkspace>(); }

  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    return Simulate(plan, static_cast<ParallelWorkspace&>(workspace), starts, nullptr);
  }

  Timeline Trace(const PlanView& plan) const override {
    Timeline timeline;
    ParallelWorkspace workspace;
    std::vector<double> starts(plan.device.size());
    timeline.score = Simulate(plan, workspace, starts, &timeline.transfers);
    for (const OpId op : problem().graph().ops()) {
      const double start = starts[Index(op)];
      const DeviceId device = plan.device[Index(op)];
      timeline.ops.push_back({.device = device, .start = start, .end = start + problem().op_time(op, device)});
    }
    if (timeline.score.time == kNever) timeline.infeasible_because = WhyItStops(plan, timeline);
    CompleteTimeline(*this, timeline.score.time, timeline);
    return timeline;
  }

 private:
  Score Simulate(const PlanView& plan, ParallelWorkspace& work, std::span<double> starts,
                 std::vector<TransferRun>* record) const {
    if (plan.sequence != nullptr) {
      switch (facts_.contention) {
        case Contention::kEgress:
          return WithRules(plan, work, work.in_sequence, work.sequenced_egress, starts, record);
        case Contention::kPorts:
          return WithRules(plan, work, work.in_sequence, work.sequenced_ports, starts, record);
        default:
          return WithRules(plan, work, work.in_sequence, work.unlimited, starts, record);
      }
    }
    if (!plan.priority.empty()) return WithReady(plan, work, work.by_priority, starts, record);
    return WithReady(plan, work, work.first_come, starts, record);
  }

  template <typename Ready>
  Score WithReady(const PlanView& plan, ParallelWorkspace& work, Ready& ready, std::span<double> starts,
                  std::vector<TransferRun>* record) const {
    switch (facts_.contention) {
      case Contention::kEgress:
        return WithRules(plan, work, ready, work.egress, starts, record);
      case Contention::kPorts:
        return WithRules(plan, work, ready, work.ports, starts, record);
      default:
        return WithRules(plan, work, ready, work.unlimited, starts, record);
    }
  }

  template <typename Ready, typename Transfers>
  Score WithRules(const PlanView& plan, ParallelWorkspace& work, Ready& ready, Transfers& transfers,
                  std::span<double> starts, std::vector<TransferRun>* record) const {
    if (facts_.tracks_memory && flat_.memory_may_lack()) {
      return Run<Ready, Transfers, true>(flat_, work, ready, transfers, starts, record).Simulate(plan);
    }
    return Run<Ready, Transfers, false>(flat_, work, ready, transfers, starts, record).Simulate(plan);
  }

  // Names the first op that never runs, or never ends.
  std::string WhyItStops(const PlanView& plan, const Timeline& timeline) const {
    const Graph& graph = problem().graph();
    for (const OpId op : graph.ops()) {
      if (!problem().can_run(op, plan.device[Index(op)])) {
        return fmt::format("op {} cannot run on {}", graph.op_name(op),
                           problem().cluster().device(plan.device[Index(op)]).name);
      }
    }
    const auto& order = plan.sequence->ops;
    const auto stuck = std::ranges::find_if(order, [&](OpId op) { return timeline.ops[Index(op)].start == kNever; });
    if (stuck != order.end())
      return fmt::format("the sequence contradicts itself at op {}: it can never start", graph.op_name(*stuck));
    return "the sequence contradicts itself: not all outputs can be sent";
  }

  std::string name_;
  EvaluatorFacts facts_;
  FlatProblem flat_;
};

Contention ParseContention(std::string_view text) {
  if (text == "egress") return Contention::kEgress;
  return text == "ports" ? Contention::kPorts : Contention::kNone;
}

}  // namespace

void RegisterParallel(EvaluatorCatalog& catalog) {
  catalog.Add(
      {.name = "parallel",
       .sentence = "devices run side by side, one op at a time each; transfers overlap with computing",
       .source = "Moirai (arXiv:2312.04025), for ports",
       .parameters = {{.name = "contention",
                       .type = ParameterType::kChoice,
                       .default_value = "none",
                       .sentence = "what transfers queue for: nothing, the sender's port, or the ports of both ends",
                       .choices = {"none", "egress", "ports"}},
                      {.name = "io",
                       .type = ParameterType::kChoice,
                       .default_value = "everywhere",
                       .sentence =
                           "where graph inputs are and outputs stay: on every device, or on device 0 (the host)",
                       .choices = {"everywhere", "host"}},
                      {.name = "memory",
                       .type = ParameterType::kBool,
                       .default_value = "true",
                       .sentence = "track memory over time; a plan that needs more than a device has is infeasible"}}},
      [](const Params& params, const Problem& problem) -> std::unique_ptr<Evaluator> {
        return std::make_unique<Parallel>(problem, params.canonical(),
                                          EvaluatorFacts{.model = EvaluatorFacts::Model::kParallel,
                                                         .contention = ParseContention(params.Text("contention")),
                                                         .io_on_host = params.Text("io") == "host",
                                                         .tracks_memory = params.Bool("memory"),
                                                         .uses_priorities = true});
      });
}

}  // namespace berth
