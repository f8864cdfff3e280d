#include "report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "placement/objective_text.h"
#include "placement/search.h"
#include "placement/units.h"
#include "report/table.h"

namespace berth {
namespace {

// The device whose memory is fullest, with its peak: "gpu 97.5 MiB, 0.7 %".
std::string FullestDevice(const Problem& problem, const Timeline& timeline) {
  if (timeline.memory.empty()) return "-";
  const auto fullness = [&](DeviceId device) {
    const auto peak = static_cast<double>(timeline.memory[Index(device)].peak_bytes);
    const auto limit = static_cast<double>(problem.memory_limit(device));
    return peak > 0 ? peak / limit : 0;
  };
  DeviceId fullest{};
  for (const DeviceId device : problem.cluster().ids()) {
    if (fullness(device) > fullness(fullest)) fullest = device;
  }
  const std::string share = PeakShare(problem, timeline, fullest);
  return fmt::format("{} on {}{}{}", ToString(Bytes{timeline.memory[Index(fullest)].peak_bytes}),
                     LegibleName(problem.cluster(), fullest), share.empty() ? "" : ", ", share);
}

// For each device of `b` the one of `a` for which it stands, so that many ops stand where they stood: devices of one
// class may be swapped. Pairs with the most ops in common first. O(ops + devices^2 log devices).
std::vector<DeviceId> MatchDevices(std::span<const DeviceId> a, std::span<const DeviceId> b,
                                   std::span<const DeviceId> class_of) {
  const size_t devices = class_of.size();
  std::vector<int64_t> common(devices * devices);
  for (size_t v = 0; v < a.size(); ++v) ++common[Index(a[v]) * devices + Index(b[v])];
  std::vector<std::pair<DeviceId, DeviceId>> pairs;
  for (size_t x = 0; x < devices; ++x) {
    for (size_t y = 0; y < devices; ++y) {
      if (class_of[x] == class_of[y]) pairs.emplace_back(MakeId<DeviceId>(x), MakeId<DeviceId>(y));
    }
  }
  std::ranges::stable_sort(pairs, {}, [&](const auto& pair) {
    const auto& [x, y] = pair;
    return std::pair(-common[Index(x) * devices + Index(y)], x != y);
  });
  constexpr DeviceId kNone{-1};
  std::vector<DeviceId> stands_for(devices, kNone);
  std::vector<uint8_t> is_taken(devices, 0);
  for (const auto& [x, y] : pairs) {
    if (is_taken[Index(x)] != 0 || stands_for[Index(y)] != kNone) continue;
    stands_for[Index(y)] = x;
    is_taken[Index(x)] = 1;
  }
  int64_t matched = 0, as_named = 0;
  for (size_t y = 0; y < devices; ++y) {
    matched += common[Index(stands_for[y]) * devices + y];
    as_named += common[y * devices + y];
  }
  // The largest pair first may leave little for the others.
  if (matched <= as_named) std::ranges::generate(stands_for, [y = 0]() mutable { return DeviceId{y++}; });
  return stands_for;
}

// Ops of `a` that stand elsewhere in `b`, as "12 from gpu to cpu (6 Gather, 4 Concat and 2 others)", the largest groups
// first; which of the devices that are alike is which is no difference, and then their names are those of `a`.
std::string DescribeMoves(const Problem& problem, const Plan& a, const Plan& b, std::span<const DeviceId> class_of) {
  const Graph& graph = problem.graph();
  const std::vector<DeviceId> stands_for = MatchDevices(a.device, b.device, class_of);
  struct Group {
    int64_t ops = 0;
    std::map<std::string, int64_t> types;
  };
  std::map<std::pair<DeviceId, DeviceId>, Group> groups;
  int64_t moved = 0;
  for (const OpId op : graph.ops()) {
    const DeviceId from = a.device[Index(op)], to = stands_for[Index(b.device[Index(op)])];
    if (from == to) continue;
    ++moved;
    Group& group = groups[{from, to}];
    ++group.ops;
    ++group.types[Legible(graph.op_type(op))];
  }
  if (groups.empty()) {
    if (a.device == b.device) return "leaves every op on its device and changes their order alone";
    return "does the same on other devices that are alike, in another order of the ops";
  }
  std::vector<std::pair<std::pair<DeviceId, DeviceId>, Group>> sorted(groups.begin(), groups.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& x, const auto& y) { return x.second.ops > y.second.ops; });
  constexpr size_t kGroups = 3, kTypes = 3;
  std::vector<std::string> parts;
  int64_t shown = 0;
  for (size_t i = 0; i < std::min(sorted.size(), kGroups); ++i) {
    const auto& [route, group] = sorted[i];
    std::vector<std::pair<std::string, int64_t>> types(group.types.begin(), group.types.end());
    std::stable_sort(types.begin(), types.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
    std::vector<std::string> names;
    int64_t others = group.ops;
    for (size_t t = 0; t < std::min(types.size(), kTypes); ++t) {
      names.push_back(fmt::format("{} {}", Count(types[t].second), types[t].first));
      others -= types[t].second;
    }
    if (others > 0) names.push_back(Counted(others, "other"));
    const std::string route_text = fmt::format("from {} to {} ({})", LegibleName(problem.cluster(), route.first),
                                               LegibleName(problem.cluster(), route.second), JoinAnd(names));
    if (sorted.size() == 1) {
      return fmt::format("moves {} of {} {}", Count(moved), Counted(static_cast<int64_t>(graph.num_ops()), "op"),
                         route_text);
    }
    parts.push_back(fmt::format("{} {}", Count(group.ops), route_text));
    shown += group.ops;
  }
  if (shown < moved) parts.push_back(fmt::format("{} between other devices", Count(moved - shown)));
  return fmt::format("moves {} of {}: {}", Count(moved), Counted(static_cast<int64_t>(graph.num_ops()), "op"),
                     JoinAnd(parts));
}

// "gpu 98 %, cpu 12 %", the busiest first, at most four.
std::string DescribeLoads(const Problem& problem, const RunSummary& summary) {
  std::vector<std::pair<double, DeviceId>> loads;
  for (const DeviceId device : problem.cluster().ids()) {
    const double busy = summary.devices[Index(device)].busy;
    if (busy > 0) loads.emplace_back(-busy / summary.makespan, device);
  }
  std::sort(loads.begin(), loads.end());
  std::vector<std::string> parts;
  for (const auto& [load, device] : loads) {
    if (parts.size() == 4) break;
    parts.push_back(fmt::format("{} {}", LegibleName(problem.cluster(), device), Percent(-load)));
  }
  if (loads.size() > parts.size()) parts.push_back(fmt::format("{} others less", loads.size() - parts.size()));
  return JoinAnd(parts);
}

bool ClearlyLess(double a, double b) { return a < b * (1 - 5e-4); }

std::string_view Superlative(const Objective& objective) { return objective.is_time() ? "fastest" : "best"; }

bool SamePlacement(const ComparisonRow& a, const ComparisonRow& b) {
  return a.report.result.plan.device == b.report.result.plan.device;
}

// Of measured plans: whether a difference may be chance.
bool WithinNoise(const Objective& objective, const ComparisonRow& a, const ComparisonRow& b) {
  if (!objective.is_time()) return false;  // what else is measured has no spread
  const Score &of_a = a.report.timeline.score, &of_b = b.report.timeline.score;
  return std::max(of_a.spread, of_b.spread) > 0 && (SamePlacement(a, b) || !CanBeToldApart(of_a, of_b));
}

std::string DescribeGap(const Objective& objective, const PlanReport& report) {
  if (!(report.bound.value() > 0)) {
    return report.bound.reason.empty() ? "No lower bound is known for this evaluator."
                                       : fmt::format("Lower bound: {}.", report.bound.reason);
  }
  if (report.gap() < 5e-4) {
    return fmt::format("No plan is {}: this one is at the lower bound ({}).", BetterWord(objective),
                       report.bound.reason);
  }
  return fmt::format("No plan can save more than {} of its {} (lower bound: {}).", Percent(report.most_saved()),
                     objective.is_time() ? "time" : objective.name, report.bound.reason);
}

double Rounded(double value) {
  if (!std::isfinite(value)) return value;
  constexpr int kDigits = 30;
  int exponent = 0;
  const double share = std::frexp(value, &exponent);
  return std::ldexp(std::round(std::ldexp(share, kDigits)), exponent - kDigits);
}

}  // namespace

const ComparisonRow* Comparison::best_simple() const {
  const auto found = std::find_if(rows.begin(), rows.end(), [](const ComparisonRow& row) { return row.simple; });
  return found == rows.end() ? nullptr : &*found;
}

Comparison MakeComparison(const Evaluator& evaluator, std::vector<ComparisonRow> rows,
                          std::vector<std::pair<std::string, std::string>> refusals) {
  BERTH_CHECK(!rows.empty());
  // Of what is equal but for the last digits of a sum (to 30 binary digits), the first that was asked wins.
  const auto score = [](const ComparisonRow& row) {
    Score rounded = row.report.timeline.score;
    rounded.time = Rounded(rounded.time);
    if (rounded.objective) rounded.objective = Rounded(*rounded.objective);
    return rounded;
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const ComparisonRow& a, const ComparisonRow& b) { return Better(score(a), score(b)); });
  // One bound for all: the sharpest.
  Bound bound = rows.front().report.bound;
  for (const ComparisonRow& row : rows) {
    if (row.report.bound.value() > bound.value()) bound = row.report.bound;
  }
  for (ComparisonRow& row : rows) row.report.bound = bound;
  return {.rows = std::move(rows),
          .refusals = std::move(refusals),
          .objective = evaluator.facts().objective,
          .class_of = InterchangeableDevices(evaluator)};
}

