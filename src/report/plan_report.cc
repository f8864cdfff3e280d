#include "report/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "placement/energy.h"
#include "placement/objective_text.h"
#include "placement/set_up.h"
#include "placement/single_devices.h"
#include "report/notes.h"
#include "report/table.h"

namespace berth {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

std::string Traffic(int64_t transfers, int64_t bytes) {
  return transfers == 0 ? "-" : fmt::format("{} ({})", Count(transfers), ToString(Bytes{bytes}));
}

// What runs on a device may be the constraints' decision, not the device's.
std::string WithConstraints(const PlanReport& report) {
  return report.constraints.empty() ? "" : " with these constraints";
}

// "gpu 8.10 ms, cpu 11.9 ms": the fastest first, of devices that take the same time the first.
std::string DescribeSingles(const Problem& problem, const PlanReport& report) {
  const std::vector<double>& times = report.single_device_time;
  std::vector<DeviceId> sorted = DistinctDevices(times);
  std::erase_if(sorted, [&](DeviceId device) { return !std::isfinite(times[Index(device)]); });
  std::ranges::stable_sort(sorted, {}, [&](DeviceId device) { return times[Index(device)]; });
  std::vector<std::string> unable;
  for (const DeviceId device : problem.cluster().ids()) {
    if (!std::isfinite(times[Index(device)])) unable.push_back(LegibleName(problem.cluster(), device));
  }
  constexpr size_t kShown = 6;
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(sorted.size(), kShown); ++i) {
    const double time = times[Index(sorted[i])];
    parts.push_back(fmt::format("{} {}", LegibleName(problem.cluster(), sorted[i]), ToString(problem.ToSeconds(time))));
  }
  if (sorted.size() > kShown) parts.push_back(fmt::format("{} slower ones", sorted.size() - kShown));
  std::string text = fmt::format("{}", fmt::join(parts, ", "));
  if (!unable.empty()) {
    if (unable.size() > kShown) unable = {fmt::format("{} devices", unable.size())};
    text += fmt::format("{}the whole model {} {}{}", text.empty() ? "" : "; ",
                        unable.size() == 1 ? "does not run on" : "runs on none of", JoinAnd(unable),
                        WithConstraints(report));
  }
  return text;
}

// What the plan gains over the best single device, and what any could.
std::string DescribeSpeedUp(const Problem& problem, const Objective& objective, const PlanReport& report) {
  const std::vector<double>& times = report.single_device_time;
  const auto best = std::ranges::min_element(times);
  const double time = report.timeline.score.time;
  if (!std::isfinite(*best)) return "no single device runs the whole model" + WithConstraints(report);
  if (!(time > 0)) return "not known: this plan takes no time";
  const auto on = MakeId<DeviceId>(static_cast<size_t>(best - times.begin()));
  const std::string name = LegibleName(problem.cluster(), on);
  const double bound = objective.is_time() ? report.bound.time : 0;
  const std::string most = bound > 0 ? fmt::format("; no plan has more than {}", Factor(*best / bound)) : "";
  const double spread = report.single_device_spread.empty() ? 0 : report.single_device_spread[Index(on)];
  const Score alone{.time = *best, .spread = spread};
  if (!CanBeToldApart(report.timeline.score, alone)) {
    const std::vector<DeviceId>& device = report.result.plan.device;
    if (OnOneDevice(device) && !device.empty()) {
      return fmt::format("none: this plan is {} alone{}", LegibleName(problem.cluster(), device.front()), most);
    }
    return fmt::format("none that can be told: beside {} alone ({}) the difference is within the noise of the runs{}",
                       name, Factor(*best / time), most);
  }
  if (time >= *best * (1 - 5e-4)) {
    return fmt::format("none: {} alone is {} this plan{}", name,
                       time <= *best * (1 + 5e-4) ? "as fast as" : "faster than", most);
  }
  return fmt::format("{} over {} alone, the fastest single device{}", Factor(*best / time), name, most);
}

