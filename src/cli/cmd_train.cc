#include <algorithm>
#include <chrono>
#include <map>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/controls.h"
#include "cli/learning.h"
#include "cli/planning.h"
#include "cli/training_page.h"
#include "placement/grouping.h"
#include "report/table.h"

namespace berth {

namespace {

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
void TakeFromFolder(TrainArguments& arguments) {
  std::map<std::string, std::string> begun;
  for (auto& [name, value] : Learning().training_arguments(arguments.output)) begun[name] = value;
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
  for (auto& [name, value] : begun) {
    if (name.starts_with("shape")) arguments.problem.strings.shapes.push_back(value);
  }
}

// A planner's name with one parameter set anew, or not at all where `value` is empty; canonical.
std::string WithParameter(const std::string& planner, std::string_view key, const std::string& value,
                          const PlannerCatalog& planners) {
  Spec spec = Spec::Parse(planner);
  std::erase_if(spec.parameters, [&](const auto& parameter) { return parameter.first == key; });
  if (!value.empty()) spec.parameters.emplace_back(key, value);
  return Params(spec, planners.Find(spec.name)->info.parameters, planners.what()).canonical();
}

// "on(group=...,planner=...)" taken apart; any other planner has no groups.
struct GroupedPlanner {
  std::string whole;  // canonical
  std::string planner, group;

  GroupedPlanner(const std::string& text, const PlannerCatalog& planners)
      : whole(planners.MakePlanner(text)->name()), planner(text) {
    const Spec spec = Spec::Parse(text);
    if (spec.name != "on") return;
    const Params params(spec, planners.Find("on")->info.parameters, planners.what());
    planner = params.Text("planner");
    group = params.Text("group");
    whole = WithParameter(text, "planner", planners.MakePlanner(planner)->name(), planners);
  }

