#include <algorithm>
#include <chrono>
#include <map>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/launch.h"
#include "cli/learning.h"
#include "cli/planning.h"
#include "placement/on_groups.h"
#include "placement/set_up.h"
#include "report/controls.h"
#include "report/table.h"
#include "report/training_table.h"

namespace berth {

namespace {

constexpr const char* kAllowUnknown = "allow-unknown-shapes";

// An option that decides what a run learns. `usual` is what it says by not being given, where it is always the same.
struct Option {
  std::string name;
  std::string* value;
  std::string usual{};
};

std::vector<Option> Options(TrainArguments& arguments) {
  ProblemStrings& problem = arguments.problem.strings;
  const TrainingRequest usual;
  return {{"planner", &arguments.planner},
          {"on", &problem.model},
          {"validate", &arguments.validation},
          {"test", &arguments.tests},
          {"batch", &problem.batch},
          {"format", &problem.format},
          {"mode", &problem.mode, "inference"},
          {"optimizer", &problem.optimizer, "sgd"},
          {"cluster", &problem.cluster},
          {"costs", &problem.costs},
          {"evaluator", &problem.evaluator},
          {"objective", &problem.objective},
          {"budget", &arguments.budget},
          {"updates", &arguments.updates},
          {"seed", &arguments.seed, fmt::to_string(usual.seed)},
          {"checkpoint-every", &arguments.checkpoint_every, fmt::to_string(usual.checkpoint_every)}};
}

// What a run that is resumed was begun with; what is given again must agree.
void TakeFromFolder(TrainArguments& arguments, Ranks& ranks) {
  const std::string text = ranks.FromFirst([&] {
    Json json = Json::object();
    for (auto& [name, value] : Learning().training_arguments(arguments.output)) json[name] = value;
    return json.dump();
  });
  auto begun = Json::parse(text).get<std::map<std::string, std::string>>();
  if (!arguments.problem.strings.shapes.empty())
    throw Error("train: a resumed run has its shapes already; leave --shape out");
  for (const auto& [name, value, usual] : Options(arguments)) {
    if (!value->empty() && *value != (begun[name].empty() ? usual : begun[name])) {
      throw Error(
          "{}: this run was begun {}, not with --{} {}; leave the option out, or begin another run", arguments.output,
          begun[name].empty() ? fmt::format("without --{}", name) : fmt::format("with --{} {}", name, begun[name]),
          name, *value);
    }
    *value = begun[name];
  }
  for (size_t i = 0; begun.contains(fmt::format("shape{}", i)); ++i) {
    arguments.problem.strings.shapes.push_back(begun[fmt::format("shape{}", i)]);
  }
  if (begun.contains(kAllowUnknown)) arguments.problem.allow_unknown_shapes = true;
}

std::vector<Setup> MakeSetups(const std::string& models, const TrainArguments& arguments, const Catalogs& catalogs) {
  std::vector<Setup> setups;
  if (models.empty()) return setups;
  for (const std::string& model : ExpandModels(models, catalogs.families)) {
    ProblemStrings strings = arguments.problem.Strings();
    strings.model = model;
    const Setup& made = setups.emplace_back(MakeSetup(catalogs, strings));
    CheckSizes(made, arguments.problem.allow_unknown_shapes);
    CheckMemory(made);
  }
  return setups;
}

std::vector<TrainingCase> TrainingCases(const std::vector<Setup>& setups) {
  std::vector<TrainingCase> list;
  for (const Setup& each : setups) list.push_back({.name = each.strings.model, .evaluator = *each.evaluator});
  return list;
}

TrainingRequest RequestOf(TrainArguments& arguments, const Catalogs& catalogs) {
  TrainingRequest request{.planner = arguments.planner,
                          .groupings = &catalogs.groupings,
                          .folder = arguments.output,
                          .resume = arguments.resume};
  if (!arguments.budget.empty()) request.budget = Budget::Parse(arguments.budget);
  const auto count = [](const char* option, const std::string& text) {
    return static_cast<int64_t>(std::min<uint64_t>(ParseCount(option, text, 1), 1'000'000'000));
  };
  if (!arguments.updates.empty()) request.updates = count("--updates", arguments.updates);
  if (!arguments.seed.empty()) request.seed = ParseCount("--seed", arguments.seed, 0);
  if (!arguments.threads.empty()) request.threads = count("--threads", arguments.threads);
  if (!arguments.checkpoint_every.empty()) {
    request.checkpoint_every = count("--checkpoint-every", arguments.checkpoint_every);
  }
  for (const Option& option : Options(arguments)) request.arguments.emplace_back(option.name, *option.value);
  for (size_t i = 0; i < arguments.problem.strings.shapes.size(); ++i) {
    request.arguments.emplace_back(fmt::format("shape{}", i), arguments.problem.strings.shapes[i]);
  }
  if (arguments.problem.allow_unknown_shapes) request.arguments.emplace_back(kAllowUnknown, "yes");
  return request;
}

std::vector<TrainingRow> RowsOf(const std::vector<Setup>& cases, std::vector<TrainedCase>& trained,
                                const TrainingRequest& request, const Catalogs& catalogs) {
  std::vector<TrainingRow> rows;
  for (size_t i = 0; i < cases.size(); ++i) {
    TrainedCase& one = trained[i];
    TrainingRow& row = rows.emplace_back(TrainingRow{.model = cases[i].strings.model,
                                                     .evaluator = *cases[i].evaluator,
                                                     .first_cost = one.first_cost,
                                                     .best = std::move(one.best),
                                                     .greedy_cost = one.greedy_cost,
                                                     .greedy = std::move(one.greedy)});
    if (request.budget.cancelled->load()) {
      row.bound = LowerBound(row.evaluator);
      continue;
    }
    const Conditions conditions = ConditionsOf(cases[i], {.seed = request.seed}, request.budget.cancelled);
    row.bound = conditions.bound;
    row.controls = RunControls(conditions, catalogs.planners, row.control_evaluations());
  }
  return rows;
}

std::vector<double> RelativeCosts(const std::vector<CurvePoint>& curve) {
  std::vector<double> costs;
  for (const CurvePoint& point : curve) costs.push_back(point.relative_cost);
  return costs;
}

// How to plan with the run's policy, on the machines that it was trained for.
std::string PlanCommand(TrainArguments arguments, const std::string& answer) {
  std::string command = "berth plan MODEL";
  for (const std::string_view shown : {"cluster", "costs", "evaluator", "objective", "mode", "optimizer", "seed"}) {
    for (const auto& [name, value, usual] : Options(arguments)) {
      if (name == shown && !value->empty()) command += fmt::format(" --{} {}", name, ShellWord(*value));
    }
  }
  return fmt::format("{} --planner {}", command, ShellWord(answer));
}

std::string PageOf(const TrainingRequest& request, const TrainingResult& result, const std::vector<TrainingRow>& rows,
                   const std::vector<TrainingRow>& tests, const std::string& command) {
  std::string text = Line(fmt::format("{} trained on {}: {} of {}, {}, seed {}", result.planner,
                                      Counted(static_cast<int64_t>(rows.size()), "model"), Count(result.updates),
                                      Counted(result.planned_updates, "update"),
                                      Counted(result.evaluations, "evaluation"), request.seed));
  if (!result.finished) {
    text += Wrap(fmt::format("Stopped by Ctrl-C or SIGTERM: `berth train --resume --out {}` continues.",
                             ShellWord(request.folder)));
  }
  if (!result.curve.empty()) {
    const CurvePoint& last = result.curve.back();
    const std::string decisions = fmt::format("{:.3g}", last.groups);
    text += Wrap(fmt::format("Cost, relative to {}: {} {:.3f}; entropy {:.3g}, {} {} per step.",
                             rows.front().evaluator.facts().objective.is_time()
                                 ? "the work (each op on its fastest device, one after another)"
                                 : "that of the first placement",
                             Sparkline(RelativeCosts(result.curve), 40), last.relative_cost, last.entropy, decisions,
                             decisions == "1" ? "decision" : "decisions"));
    if (const std::string collapse = DescribeCollapse(result.curve, result.planned_updates); !collapse.empty()) {
      text += Wrap("Beware: " + collapse + ".");
    }
  }
  text += "\n" + TrainingTable(rows, false);
  if (!tests.empty()) text += "\n" + TrainingTable(tests, true);
  text +=
      "\n" +
      Wrap(fmt::format(
          "first: the first placement drawn; best: the best of all placements scored; greedy: "
          "the likeliest placement of {}.{}",
          result.best_update > 0
              ? fmt::format("the policy of update {}, in {}/best{}", result.best_update, request.folder,
                            request.validation.empty() ? "" : ", whose answers to the models of --validate cost least")
              : fmt::format("{}/last", request.folder),
          result.finished ? " The other planners had as many evaluations on each model." : ""));
  return text + "\n" +
         Wrap(fmt::format("Written to {}: curve.csv, curve.svg, results.txt and the policies. To use one:",
                          Printable(request.folder))) +
         fmt::format("    {}\n", Printable(command));
}

int TrainOn(const TrainArguments& given, const Catalogs& catalogs, Ranks& ranks) {
  TrainArguments arguments = given;
  while (arguments.output.size() > 1 && arguments.output.back() == '/') arguments.output.pop_back();
  if (arguments.output.find('"') != std::string::npos) {
    throw Error("--out {}: checkpoint=... cannot hold a quotation mark; name another folder", arguments.output);
  }
  if (arguments.resume) TakeFromFolder(arguments, ranks);
  if (arguments.planner.empty()) throw Error("train: say which planner to train, like --planner placeto");
  if (arguments.problem.strings.model.empty()) throw Error("train: say which models to train on, like --on resnet50");
  catalogs.planners.MakePlanner(arguments.planner);  // mistakes before the work
  TrainingRequest request = RequestOf(arguments, catalogs);
  CheckLearns(arguments.planner, catalogs.planners);
  const std::vector<Setup> cases = MakeSetups(arguments.problem.strings.model, arguments, catalogs);
  const std::vector<Setup> validation = MakeSetups(arguments.validation, arguments, catalogs);
  const std::vector<Setup> tests = MakeSetups(arguments.tests, arguments, catalogs);
  request.cases = TrainingCases(cases);
  request.validation = TrainingCases(validation);
  request.tests = TrainingCases(tests);
  for (const std::vector<Setup>* list : {&cases, &tests}) {
    for (const Setup& each : *list) {
      request.budget = BudgetOfSearch(request.budget, *each.evaluator, each.evaluator->facts().objective.set_up);
    }
  }
  request.budget.cancelled = CatchInterrupts();
  request.ranks = &ranks;

  TrainingResult result = [&] {
    ProgressLine line;
    std::vector<double> costs;
    // In a log, twenty lines of a training, and one every half minute of a long one.
    constexpr std::chrono::seconds kPause{30};
    auto told = std::chrono::steady_clock::now();
    if (!ranks.first()) return Learning().train(request);
    request.progress = [&](const CurvePoint& point, int64_t planned) {
      costs.push_back(point.relative_cost);
      const std::string text = fmt::format("update {} of {}, {}, relative cost {:.3f}", point.update, planned,
                                           Counted(point.evaluations, "evaluation"), point.relative_cost);
      line.Show(fmt::format("{} {}", text, Sparkline(costs, 24)));
      const auto now = std::chrono::steady_clock::now();
      if (point.update % std::max<int64_t>(planned / 20, 1) == 0 || now - told >= kPause) {
        line.Milestone(text);
        told = now;
      }
    };
    return Learning().train(request);
  }();
  if (!ranks.first()) return 0;

  const std::vector<TrainingRow> rows = RowsOf(cases, result.cases, request, catalogs);
  const std::vector<TrainingRow> test_rows = RowsOf(tests, result.tests, request, catalogs);
  const auto page = [&](size_t width) {
    SetPageWidth(width);
    return PageOf(request, result, rows, test_rows, PlanCommand(arguments, result.answer));
  };
  const size_t width = PageWidth();
  const std::optional<int64_t> collapsed = CollapsedAt(result.curve, result.planned_updates);
  const Json json = {{"planner", result.planner},
                     {"answer", result.answer},
                     {"seed", request.seed},
                     {"finished", result.finished},
                     {"updates", result.updates},
                     {"planned_updates", result.planned_updates},
                     {"evaluations", result.evaluations},
                     {"validation_evaluations", result.validation_evaluations},
                     {"best_update", result.best_update},
                     {"collapsed_in_update", OrNull(collapsed)},
                     {"cases", TrainingJson(rows)},
                     {"tests", TrainingJson(test_rows)}};
  WriteFile(request.folder + "/results.txt", page(kAnyWidth));
  WriteFile(request.folder + "/results.json", DumpJson(json));
  Print(arguments.json ? DumpJson(json) : page(width));
  return 0;
}

}  // namespace

int TrainPlanner(const TrainArguments& arguments, const Catalogs& catalogs) {
  Learning();  // where there is none, that is the first thing to say
  const std::unique_ptr<Ranks> ranks = JoinLaunch(ThisLaunch());
  return Together(*ranks, [&] { return TrainOn(arguments, catalogs, *ranks); });
}

}  // namespace berth
