// The evaluator `serial`: everything runs one after another. docs/semantics.md has its rules.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/parameters.h"
#include "sim/complete_timeline.h"
#include "sim/flat_problem.h"
#include "sim/hetero_subgraphs.h"
#include "sim/io.h"
#include "sim/memory_level.h"
#include "sim/simulators.h"

namespace berth {
namespace {

struct SerialWorkspace : Workspace {
  std::vector<int32_t> destinations;      // of one tensor
  std::vector<int32_t> last_sent;         // per device: the tensor last found to go there
  std::vector<int32_t> phase;             // per op
  std::vector<int32_t> parent;            // per op: union-find, roots are the smallest op of a subgraph
  std::optional<HeteroSubgraphs> hetero;  // where subgraphs are counted so
  std::vector<int32_t> on_device;         // per tensor and device: 1 once it is there
  MemoryLevel memory;
};

// One plan under the rules; the three parts of the score, and the run in time.
class SerialRun {
 public:
  // `weights`: by op, whether it makes constants alone.
  SerialRun(const FlatProblem& flat, std::span<const uint8_t> weights, double overhead, SerialWorkspace& workspace,
            const PlanView& plan)
      : flat_(flat), weights_(weights), overhead_(overhead), work_(workspace), plan_(plan) {}

  // Sums of ops in their order, then of transfers by tensor and destination.
  double SumOfTimes() {
    double total = 0;
    for (int32_t v = 0; v < flat_.num_ops(); ++v) total += flat_.op_time(v, device(v));
    work_.last_sent.assign(static_cast<size_t>(flat_.num_devices()), -1);
    const auto add = [&](int32_t t, int32_t from) {
      FindDestinations(t, from);
      for (const int32_t to : work_.destinations) total += flat_.transfer_time(t, from, to);
    };
    for (int32_t t = 0; t < flat_.num_inputs(); ++t) add(t, flat_.io_host());
    for (int32_t t = flat_.num_inputs(); t < flat_.num_tensors(); ++t) add(t, device(flat_.producer(t)));
    return total;
  }

  // Leaves the smallest op of its subgraph as the root of each.
  size_t CountSubgraphs() {
    if (work_.hetero) return work_.hetero->Count(plan_.device, work_.parent);
    const auto n = static_cast<size_t>(flat_.num_ops());
    work_.phase.assign(n, 0);
    work_.parent.resize(n);
    std::iota(work_.parent.begin(), work_.parent.end(), 0);
    size_t subgraphs = 0;
    const auto counts = [&](int32_t u) { return u >= 0 && weights_[static_cast<size_t>(u)] == 0; };
    for (int32_t v = 0; v < flat_.num_ops(); ++v) {
      if (!counts(v)) continue;
      ++subgraphs;
      int32_t& phase = work_.phase[static_cast<size_t>(v)];
      for (const int32_t t : flat_.inputs_of(v)) {
        const int32_t u = flat_.producer(t);
        if (counts(u)) phase = std::max(phase, work_.phase[static_cast<size_t>(u)] + (device(u) != device(v)));
      }
      for (const int32_t t : flat_.inputs_of(v)) {
        const int32_t u = flat_.producer(t);
        if (counts(u) && device(u) == device(v) && work_.phase[static_cast<size_t>(u)] == phase) {
          subgraphs -= Join(u, v);
        }
      }
    }
    return subgraphs;
  }

  // After CountSubgraphs where they cost anything. Ops in number order; a subgraph's overhead before its first op; a
  // transfer just before its first consumer, outputs for the host at the end. Returns when the run ends, and completes
  // `score` where memory is tracked. `starts` may be empty, `timeline` null.
  double GoThroughTime(bool with_memory, std::span<double> starts, Timeline* timeline, Score& score) {
    starts_ = starts;
    timeline_ = timeline;
    memory_ = with_memory ? &work_.memory : nullptr;
    if (memory_ != nullptr) memory_->Reset(flat_, plan_);
    work_.on_device.assign(static_cast<size_t>(flat_.num_tensors()) * static_cast<size_t>(flat_.num_devices()), 0);
    work_.last_sent.assign(static_cast<size_t>(flat_.num_devices()), -1);
    now_ = 0;
    for (int32_t t = 0; t < flat_.num_inputs(); ++t) {
      if (memory_ != nullptr) memory_->Arriving(t, flat_.io_host(), now_);
      Publish(t);
    }
    for (int32_t v = 0; v < flat_.num_ops(); ++v) RunOp(v);
    if (flat_.has_io_host()) {
      for (int32_t t = flat_.num_inputs(); t < flat_.num_tensors(); ++t) {
        if (flat_.tensor(t).is_output) Bring(t, flat_.io_host());
      }
    }
    if (memory_ != nullptr) memory_->Finish(now_, score);
    return now_;
  }

