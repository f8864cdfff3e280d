#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using ::testing::IsEmpty;

std::unique_ptr<Evaluator> Make(const std::string& name, const Problem& problem) {
  EvaluatorCatalog catalog("evaluator");
  RegisterSerial(catalog);
  return catalog.Make(name, problem);
}

// The rule of the score, slow and obvious: subgraphs by spreading the smallest number over whatever is joined.
double SlowScore(const Problem& problem, const std::vector<DeviceId>& device, double overhead,
                 std::optional<DeviceId> host) {
  const Graph& graph = problem.graph();
  double total = 0;
  for (const OpId op : graph.ops()) total += problem.op_time(op, device[Index(op)]);
  for (const InputId input : graph.inputs()) {
    std::set<DeviceId> to;
    for (const OpId op : graph.input_consumers(input)) to.insert(device[Index(op)]);
    if (!host) break;
    to.erase(*host);
    for (const DeviceId d : to) total += problem.transfer_time(graph.input_bytes(input), *host, d);
  }
  std::vector<size_t> phase(graph.num_ops()), part(graph.num_ops());
  for (const TensorId t : graph.tensors()) {
    const DeviceId from = device[Index(graph.producer(t))];
    std::set<DeviceId> to;
    for (const OpId op : graph.consumers(t)) to.insert(device[Index(op)]);
    if (host && graph.is_output(t)) to.insert(*host);
    to.erase(from);
    for (const DeviceId d : to) total += problem.transfer_time(t, from, d);
    for (const OpId op : graph.consumers(t)) {
      const size_t step = phase[Index(graph.producer(t))] + (device[Index(op)] != from ? 1 : 0);
      phase[Index(op)] = std::max(phase[Index(op)], step);
    }
  }
  for (size_t v = 0; v < part.size(); ++v) part[v] = v;
  for (bool changed = true; changed;) {
    changed = false;
    for (const TensorId t : graph.tensors()) {
      const size_t u = Index(graph.producer(t));
      for (const OpId op : graph.consumers(t)) {
        const size_t v = Index(op);
        if (device[u] != device[v] || phase[u] != phase[v] || part[u] == part[v]) continue;
        part[u] = part[v] = std::min(part[u], part[v]);
        changed = true;
      }
    }
  }
  return total + overhead * static_cast<double>(std::set<size_t>(part.begin(), part.end()).size());
}

TEST(Serial, AgreesWithTheSlowRule) {
  const Random random(1);
  for (uint64_t k = 0; k < 150 && !HasFailure(); ++k) {
    SCOPED_TRACE(k);
    Random draw = random.Fork(k);
    const Problem problem = testing::RandomProblem(draw, {.ties = k % 2 == 0, .memory_limits = k % 3 == 0});
    const std::vector<DeviceId> device = testing::RandomPlacement(problem, draw);
    for (const double overhead : {0.0, 0.125}) {
      const std::optional<DeviceId> last = MakeId<DeviceId>(problem.num_devices() - 1);
      for (const std::optional<DeviceId> host : {std::optional<DeviceId>(), std::optional(DeviceId{0}), last}) {
        const std::string name = fmt::format("serial(subgraph_overhead={},io={})", overhead,
                                             host ? problem.cluster().device(*host).name : "everywhere");
        SCOPED_TRACE(name);
        const auto evaluator = Make(name, problem);
        const auto workspace = evaluator->NewWorkspace();
        std::vector<double> starts(problem.num_ops());
        const Score score = evaluator->ScorePlan({.device = device}, *workspace, starts);
        const Timeline timeline = evaluator->Trace({.device = device});
        EXPECT_EQ(score.time, SlowScore(problem, device, overhead, host));
        EXPECT_EQ(score, timeline.score);
        for (size_t v = 0; v < starts.size(); ++v) EXPECT_EQ(starts[v], timeline.ops[v].start);
        // Verify adds the memory up by itself, and the score is that of ScorePlan, which counts it as it goes.
        EXPECT_THAT(Verify(*evaluator, {.device = device}, timeline), IsEmpty());
      }
    }
  }
}

