// Evaluators: one ScorePlan of a uniformly random placement, by size, contention and memory; one Try of a Session, and
// how many times faster it is.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "bench/problems.h"
#include "placement/search.h"
#include "placement/testing.h"

namespace berth {
namespace {

// A plan is only known to fit by counting where not everything fits everywhere: limits of one byte make sure of that.
Problem LimitedProblem(const std::string& model, const std::string& cluster, bool memory) {
  const size_t devices = All().clusters.Make(cluster).num_devices();
  return MakeProblem(model, cluster, {.memory_limits = std::vector<int64_t>(devices, memory ? 1 : INT64_MAX)});
}

void Score(benchmark::State& state, const std::string& model, const std::string& cluster,
           const std::string& evaluator_name, bool memory) {
  const Problem problem = LimitedProblem(model, cluster, memory);
  const auto evaluator = All().evaluators.Make(evaluator_name, problem);
  const auto workspace = evaluator->NewWorkspace();
  Random random(1);
  std::vector<DeviceId> device = testing::RandomPlacement(problem, random);
  evaluator->ScorePlan({.device = device}, *workspace);
  for (auto _ : state) benchmark::DoNotOptimize(evaluator->ScorePlan({.device = device}, *workspace));

  using benchmark::Counter;
  const auto size = static_cast<double>(problem.num_ops() + problem.graph().num_edges());
  state.counters["ops"] = static_cast<double>(problem.num_ops());
  state.counters["edges"] = static_cast<double>(problem.graph().num_edges());
  state.counters["scores/s"] = Counter(1, Counter::kIsIterationInvariantRate);
  state.counters["s/(op+edge)"] = Counter(size, Counter::kIsIterationInvariantRate | Counter::kInvert);
}

// A layered random graph with two edges per op on eight devices.
void BM_Score(benchmark::State& state, const std::string& evaluator, bool memory) {
  const int64_t ops = state.range(0);
  Score(state, fmt::format("layered(ops={},width={})", ops, ops < 1000 ? 16 : 400), "k80x8", evaluator, memory);
}

void BM_ScoreResnet50(benchmark::State& state, const std::string& evaluator, bool memory) {
  Score(state, "resnet50", "cpu_gpu", evaluator, memory);
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int64_t ops : {230, 6'000, 80'000, 1'000'000}) benchmark->Arg(ops);
  benchmark->Unit(benchmark::kMicrosecond);
}

double Seconds(const std::function<void()>& what) {
  const auto start = std::chrono::steady_clock::now();
  what();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// 1,000 random moves of one op, drawn from the last `share` of the order, in a session of a random placement. Counted
// is the time of a move; `faster` is the median of how many times longer a whole score takes.
void BM_Try(benchmark::State& state, const std::string& evaluator_name, bool memory, double share) {
  const Problem problem = LimitedProblem("layered(ops=80000,width=400)", "k80x8", memory);
  const auto evaluator = All().evaluators.Make(evaluator_name, problem);
  const auto workspace = evaluator->NewWorkspace();
  Random random(1);
  std::vector<DeviceId> device = testing::RandomPlacement(problem, random);
  const auto session = evaluator->NewSession({.device = device}, *workspace);
  const auto last = static_cast<size_t>(share * static_cast<double>(problem.num_ops()));
  std::vector<double> moves, wholes;
  for (auto _ : state) {
    const auto op = MakeId<OpId>(problem.num_ops() - 1 - random.Below(last));
    const size_t other = 1 + random.Below(problem.num_devices() - 1);
    const auto to = MakeId<DeviceId>((Index(device[Index(op)]) + other) % problem.num_devices());
    moves.push_back(Seconds([&] { benchmark::DoNotOptimize(session->Try(op, to)); }));
    state.SetIterationTime(moves.back());
    // Now and then, so that both suffer alike from what else the machine does.
    if (moves.size() % 10 != 1) continue;
    wholes.push_back(Seconds([&] { benchmark::DoNotOptimize(evaluator->ScorePlan({.device = device}, *workspace)); }));
  }
  state.counters["faster"] = Median(wholes) / Median(moves);
}

void Moves(benchmark::internal::Benchmark* benchmark) {
  benchmark->UseManualTime()->Iterations(1000)->Unit(benchmark::kMicrosecond);
}

BENCHMARK_CAPTURE(BM_Try, none, "parallel(contention=none,io=everywhere)", false, 1)->Apply(Moves);
BENCHMARK_CAPTURE(BM_Try, none_last_tenth, "parallel(contention=none,io=everywhere)", false, 0.1)->Apply(Moves);
BENCHMARK_CAPTURE(BM_Try, none_memory, "parallel(contention=none,io=everywhere)", true, 1)->Apply(Moves);
BENCHMARK_CAPTURE(BM_Try, links, "parallel(contention=links,io=everywhere)", false, 1)->Apply(Moves);
BENCHMARK_CAPTURE(BM_Try, ports, "parallel(contention=ports,io=everywhere)", false, 1)->Apply(Moves);
BENCHMARK_CAPTURE(BM_Try, ports_last_tenth, "parallel(contention=ports,io=everywhere)", false, 0.1)->Apply(Moves);
BENCHMARK_CAPTURE(BM_Try, ports_memory, "parallel(contention=ports,io=everywhere)", true, 1)->Apply(Moves);
BENCHMARK_CAPTURE(BM_Try, ports_memory_last_tenth, "parallel(contention=ports,io=everywhere)", true, 0.1)->Apply(Moves);

BENCHMARK_CAPTURE(BM_Score, none, "parallel(contention=none,io=everywhere)", false)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Score, none_memory, "parallel(contention=none,io=everywhere)", true)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Score, egress, "parallel(contention=egress,io=everywhere)", false)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Score, links, "parallel(contention=links,io=everywhere)", false)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Score, links_memory, "parallel(contention=links,io=everywhere)", true)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Score, ports, "parallel(contention=ports,io=everywhere)", false)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Score, ports_memory, "parallel(contention=ports,io=everywhere)", true)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Score, serial, "serial(io=everywhere)", false)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Score, serial_memory, "serial(io=everywhere)", true)->Apply(Sizes);
// 64 placements at once, through the gate that planners use, on so many threads.
void BM_EvaluateAll(benchmark::State& state) {
  const Problem problem = LimitedProblem("layered(ops=80000,width=400)", "k80x8", false);
  const auto evaluator = All().evaluators.Make("parallel(contention=ports,io=everywhere)", problem);
  Random random(1);
  std::vector<std::vector<DeviceId>> devices;
  for (int i = 0; i < 64; ++i) devices.push_back(testing::RandomPlacement(problem, random));
  std::vector<PlanView> plans;
  for (const auto& device : devices) plans.push_back({.device = device});
  std::vector<berth::Score> scores(plans.size());
  Search search({.evaluator = *evaluator, .budget = {}, .random = Random(1), .threads = state.range(0)});
  search.EvaluateAll(plans, scores, "");
  for (auto _ : state) benchmark::DoNotOptimize(search.EvaluateAll(plans, scores, ""));
}
BENCHMARK(BM_EvaluateAll)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

// The size of the graphs that Placeto's authors place.
void BM_ScorePlaceto(benchmark::State& state) {
  Score(state, "layered(ops=600,width=16)", "placeto(devices=4)", "placeto", true);
}
BENCHMARK(BM_ScorePlaceto)->Unit(benchmark::kMicrosecond);

BENCHMARK_CAPTURE(BM_ScoreResnet50, ports, "parallel(contention=ports,io=everywhere)", false)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_ScoreResnet50, ports_memory, "parallel(contention=ports,io=everywhere)", true)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace berth
