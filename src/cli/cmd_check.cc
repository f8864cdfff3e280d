#include <algorithm>
#include <charconv>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/saved_plan.h"
#include "report/limits.h"
#include "report/table.h"

namespace berth {
namespace {

// `parse` of an option's text, with the option in its errors.
template <typename Parse>
auto Parsed(std::string_view option, const std::string& text, Parse parse) {
  try {
    return parse(text);
  } catch (const Error& error) {
    throw Error("{}: {}", option, error.what());
  }
}

int64_t ParseTransfers(std::string_view text) {
  int64_t count = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (code != std::errc() || end != text.data() + text.size() || count < 0)
    throw Error("'{}' is not a number of transfers: write a whole number, like 6", text);
  return count;
}

double ParseGap(std::string_view text) {
  const double gap = ParseShare(text);
  if (gap >= 1 && !text.ends_with('%')) throw Error("'{}' may mean {}% or {}%: write which", text, gap, 100 * gap);
  return gap;
}

Limits LimitsOf(const CheckArguments& arguments) {
  Limits limits;
  if (!arguments.latency.empty()) limits.seconds = Parsed("--max-latency", arguments.latency, ParseSeconds).value;
  for (const std::string& list : arguments.memory) {
    for (const std::string& memory : SplitList(list))
      limits.memory.push_back(Parsed("--max-memory", memory, ParseMemoryLimit));
  }
  if (!arguments.transfers.empty()) limits.transfers = Parsed("--max-transfers", arguments.transfers, ParseTransfers);
  if (!arguments.energy.empty()) limits.joules = Parsed("--max-energy", arguments.energy, ParseJoules);
  if (!arguments.gap.empty()) limits.gap = Parsed("--max-gap", arguments.gap, ParseGap);
  return limits;
}

// Of a plan that cannot be judged further.
int ShowBroken(const BrokenPlan& plan, bool json) {
  std::vector<LimitResult> results;
  for (const auto& [constraint, how] : plan.broken) {
    results.push_back(
        {.limit = "constraints", .device = {}, .held = false, .text = constraint.ToString(), .reason = Legible(how)});
  }
  Print(json ? DumpJson({{"passed", false}, {"limits", LimitsJson(results)}}) : LimitLines(results));
  return 1;
}

// After "fits", which is missed where one of memory is broken.
void AddConstraints(const Setup& setup, std::vector<LimitResult>& results) {
  const bool fits = results.front().held;
  const auto count = std::ranges::count_if(setup.strings.constraints, [&](const ConstraintText& constraint) {
    return fits || (constraint.kind != ConstraintKind::kMemory && constraint.kind != ConstraintKind::kKeepFree);
  });
  if (count == 0) return;
  results.insert(results.begin() + 1,
                 {.limit = "constraints", .device = {}, .text = fmt::format("{} kept", count), .reason = {}});
}

int CheckPlan(const CheckArguments& arguments, const Limits& limits, const Catalogs& catalogs) {
  if (arguments.plan.empty() && (arguments.placement.empty() || !arguments.overrides.model)) {
    throw Error("check: give a plan file, a split with --model, or --placement with --model");
  }
  const SavedPlan saved = arguments.plan.empty() ? OpenPlacement(arguments.placement, arguments.overrides, catalogs)
                                                 : OpenPlan(arguments.plan, arguments.overrides, catalogs);
  CheckSizes(saved.setup, arguments.allow_unknown_shapes);
  const Evaluator& evaluator = *saved.setup.evaluator;
  std::vector<LimitResult> results = CheckLimits(evaluator, saved.report, limits);
  AddConstraints(saved.setup, results);
  if (arguments.json) {
    Print(DumpJson(CheckJson(evaluator, saved.report, results)));
  } else {
    const std::string ended = DescribeEnd(saved.report.ended);
    Print(Line(DescribeProblem(evaluator.problem())) + Line("evaluator " + evaluator.name()) + "\n" +
          LimitLines(results) + (ended.empty() ? "" : "\n" + Wrap(ended, "")));
  }
  return AllHeld(results) ? 0 : 1;
}

}  // namespace

int Check(const CheckArguments& arguments, const Catalogs& catalogs) {
  const Limits limits = LimitsOf(arguments);
  try {
    return CheckPlan(arguments, limits, catalogs);
  } catch (const BrokenPlan& plan) {
    return ShowBroken(plan, arguments.json);
  }
}

}  // namespace berth
