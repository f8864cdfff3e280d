// Learned planners: one step of a policy forward and backward, and an update of training on one thread and on two.
#if BERTH_HAS_LEARN

#include <benchmark/benchmark.h>

#include "bench/problems.h"
#include "learn/learner.h"
#include "learn/libtorch.h"

namespace berth {
namespace {

MethodCatalog Methods() {
  MethodCatalog catalog;
  RegisterMethods(catalog);
  return catalog;
}

// The likelihood of one placement that was drawn, and its gradient by all parameters, in float32 on one core.
void BM_PolicyStep(benchmark::State& state, const std::string& planner, const std::string& model) {
  at::set_num_threads(1);
  const Problem problem = MakeProblem(model, "cpu_gpu");
  const auto evaluator = All().evaluators.Make("serial(io=everywhere)", problem);
  const std::shared_ptr<Policy> policy = Methods().Make(planner).make_policy(problem, Random(1));
  const auto task = policy->Prepare(problem);
  Search search({.evaluator = *evaluator, .budget = {}, .random = Random(1)});
  std::vector<Random> randoms{Random(2)};
  const auto episodes = policy->Play(*task, search, randoms, {.evaluations = 1});
  for (auto _ : state) {
    const Played played{.task = *task, .episode = *episodes[0]};
    const auto likelihoods = policy->Recall(std::span(&played, 1), 1);
    benchmark::DoNotOptimize(
        torch::autograd::grad({likelihoods[0]->log_prob.sum()}, policy->parameters(), {}, false, false, true));
  }
  state.counters["decisions"] = episodes[0]->decisions_per_step();
}
BENCHMARK_CAPTURE(BM_PolicyStep, hsdag, "hsdag(colocation=none)", "layered(ops=250,width=16)")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_PolicyStep, hsdag_paper, "hsdag(mode=paper,colocation=none)", "layered(ops=250,width=16)")
    ->Unit(benchmark::kMillisecond);

// One update: episodes, evaluations, gradients.
void BM_Update(benchmark::State& state, const std::string& planner, const std::string& evaluator_name) {
  const Problem problem = MakeProblem("layered(ops=120,width=16)", "k80x2");
  const auto evaluator = All().evaluators.Make(evaluator_name, problem);
  Search search({.evaluator = *evaluator, .budget = {}, .random = Random(1)});
  Learner learner(Methods().Make(planner), {&search}, Random(1), 1000);
  for (auto _ : state) learner.Update(1'000'000'000, state.range(0));
  state.counters["evaluations/s"] = benchmark::Counter(static_cast<double>(learner.evaluations_per_update()),
                                                       benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(BM_Update, placeto, "placeto", "parallel(contention=egress,io=everywhere)")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Update, hsdag_paper_of_four, "hsdag(mode=paper,workers=4)", "serial(io=everywhere)")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace berth

#endif  // BERTH_HAS_LEARN
