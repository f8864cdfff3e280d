#include "moves/critical_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/testing.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

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
  EXPECT_THAT(path.waits, ElementsAre(Pair(OpId{3}, OpId{2}), Pair(OpId{2}, OpId{1})));
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
