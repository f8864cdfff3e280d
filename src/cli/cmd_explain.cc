#include <algorithm>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/guessing.h"
#include "cli/saved_plan.h"
#include "placement/single_devices.h"
#include "report/json.h"
#include "report/table.h"

namespace berth {
namespace {

// A table for people ends somewhere, and soon enough; --op and --json reach the rest. Every alternative costs a
// simulation, which takes about 0.1 us per op.
size_t TableOps(const Problem& problem) {
  constexpr size_t kMost = 1000, kLeast = 20, kWork = 20'000'000;
  return std::clamp(kWork / (problem.num_ops() * problem.num_devices()), kLeast, kMost);
}

}  // namespace

int ExplainPlan(const ExplainArguments& arguments, const Catalogs& catalogs) {
  // An alternative per op and device: to measure each would take hours.
  SavedPlan saved = OpenToSimulate(arguments.plan, arguments.overrides, catalogs);
  const Graph& graph = saved.setup.problem->graph();
  std::vector<OpId> ops;
  for (const OpId op : graph.ops()) {
    if (GlobMatches(arguments.op, graph.op_name(op))) ops.push_back(op);
  }
  if (ops.empty()) {
    throw Error("--op: no op of {} matches '{}'; the first op is called '{}'", graph.name(), arguments.op,
                graph.num_ops() > 0 ? graph.op_name(OpId{0}) : "none");
  }
  const size_t matching = ops.size();
  if (!arguments.json && matching > TableOps(*saved.setup.problem)) ops.resize(TableOps(*saved.setup.problem));

  const double seconds = SearchArguments{}.budget.seconds;
  saved.report.guesses = VaryGuesses(
      saved.setup, catalogs, saved.report,
      BestRival(saved.setup, catalogs, saved.report, ScoreSingleDevices(*saved.setup.evaluator).times(), seconds),
      seconds);
  const Explanation explanation = [&] {
    ProgressLine line;
    return Explain(*saved.setup.evaluator, saved.report.result.plan, ops, [&](size_t done) {
      if (done % 64 == 0)
        line.Show(
            fmt::format("{} of {} ops", Count(static_cast<int64_t>(done)), Count(static_cast<int64_t>(ops.size()))));
    });
  }();
  if (arguments.json) {
    Print(DumpJson(ExplanationJson(*saved.setup.evaluator, saved.report, explanation)));
    return 0;
  }
  std::string text = ExplanationHead(*saved.setup.evaluator, saved.report) + "\n" +
                     ExplanationTable(*saved.setup.evaluator, saved.report, explanation);
  if (matching > ops.size()) {
    text += Wrap(fmt::format("These are the first {} of {} ops; --op selects others, --json has all.",
                             Count(static_cast<int64_t>(ops.size())), Count(static_cast<int64_t>(matching))));
  }
  Print(text);
  return 0;
}

}  // namespace berth
