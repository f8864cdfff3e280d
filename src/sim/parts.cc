// The evaluator `parts`: what openvino_parallel does, predicted. docs/semantics.md has its rules.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sim/complete_timeline.h"
#include "sim/flat_problem.h"
#include "sim/simulators.h"

namespace berth {
namespace {

// Times per part and per byte at a cut, from the devices' numbers, in the problem's unit.
class CutCosts {
 public:
  explicit CutCosts(const Problem& problem) {
    const double unit = problem.seconds_per_unit();
    const auto time_per_byte = [&](const auto& rates, OpClass op_class) {
      const auto rate = rates.find(kOpClassNames[static_cast<size_t>(op_class)]);
      return rate == rates.end() ? 0.0 : 1 / (rate->second.value * unit);
    };
    for (const DeviceId id : problem.cluster().ids()) {
      const Device& device = problem.cluster().device(id);
      overhead_.push_back(device.part_overhead.value / unit);
      for (size_t op_class = 0; op_class < kOpClasses; ++op_class) {
        read_.push_back(time_per_byte(device.cut_read, static_cast<OpClass>(op_class)));
        write_.push_back(time_per_byte(device.cut_write, static_cast<OpClass>(op_class)));
      }
    }
    for (const OpId op : problem.graph().ops()) {
      class_of_.push_back(static_cast<uint8_t>(problem.graph().work(op).op_class));
    }
  }

  double overhead(int32_t device) const { return overhead_[static_cast<size_t>(device)]; }
  double read(int32_t op, int32_t device) const { return read_[Place(op, device)]; }
  double write(int32_t op, int32_t device) const { return write_[Place(op, device)]; }

 private:
  size_t Place(int32_t op, int32_t device) const {
    return static_cast<size_t>(device) * kOpClasses + class_of_[static_cast<size_t>(op)];
  }

  std::vector<double> overhead_, read_, write_;
  std::vector<uint8_t> class_of_;
};

struct PartsWorkspace : Workspace {
  std::vector<uint8_t> exported;  // by op: used on another device
  std::vector<int32_t> phase, parent, part_of;
  std::vector<int32_t> device;                     // by part
  std::vector<double> before_ops, ops, after_ops;  // by part: what its overhead and inputs take, its ops, its outputs
  std::vector<double> begin, end;
  std::vector<int32_t> waits, first_after, after;  // edges between parts, by the part they leave
  std::vector<std::pair<int32_t, int32_t>> edges;
  std::vector<int32_t> ready, last_tensor;
  std::vector<double> free;  // by device
};

// One plan under the rules.
class PartsRun {
 public:
  PartsRun(const FlatProblem& flat, const CutCosts& costs, PartsWorkspace& workspace, const PlanView& plan)
      : flat_(flat), costs_(costs), work_(workspace), plan_(plan) {}

  // The makespan; the workspace then holds when each part begins and ends.
  double Run() {
    FindParts();
    FindLengths();
    JoinEdges();
    return GoThroughTime();
  }

  size_t num_parts() const { return work_.device.size(); }

  // Ops in their order within a part, after what its inputs take.
  void Starts(std::span<double> starts) {
    std::vector<double>& at = work_.before_ops;
    for (size_t part = 0; part < num_parts(); ++part) at[part] += work_.begin[part];
    for (int32_t v = 0; v < flat_.num_ops(); ++v) {
      double& now = at[Part(v)];
      starts[static_cast<size_t>(v)] = now;
      now += flat_.op_time(v, device(v));
    }
  }

  // A tensor is on its way from the end of the part that makes it until a part elsewhere may begin.
  void AddTransfers(Timeline& timeline) {
    for (int32_t t = flat_.num_inputs(); t < flat_.num_tensors(); ++t) {
      const int32_t from = device(flat_.producer(t));
      if (IsConstant(t)) continue;
      std::vector<int32_t> to;
      for (const int32_t v : flat_.consumers(t)) {
        if (device(v) != from) to.push_back(device(v));
      }
      std::ranges::sort(to);
      to.erase(std::ranges::unique(to).begin(), to.end());
      for (const int32_t there : to) {
        const double start = work_.end[Part(flat_.producer(t))];
        timeline.transfers.push_back({.tensor = flat_.tensor_id(t),
                                      .from = static_cast<DeviceId>(from),
                                      .to = static_cast<DeviceId>(there),
                                      .start = start,
                                      .end = start + Latency(from, there)});
      }
    }
  }

 private:
  int32_t device(int32_t op) const { return static_cast<int32_t>(plan_.device[static_cast<size_t>(op)]); }
  size_t Part(int32_t op) const { return static_cast<size_t>(work_.part_of[static_cast<size_t>(op)]); }
  double Latency(int32_t from, int32_t to) const {
    const Problem& problem = flat_.problem();
    return problem.latency()[static_cast<size_t>(from) * problem.num_devices() + static_cast<size_t>(to)];
  }