 private:
  int32_t device(int32_t op) const { return static_cast<int32_t>(plan_.device[static_cast<size_t>(op)]); }
  int32_t Home(int32_t t) const { return flat_.HomeOf(t, plan_.device); }

  // Ascending.
  void FindDestinations(int32_t t, int32_t from) {
    work_.destinations.clear();
    const auto add = [&](int32_t to) {
      int32_t& last = work_.last_sent[static_cast<size_t>(to)];
      if (to == from || last == t) return;
      last = t;
      work_.destinations.push_back(to);
    };
    for (const int32_t c : flat_.consumers(t)) add(device(c));
    if (flat_.has_io_host() && flat_.tensor(t).is_output) [[unlikely]]
      add(flat_.io_host());
    if (work_.destinations.size() < 2) return;
    std::sort(work_.destinations.begin(), work_.destinations.end());
  }

  int32_t Find(int32_t v) {
    while (work_.parent[static_cast<size_t>(v)] != v) {
      int32_t& parent = work_.parent[static_cast<size_t>(v)];
      parent = work_.parent[static_cast<size_t>(parent)];
      v = parent;
    }
    return v;
  }

  bool Join(int32_t u, int32_t v) {
    const int32_t a = Find(u), b = Find(v);
    work_.parent[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
    return a != b;
  }

  void RunOp(int32_t v) {
    const int32_t d = device(v);
    // Without overhead nobody needs to know where subgraphs begin.
    if (overhead_ > 0 && work_.parent[static_cast<size_t>(v)] == v && weights_[static_cast<size_t>(v)] == 0) {
      now_ += overhead_;
    }
    for (const int32_t t : flat_.inputs_of(v)) Bring(t, d);
    const double start = now_;
    if (!starts_.empty()) starts_[static_cast<size_t>(v)] = start;
    if (memory_ != nullptr) memory_->OpStarts(v, d, now_);
    now_ += flat_.op_time(v, d);
    if (timeline_ != nullptr)
      timeline_->ops.push_back({.device = static_cast<DeviceId>(d), .start = start, .end = now_});
    for (int32_t t = flat_.first_output(v); t < flat_.first_output(v + 1); ++t) Publish(t);
    if (memory_ != nullptr) memory_->OpEnds(v, d, now_);
  }

  // Says who holds a tensor that now exists.
  void Publish(int32_t t) {
    const int32_t from = Home(t);
    OnDevice(t, from) = 1;
    if (memory_ == nullptr) return;
    memory_->TensorBegins(t);
    for (const int32_t c : flat_.consumers(t)) memory_->Hold(t, device(c));
    FindDestinations(t, from);
    for (size_t k = 0; k < work_.destinations.size(); ++k) memory_->Hold(t, from);
    if (flat_.tensor(t).is_output) {
      memory_->Hold(t, from);
      if (flat_.has_io_host() && from != flat_.io_host()) memory_->Hold(t, flat_.io_host());
    }
    memory_->Drop(t, from, now_);
  }

  void Bring(int32_t t, int32_t to) {
    if (OnDevice(t, to) != 0) return;
    OnDevice(t, to) = 1;
    const int32_t from = Home(t);
    const double start = now_;
    if (memory_ != nullptr) memory_->Arriving(t, to, now_);
    now_ += flat_.transfer_time(t, from, to);
    if (memory_ != nullptr) memory_->Release(t, from, now_);
    if (timeline_ == nullptr) return;
    const bool is_input = t < flat_.num_inputs();
    timeline_->transfers.push_back({.tensor = is_input ? static_cast<TensorId>(t) : flat_.tensor_id(t),
                                    .from = static_cast<DeviceId>(from),
                                    .to = static_cast<DeviceId>(to),
                                    .start = start,
                                    .end = now_,
                                    .is_input = is_input});
  }

  int32_t& OnDevice(int32_t t, int32_t d) {
    return work_.on_device[static_cast<size_t>(t) * static_cast<size_t>(flat_.num_devices()) + static_cast<size_t>(d)];
  }

  const FlatProblem& flat_;
  std::span<const uint8_t> weights_;
  double overhead_;
  SerialWorkspace& work_;
  const PlanView& plan_;
  MemoryLevel* memory_ = nullptr;
  std::span<double> starts_;
  Timeline* timeline_ = nullptr;
  double now_ = 0;
};

class Serial : public Evaluator {
 public:
  Serial(const Problem& problem, std::string name, const EvaluatorFacts& facts)
      : Evaluator(problem),
        name_(std::move(name)),
        facts_(facts),
        overhead_(facts.As<SerialFacts>()->subgraph_overhead),
        flat_(problem, facts.io_host()) {
    for (const OpId op : problem.graph().ops()) weights_.push_back(problem.graph().makes_constants(op) ? 1 : 0);
    // Here, so that what is too large is refused before a search; each workspace has a copy.
    if (facts_.As<SerialFacts>()->hetero_subgraphs) hetero_.emplace(problem.graph(), weights_);
  }

