#include <array>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/learning.h"
#include "cli/machine.h"
#include "cli/measured_run.h"
#include "cli/planning.h"
#include "cli/profiling.h"
#include "cli/scratch_folder.h"
#include "exec/detect.h"
#include "report/notes.h"
#include "report/table.h"

namespace berth {
namespace {

// A question that Berth answers; budgets are evaluations, so that everybody sees the same plans.
struct Scene {
  std::string title;
  std::string model, cluster, evaluator;
  std::vector<std::string> planners;
  int64_t evaluations;
  std::string costs = "roofline";

  ProblemStrings problem() const {
    return {.model = model, .cluster = cluster, .costs = costs, .evaluator = evaluator};
  }
  SearchArguments search() const { return {.budget = {.evaluations = evaluations}, .seed = 1}; }
};

std::vector<Scene> Scenes() {
  return {
      {.title = "GPT-2 writes a word, on a CPU and a GPU that take turns",
       .model = "gpt2_decode_p128",
       .cluster = "cpu_gpu",
       .evaluator = "serial",
       .planners = {"random", "local_search", "annealing", "mincut"},
       .evaluations = 20'000},
      {.title = "A translator (GNMT) on four GPUs that work at the same time",
       .model = "gnmt_4l_t20_b64",
       .cluster = "p100x4",
       .evaluator = "parallel(contention=ports)",
       .planners = {"random", "round_robin", "heft", "auto"},
       .evaluations = 2000},
  };
}

constexpr int kLearnedEvaluations = 300;

// HSDAG's own benchmark, as docs/learned.md has it.
Scene LearnedScene() {
  return {.title = "A learned planner (HSDAG) beside planners that do not learn",
          .model = "ir_inception_v3",
          .cluster = "hsdag_20us",
          .evaluator = "serial(io=everywhere)",
          .planners = {"random", "local_search", "annealing", "hsdag", "mincut"},
          .evaluations = kLearnedEvaluations,
          .costs = "calibrated(totals=12.8ms/12ms)"};
}

// Models of the overview: some gain by being split, some do not.
constexpr std::array<std::string_view, 8> kModels = {"resnet50",       "inception_v3",     "vit_b_16",
                                                     "bert_base_s128", "gpt2_decode_p128", "rnnlm_2l_t35_b64",
                                                     "wavenet_4x9",    "gnmt_4l_t20_b64"};

std::string CommandOf(const Scene& scene) {
  const std::string costs = scene.costs == "roofline" ? "" : fmt::format(" --costs '{}'", scene.costs);
  return fmt::format("berth compare {} --cluster {}{} --evaluator '{}' --planners '{}' --budget {}", scene.model,
                     scene.cluster, costs, scene.evaluator, fmt::join(scene.planners, ","),
                     scene.search().budget.ToString());
}

std::string Rule(size_t number, const std::string& title) {
  std::string line = Shorten(fmt::format("━━ {}. {} ", number, title), PageWidth());
  while (DisplayWidth(line) < std::min<size_t>(112, PageWidth())) line += "━";
  return line + "\n\n";
}

Comparison CompareOn(const Catalogs& catalogs, std::string_view model, const std::string& evaluator,
                     const std::string& planner, const std::atomic<bool>* cancelled) {
  const Setup setup = MakeSetup(
      catalogs, {.model = std::string(model), .cluster = "cpu_gpu", .costs = "roofline", .evaluator = evaluator});
  return ComparePlanners(ConditionsOf(setup, {.budget = {.evaluations = 500}, .seed = 1}, cancelled), catalogs.planners,
                         {planner});
}

// How far the best plan of each planner is above the optimum, run anew with so many evaluations; last the comparison's.
std::string Curve(const Catalogs& catalogs, Conditions conditions, const Comparison& comparison) {
  using enum Table::Align;
  constexpr std::array kEvaluations = {10, 30, 100};
  std::vector<Table::Column> columns = {{"evaluations"}};
  for (const int evaluations : kEvaluations) columns.push_back({Count(evaluations), kRight});
  columns.push_back({Count(kLearnedEvaluations), kRight});
  Table table(std::move(columns));
  const double optimum = comparison.winner().report.timeline.score.time;
  const auto above = [&](const PlanReport& report) {
    return fmt::format("+{}", Percent(report.timeline.score.time / optimum - 1));
  };
  for (const ComparisonRow& row : comparison.rows) {
    if (row.simple || row.report.result.evaluations < kLearnedEvaluations) continue;
    std::vector<std::string> cells = {row.report.planner};
    for (const int evaluations : kEvaluations) {
      if (conditions.budget.cancelled->load()) return table.ToString();
      conditions.budget.evaluations = evaluations;
      cells.push_back(above(RunPlanner(conditions, *catalogs.planners.MakePlanner(row.report.planner))));
    }
    cells.push_back(above(row.report));
    table.Add(std::move(cells));
  }
  return table.ToString();
}

// What was planned, the table and its verdict, `more`, and how to repeat it.
std::string ScenePage(const Scene& scene, const Setup& setup, const Comparison& comparison,
                      const std::string& more = {}) {
  return Wrap(DescribeProblem(*setup.problem) + ".") + "\n" + ComparisonTable(*setup.problem, comparison) + "\n" +
         Verdict(*setup.problem, comparison) + more + HintLines(*setup.evaluator) + "\n  The same by hand:\n" +
         Wrap(CommandOf(scene), "    ", 1000);
}

std::string LearnedPage(const Catalogs& catalogs, const std::atomic<bool>* cancelled) {
  const Scene scene = LearnedScene();
  if (!kCanLearn) return Wrap(fmt::format("hsdag {}.", kNeedsTorch));
  const Setup setup = MakeSetup(catalogs, scene.problem());
  const Conditions conditions = ConditionsOf(setup, scene.search(), cancelled);
  const Comparison comparison = ComparePlanners(conditions, catalogs.planners, scene.planners);
  return ScenePage(
      scene, setup, comparison,
      "\n" + Wrap("How far above the optimum the same planners end with fewer evaluations, each a run of its own:") +
          "\n" + Curve(catalogs, conditions, comparison) + "\n" +
          Wrap("Where only one of two devices works at a time, a minimum cut finds the optimum in milliseconds, so no "
               "learned planner is needed; it is shown for comparison. docs/learned.md measures it on this "
               "problem with more evaluations, and on others."));
}

// One row per model: the devices alone; the proven optimum where they take turns; what is found where they do not.
// Times in seconds, as roofline problems have them.
std::string Overview(const Catalogs& catalogs, const std::atomic<bool>* cancelled) {
  using enum Table::Align;
  Table table({{"model"},
               {"all on cpu", kRight, 2},
               {"all on gpu", kRight, 2},
               {"taking turns", kRight, 1},
               {"rule in turns", kRight, 3},
               {"gain", kRight},
               {"at once", kRight},
               {"rule at once", kRight, 3},
               {"gain", kRight},
               {"at most", kRight}});
  for (const std::string_view model : kModels) {
    const Comparison serial = CompareOn(catalogs, model, "serial", "mincut", cancelled);
    const Comparison parallel = CompareOn(catalogs, model, "parallel(contention=ports)", "auto", cancelled);
    if (cancelled->load()) break;
    const auto time = [](double seconds) { return ToString(Seconds{seconds}); };
    const auto best = [](const ComparisonRow& row) { return row.report.timeline.score.time; };
    const auto gain = [&](const Comparison& comparison) {
      return Percent(best(*comparison.best_simple()) / best(comparison.winner()) - 1);
    };
    table.Add({std::string(model), time(serial.single_device_time()[0]), time(serial.single_device_time()[1]),
               time(best(serial.winner())), time(best(*serial.best_simple())), gain(serial),
               time(best(parallel.winner())), time(best(*parallel.best_simple())), gain(parallel),
               Percent(best(*parallel.best_simple()) / parallel.winner().report.bound.time - 1)});
  }
  return table.ToString();
}

// What was simulated so far, for real: this machine's cores as two devices. Its times are this machine's, now.
std::string MeasuredPage(const Catalogs& catalogs, const std::atomic<bool>* cancelled) {
  constexpr const char* kModel = "inception_v3";
  constexpr size_t kProfiled = 6, kRuns = 15;
  constexpr int64_t kEvaluations = 4000;
  constexpr double kDetectSeconds = 8;
  std::vector<int> cores = CoresFor(2).cores;
  if (cores.size() < 2) return Wrap("Left out: this machine has one core, and a plan needs two devices.");
  if (!CanRunModels()) return Wrap("Left out: running models needs OpenVINO, which is not in this build.");
  cores.resize(2);
  const StopCheck stop = [cancelled] { return cancelled->load(); };
  ProgressLine line;
  line.Show("measuring this machine");
  const ScratchFolder folder("berth_demo");
  ProblemStrings strings = {.model = kModel,
                            .cluster = "here",
                            .stored_cluster = std::make_shared<const Cluster>(DetectMachine(
                                {.cores = cores, .split = 2, .memory = MemoryBytes(), .seconds = kDetectSeconds}))};
  const std::shared_ptr<Runtime> runtime = OpenRuntime(catalogs, strings);
  strings.costs = ProfileToFile(*runtime, kProfiled, folder.Path("profile.json"), stop);
  strings.evaluator = "parts";
  SavedPlan saved{.setup = MakeSetup(catalogs, strings, runtime->setup->instance), .report = {}};
  line.Show("planning");
  saved.report = RunPlanner(ConditionsOf(saved.setup, {.budget = {.evaluations = kEvaluations}, .seed = 1}, cancelled),
                            *catalogs.planners.MakePlanner("auto"));
  line.Show("running the plan, beside each device alone");
  return RunPage(saved, RunMeasured(saved, runtime->openvino, "openvino_parallel", kRuns, stop)) + "\n" +
         Wrap("The same by hand, and with plans that are corrected by runs:") +
         "    berth cluster detect --split cpu:2 --quick -o here.yaml\n" +
         fmt::format("    berth profile {} --cluster here.yaml --runs {} -o times.json\n", kModel, kProfiled) +
         fmt::format(
             "    berth plan {} --cluster here.yaml --costs 'profile(file=times.json)' --evaluator parts --budget {}evals "
             "-o plan.json\n",
             kModel, kEvaluations) +
         "    berth run plan.json\n" + fmt::format("    berth tune {} --cluster here.yaml -o tuned.json\n", kModel);
}

int Stopped() {
  Print("Stopped by Ctrl-C: what follows is left out.\n");
  return 0;
}

}  // namespace

int Demo(const Catalogs& catalogs) {
  const std::atomic<bool>* cancelled = CatchInterrupts();
  Print(Wrap("Berth decides which device runs which op of a neural network. The models and the descriptions of the "
             "machines ship with it, the times are its simulator's; those of the last part are this machine's.",
             "") +
        "\n");
  size_t number = 0;
  for (const Scene& scene : Scenes()) {
    if (cancelled->load()) return Stopped();
    const Setup setup = MakeSetup(catalogs, scene.problem());
    const Comparison comparison =
        ComparePlanners(ConditionsOf(setup, scene.search(), cancelled), catalogs.planners, scene.planners);
    Print(Rule(++number, scene.title) + ScenePage(scene, setup, comparison) + "\n");
  }
  if (cancelled->load()) return Stopped();
  Print(Rule(++number, LearnedScene().title) + LearnedPage(catalogs, cancelled) + "\n");
  Print(
      Rule(++number, "Where splitting a model pays, and where one device is best") + Overview(catalogs, cancelled) +
      "\n" +
      Wrap(
          "All on the cluster cpu_gpu. Taking turns: only one device works at a time (the evaluator serial); a minimum "
          "cut proves these times optimal. At once: both work (the evaluator parallel(contention=ports)); this is the "
          "best plan that auto finds in 500 evaluations. A gain compares the speed with that of the best simple rule "
          "(one device, one cut through the model, an expert's layout), whose time stands before the gain where the page "
          "has room; no plan that lets both work has a larger gain than the last column.") +
      "\n");
  if (cancelled->load()) return Stopped();
  Print(Rule(++number, "On this machine: predicted beside measured") + MeasuredPage(catalogs, cancelled) +
        "\nNext:\n"
        "  berth plan resnet50 -o plan.json --picture plan.svg   # plan a model, save and draw the plan\n"
        "  berth explain plan.json                               # why each op is where it is\n"
        "  berth simulate plan.json --trace trace.json           # a timeline for ui.perfetto.dev\n"
        "  berth list planners                                   # all planners\n");
  return 0;
}

}  // namespace berth