  // Each part has a copy: nobody waits for it.
  bool IsConstant(int32_t t) const { return flat_.problem().graph().is_constant(static_cast<TensorId>(t)); }
  // What makes constants alone is done before the first run: no part of its own.
  bool MakesConstants(int32_t v) const { return flat_.problem().graph().makes_constants(static_cast<OpId>(v)); }

  int32_t Root(int32_t v) {
    while (work_.parent[static_cast<size_t>(v)] != v) {
      int32_t& parent = work_.parent[static_cast<size_t>(v)];
      parent = work_.parent[static_cast<size_t>(parent)];
      v = parent;
    }
    return v;
  }

  // Parts are numbered by their first op.
  void FindParts() {
    const auto n = static_cast<size_t>(flat_.num_ops());
    work_.exported.assign(n, 0);
    work_.phase.assign(n, 0);
    work_.parent.resize(n);
    std::iota(work_.parent.begin(), work_.parent.end(), 0);
    for (int32_t t = flat_.num_inputs(); t < flat_.num_tensors(); ++t) {
      if (IsConstant(t)) continue;
      const int32_t u = flat_.producer(t);
      for (const int32_t user : flat_.consumers(t)) {
        if (device(user) != device(u)) work_.exported[static_cast<size_t>(u)] = 1;
      }
    }
    for (int32_t v = 0; v < flat_.num_ops(); ++v) {
      int32_t& phase = work_.phase[static_cast<size_t>(v)];
      for (const int32_t t : flat_.inputs_of(v)) {
        const int32_t u = flat_.producer(t);
        if (u < 0 || IsConstant(t)) continue;
        const bool cut = work_.exported[static_cast<size_t>(u)] != 0 || device(u) != device(v);
        phase = std::max(phase, work_.phase[static_cast<size_t>(u)] + (cut ? 1 : 0));
      }
      for (const int32_t t : flat_.inputs_of(v)) {
        const int32_t u = flat_.producer(t);
        if (u < 0 || IsConstant(t) || device(u) != device(v) || work_.phase[static_cast<size_t>(u)] != phase) continue;
        const int32_t a = Root(u), b = Root(v);
        work_.parent[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
      }
    }
    work_.part_of.resize(n);
    work_.device.clear();
    for (int32_t v = 0; v < flat_.num_ops(); ++v) {
      const int32_t root = Root(v);
      if (root == v) {
        work_.part_of[static_cast<size_t>(v)] = static_cast<int32_t>(num_parts());
        work_.device.push_back(device(v));
      } else {
        work_.part_of[static_cast<size_t>(v)] = work_.part_of[static_cast<size_t>(root)];
      }
    }
  }

  void FindLengths() {
    work_.before_ops.assign(num_parts(), 0);
    work_.ops.assign(num_parts(), 0);
    work_.after_ops.assign(num_parts(), 0);
    work_.last_tensor.assign(num_parts(), -1);
    work_.edges.clear();
    for (int32_t v = 0; v < flat_.num_ops(); ++v) {
      work_.ops[Part(v)] += flat_.op_time(v, device(v));
      if (!MakesConstants(v)) work_.before_ops[Part(v)] = costs_.overhead(device(v));
    }
    for (int32_t t = flat_.num_inputs(); t < flat_.num_tensors(); ++t) {
      if (IsConstant(t)) continue;
      const int32_t u = flat_.producer(t);
      const size_t maker = Part(u);
      const auto bytes = static_cast<double>(flat_.tensor(t).bytes);
      bool leaves = false;
      for (const int32_t v : flat_.consumers(t)) {
        const size_t reader = Part(v);
        if (reader == maker || work_.last_tensor[reader] == t) continue;
        work_.last_tensor[reader] = t;
        work_.edges.emplace_back(static_cast<int32_t>(maker), static_cast<int32_t>(reader));
        work_.before_ops[reader] += bytes * costs_.read(v, device(v));
        leaves = true;
      }
      if (leaves) work_.after_ops[maker] += bytes * costs_.write(u, device(u));
    }
  }

  void JoinEdges() {
    work_.waits.assign(num_parts(), 0);
    work_.first_after.assign(num_parts() + 1, 0);
    for (const auto& [from, to] : work_.edges) {
      ++work_.waits[static_cast<size_t>(to)];
      ++work_.first_after[static_cast<size_t>(from) + 1];
    }
    std::partial_sum(work_.first_after.begin(), work_.first_after.end(), work_.first_after.begin());
    work_.after.resize(work_.edges.size());
    for (const auto& [from, to] : work_.edges) {
      work_.after[static_cast<size_t>(work_.first_after[static_cast<size_t>(from)]++)] = to;
    }
    for (size_t part = num_parts(); part > 0; --part) work_.first_after[part] = work_.first_after[part - 1];
    work_.first_after[0] = 0;
  }

  double GoThroughTime() {
    work_.begin.assign(num_parts(), 0);
    work_.end.assign(num_parts(), 0);
    work_.free.assign(static_cast<size_t>(flat_.num_devices()), 0);
    work_.ready.clear();
    for (size_t part = 0; part < num_parts(); ++part) {
      if (work_.waits[part] == 0) work_.ready.push_back(static_cast<int32_t>(part));
    }
    // Ascending, so it is a heap.
    double makespan = 0;
    size_t ran = 0;
    for (; !work_.ready.empty(); ++ran) {
      std::pop_heap(work_.ready.begin(), work_.ready.end(), std::greater<>());
      const auto part = static_cast<size_t>(work_.ready.back());
      work_.ready.pop_back();
      const int32_t d = work_.device[part];
      double& free = work_.free[static_cast<size_t>(d)];
      work_.begin[part] = std::max(work_.begin[part], free);
      work_.end[part] = free = work_.begin[part] + work_.before_ops[part] + work_.ops[part] + work_.after_ops[part];
      makespan = std::max(makespan, free);
      for (int32_t i = work_.first_after[part]; i < work_.first_after[part + 1]; ++i) {
        const int32_t next = work_.after[static_cast<size_t>(i)];
        double& begin = work_.begin[static_cast<size_t>(next)];
        const int32_t there = work_.device[static_cast<size_t>(next)];
        begin = std::max(begin, free + (there == d ? 0 : Latency(d, there)));
        if (--work_.waits[static_cast<size_t>(next)] == 0) {
          work_.ready.push_back(next);
          std::push_heap(work_.ready.begin(), work_.ready.end(), std::greater<>());
        }
      }
    }
    BERTH_CHECK(ran == num_parts(), "parts wait for each other");
    return makespan;
  }

  const FlatProblem& flat_;
  const CutCosts& costs_;
  PartsWorkspace& work_;
  const PlanView& plan_;
};

class PartsEvaluator : public Evaluator {
 public:
  PartsEvaluator(const Problem& problem, std::string name)
      : Evaluator(problem), name_(std::move(name)), flat_(problem, std::nullopt), costs_(problem) {}