std::string ComparisonTable(const Problem& problem, const Comparison& comparison) {
  using enum Table::Align;
  const std::vector<DeviceId> singles = DistinctDevices(comparison.single_device_time());
  const Objective& objective = comparison.objective;
  std::vector<Table::Column> columns = {{"planner"}};
  if (objective.unit == Objective::Unit::kShare) columns.push_back({"objective", kRight});
  columns.push_back({"time", kRight, objective.unit == Objective::Unit::kShare ? 1 : 0});
  columns.push_back({"above bound", kRight});
  for (const DeviceId device : singles) columns.push_back({"vs " + LegibleName(problem.cluster(), device), kRight, 1});
  columns.insert(columns.end(), {{"energy", kRight, 3},
                                 {"transfers", kRight, 4},
                                 {"fullest memory", kRight, 5},
                                 {"evaluations", kRight, 6},
                                 {"planning", kRight, 2}});
  columns.push_back({""});
  Table table(std::move(columns));
  for (const ComparisonRow& row : comparison.rows) {
    const PlanReport& report = row.report;
    const Score& score = report.timeline.score;
    std::vector<std::string> cells = {Shorten(report.planner, 40)};
    if (objective.unit == Objective::Unit::kShare) cells.push_back(ObjectiveText(problem, objective, score.value()));
    cells.push_back(ToString(problem.ToSeconds(score.time)));
    cells.push_back(report.bound.value() > 0 ? Percent(report.gap()) : "-");
    for (const DeviceId device : singles) {
      const double single = comparison.single_device_time()[Index(device)];
      cells.push_back(std::isfinite(single) && score.time > 0 ? Factor(single / score.time) : "-");
    }
    cells.push_back(report.summary.joules > 0 ? JoulesText(report.summary.joules) : "-");
    cells.push_back(Count(report.summary.transfers));
    cells.push_back(FullestDevice(problem, report.timeline));
    cells.push_back(Count(report.result.evaluations));
    cells.push_back(ToString(Seconds{report.result.wall_seconds}));
    cells.push_back(!score.fits() ? "does not fit"
                    : &row == &comparison.winner()
                        ? fmt::format("◀ {}{}{}", Superlative(objective), row.simple ? " (simple rule)" : "",
                                      report.optimal() ? ", proven optimal" : "")
                    : WithinNoise(objective, row, comparison.winner()) ? "within the noise"
                    : &row == comparison.best_simple()                 ? "best simple rule"
                    : report.optimal()                                 ? "proven optimal"
                                                                       : "");
    table.Add(std::move(cells));
  }
  std::string text = table.ToString();
  for (const auto& [planner, reason] : comparison.refusals) {
    text += Wrap(fmt::format("no plan by {}: {}", planner, Legible(reason)));
  }
  return text;
}

