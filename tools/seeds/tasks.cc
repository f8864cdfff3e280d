#include "tools/seeds/tasks.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/learning.h"
#include "plan/planners.h"
#include "tools/common/problems.h"

namespace berth::seeds {
namespace {

struct Row {
  const char *title, *graph, *machine;
  int devices;
};

// Placeto's own table. Our networks that take images have 32 at once, in GO's too.
constexpr Row kPlaceto[] = {{"Inception-V3", "inception_v3(batch=32)", "k80x2", 2},
                            {"Inception-V3", "inception_v3(batch=32)", "k80x4", 4},
                            {"NMT", "nmt", "k80x2", 2},
                            {"NMT", "nmt", "k80x4", 4},
                            {"NASNet", "nasnet(batch=32)", "k80x2", 2},
                            {"NASNet", "nasnet(batch=32)", "k80x4", 4}};
// GO's table of placements: n layers on n GPUs.
constexpr Row kGo[] = {{"RNNLM 2-layer", "rnnlm(layers=2)", "p100x2", 2},
                       {"RNNLM 4-layer", "rnnlm(layers=4)", "p100x4", 4},
                       {"RNNLM 8-layer", "rnnlm(layers=8,steps=40)", "p100x8", 8},
                       {"GNMT 2-layer", "gnmt(layers=2)", "p100x2", 2},
                       {"GNMT 4-layer", "gnmt(layers=4)", "p100x4", 4},
                       {"GNMT 8-layer", "gnmt(layers=8,steps=40)", "p100x8", 8},
                       {"Transformer-XL 2-layer", "transformer_xl(layers=2)", "p100x2", 2},
                       {"Transformer-XL 4-layer", "transformer_xl(layers=4)", "p100x4", 4},
                       {"Transformer-XL 8-layer", "transformer_xl(layers=8)", "p100x8", 8},
                       {"Inception b32", "inception_v3(batch=32)", "p100x2", 2},
                       {"Inception b64", "inception_v3(batch=64)", "p100x2", 2},
                       {"AmoebaNet", "amoebanet(batch=32)", "p100x4", 4},
                       {"WaveNet 2-stack 18-layer", "wavenet(stacks=2)", "p100x2", 2},
                       {"WaveNet 4-stack 36-layer", "wavenet", "p100x4", 4}};

// One device alone, then what every task has.
std::vector<Method> Methods(std::vector<Method> alone) {
  std::vector<Method> methods = std::move(alone);
  const auto rule = [&](const char* name) { methods.push_back({fmt::format("`{}`", name), name, false}); };
  rule("human");
  rule("metis");
#if BERTH_HAS_SCOTCH
  rule("scotch");
#endif
  rule("first_fit");
  rule("heft");
  methods.push_back({"random", "random(bias=true)", true});
  methods.push_back({"hill climbing", "local_search", true});
  methods.push_back({"hill climbing on co-location groups", "on(group=colocation,planner=local_search)", true});
  methods.push_back({"annealing on co-location groups", "on(group=colocation,planner=annealing)", true});
  methods.push_back({"`auto`", "auto", true});
  if (kCanLearn) {
    constexpr const char* kGroups = "on(group=merge(size=256,balance=2),planner={})";
    methods.push_back({"`rnn` on 256 groups", fmt::format(kGroups, "rnn"), true});
    methods.push_back({"`hdp`", "hdp", true});
    methods.push_back({"`placeto` on 256 groups", fmt::format(kGroups, "placeto"), true});
    methods.push_back({"`hsdag`", "hsdag", true});
    methods.push_back({"`gdp`", "gdp", true});
  }
  return methods;
}

Task Make(Paper paper, const char* title, int devices, const ProblemStrings& strings, std::vector<Method> methods) {
  return {.paper = paper,
          .title = title,
          .devices = devices,
          .graph = strings.model,
          .machine = strings.cluster,
          .mode = strings.mode,
          .costs = strings.costs,
          .evaluator = strings.evaluator,
          .methods = std::move(methods)};
}

Task MakeHsdag(const HsdagBenchmark& benchmark, const char* machine) {
  ProblemStrings strings;
  strings.model = benchmark.graph;
  strings.cluster = machine;
  strings.mode = "inference";
  strings.costs = fmt::format("calibrated(totals={:.6g}ms/{:.6g}ms)", benchmark.cpu * 1e3, benchmark.gpu * 1e3);
  strings.evaluator = "serial(io=everywhere)";
  return Make(Paper::kHsdag, benchmark.title, 2, strings,
              Methods({{"CPU only", "single(device=cpu)"}, {"GPU only", "single(device=gpu)"}}));
}

Task MakeTraining(Paper paper, const Row& row) {
  return Make(paper, row.title, row.devices, StepOn(row.graph, row.machine, true), Methods({{"one GPU", "single"}}));
}

// A row of Placeto's table: where it is the first of its graph, after the same on a CPU alone.
void AddPlaceto(std::vector<Task>& tasks, const Row& row, bool published) {
  const auto same = [&](const Task& other) { return other.paper == Paper::kPlaceto && other.graph == row.graph; };
  if (std::ranges::none_of(tasks, same)) {
    tasks.push_back(
        Make(Paper::kPlaceto, row.title, 1, StepOn(row.graph, std::string(kHost), true), {{"CPU only", "single"}}));
  }
  Task& task = tasks.emplace_back(MakeTraining(Paper::kPlaceto, row));
  if (published && row.devices == 4 && task.graph.starts_with("inception_v3")) {
    task.methods.insert(task.methods.begin() + 1, {"published placement", std::string(kPublished)});
  }
}

}  // namespace

std::string Task::Name() const { return fmt::format("{}, {}, {}", mode, graph, machine); }

Question Task::Ask(const Method& method, int seed, const Limits& limits) const {
  return {.graph = graph,
          .machine = machine,
          .mode = mode,
          .costs = costs,
          .evaluator = evaluator,
          .planner = method.planner,
          .seed = seed,
          .limits = limits};
}

std::vector<Task> Tasks(bool published) {
  std::vector<Task> tasks;
  for (const char* machine : kHsdagMachines) {
    for (const HsdagBenchmark& benchmark : kHsdagBenchmarks) tasks.push_back(MakeHsdag(benchmark, machine));
  }
  for (const Row& row : kPlaceto) AddPlaceto(tasks, row, published);
  for (const Row& row : kGo) tasks.push_back(MakeTraining(Paper::kGo, row));
  return tasks;
}

std::vector<Task> ShortTasks(bool published) {
  std::vector<Task> tasks = {MakeHsdag(kHsdagBenchmarks[1], kHsdagMachines[0])};
  AddPlaceto(tasks, kPlaceto[1], published);
  tasks.push_back(MakeTraining(Paper::kGo, kGo[6]));
  return tasks;
}

}  // namespace berth::seeds
