#include "moves/critical_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/testing.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Pair;

std::vector<std::pair<OpId, OpId>> All(const Waits& waits) {
  std::vector<std::pair<OpId, OpId>> all;
  for (size_t i = 0; i < waits.size(); ++i) all.push_back(waits[i]);
  return all;
}

TEST(CriticalPath, GoesFromDeviceToDeviceAndFromOpToOp) {
  // 0 -> 3 on another device, which waits there for 1 and 2; 4 needs 3 and nothing else.
  GraphBuilder builder("waits");
  for (int v = 0; v < 5; ++v) {
    builder.AddOp("", "Unit", {});
    builder.AddTensor(static_cast<size_t>(v), 1);
  }
  builder.Consume(0, 3);
  builder.Consume(3, 4);
  const Problem problem = testing::UnitProblem(builder.Build(), 2);
  const std::vector<DeviceId> device = {DeviceId{0}, DeviceId{1}, DeviceId{1}, DeviceId{1}, DeviceId{0}};
  // The tensor of 0 is there at 2; 1 runs from 1 to 2, 2 from 2 to 3.
  const std::vector<double> starts = {0, 1, 2, 3, 5};
  const CriticalPath path = FindCriticalPath(problem, device, starts);
  EXPECT_THAT(path.ops, ElementsAre(OpId{4}, OpId{3}, OpId{2}, OpId{1}));
  EXPECT_THAT(All(path.waits), ElementsAre(Pair(OpId{3}, OpId{2}), Pair(OpId{2}, OpId{1})));
}

// All ops are ready at once: each has waited for all before it, and these are too many pairs to be listed.
TEST(CriticalPath, ThatOnlyWaitsKnowsAllPairs) {
  constexpr size_t kOps = 200'000;
  GraphBuilder builder("wide");
  std::vector<double> starts;
  for (size_t v = 0; v < kOps; ++v) {
    builder.AddOp("", "Unit", {});
    builder.AddTensor(v, 1);
    starts.push_back(static_cast<double>(v));
  }
  const Problem problem = testing::UnitProblem(builder.Build(), 1);
  const CriticalPath path = FindCriticalPath(problem, std::vector<DeviceId>(kOps, DeviceId{0}), starts);
  EXPECT_EQ(path.ops.size(), kOps);
  ASSERT_EQ(path.waits.size(), kOps * (kOps - 1) / 2);
  EXPECT_THAT(path.waits[0], Pair(MakeId<OpId>(kOps - 1), MakeId<OpId>(kOps - 2)));
  EXPECT_THAT(path.waits[kOps - 1], Pair(MakeId<OpId>(kOps - 2), MakeId<OpId>(kOps - 3)));
  EXPECT_THAT(path.waits[path.waits.size() - 1], Pair(OpId{1}, OpId{0}));
}

// Beside the list written out, op by op from the end of the device. Ops that take no time may stand in either order.
TEST(CriticalPath, HasThePairsThatAWalkFinds) {
  Random random(3);
  for (int round = 0; round < 50; ++round) {
    const Problem problem = testing::RandomProblem(random, {.ops = 30, .devices = 3, .zero_lengths = false});
    const std::vector<DeviceId> device = testing::RandomPlacement(problem, random);
    std::vector<double> starts(problem.num_ops()), free(problem.num_devices());
    const auto end = [&](OpId op) { return starts[Index(op)] + problem.op_time(op, device[Index(op)]); };
    const auto arrival = [&](TensorId tensor, OpId op) {
      const OpId producer = problem.graph().producer(tensor);
      const DeviceId from = device[Index(producer)], to = device[Index(op)];
      return end(producer) + (from == to ? 0 : problem.transfer_time(tensor, from, to));
    };
    const auto ready = [&](OpId op) {
      double time = 0;
      for (const TensorId tensor : problem.graph().inputs_of(op)) time = std::max(time, arrival(tensor, op));
      return time;
    };
    for (const OpId op : problem.graph().ops()) {
      double& at = free[Index(device[Index(op)])];
      starts[Index(op)] = std::max(at, ready(op));
      at = end(op);
    }
    const CriticalPath path = FindCriticalPath(problem, device, starts);
    std::vector<std::pair<OpId, OpId>> expected;
    for (const OpId op : path.ops) {
      if (!(ready(op) < starts[Index(op)])) continue;
      for (size_t v = Index(op); v-- > 0;) {
        const OpId before = MakeId<OpId>(v);
        if (device[v] == device[Index(op)] && end(before) > ready(op)) expected.emplace_back(op, before);
      }
    }
    EXPECT_THAT(All(path.waits), ElementsAreArray(expected));
  }
}

TEST(CriticalPath, OfNothingIsEmpty) {
  const Problem problem = testing::UnitProblem(GraphBuilder("empty").Build(), 1);
  EXPECT_TRUE(FindCriticalPath(problem, {}, {}).ops.empty());
}

TEST(CriticalPath, AChainIsAllOfIt) {
  const Problem problem = testing::Chain(4, 2);
  const std::vector<DeviceId> device = {DeviceId{0}, DeviceId{0}, DeviceId{1}, DeviceId{1}};
  EXPECT_THAT(FindCriticalPath(problem, device, std::vector<double>{0, 1, 3, 4}).ops,
              ElementsAre(OpId{3}, OpId{2}, OpId{1}, OpId{0}));
}

}  // namespace
}  // namespace berth