  const EvaluatorFacts& facts() const override { return facts_; }
  const std::string& name() const override { return name_; }

  std::unique_ptr<Workspace> NewWorkspace() const override {
    auto workspace = std::make_unique<SerialWorkspace>();
    workspace->destinations.reserve(problem().num_devices());
    workspace->hetero = hetero_;
    return workspace;
  }

  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    const bool with_memory = facts_.tracks_memory && flat_.memory_may_lack();
    SerialRun run(flat_, weights_, overhead_, static_cast<SerialWorkspace&>(workspace), plan);
    Score score{.time = run.SumOfTimes()};
    if (overhead_ > 0) score.time += overhead_ * static_cast<double>(run.CountSubgraphs());
    if (score.time == kCannotRun) score.outcome = Outcome::kImpossible;
    if (score.fits() && (with_memory || !starts.empty())) run.GoThroughTime(with_memory, starts, nullptr, score);
    return score;
  }

  Timeline Trace(const PlanView& plan) const override {
    const std::unique_ptr<Workspace> workspace = NewWorkspace();
    Timeline timeline;
    timeline.score = ScorePlan(plan, *workspace, {});
    SerialRun run(flat_, weights_, overhead_, static_cast<SerialWorkspace&>(*workspace), plan);
    timeline.subgraphs = run.CountSubgraphs();
    Score ignored;
    const double finish = run.GoThroughTime(false, {}, &timeline, ignored);
    if (timeline.score.time == kCannotRun) timeline.infeasible_because = WhyItCannotRun(problem(), plan);
    CompleteTimeline(*this, finish, timeline);
    return timeline;
  }

 private:
  std::string name_;
  EvaluatorFacts facts_;
  double overhead_;
  FlatProblem flat_;
  std::vector<uint8_t> weights_;  // by op: it makes constants alone
  std::optional<HeteroSubgraphs> hetero_;
};

}  // namespace

void RegisterSerial(EvaluatorCatalog& catalog) {
  catalog.Add(
      {.name = "serial",
       .sentence = "one op or transfer at a time, with an overhead per subgraph: what OpenVINO's HETERO does",
       .source = "-",
       .parameters = {Time("subgraph_overhead", "0", "seconds for each subgraph that the plan cuts the graph into"),
                      Choice("subgraphs", {"phases", "hetero"},
                             "how these are counted: by phases, or as OpenVINO's HETERO makes them, which is slower"),
                      IoParameter(),
                      Switch("memory", "true",
                             "track memory over time; a plan that needs more than a device has is infeasible")}},
      [](const Params& params, const EvaluatorContext& context) -> std::unique_ptr<Evaluator> {
        const Problem& problem = context.problem;
        const Io io(params, problem);
        const EvaluatorFacts facts{
            .model = SerialFacts{.subgraph_overhead = params.Time("subgraph_overhead") / problem.seconds_per_unit(),
                                 .hetero_subgraphs = params.Text("subgraphs") == "hetero",
                                 .io_host = io.host()},
            .tracks_memory = params.Bool("memory"),
            .uses_priorities = false};
        return std::make_unique<Serial>(problem, io.NameWithIo(params), facts);
      });
}

}  // namespace berth