// "heft 9.57 ms, then local_search 8.31 ms": the members of a portfolio that were ahead one after another, the last
// few.
std::string DescribeLeaders(const Problem& problem, const Objective& objective,
                            std::span<const Contribution> contributions) {
  constexpr size_t kShown = 4;
  std::vector<std::string> leaders;
  for (const Contribution& each : contributions) {
    if (!each.led) continue;
    const std::string value = each.score.fits()     ? ObjectiveText(problem, objective, each.score.value())
                              : each.score.failed() ? "failed"
                                                    : "does not fit";
    leaders.push_back(fmt::format("{} {}", each.planner, value));
  }
  const size_t left_out = leaders.size() - std::min(leaders.size(), kShown);
  leaders.erase(leaders.begin(), leaders.begin() + static_cast<ptrdiff_t>(left_out));
  return fmt::format("{}{}",
                     left_out > 0 ? fmt::format("after {}: ", Counted(static_cast<int64_t>(left_out), "other")) : "",
                     fmt::join(leaders, ", then "));
}

}  // namespace

PlanReport MakePlanReport(const Evaluator& evaluator, std::string planner, PlanResult result, const Bound& bound) {
  PlanReport report;
  report.planner = std::move(planner);
  report.timeline = evaluator.Trace(result.plan.view());
  // Measured once more it would have another score than the one by which it was chosen; a plan that is given has none.
  if (!evaluator.facts().deterministic && result.evaluations > 0) {
    if (report.timeline.score.failed()) {
      report.timeline.untold_because =
          "the run that was to tell it failed: " + std::exchange(report.timeline.infeasible_because, {});
    }
    report.timeline.score = result.score;
  }
  report.summary = Summarize(evaluator.problem(), report.timeline);
  const auto* const measured = std::get_if<MeasuredFacts>(&evaluator.facts().model);
  report.summary.in_turns = evaluator.facts().Is<SerialFacts>() || (measured != nullptr && measured->in_turns);
  if (measured != nullptr) {
    // The score is a mean; shares of the time are those of the run that is drawn.
    for (const OpRun& op : report.timeline.ops) report.summary.makespan = std::max(report.summary.makespan, op.end);
  }
  report.set_up = result.set_up + evaluator.facts().objective.set_up + 1;
  report.result = std::move(result);
  report.bound = bound;
  if (FindDoubtful(evaluator.problem().graph(), Certainty::kUnknown)) {
    // What is proven of guessed sizes is proven of another model.
    report.bound = {.time = 0, .reason = "none is claimed, because sizes of the model are unknown"};
    report.result.optimal = false;
    report.result.bound.reset();
    report.result.note.clear();
  }
  if (report.timeline.score.fits() && !std::isfinite(report.timeline.score.value())) {
    throw Error("{}: {} is more than a number can hold; correct what the model, the cluster or the options say",
                evaluator.problem().graph().name(), evaluator.facts().objective.name);
  }
  const Score& score = report.timeline.score;
  const auto& proven = report.result.bound;
  if (proven && proven->HoldsFor(evaluator) && proven->value > bound.value()) {
    (score.objective ? report.bound.objective.emplace() : report.bound.time) = proven->value;
    report.bound.reason = fmt::format("proven by {}", report.planner);
  }
  return report;
}

std::vector<DeviceId> DistinctDevices(std::span<const double> single_device_time) {
  std::vector<DeviceId> devices;
  for (size_t d = 0; d < single_device_time.size(); ++d) {
    if (std::ranges::count(single_device_time.first(d), single_device_time[d]) == 0)
      devices.push_back(MakeId<DeviceId>(d));
  }
  return devices;
}

std::string DescribeEnd(SearchEnd ended) {
  if (ended == SearchEnd::kInterrupted) {
    return "Stopped by Ctrl-C, SIGTERM or --memory-limit: this is the best plan that the search had found.";
  }
  if (ended != SearchEnd::kClock) return {};
  return "The clock ended the search, or a part of it: another machine or another run may find another plan. A budget "
         "of evaluations alone (--budget 5000evals) repeats exactly.";
}