  // As `berth plan` takes it, with the policy of this checkpoint.
  std::string WithCheckpoint(const std::string& path, const PlannerCatalog& planners) const {
    const std::string trained =
        WithParameter(WithParameter(planner, "train", "", planners), "checkpoint", path, planners);
    return group.empty() ? trained : WithParameter(whole, "planner", trained, planners);
  }
};

// Throws Error where there is nothing to train.
void CheckLearns(const std::string& planner, const PlannerCatalog& planners) {
  const Spec spec = Spec::Parse(planner);
  if (spec.name == "on") {
    throw Error("train: {}: on(...) cannot stand inside on(...); write on(group=...,planner=placeto)", planner);
  }
  if (planners.MakePlanner(planner)->facts().learned) {
    if (std::ranges::count(spec.parameters, std::pair<std::string, std::string>("train", "false")) == 0) return;
    throw Error("train: {}: train=false means that nothing is trained; leave it out", planner);
  }
  const auto& parameters = planners.Find(spec.name)->info.parameters;
  if (std::ranges::count(parameters, ParameterType::kSpecs, &Parameter::type) > 0) {
    for (const std::string& member : spec.arguments) {
      if (!planners.MakePlanner(member)->facts().learned) continue;
      throw Error("train: {} has no policy of its own to train; name {} without it", spec.name, member);
    }
  }
  throw Error("train: {} is not a learned planner; name one, like placeto or hsdag", planner);
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

// Throws Error where a test would be of a model that was trained on.
void CheckUnseen(const std::vector<Setup>& cases, const std::vector<Setup>& tests) {
  std::map<uint64_t, std::string> seen;
  for (const Setup& each : cases) seen.emplace(each.problem->fingerprint(), each.strings.model);
  for (const Setup& test : tests) {
    const std::string& name = test.strings.model;
    const auto found = seen.find(test.problem->fingerprint());
    if (found == seen.end()) continue;
    throw Error("--test {}: the policy is trained on this model (--on){}; leave it out of one of the two", name,
                found->second == name ? "" : fmt::format(", as {}", found->second));
  }
}

std::vector<TrainingCase> TrainingCases(const std::vector<Setup>& setups) {
  std::vector<TrainingCase> list;
  for (const Setup& each : setups) list.push_back({.name = each.strings.model, .evaluator = *each.evaluator});
  return list;
}

TrainingRequest RequestOf(TrainArguments& arguments, const GroupedPlanner& planner, const Catalogs& catalogs) {
  TrainingRequest request{.planner = planner.whole,
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
  return request;
}

std::vector<TrainedRow> RowsOf(const std::vector<Setup>& cases, const std::vector<TrainedCase>& trained,
                               const TrainingRequest& request, const Catalogs& catalogs) {
  std::vector<TrainedRow> rows;
  for (size_t i = 0; i < cases.size(); ++i) {
    TrainedRow& row = rows.emplace_back(cases[i], trained[i], LowerBound(*cases[i].evaluator), std::nullopt);
    const int64_t drawn = trained[i].best.evaluations;
    if (request.budget.cancelled->load()) continue;
    row.controls = RunControls(row.setup, catalogs, drawn > 0 ? drawn : trained[i].greedy.evaluations, request.seed,
                               request.budget.cancelled);
  }
  return rows;
}

// How to plan with the run's policy, on the machines that it was trained for.
std::string PlanCommand(TrainArguments arguments, const std::string& answer) {
  std::string command = "berth plan MODEL";
  for (const std::string_view shown : {"cluster", "costs", "evaluator", "objective", "mode", "optimizer"}) {
    for (const auto& [name, value, usual] : Options(arguments)) {
      if (name == shown && !value->empty()) command += fmt::format(" --{} {}", name, ShellWord(*value));
    }
  }
  return fmt::format("{} --planner {}", command, ShellWord(answer));
}

std::string PageOf(const std::string& planner, const TrainingRequest& request, const TrainingResult& result,
                   const std::vector<TrainedRow>& rows, const std::vector<TrainedRow>& tests,
                   const std::string& command) {
  std::string text = Line(fmt::format("{} trained on {}: {} of {}, {}, seed {}", planner,
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
                             rows.front().setup.evaluator->facts().objective.is_time()
                                 ? "the work (each op on its fastest device, one after another)"
                                 : "that of the first placement",
                             Sparkline(result.curve, 40), last.relative_cost, last.entropy, decisions,
                             decisions == "1" ? "decision" : "decisions"));
    if (const std::string collapse = DescribeCollapse(result.curve, result.planned_updates); !collapse.empty()) {
      text += Wrap("Beware: " + collapse + ".");
    }
  }
  text += "\n" + TrainingTable(rows, false);
  if (!tests.empty()) text += "\n" + TrainingTable(tests, true);
  text += "\n" + Wrap(fmt::format("first: the first placement drawn; best: the best of all placements scored; greedy: "
                                  "the likeliest placement of {}.{}",
                                  result.best_update > 0 ? fmt::format("the policy of update {}, in {}/best",
                                                                       result.best_update, request.folder)
                                                         : fmt::format("{}/last", request.folder),
                                  result.finished ? " The other planners had as many evaluations on each model." : ""));
  return text + "\n" +
         Wrap(fmt::format("Written to {}: curve.csv, curve.svg, results.txt and the policies. To use one:",
                          Printable(request.folder))) +
         fmt::format("    {}\n", Printable(command));
}

}  // namespace

int TrainPlanner(const TrainArguments& given, const Catalogs& catalogs) {
  Learning();  // where there is none, that is the first thing to say
  TrainArguments arguments = given;
  while (arguments.output.size() > 1 && arguments.output.back() == '/') arguments.output.pop_back();
  if (arguments.output.empty()) throw Error("--out: name a folder, like --out run");
  if (arguments.output.find('"') != std::string::npos) {
    throw Error("--out {}: checkpoint=... cannot hold a quotation mark; name another folder", arguments.output);
  }
  if (arguments.resume) TakeFromFolder(arguments);
  if (arguments.planner.empty()) throw Error("train: say which planner to train, like --planner placeto");
  if (arguments.problem.strings.model.empty()) throw Error("train: say which models to train on, like --on resnet50");
  const GroupedPlanner planner(arguments.planner, catalogs.planners);
  TrainingRequest request = RequestOf(arguments, planner, catalogs);
  CheckLearns(planner.planner, catalogs.planners);
  const std::vector<Setup> cases = MakeSetups(arguments.problem.strings.model, arguments, catalogs);
  const std::vector<Setup> tests = MakeSetups(arguments.tests, arguments, catalogs);
  CheckUnseen(cases, tests);
  request.cases = TrainingCases(cases);
  request.tests = TrainingCases(tests);
  request.budget.cancelled = CatchInterrupts();

  const TrainingResult result = [&] {
    ProgressLine line;
    std::vector<CurvePoint> curve;
    // In a log, twenty lines of a training, and one every half minute of a long one.
    constexpr std::chrono::seconds kPause{30};
    auto told = std::chrono::steady_clock::now();
    request.progress = [&](const CurvePoint& point, int64_t planned) {
      curve.push_back(point);
      const std::string text = fmt::format("update {} of {}, {}, relative cost {:.3f}", point.update, planned,
                                           Counted(point.evaluations, "evaluation"), point.relative_cost);
      line.Show(fmt::format("{} {}", text, Sparkline(curve, 24)));
      const auto now = std::chrono::steady_clock::now();
      if (point.update % std::max<int64_t>(planned / 20, 1) == 0 || now - told >= kPause) {
        line.Milestone(text);
        told = now;
      }
    };
    return Learning().train(request);
  }();

  const std::vector<TrainedRow> rows = RowsOf(cases, result.cases, request, catalogs);
  const std::vector<TrainedRow> test_rows = RowsOf(tests, result.tests, request, catalogs);
  const std::string answer = planner.WithCheckpoint(
      fmt::format("{}/{}", request.folder, result.best_update > 0 ? "best" : "last"), catalogs.planners);
  const auto page = [&](size_t width) {
    SetPageWidth(width);
    return PageOf(planner.whole, request, result, rows, test_rows, PlanCommand(arguments, answer));
  };
  const size_t width = PageWidth();
  const std::optional<int64_t> collapsed = CollapsedAt(result.curve, result.planned_updates);
  const Json json = {{"planner", planner.whole},
                     {"answer", answer},
                     {"seed", request.seed},
                     {"finished", result.finished},
                     {"updates", result.updates},
                     {"planned_updates", result.planned_updates},
                     {"evaluations", result.evaluations},
                     {"best_update", result.best_update},
                     {"collapsed_in_update", collapsed ? Json(*collapsed) : Json()},
                     {"cases", TrainingJson(rows)},
                     {"tests", TrainingJson(test_rows)}};
  WriteFile(request.folder + "/results.txt", page(kAnyWidth));
  WriteFile(request.folder + "/results.json", DumpJson(json));
  Print(arguments.json ? DumpJson(json) : page(width));
  return 0;
}

}  // namespace berth
