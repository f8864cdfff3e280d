// Planners: HEFT by size, minimum cut per shipped model, one evaluation of each as their planners make it.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/problems.h"
#include "placement/bound.h"
#include "placement/planner.h"

namespace berth {
namespace {

void RunPlanner(benchmark::State& state, const Problem& problem, const std::string& evaluator_name,
                const std::string& planner) {
  const auto evaluator = All().evaluators.Make(evaluator_name, problem);
  double score = 0;
  for (auto _ : state) {
    const PlanResult result =
        All().planners.MakePlanner(planner)->MakePlan({.evaluator = *evaluator, .budget = {}, .random = Random(1)});
    score = result.score.time;
  }
  state.counters["ops"] = static_cast<double>(problem.num_ops());
  state.counters["edges"] = static_cast<double>(problem.graph().num_edges());
  state.counters["gap"] = Gap(score, LowerBound(*evaluator).time);
}

// A layered random graph with two edges per op on eight unequal devices.
std::string Layered(int64_t ops) { return fmt::format("layered(ops={},width={})", ops, ops < 1000 ? 16 : 400); }

void BM_Heft(benchmark::State& state, const std::string& evaluator) {
  const Problem problem = MakeProblem(Layered(state.range(0)), "k80x8");
  RunPlanner(state, problem, evaluator, "heft(order=first_come)");
}
BENCHMARK_CAPTURE(BM_Heft, none, "parallel(contention=none,io=everywhere)")
    ->Arg(230)
    ->Arg(6'000)
    ->Arg(80'000)
    ->Arg(1'000'000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Heft, ports, "parallel(contention=ports,io=everywhere)")
    ->Arg(230)
    ->Arg(6'000)
    ->Arg(80'000)
    ->Arg(1'000'000)
    ->Unit(benchmark::kMillisecond);

void BM_LowerBound(benchmark::State& state) {
  const Problem problem = MakeProblem(Layered(state.range(0)), "k80x8");
  const auto evaluator = All().evaluators.Make("parallel(contention=ports,io=everywhere)", problem);
  for (auto _ : state) benchmark::DoNotOptimize(LowerBound(*evaluator).time);
}
BENCHMARK(BM_LowerBound)->Arg(230)->Arg(6'000)->Arg(80'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

void BM_MinCut(benchmark::State& state, const std::string& model) {
  RunPlanner(state, MakeProblem(model, "cpu_gpu"), "serial(io=everywhere)", "mincut");
}

const bool kRegistered = [] {
  for (const auto& [name, path] : ShippedModels()) {
    benchmark::RegisterBenchmark(("BM_MinCut/" + name).c_str(), BM_MinCut, name)->Unit(benchmark::kMillisecond);
  }
  benchmark::RegisterBenchmark("BM_MinCut/layered_80000", BM_MinCut, Layered(80'000))->Unit(benchmark::kMillisecond);
  return true;
}();

}  // namespace
}  // namespace berth