std::string DescribeProblem(const Problem& problem) {
  const Graph& graph = problem.graph();
  std::vector<std::string> devices;
  for (const DeviceId device : problem.cluster().ids()) devices.push_back(LegibleName(problem.cluster(), device));
  if (devices.size() > 6) {
    const size_t more = devices.size() - 5;
    devices.resize(5);
    devices.push_back(fmt::format("{} more", more));
  }
  const auto unknown = FindDoubtful(graph, Certainty::kUnknown);
  return fmt::format("{}: {}, {}, {} of weights; on {}: {}{}", Legible(graph.name()),
                     Counted(static_cast<int64_t>(graph.num_ops()), "op"), WithPrefix(graph.total_flops(), "FLOP"),
                     ToString(Bytes{graph.total_parameter_bytes()}), Legible(problem.cluster().name()),
                     JoinAnd(devices),
                     unknown ? fmt::format("; GUESSED: the sizes of {} are unknown, so all times are guesses",
                                           DescribeDoubtful(graph, *unknown))
                             : "");
}

std::string EnergyText(const Cluster& cluster, const RunSummary& summary) {
  const std::vector<DeviceId> without = WithoutWatts(cluster);
  if (without.size() == cluster.num_devices()) return "not known: the cluster has no watts";
  if (!without.empty()) {
    const auto more = static_cast<int64_t>(without.size()) - 1;
    return fmt::format("not known: {}{} {} no watts in the device file", LegibleName(cluster, without.front()),
                       more > 0 ? fmt::format(" and {} more", more) : "", more > 0 ? "have" : "has");
  }
  if (!summary.untold_because.empty() || !std::isfinite(summary.joules)) return "not known";
  return JoulesText(summary.joules);
}

std::string PeakShare(const Problem& problem, const Timeline& timeline, DeviceId device) {
  const int64_t limit = problem.memory_limit(device);
  if (limit == kUnlimited || limit == 0) return {};
  return Percent(static_cast<double>(timeline.memory[Index(device)].peak_bytes) / static_cast<double>(limit));
}

std::string DeviceTable(const Problem& problem, const PlanReport& report) {
  using enum Table::Align;
  Table table({{"device"},
               {"ops", kRight},
               {"computing", kRight, 4},
               {"of the time", kRight},
               {"received", kRight, 2},
               {"sent", kRight, 3},
               {"peak memory", kRight},
               {"of its memory", kRight, 1}});
  const double makespan = report.summary.makespan;
  const bool told = report.timeline.untold_because.empty();
  for (const DeviceId device : problem.cluster().ids()) {
    const DeviceUse& use = report.summary.devices[Index(device)];
    std::vector<std::string> row = {LegibleName(problem.cluster(), device),
                                    Count(use.ops),
                                    told ? ToString(problem.ToSeconds(use.busy)) : "",
                                    told ? Percent(makespan > 0 ? use.busy / makespan : 0) : "",
                                    Traffic(use.transfers_in, use.bytes_in),
                                    Traffic(use.transfers_out, use.bytes_out)};
    if (!report.timeline.memory.empty()) {
      row.push_back(ToString(Bytes{report.timeline.memory[Index(device)].peak_bytes}));
      row.push_back(PeakShare(problem, report.timeline, device));
    }
    table.Add(std::move(row));
  }
  return table.ToString();
}

std::string MemoryHolders(const Problem& problem, const Timeline& timeline, size_t holders) {
  std::string text;
  for (const DeviceId device : problem.cluster().ids()) {
    if (timeline.memory.empty() || timeline.memory[Index(device)].peak_bytes == 0) continue;
    const DeviceMemory& memory = timeline.memory[Index(device)];
    std::vector<std::string> parts;
    for (const MemoryHolder& holder : memory.holders) {
      if (parts.size() == holders) break;
      parts.push_back(DescribeHolder(problem.graph(), holder));
    }
    if (memory.holders.size() > parts.size()) {
      parts.push_back(fmt::format("{} more", Count(static_cast<int64_t>(memory.holders.size() - parts.size()))));
    }
    text +=
        Wrap(fmt::format("{}: {} at {}: {}", LegibleName(problem.cluster(), device), ToString(Bytes{memory.peak_bytes}),
                         ToString(problem.ToSeconds(memory.peak_time)), JoinAnd(parts)));
  }
  return text;
}

std::string ConstraintLines(std::span<const std::string> constraints) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(constraints.size(), kShown); ++i)
    text += Field(i == 0 ? "keeps" : "", Legible(constraints[i]));
  if (constraints.size() > kShown) text += Field("", fmt::format("and {} more", constraints.size() - kShown));
  return text;
}

