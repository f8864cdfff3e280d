#include <array>

#include "cli/commands.h"
#include "cli/comparing.h"
#include "cli/planning.h"
#include "report/notes.h"
#include "report/table.h"

namespace berth {
namespace {

// A question that Berth answers; budgets are evaluations, so that everybody sees the same plans.
struct Scene {
  std::string title;
  std::string model, cluster, evaluator;
  std::vector<std::string> planners;
  std::string budget;

  ProblemArguments problem() const {
    ProblemArguments arguments;
    arguments.model.model = model;
    arguments.cluster = cluster;
    arguments.costs = "roofline";
    arguments.evaluator = evaluator;
    return arguments;
  }
};

std::vector<Scene> Scenes() {
  return {
      {.title = "GPT-2 writes a word, on a CPU and a GPU that take turns",
       .model = "gpt2_decode_p128",
       .cluster = "cpu_gpu",
       .evaluator = "serial",
       .planners = {"random", "local_search", "annealing", "mincut"},
       .budget = "20000evals"},
      {.title = "A translator (GNMT) on four GPUs that work at the same time",
       .model = "gnmt_4l_t20_b64",
       .cluster = "p100x4",
       .evaluator = "parallel(contention=ports)",
       .planners = {"random", "round_robin", "heft", "best_of"},
       .budget = "2000evals"},
  };
}

// Models of the overview: some gain by being split, some do not.
constexpr std::array<std::string_view, 8> kModels = {"resnet50",       "inception_v3",     "vit_b_16",
                                                     "bert_base_s128", "gpt2_decode_p128", "rnnlm_2l_t35_b64",
                                                     "wavenet_4x9",    "gnmt_4l_t20_b64"};

std::string CommandOf(const Scene& scene) {
  return fmt::format("berth compare {} --cluster {} --evaluator '{}' --planners '{}' --budget {}", scene.model,
                     scene.cluster, scene.evaluator, fmt::join(scene.planners, ","), scene.budget);
}

std::string Rule(size_t number, const std::string& title) {
  std::string line = fmt::format("━━ {}. {} ", number, title);
  while (DisplayWidth(line) < 112) line += "━";
  return line + "\n\n";
}

// One row per model: the simple rules, and the proven optimum of mincut.
std::string Overview(const Catalogs& catalogs, const std::atomic<bool>* cancelled) {
  using enum Table::Align;
  Table table({{"model"},
               {"ops", kRight},
               {"all on cpu", kRight},
               {"all on gpu", kRight},
               {"one cut", kRight},
               {"optimum", kRight},
               {"on cpu : gpu", kRight},
               {"gain", kRight}});
  for (const std::string_view model : kModels) {
    if (cancelled->load()) break;
    const Setup setup = MakeSetup(
        catalogs, {.model = std::string(model), .cluster = "cpu_gpu", .costs = "roofline", .evaluator = "serial"});
    const Comparison comparison =
        ComparePlanners(setup, catalogs, {"mincut"}, {.budget = "2000evals", .seed = 1}, cancelled);
    const auto time_of = [&](std::string_view planner) {
      for (const ComparisonRow& row : comparison.rows) {
        if (row.report.planner == planner) return ToString(setup.problem->ToSeconds(row.report.timeline.score.time));
      }
      return std::string("-");
    };
    const PlanReport& best = comparison.winner().report;
    const double rule = comparison.best_simple()->report.timeline.score.time;
    table.Add({std::string(model), Count(static_cast<int64_t>(setup.problem->num_ops())), time_of("single(device=cpu)"),
               time_of("single(device=gpu)"), time_of("one_cut"), time_of("mincut"),
               fmt::format("{} : {}", best.summary.devices[0].ops, best.summary.devices[1].ops),
               Percent(rule / best.timeline.score.time - 1)});
  }
  return table.ToString();
}

}  // namespace

int Demo(const Catalogs& catalogs) {
  const std::atomic<bool>* cancelled = CatchInterrupts();
  Print(Wrap("Berth decides which device runs which op of a neural network. The models and the descriptions of the "
             "machines ship with it, the times are its simulator's.",
             "") +
        "\n");
  size_t number = 0;
  for (const Scene& scene : Scenes()) {
    if (cancelled->load()) return 0;
    const Setup setup = MakeSetup(catalogs, StringsOf(scene.problem()));
    const SearchArguments search{.budget = scene.budget, .seed = 1};
    const Comparison comparison = ComparePlanners(setup, catalogs, scene.planners, search, cancelled);
    Print(Rule(++number, scene.title) + Wrap(DescribeProblem(*setup.problem) + ".") + "\n" +
          ComparisonTable(*setup.problem, comparison) + "\n" + Verdict(*setup.problem, comparison) +
          HintLines(*setup.problem) + "\n  The same by hand:\n" + Wrap(CommandOf(scene), "    ", 1000) + "\n");
  }
  Print(Rule(++number, "Where splitting a model pays, and where one device is best") + Overview(catalogs, cancelled) +
        "\n" +
        Wrap("On cpu_gpu, device after device (serial). The optimum is proven: a minimum cut. The gain is its speed "
             "over the best of the three simple rules.") +
        "\nNext:\n"
        "  berth plan resnet50 -o plan.json --picture plan.svg   plan a model, keep the plan, draw it\n"
        "  berth explain plan.json                               why each op is where it is\n"
        "  berth simulate --plan plan.json --trace trace.json    a timeline for ui.perfetto.dev\n"
        "  berth list planners                                   everything that can be named\n");
  return 0;
}

}  // namespace berth
