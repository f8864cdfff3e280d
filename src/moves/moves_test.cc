#include "moves/moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "placement/plan.h"
#include "placement/testing.h"

namespace berth {
namespace {

constexpr MoveShape kAll[] = {MoveShape::kOne,     MoveShape::kSegment,  MoveShape::kCluster,
                              MoveShape::kForward, MoveShape::kBackward, MoveShape::kSwap,
                              MoveShape::kPart,    MoveShape::kExchange, MoveShape::kBoundary};

std::vector<DeviceId> After(std::vector<DeviceId> placement, std::span<const std::pair<OpId, DeviceId>> moves) {
  for (const auto& [op, device] : moves) placement[Index(op)] = device;
  return placement;
}

TEST(MoveMaker, KeepsEveryConstraint) {
  Random random(1);
  const Problem free = testing::RandomProblem(random, {.ops = 30, .devices = 3, .forbidden = 0.2});
  Problem::Options options;
  options.constraints.colocate = {{OpId{3}, OpId{9}, OpId{20}}};
  options.constraints.separate = {{OpId{3}, OpId{4}}, {OpId{4}, OpId{5}}, {OpId{7}, OpId{25}}};
  OpTimes times{.time = {}, .source = "copy"};
  for (const OpId op : free.graph().ops()) {
    for (const double t : free.op_times(op)) times.time.push_back(t);
  }
  const Problem problem(free.shared_graph(), free.shared_cluster(), std::move(times), std::move(options));
  const Units units(problem);
  ASSERT_EQ(units.contradiction(), std::nullopt);
  const Structure structure(units);
  MoveMaker maker(units, structure);
  std::vector<DeviceId> placement = units.AllOn(DeviceId{0});
  std::map<MoveShape, int> drawn;
  for (int i = 0; i < 3000; ++i) {
    const MoveShape shape = kAll[random.Below(std::size(kAll))];
    const auto moves = maker.Draw(shape, placement, random);
    if (moves.empty()) continue;
    ++drawn[shape];
    placement = After(placement, moves);
    ASSERT_EQ(FindViolation(problem, {.device = placement}), std::nullopt) << "shape " << static_cast<int>(shape);
  }
  EXPECT_EQ(drawn.size(), std::size(kAll));
}

TEST(MoveMaker, NeverMovesAnOpToWhereItIsOrTwice) {
  Random random(2);
  const Problem problem = testing::RandomProblem(random, {.ops = 40, .devices = 4});
  const Units units(problem);
  const Structure structure(units);
  MoveMaker maker(units, structure);
  std::vector<DeviceId> placement = testing::RandomPlacement(problem, random);
  for (int i = 0; i < 2000; ++i) {
    const auto moves = maker.Draw(kAll[random.Below(std::size(kAll))], placement, random);
    std::set<OpId> moved;
    for (const auto& [op, device] : moves) {
      EXPECT_NE(placement[Index(op)], device);
      EXPECT_TRUE(moved.insert(op).second);
    }
    placement = After(placement, moves);
  }
}

TEST(MoveMaker, DrawsWholeBranches) {
  // A fork, two branches of three, a join: forward from the head of a branch is that branch, backward from its end as
  // well.
  GraphBuilder builder("branches");
  for (int v = 0; v < 8; ++v) {
    builder.AddOp("", "Unit", {});
    builder.AddTensor(static_cast<size_t>(v), 1);
  }
  constexpr int kEdges[][2] = {{0, 1}, {1, 2}, {2, 3}, {0, 4}, {4, 5}, {5, 6}, {3, 7}, {6, 7}};
  for (const auto& [from, to] : kEdges) builder.Consume(static_cast<size_t>(from), static_cast<size_t>(to));
  const Problem problem = testing::UnitProblem(builder.Build(), 2);
  const Units units(problem);
  const Structure structure(units);
  MoveMaker maker(units, structure);
  Random random(3);
  const std::vector<DeviceId> placement(8, DeviceId{0});
  for (const MoveShape shape : {MoveShape::kForward, MoveShape::kBackward}) {
    std::set<std::set<size_t>> seen;
    for (int i = 0; i < 500; ++i) {
      std::set<size_t> ops;
      for (const auto& [op, device] : maker.Draw(shape, placement, random)) ops.insert(Index(op));
      seen.insert(ops);
    }
    EXPECT_TRUE(seen.contains({1, 2, 3}));
    EXPECT_TRUE(seen.contains({4, 5, 6}));
    // The join never comes with one branch alone.
    EXPECT_FALSE(seen.contains({1, 2, 3, 7}));
  }
}

TEST(MoveMaker, ChangesPrioritiesWithoutMovingAnything) {
  Random random(8);
  const Problem problem = testing::RandomProblem(random, {.ops = 20, .devices = 3});
  const Units units(problem);
  const Structure structure(units);
  MoveMaker maker(units, structure);
  const std::vector<DeviceId> placement = testing::RandomPlacement(problem, random);
  std::vector<double> priority(20);
  for (double& each : priority) each = random.Uniform(-5, 5);
  EXPECT_TRUE(maker.Draw(MoveShape::kOvertake, placement, priority, random).priorities.empty())
      << "it knows of no path";
  Waits waits({OpId{9}, OpId{4}, OpId{7}});
  waits.Add(OpId{4}, 0, 1);
  maker.Know({.ops = {OpId{4}, OpId{7}}, .waits = std::move(waits)});
  for (int i = 0; i < 200; ++i) {
    const PlanChange urgency = maker.Draw(MoveShape::kUrgency, placement, priority, random);
    EXPECT_TRUE(urgency.moves.empty());
    ASSERT_EQ(urgency.priorities.size(), 1);
    EXPECT_LE(std::abs(urgency.priorities[0].second - priority[Index(urgency.priorities[0].first)]), 10);
    // The one that waited is before the other afterwards.
    std::vector<double> after = priority;
    for (const auto& [op, to] : maker.Draw(MoveShape::kOvertake, placement, priority, random).priorities) {
      EXPECT_THAT(op, ::testing::AnyOf(OpId{4}, OpId{9}));
      after[Index(op)] = to;
    }
    EXPECT_GE(after[4], after[9]);
    for (const auto& [op, device] : maker.Draw(MoveShape::kCritical, placement, random)) {
      EXPECT_THAT(op, ::testing::AnyOf(OpId{4}, OpId{7}));
    }
  }
}

TEST(ShapeChooser, DrawsWhatHelps) {
  Random random(4);
  ShapeChooser shapes;
  for (int i = 0; i < 500; ++i) {
    for (const MoveShape shape : kAll) shapes.Report(shape, shape == MoveShape::kCluster);
  }
  std::map<MoveShape, int> drawn;
  for (int i = 0; i < 1000; ++i) ++drawn[shapes.Draw(random)];
  EXPECT_GT(drawn[MoveShape::kCluster], 900);
  EXPECT_EQ(drawn.size(), std::size(kAll));
}

TEST(Units, DrawTheDevicesEvenly) {
  Random random(5);
  const Problem problem = testing::Chain(3000, 3);
  const Units units(problem);
  const std::vector<double> even(3, 1);
  std::map<DeviceId, int> count;
  for (const DeviceId device : units.Draw(random, even)) ++count[device];
  for (const auto& [device, n] : count) EXPECT_NEAR(n, 1000, 120);
}

TEST(Units, KnowWhichDeviceIsFastest) {
  const Problem chain = testing::Chain(2, 3);
  const Problem unequal(chain.shared_graph(), chain.shared_cluster(),
                        {.time = {3, 1, 2, kCannotRun, 2, 1}, .source = "test"});
  const Units units(unequal);
  EXPECT_EQ(units.fastest(0), DeviceId{1});
  EXPECT_EQ(units.fastest(1), DeviceId{2});
  EXPECT_FALSE(units.can_run(1, DeviceId{0}));
  EXPECT_EQ(units.AllOn(DeviceId{0}), (std::vector<DeviceId>{DeviceId{0}, DeviceId{2}}));
}

TEST(MoveMaker, MovesWholePartsAndShiftsBoundaries) {
  const Problem problem = testing::Chain(40, 2);
  const Units units(problem);
  const Structure structure(units);
  ASSERT_GT(structure.num_parts(), 1);
  MoveMaker maker(units, structure);
  Random random(7);
  std::vector<DeviceId> placement(40, DeviceId{0});
  std::set<std::vector<OpId>> parts, moved;
  for (size_t i = 0; i < structure.num_parts(); ++i) {
    parts.insert({structure.part(i).begin(), structure.part(i).end()});
  }
  for (int i = 0; i < 500; ++i) {
    std::vector<OpId> ops;
    for (const auto& [op, device] : maker.Draw(MoveShape::kPart, placement, random)) ops.push_back(op);
    moved.insert(std::move(ops));
  }
  EXPECT_EQ(moved, parts);
  for (size_t op = 17; op < 40; ++op) placement[op] = DeviceId{1};
  for (int i = 0; i < 500; ++i) {
    const auto moves = maker.Draw(MoveShape::kBoundary, placement, random);
    if (moves.empty()) continue;
    EXPECT_TRUE(std::ranges::is_sorted(After(placement, moves))) << "one stage still follows the other";
  }
}

}  // namespace
}  // namespace berth
