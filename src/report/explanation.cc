#include "report/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "placement/objective_text.h"
#include "placement/search.h"
#include "report/table.h"

namespace berth {
namespace {

// Sums in another order differ by less.
constexpr double kRounding = 1e-12;

// Which single moves the constraints allow that join ops.
class JointRules {
 public:
  JointRules(const Problem& problem, std::span<const DeviceId> device)
      : problem_(problem),
        device_(device),
        joined_(problem.num_ops(), 0),
        kernel_(problem.num_ops(), nullptr),
        apart_(problem.num_ops()) {
    for (const std::vector<OpId>& group : problem.constraints().colocate) {
      if (group.size() < 2) continue;
      for (const OpId op : group) joined_[Index(op)] = 1;
      // A kernel moves as a whole, where nothing else is tied to it.
      if (std::ranges::any_of(problem.kernels(), [&](const Kernel& kernel) { return kernel.ops == group; })) {
        for (const OpId op : group) kernel_[Index(op)] = &group;
      }
    }
    for (const auto& [a, b] : problem.constraints().separate) {
      apart_[Index(a)].push_back(b);
      apart_[Index(b)].push_back(a);
    }
  }

  // The ops that move when this one does.
  std::span<const OpId> Moved(const OpId& op) const {
    return kernel_[Index(op)] == nullptr ? std::span(&op, 1) : std::span<const OpId>(*kernel_[Index(op)]);
  }
  bool CanRun(OpId op, DeviceId to) const {
    return std::ranges::all_of(Moved(op), [&](OpId moved) { return problem_.can_run(moved, to); });
  }
  bool Allow(OpId op, DeviceId to) const {
    return std::ranges::all_of(Moved(op), [&](OpId moved) { return AllowAlone(moved, to); });
  }

 private:
  bool AllowAlone(OpId op, DeviceId to) const {
    if (joined_[Index(op)] != 0 && kernel_[Index(op)] == nullptr) return false;
    const std::span<const OpId> moved = Moved(op);
    const auto place = [&](OpId other) {
      return std::ranges::find(moved, other) != moved.end() ? to : device_[Index(other)];
    };
    if (std::ranges::any_of(apart_[Index(op)], [&](OpId other) { return place(other) == to; })) return false;
    const Graph& graph = problem_.graph();
    const Constraints& constraints = problem_.constraints();
    for (const TensorId tensor : graph.inputs_of(op)) {
      if (constraints.forbids(tensor, place(graph.producer(tensor)), to)) return false;
    }
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      const auto tensor = MakeId<TensorId>(t);
      const auto forbidden = [&](OpId consumer) { return constraints.forbids(tensor, to, place(consumer)); };
      if (std::ranges::any_of(graph.consumers(tensor), forbidden)) return false;
    }
    return true;
  }

  const Problem& problem_;
  std::span<const DeviceId> device_;
  std::vector<uint8_t> joined_;
  std::vector<const std::vector<OpId>*> kernel_;  // by op; null where it is none's
  std::vector<std::vector<OpId>> apart_;
};

// "cpu +1.21 ms", "cpu cannot", "cpu does not fit", "cpu -0.31 ms (not allowed)".
std::string DescribeAlternative(const Evaluator& evaluator, OpId op, const Alternative& alternative, double value) {
  const Problem& problem = evaluator.problem();
  const std::string name = LegibleName(problem.cluster(), alternative.device);
  if (!alternative.can_run) {
    const bool ruled_out = std::ranges::binary_search(problem.constraints().narrowed, op);
    return name + (ruled_out ? " not allowed" : " cannot");
  }
  const std::string rule = alternative.allowed ? "" : " (not allowed)";
  if (alternative.score.failed()) return name + " could not be scored" + rule;
  if (!alternative.score.fits()) return name + " does not fit" + rule;
  const double delta = alternative.score.value() - value;
  if (std::abs(delta) <= kRounding * value) return name + " ±0" + rule;
  return fmt::format("{} {}{}{}", name, delta > 0 ? "+" : "-",
                     ObjectiveText(problem, evaluator.facts().objective, std::abs(delta)), rule);
}

// The cheapest ones where there are many.
std::string DescribeAlternatives(const Evaluator& evaluator, const OpExplanation& explained, double value) {
  std::vector<Alternative> sorted = explained.alternatives;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Alternative& a, const Alternative& b) {
    if (a.can_run != b.can_run) return a.can_run;
    if (a.allowed != b.allowed) return a.allowed;
    return a.can_run && Better(a.score, b.score);
  });
  constexpr size_t kShown = 4;
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(sorted.size(), kShown); ++i)
    parts.push_back(DescribeAlternative(evaluator, explained.op, sorted[i], value));
  if (sorted.size() > kShown) parts.push_back(fmt::format("{} more", sorted.size() - kShown));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// The critical path by device and transfers, and its longest steps.
