#include "exec/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "placement/bound.h"
#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using ::testing::IsEmpty;

std::unique_ptr<Evaluator> MakeParts(const Problem& problem) {
  EvaluatorCatalog catalog("evaluator");
  RegisterParts(catalog);
  return catalog.Make("parts", problem);
}

Quantity Measured(double value) { return {.value = value, .provenance = Provenance::kMeasured}; }

// The same problem on devices that pay for cuts.
Problem WithCuts(const Problem& problem, Random& random) {
  std::vector<Device> devices;
  std::vector<Link> links;
  for (const DeviceId id : problem.cluster().ids()) {
    Device device = problem.cluster().device(id);
    device.part_overhead = Measured(random.Uniform());
    for (const std::string_view op_class : kOpClassNames) {
      if (random.Uniform() < 0.7) device.cut_read[std::string(op_class)] = Measured(1 + 9 * random.Uniform());
      if (random.Uniform() < 0.7) device.cut_write[std::string(op_class)] = Measured(1 + 9 * random.Uniform());
    }
    devices.push_back(device);
    for (const DeviceId to : problem.cluster().ids()) links.push_back(problem.cluster().link(id, to));
  }
  OpTimes times{.time = {}, .measured = {}, .source = "test"};
  for (const OpId op : problem.graph().ops()) {
    times.time.insert(times.time.end(), problem.op_times(op).begin(), problem.op_times(op).end());
  }
  return Problem(problem.shared_graph(), std::make_shared<Cluster>("cuts", devices, links), times);
}

TEST(Parts, HoldsToItsRulesAsVerifyReadsThem) {
  const Random random(7);
  for (uint64_t k = 0; k < 200 && !HasFailure(); ++k) {
    SCOPED_TRACE(k);
    Random draw = random.Fork(k);
    const Problem plain = testing::RandomProblem(draw, {.ties = k % 2 == 0, .constants = k % 3 == 0 ? 0.3 : 0});
    const Problem problem = k % 4 == 0 ? testing::RandomProblem(draw, {.ties = true}) : WithCuts(plain, draw);
    const auto evaluator = MakeParts(problem);
    const auto workspace = evaluator->NewWorkspace();
    const double bound = LowerBound(*evaluator).time;
    for (int plan = 0; plan < 4; ++plan) {
      const std::vector<DeviceId> device = testing::RandomPlacement(problem, draw);
      const PlanView view{.device = device};
      const Timeline timeline = evaluator->Trace(view);
      EXPECT_THAT(Verify(*evaluator, view, timeline), IsEmpty());
      std::vector<double> starts(problem.num_ops());
      EXPECT_EQ(evaluator->ScorePlan(view, *workspace, starts), timeline.score);
      for (const OpId op : problem.graph().ops()) EXPECT_EQ(starts[Index(op)], timeline.ops[Index(op)].start);
      EXPECT_LE(bound, timeline.score.time);
    }
  }
}

TEST(Parts, AreThoseThatTheExecutorCuts) {
  const Random random(8);
  for (uint64_t k = 0; k < 100 && !HasFailure(); ++k) {
    SCOPED_TRACE(k);
    Random draw = random.Fork(k);
    const Problem problem = testing::RandomProblem(draw, {.ops = 30, .devices = 3});
    const std::vector<DeviceId> device = testing::RandomPlacement(problem, draw);
    std::vector<std::vector<int32_t>> predecessors(problem.num_ops());
    std::vector<int32_t> numbers;
    for (const OpId op : problem.graph().ops()) {
      numbers.push_back(static_cast<int32_t>(device[Index(op)]));
      for (const TensorId tensor : problem.graph().inputs_of(op)) {
        predecessors[Index(op)].push_back(static_cast<int32_t>(problem.graph().producer(tensor)));
      }
    }
    const Parts parts = CutIntoParts(predecessors, numbers);
    const auto evaluator = MakeParts(problem);
    EXPECT_EQ(evaluator->Trace({.device = device}).subgraphs, parts.parts.size());
  }
}

TEST(Parts, PayForTheirOverheadAndTheirCuts) {
  GraphBuilder builder("join");
  const size_t a = builder.AddOp("a", "Op", {});
  const size_t c = builder.AddOp("c", "Op", {});
  const size_t b = builder.AddOp("b", "Op", {});
  builder.Consume(builder.AddTensor(a, 8), b);
  builder.Consume(builder.AddTensor(c, 8), b);
  std::vector<Device> devices(2);
  for (Device& device : devices) {
    device.part_overhead = Measured(0.5);
    device.cut_read["other"] = Measured(8);
    device.cut_write["other"] = Measured(16);
  }
  devices[0].name = "d0", devices[1].name = "d1";
  std::vector<Link> links(4);
  for (Link& link : links) link.latency.value = 0.25, link.bandwidth.value = 1;
  const Problem problem(std::make_shared<Graph>(builder.Build()), std::make_shared<Cluster>("two", devices, links),
                        {.time = {4, 4, 1, 1, 2, 2}, .measured = {}, .source = "test"});
  const auto evaluator = MakeParts(problem);
  // a alone on d0; on d1 c does not wait for a, so b, which does, is a part of its own.
  const std::vector<DeviceId> device = {DeviceId{0}, DeviceId{1}, DeviceId{1}};
  const Timeline timeline = evaluator->Trace({.device = device});
  EXPECT_EQ(timeline.subgraphs, 3);
  EXPECT_EQ(timeline.ops[0].start, 0.5);                     // after the part's overhead
  EXPECT_EQ(timeline.ops[1].end, 1.5);                       // and then half a second for what it writes
  EXPECT_EQ(timeline.ops[2].start, 5 + 0.25 + 0.5 + 1 + 1);  // a's tensor is there at 5.25; two tensors are read
  EXPECT_EQ(timeline.score.time, 9.75);
}

TEST(Parts, AWholeModelOnOneDeviceIsOnePart) {
  Random random(3);
  const Problem problem = WithCuts(testing::RandomProblem(random, {.ops = 40, .devices = 2}), random);
  const auto evaluator = MakeParts(problem);
  for (const DeviceId on : problem.cluster().ids()) {
    const std::vector<DeviceId> device(problem.num_ops(), on);
    double work = 0;
    for (const OpId op : problem.graph().ops()) work += problem.op_time(op, on);
    const Timeline timeline = evaluator->Trace({.device = device});
    // One per piece of the graph that nothing joins.
    const double overhead = problem.cluster().device(on).part_overhead.value * static_cast<double>(timeline.subgraphs);
    EXPECT_NEAR(timeline.score.time, work + overhead, 1e-9 * work);
    EXPECT_TRUE(timeline.transfers.empty());
  }
}

}  // namespace
}  // namespace berth
