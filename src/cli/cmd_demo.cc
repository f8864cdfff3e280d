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
  ProblemArguments problem;
  std::vector<std::string> planners;
  std::string budget;
};

std::vector<Scene> Scenes() {
  return {
      {.title = "One CPU and one GPU, subgraph after subgraph: what OpenVINO's HETERO device does",
       .problem = {.model = {.model = "inception_v3", .shapes = {}, .format = ""},
                   .cluster = "cpu_gpu",
                   .evaluator = "serial"},
       .planners = {"random", "local_search", "annealing", "mincut"},
       .budget = "20000evals"},
      {.title = "Four GPUs at the same time, each with one port in and one port out",
       .problem = {.model = {.model = "gnmt_4l_t20_b64", .shapes = {}, .format = ""}, .cluster = "p100x4"},
       .planners = {"random", "round_robin", "heft", "best_of"},
       .budget = "1000evals"},
  };
}

std::string CommandOf(const Scene& scene) {
  return fmt::format("berth compare {} --cluster {} --evaluator '{}' --planners '{}' --budget {}",
                     scene.problem.model.model, scene.problem.cluster, scene.problem.evaluator,
                     fmt::join(scene.planners, ","), scene.budget);
}

std::string Rule(size_t number, const std::string& title) {
  std::string line = fmt::format("━━ {}. {} ", number, title);
  while (DisplayWidth(line) < 112) line += "━";
  return line + "\n\n";
}

}  // namespace

int Demo(const Catalogs& catalogs) {
  const std::atomic<bool>* cancelled = CatchInterrupts();
  Print(Wrap("Berth decides which device runs which op of a neural network. Two questions, answered on this computer: "
             "the models "
             "and the descriptions of the machines ship with Berth, the times are its simulator's.",
             "") +
        "\n");
  size_t number = 0;
  for (const Scene& scene : Scenes()) {
    if (cancelled->load()) break;
    const Setup setup = MakeSetup(catalogs, StringsOf(scene.problem));
    const SearchArguments search{.budget = scene.budget, .seed = 1};
    const Comparison comparison = ComparePlanners(setup, catalogs, scene.planners, search, cancelled);
    Print(Rule(++number, scene.title) + Wrap(DescribeProblem(*setup.problem)) + Wrap("$ " + CommandOf(scene)) + "\n" +
          ComparisonTable(*setup.problem, comparison) + "\n" + Verdict(*setup.problem, comparison) +
          HintLines(*setup.problem) + "\n");
  }
  Print(
      "Next:\n"
      "  berth plan resnet50 -o plan.json --picture plan.svg   plan a model, keep the plan, draw it\n"
      "  berth explain plan.json                               why each op is where it is\n"
      "  berth simulate --plan plan.json --trace trace.json    a timeline for ui.perfetto.dev\n"
      "  berth list planners                                   everything that can be named\n");
  return 0;
}

}  // namespace berth