std::string PathParagraph(const Problem& problem, const PlanReport& report) {
  const RunSummary& summary = report.summary;
  const Graph& graph = problem.graph();
  if (!(summary.makespan > 0)) return {};
  std::vector<std::string> parts;
  for (const DeviceId device : problem.cluster().ids()) {
    const double time = summary.path_by_device[Index(device)];
    if (time > 0)
      parts.push_back(
          fmt::format("computing on {} {}", LegibleName(problem.cluster(), device), Percent(time / summary.makespan)));
  }
  if (summary.path_transfers > 0) parts.push_back("transfers " + Percent(summary.path_transfers / summary.makespan));
  if (summary.path_other > 1e-9 * summary.makespan)
    parts.push_back("overheads and waiting " + Percent(summary.path_other / summary.makespan));
  std::string text = Wrap(fmt::format(
      "Critical path: {} of {} events: {}.", Count(static_cast<int64_t>(summary.path.size())),
      Count(static_cast<int64_t>(report.timeline.ops.size() + report.timeline.transfers.size())), JoinAnd(parts)));
  std::vector<PathStep> longest = summary.path;
  std::stable_sort(longest.begin(), longest.end(),
                   [](const PathStep& a, const PathStep& b) { return a.end - a.start > b.end - b.start; });
  longest.resize(std::min<size_t>(longest.size(), 5));
  std::vector<std::string> names;
  for (const PathStep& step : longest) {
    const std::string what =
        step.is_transfer
            ? fmt::format("sending {}", Shorten(TransferName(graph, report.timeline.transfers[step.index]), 36))
            : Shorten(graph.op_name(MakeId<OpId>(step.index)), 36);
    names.push_back(fmt::format("{} {}", what, ToString(problem.ToSeconds(step.end - step.start))));
  }
  return text + Wrap(fmt::format("Its longest events: {}.", JoinAnd(names)));
}

}  // namespace

Explanation Explain(const Evaluator& evaluator, const Plan& plan, const std::vector<OpId>& ops,
                    const std::function<void(size_t)>& progress) {
  const Problem& problem = evaluator.problem();
  Explanation explanation{.ops = {}, .without_sequence = plan.sequence.has_value()};
  const auto workspace = evaluator.NewWorkspace();
  const auto session = evaluator.NewSession({.device = plan.device, .priority = plan.priority}, *workspace);
  const JointRules rules(problem, plan.device);
  std::vector<std::pair<OpId, DeviceId>> moves;
  for (const OpId op : ops) {
    OpExplanation& explained = explanation.ops.emplace_back(OpExplanation{.op = op, .alternatives = {}});
    for (const DeviceId device : problem.cluster().ids()) {
      if (device == plan.device[Index(op)]) continue;
      const bool can_run = rules.CanRun(op, device);
      Alternative& alternative = explained.alternatives.emplace_back(Alternative{
          .device = device, .can_run = can_run, .allowed = can_run && rules.Allow(op, device), .score = {}});
      if (!alternative.can_run) continue;
      moves.clear();
      for (const OpId moved : rules.Moved(op)) moves.emplace_back(moved, device);
      alternative.score = session->Try(moves);
    }
    if (progress) progress(explanation.ops.size());
  }
  return explanation;
}

std::string ExplanationHead(const Evaluator& evaluator, const PlanReport& report) {
  const Problem& problem = evaluator.problem();
  std::string text = PlanPage(evaluator, report);
  if (report.timeline.score.failed()) return text;
  text += PathParagraph(problem, report);
  if (report.timeline.score.fits() && !report.timeline.memory.empty()) {
    text += "\nWhat fills each device's memory at its peak:\n" + MemoryHolders(problem, report.timeline, 4);
  }
  return text;
}

std::string ExplanationTable(const Evaluator& evaluator, const PlanReport& report, const Explanation& explanation) {
  using enum Table::Align;
  const Problem& problem = evaluator.problem();
  const Graph& graph = problem.graph();
  std::vector<bool> on_path(problem.num_ops());
  for (const PathStep& step : report.summary.path) {
    if (!step.is_transfer) on_path[step.index] = true;
  }
  Table table({{"op"},
               {"type", kLeft, 2},
               {"device"},
               {"takes", kRight},
               {""},
               {"cause", kLeft, 1},
               {evaluator.facts().objective.is_time() ? "run time if moved alone"
                                                      : evaluator.facts().objective.name + " if moved alone"}});
  size_t better_elsewhere = 0;
  for (const OpExplanation& explained : explanation.ops) {
    const OpId op = explained.op;
    const OpRun& run = report.timeline.ops[Index(op)];
    table.Add({Shorten(graph.op_name(op), 40), Shorten(graph.op_type(op), 20),
               LegibleName(problem.cluster(), run.device), ToString(problem.ToSeconds(run.end - run.start)),
               on_path[Index(op)] ? "*" : "", Shorten(report.result.plan.cause_of(op), 50),
               DescribeAlternatives(evaluator, explained, report.timeline.score.value())});
    better_elsewhere += std::ranges::any_of(explained.alternatives, [&](const Alternative& a) {
      const Score& now = report.timeline.score;
      return a.allowed && Better(a.score, now) &&
             (a.score.fits() != now.fits() || a.score.value() < now.value() * (1 - kRounding));
    });
  }
  std::string text = table.ToString() + "\n  * on the critical path\n";
  if (!problem.kernels().empty()) {
    text += Wrap("Ops that are one kernel have its time at one of them, and move together.");
  }
  if (explanation.without_sequence) {
    text += Wrap(
        "The plan's strict order of ops holds for its own placement only: with an op moved, ops run first come, first "
        "served.");
  }
  const auto ops = static_cast<int64_t>(explanation.ops.size());
  const std::string_view better = BetterWord(evaluator.facts().objective);
  text +=
      better_elsewhere == 0
          ? Wrap(fmt::format("No single move of {} makes this plan {}.",
                             ops == 1 ? "this op" : fmt::format("these {} ops", Count(ops)), better))
          : Wrap(fmt::format("{} of {} would make the plan {} if moved alone: a longer search may find a better plan.",
                             Count(static_cast<int64_t>(better_elsewhere)), Counted(ops, "op"), better));
  return text;
}

}  // namespace berth
