#include "base/file.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/guessing.h"
#include "cli/memory_watch.h"
#include "cli/planning.h"
#include "report/json.h"
#include "report/table.h"

namespace berth {

int Compare(const CompareArguments& arguments, const Catalogs& catalogs) {
  const std::vector<std::string> planners =
      SplitList(arguments.planners.empty() ? "heft,local_search,annealing,auto" : arguments.planners);
  for (const std::string& planner : planners) catalogs.planners.MakePlanner(planner);  // mistakes before the work
  CheckWritable(arguments.output, arguments.problem.Files());
  const Setup setup = MakeSetup(catalogs, arguments.problem.Strings());
  CheckSizes(setup, arguments.problem.allow_unknown_shapes);
  CheckMemory(setup);
  const Problem& problem = *setup.problem;
  const std::atomic<bool>* cancelled = CatchInterrupts();
  MemoryWatch memory(arguments.search.memory_limit);
  Comparison comparison =
      ComparePlanners(ConditionsOf(setup, arguments.search, cancelled), catalogs.planners, planners);
  comparison.rows.front().report.guesses = VaryGuesses(
      setup, catalogs, comparison.winner().report, BestSimple(problem, comparison), arguments.search.budget.seconds);

  const PlanReport& winner = comparison.winner().report;
  if (!arguments.output.empty()) WriteFile(arguments.output, WritePlanFile(MakePlanFile(setup, winner)));
  if (arguments.json) {
    Json json = ComparisonJson(*setup.evaluator, comparison);
    if (const auto reached = memory.Reached()) json["memory_limit_reached_at_bytes"] = reached->value;
    AddDisturbance(*setup.evaluator, json);
    Print(DumpJson(json));
  } else {
    std::string text =
        Line(DescribeProblem(problem)) + Line(fmt::format("evaluator {}, budget {} for each planner, seed {}",
                                                          setup.evaluator->name(), winner.budget, winner.seed));
    if (winner.guesses) text += GuessHeadline(*winner.guesses);
    text += ConstraintLines(winner.constraints) + "\n" + ComparisonTable(problem, comparison) + "\n" +
            Verdict(problem, comparison);
    if (winner.guesses) text += GuessLines(*winner.guesses);
    const auto by_clock = std::find_if(comparison.rows.begin(), comparison.rows.end(), [&](const ComparisonRow& row) {
      return !DescribeEnd(row.report.ended).empty();
    });
    if (by_clock != comparison.rows.end())
      text += Wrap(by_clock->report.planner + ": " + DescribeEnd(by_clock->report.ended));
    if (const std::string sentence = memory.Sentence(); !sentence.empty()) text += Wrap(sentence);
    text += HintLines(*setup.evaluator);
    if (!arguments.output.empty())
      text += "\n" + Line(fmt::format("The best of these plans is in {}.", Printable(arguments.output)));
    Print(text);
  }
  return winner.timeline.score.fits() ? 0 : 1;
}

}  // namespace berth