TEST(Serial, AddsEverythingUp) {
  const Problem problem = testing::ForkJoin(2, 2);
  const std::vector<DeviceId> device{DeviceId{0}, DeviceId{0}, DeviceId{1}, DeviceId{0}};
  // Four ops, the fork's tensor there, a branch's back; fork with the first branch, the second branch, the join.
  EXPECT_EQ(Make("serial(io=everywhere)", problem)->Trace({.device = device}).score.time, 6);
  const Timeline timeline = Make("serial(subgraph_overhead=0.25,io=everywhere)", problem)->Trace({.device = device});
  EXPECT_EQ(timeline.subgraphs, 3u);
  EXPECT_EQ(timeline.score.time, 6.75);
}

TEST(Serial, CountsSubgraphsAsHeteroMakesThem) {
  const Random random(7);
  int fewer = 0;
  for (uint64_t k = 0; k < 200 && !HasFailure(); ++k) {
    SCOPED_TRACE(k);
    Random draw = random.Fork(k);
    const Problem problem = testing::RandomProblem(draw, {.ties = k % 2 == 0});
    const std::vector<DeviceId> device = testing::RandomPlacement(problem, draw);
    const auto hetero = Make("serial(subgraph_overhead=0.125,subgraphs=hetero,io=everywhere)", problem);
    const Timeline timeline = hetero->Trace({.device = device});
    EXPECT_THAT(Verify(*hetero, {.device = device}, timeline), IsEmpty());
    const auto phases = Make("serial(subgraph_overhead=0.125,io=everywhere)", problem)->Trace({.device = device});
    EXPECT_LE(timeline.subgraphs, phases.subgraphs);
    fewer += timeline.subgraphs < phases.subgraphs ? 1 : 0;
  }
  EXPECT_GT(fewer, 20);
}

TEST(Serial, AsHeteroCutsWhatWouldWaitForItself) {
  // The join waits for the branch on the other device: it cannot be one with the fork.
  const Problem problem = testing::ForkJoin(2, 2);
  const std::vector<DeviceId> device{DeviceId{0}, DeviceId{0}, DeviceId{1}, DeviceId{0}};
  const auto evaluator = Make("serial(subgraphs=hetero,io=everywhere)", problem);
  EXPECT_EQ(evaluator->Trace({.device = device}).subgraphs, 3u);
  const std::vector<DeviceId> alone(4, DeviceId{1});
  EXPECT_EQ(evaluator->Trace({.device = alone}).subgraphs, 1u);
}

TEST(Serial, TakesTheOverheadInSeconds) {
  const Problem unit = testing::Chain(2, 1);
  const Problem problem(unit.shared_graph(), unit.shared_cluster(), {.time = {1, 1}, .measured = {}, .source = "test"},
                        {.seconds_per_unit = 1e-3});
  EXPECT_EQ(
      Make("serial(subgraph_overhead=0.004,io=everywhere)", problem)->facts().As<SerialFacts>()->subgraph_overhead, 4);
}

TEST(Serial, IgnoresPrioritiesAndSequences) {
  const Problem problem = testing::ForkJoin(2, 1);
  const auto evaluator = Make("serial(io=everywhere)", problem);
  EXPECT_FALSE(evaluator->facts().uses_priorities);
  const std::vector<DeviceId> device(4, DeviceId{0});
  const std::vector<double> priority{0, 1, 2, 3};
  EXPECT_EQ(evaluator->Trace({.device = device, .priority = priority}).ops[1].start, 1);
}

TEST(Serial, NamesTheOpThatADeviceCannotRun) {
  const Problem unit = testing::Chain(2, 2);
  const Problem problem(unit.shared_graph(), unit.shared_cluster(),
                        {.time = {1, 1, 1, kCannotRun}, .measured = {}, .source = "test"});
  const std::vector<DeviceId> device{DeviceId{0}, DeviceId{1}};
  const Timeline timeline = Make("serial(io=everywhere)", problem)->Trace({.device = device});
  EXPECT_FALSE(timeline.score.fits());
  EXPECT_EQ(timeline.infeasible_because, "op op1 cannot run on d1");
}

}  // namespace
}  // namespace berth