std::string PlanPage(const Evaluator& evaluator, const PlanReport& report) {
  const Problem& problem = evaluator.problem();
  const Score& score = report.timeline.score;
  const auto seconds = [&](double units) { return ToString(problem.ToSeconds(units)); };
  std::string text = Line(DescribeProblem(problem));
  if (report.guesses) text += GuessHeadline(*report.guesses);
  text += "\n" + Field("planner", report.planner + (report.result.optimal ? ", which proved this plan optimal" : ""));
  text += Field("evaluator", evaluator.name());
  text += ConstraintLines(report.constraints);
  const Objective& objective = evaluator.facts().objective;
  if (score.failed()) {
    text += Field("time", "none: the plan could not be scored");
    return text + "\n" + Wrap("Why: " + Legible(report.timeline.infeasible_because));
  }
  text += Field("time", fmt::format("{}{}{}", seconds(score.time),
                                    objective.name == "throughput" ? " per sample of a full pipeline" : "",
                                    score.fits() ? "" : " (DOES NOT FIT)"));
  if (!report.single_device_time.empty() && problem.num_devices() > 1) {
    text += Field("one device", DescribeSingles(problem, report));
    text +=
        Field("speed-up", score.fits() ? DescribeSpeedUp(problem, objective, report) : "none: this plan does not fit");
  }
  if (report.guesses) text += GuessLines(*report.guesses);
  if (!objective.is_time()) {
    text += Field("objective",
                  fmt::format("{}: {}{}", objective.name, ObjectiveText(problem, objective, score.value()),
                              objective.unit == Objective::Unit::kShare ? ", where the best single device has 1" : ""));
  }
  if (report.bound.value() > 0) {
    text += Field("lower bound", fmt::format("{}: {} ({})", ObjectiveText(problem, objective, report.bound.value()),
                                             report.gap() < 5e-4 ? fmt::format("no plan is {}", BetterWord(objective))
                                                                 : fmt::format("no plan can save more than {}",
                                                                               Percent(report.most_saved())),
                                             report.bound.reason));
  } else {
    text +=
        Field("lower bound", report.bound.reason.empty() ? "none is known for this evaluator" : report.bound.reason);
  }
  text += Field("energy", EnergyText(problem.cluster(), report.summary));
  text += Field("transfers", Traffic(report.summary.transfers, report.summary.transfer_bytes));
  if (report.timeline.subgraphs > 0) text += Field("subgraphs", Count(static_cast<int64_t>(report.timeline.subgraphs)));
  if (!report.budget.empty()) {
    const int64_t beside = Charged(evaluator, report.set_up);
    text +=
        Field("search", fmt::format("{}{} in {}, seed {}, budget {}", Counted(report.result.evaluations, "evaluation"),
                                    beside > 0 ? fmt::format(" and {} beside it", beside) : "",
                                    ToString(Seconds{report.result.wall_seconds}), report.seed, report.budget));
  }
  if (!report.result.contributions.empty()) {
    text += Field("found by", DescribeLeaders(problem, objective, report.result.contributions));
  }
  if (!report.timeline.memory.empty()) text += Field("peak memory", DescribeMemoryRule(evaluator.facts()));
  text += "\n" + DeviceTable(problem, report) + "\n";
  if (!score.fits()) {
    text += Wrap("It does not fit: " + Legible(report.timeline.infeasible_because));
    text += Wrap("At the peak:") + MemoryHolders(problem, report.timeline, 5);
  }
  text += Wrap(fmt::format("Limited by {}.", DescribeLimit(problem, report.summary)));
  if (!report.result.note.empty()) text += Wrap(Legible(report.result.note));
  if (report.result.failures > 0) {
    text += Wrap(fmt::format("{} of these failed, the last one so: {}.", Counted(report.result.failures, "evaluation"),
                             Legible(report.result.failure)));
  }
  if (score.runs > 1) {
    text += Wrap(
        fmt::format("The time is the mean of {} runs, which were up to {} apart.{}", score.runs, seconds(score.spread),
                    evaluator.facts().Is<MeasuredFacts>() && evaluator.facts().exclusive
                        ? " Plans were measured one after another, each compiled once, so that a few percent between "
                          "two of them may be chance; `berth run` measures a plan and each device in turns."
                        : ""));
  }
  if (const std::string ended = DescribeEnd(report.ended); !ended.empty()) text += Wrap(ended);
  return text;
}

}  // namespace berth