  const EvaluatorFacts& facts() const override {
    static const EvaluatorFacts facts{.model = PartsFacts{}, .tracks_memory = false, .uses_priorities = false};
    return facts;
  }
  const std::string& name() const override { return name_; }

  std::unique_ptr<Workspace> NewWorkspace() const override {
    auto workspace = std::make_unique<PartsWorkspace>();
    const auto n = static_cast<size_t>(flat_.num_ops());
    for (auto* numbers : {&workspace->device, &workspace->waits, &workspace->ready, &workspace->last_tensor}) {
      numbers->reserve(n);
    }
    for (auto* times :
         {&workspace->before_ops, &workspace->ops, &workspace->after_ops, &workspace->begin, &workspace->end}) {
      times->reserve(n);
    }
    workspace->first_after.reserve(n + 1);
    workspace->edges.reserve(flat_.num_edges());
    workspace->after.reserve(flat_.num_edges());
    return workspace;
  }

  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    PartsRun run(flat_, costs_, static_cast<PartsWorkspace&>(workspace), plan);
    Score score{.time = run.Run()};
    if (score.time == kCannotRun) score.outcome = Outcome::kImpossible;
    if (!starts.empty()) run.Starts(starts);
    return score;
  }

  Timeline Trace(const PlanView& plan) const override {
    PartsWorkspace workspace;
    PartsRun run(flat_, costs_, workspace, plan);
    Timeline timeline;
    timeline.score.time = run.Run();
    timeline.subgraphs = run.num_parts();
    if (timeline.score.time == kCannotRun) {
      timeline.score.outcome = Outcome::kImpossible;
      timeline.infeasible_because = WhyItCannotRun(problem(), plan);
    }
    std::vector<double> starts(problem().num_ops());
    run.Starts(starts);
    for (const OpId op : problem().graph().ops()) {
      const DeviceId device = plan.device[Index(op)];
      const double start = starts[Index(op)];
      timeline.ops.push_back({.device = device, .start = start, .end = start + problem().op_time(op, device)});
    }
    run.AddTransfers(timeline);
    CompleteTimeline(*this, timeline.score.time, timeline);
    return timeline;
  }

 private:
  std::string name_;
  FlatProblem flat_;
  CutCosts costs_;
};

}  // namespace

void RegisterParts(EvaluatorCatalog& catalog) {
  catalog.Add(
      {.name = "parts",
       .sentence = "what openvino_parallel does: parts of the model on all devices at once, each of which waits "
                   "for all that it reads, and pays for its cuts",
       .source = "-"},
      [](const Params& params, const EvaluatorContext& context) -> std::unique_ptr<Evaluator> {
        return std::make_unique<PartsEvaluator>(context.problem, params.canonical());
      });
}

}  // namespace berth