std::string Verdict(const Problem& problem, const Comparison& comparison) {
  const ComparisonRow& winner = comparison.winner();
  const ComparisonRow* simple = comparison.best_simple();
  const PlanReport& report = winner.report;
  const Objective& objective = comparison.objective;
  const auto value = [&](const PlanReport& of) { return of.timeline.score.value(); };
  const std::string achieved = ObjectiveText(problem, objective, value(report));
  const std::string name = Shorten(report.planner, 60);
  const std::string head = objective.is_time()
                               ? fmt::format("{} is fastest with {}", name, achieved)
                               : fmt::format("{} is best with {} of objective {}", name, achieved, objective.name);
  if (!report.timeline.score.fits()) {
    return Wrap(fmt::format("No plan fits. The one of {} lacks the least memory: {}", name,
                            Legible(report.timeline.infeasible_because))) +
           MemoryHolders(problem, report.timeline, 4);
  }
  std::string text;
  if (simple == nullptr || !simple->report.timeline.score.fits()) {
    text = Wrap(fmt::format("{}; no simple rule gives a plan that fits.", head));
  } else if (&winner != simple && WithinNoise(objective, winner, *simple)) {
    text = Wrap(fmt::format("{}, but that is within the noise of the runs: the simple rule {}{} took {}.", head,
                            Shorten(simple->report.planner, 60),
                            SamePlacement(winner, *simple) ? ", which has the same placement," : "",
                            ObjectiveText(problem, objective, value(simple->report))));
  } else if (winner.simple) {
    const bool only_rules = std::ranges::all_of(comparison.rows, &ComparisonRow::simple);
    text = Wrap(fmt::format(
        "{}. It is a simple rule, and {}.", head,
        only_rules ? "no other planner has a plan to compare it with" : "no planner that was tried beats it"));
  } else if (!ClearlyLess(value(report), value(simple->report))) {
    text = Wrap(fmt::format("{}, but by less than 0.05 %: the simple rule {} is as good.", head,
                            Shorten(simple->report.planner, 60)));
  } else {
    const std::string rule = Shorten(simple->report.planner, 60);
    const std::string rule_value = ObjectiveText(problem, objective, value(simple->report));
    text =
        Wrap(objective.is_time() ? fmt::format("{}: {} the speed of the best simple rule, {}, which takes {}.", head,
                                               Factor(value(simple->report) / value(report)), rule, rule_value)
                                 : fmt::format("{}: {} less than the best simple rule, {}, which has {}.", head,
                                               Percent(1 - value(report) / value(simple->report)), rule, rule_value));
    text +=
        Wrap(fmt::format("Compared with that rule, it {}.",
                         DescribeMoves(problem, simple->report.result.plan, report.result.plan, comparison.class_of)));
    text += Wrap(fmt::format("Its devices compute {} of the time, the rule's {}. It sends {} ({}), the rule {} ({}).",
                             DescribeLoads(problem, report.summary), DescribeLoads(problem, simple->report.summary),
                             Counted(report.summary.transfers, "tensor"),
                             ToString(Bytes{report.summary.transfer_bytes}), Count(simple->report.summary.transfers),
                             ToString(Bytes{simple->report.summary.transfer_bytes})));
  }
  text += Wrap(fmt::format("What limits it now: {}. {}", DescribeLimit(problem, report.summary),
                           DescribeGap(objective, report)));
  return text;
}

}  // namespace berth
