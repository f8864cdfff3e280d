#include "moves/judged_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "placement/partial_schedule.h"
#include "placement/plan.h"
#include "placement/testing.h"

namespace berth {
namespace {

using Moves = std::vector<std::pair<OpId, DeviceId>>;

struct Schedule {
  Schedule(const Problem& problem, std::span<const DeviceId> device) {
    PartialSchedule schedule(problem, Contention::kNone);
    for (const OpId op : problem.graph().ops()) starts.push_back(schedule.Place(op, device[Index(op)]).start);
    makespan = schedule.makespan();
  }
  std::vector<double> starts;
  double makespan;
};

void KnowOf(JudgedMoves& moves, const Problem& problem, std::span<const DeviceId> device) {
  moves.Know(device, Schedule(problem, device).starts);
}

Problem WithOptions(const Problem& free, Problem::Options options) {
  OpTimes times{.time = {}, .source = "copy"};
  for (const OpId op : free.graph().ops()) {
    for (const double time : free.op_times(op)) times.time.push_back(time);
  }
  return Problem(free.shared_graph(), free.shared_cluster(), std::move(times), std::move(options));
}

Problem Constrained(Random& random) {
  Problem::Options options;
  options.constraints.colocate = {{OpId{3}, OpId{9}, OpId{20}}};
  options.constraints.separate = {{OpId{3}, OpId{4}}, {OpId{4}, OpId{5}}, {OpId{7}, OpId{25}}};
  return WithOptions(testing::RandomProblem(random, {.ops = 30, .devices = 3, .forbidden = 0.2}), std::move(options));
}

// Ops of three in a row are a group.
Grouping Triples(const Problem& problem) {
  std::vector<int32_t> label(problem.num_ops());
  for (size_t v = 0; v < label.size(); ++v) label[v] = static_cast<int32_t>(v / 3);
  return Grouping(problem.graph(), label);
}

Grouping Singles(const Problem& problem) {
  std::vector<int32_t> label(problem.num_ops());
  for (size_t v = 0; v < label.size(); ++v) label[v] = static_cast<int32_t>(v);
  return Grouping(problem.graph(), label);
}

std::optional<MoveJudge> Judge(bool wanted, size_t opinions = 0) {
  return wanted ? std::optional(JudgedMoves::NewJudge(opinions)) : std::nullopt;
}

TEST(MoveSpace, HasALevelOfGroupsWhereTheyJoinAnything) {
  const Problem problem = testing::Chain(9, 2);
  const MoveSpace joined(problem, Triples(problem));
  ASSERT_EQ(joined.num_levels(), 2u);
  EXPECT_EQ(joined.units(0).size(), 9u);
  EXPECT_EQ(joined.units(1).size(), 3u);
  EXPECT_EQ(MoveSpace(problem, Singles(problem)).num_levels(), 1u);
}

TEST(JudgedMoves, KeepEveryConstraint) {
  for (const bool judged : {false, true}) {
    Random random(1);
    const Problem problem = Constrained(random);
    const MoveSpace space(problem, Triples(problem));
    ASSERT_EQ(space.units(0).contradiction(), std::nullopt);
    ASSERT_EQ(space.num_levels(), 2u);
    JudgedMoves moves(space, Judge(judged));
    std::vector<DeviceId> placement = space.units(0).AllOn(DeviceId{0});
    ASSERT_TRUE(space.units(0).Legalise(placement));
    double makespan = Schedule(problem, placement).makespan;
    std::set<size_t> sizes;
    for (int i = 0; i < 2000; ++i) {
      KnowOf(moves, problem, placement);
      const auto proposed = moves.Propose(random);
      ASSERT_FALSE(proposed.empty());
      sizes.insert(proposed.size());
      std::vector<DeviceId> trial = placement;
      for (const auto& [op, to] : proposed) trial[Index(op)] = to;
      ASSERT_NE(trial, placement);
      ASSERT_EQ(FindViolation(problem, {.device = trial}), std::nullopt);
      const double after = Schedule(problem, trial).makespan;
      moves.Learn((after - makespan) / makespan);
      if (after > makespan && !random.Chance(0.1)) continue;
      placement = trial;
      makespan = after;
    }
    EXPECT_GT(sizes.size(), 5u);
  }
}

TEST(JudgedMoves, ShakeKeepsEveryConstraintToo) {
  Random random(2);
  const Problem problem = Constrained(random);
  const MoveSpace space(problem, Triples(problem));
  JudgedMoves moves(space, Judge(true));
  std::vector<DeviceId> placement = space.units(0).AllOn(DeviceId{0});
  ASSERT_TRUE(space.units(0).Legalise(placement));
  int changed = 0;
  for (int i = 0; i < 500; ++i) {
    const std::vector<DeviceId> before = placement;
    moves.Shake(placement, random);
    changed += placement != before ? 1 : 0;
    ASSERT_EQ(FindViolation(problem, {.device = placement}), std::nullopt);
  }
  EXPECT_GT(changed, 400);
}

TEST(JudgedMoves, AreNoneWhereNothingMayMove) {
  const Problem free = testing::Chain(4, 2);
  const Problem bound(free.shared_graph(), free.shared_cluster(),
                      {.time = {1, kCannotRun, kCannotRun, 1, 1, kCannotRun, kCannotRun, 1}, .source = "test"});
  const Problem alone = testing::Chain(4, 1);
  for (const Problem* problem : {&bound, &alone}) {
    const MoveSpace space(*problem, Singles(*problem));
    for (const bool judged : {false, true}) {
      JudgedMoves moves(space, Judge(judged));
      const std::vector<DeviceId> placement = space.units(0).AllOn(DeviceId{0});
      KnowOf(moves, *problem, placement);
      Random random(3);
      EXPECT_TRUE(moves.Propose(random).empty());
      moves.Learn(-1);  // of nothing
      EXPECT_TRUE(moves.Propose(random).empty());
      std::vector<DeviceId> shaken = placement;
      moves.Shake(shaken, random);
      EXPECT_EQ(shaken, placement);
    }
  }
}

TEST(JudgedMoves, AreDrawnOfTheKindThatHelps) {
  const Problem problem = testing::Chain(60, 2);
  const MoveSpace space(problem, Triples(problem));
  JudgedMoves moves(space, std::nullopt);
  std::vector<DeviceId> placement(60, DeviceId{0});
  std::fill(placement.begin() + 30, placement.end(), DeviceId{1});
  KnowOf(moves, problem, placement);
  Random random(4);
  // Of one op: all that the shape `one` makes, and hardly another.
  const auto share_of_single = [&] {
    int single = 0;
    for (int i = 0; i < 500; ++i) single += moves.Propose(random).size() == 1 ? 1 : 0;
    return single / 500.0;
  };
  const auto learn = [&](bool single) {
    for (int i = 0; i < 1000; ++i) moves.Learn((moves.Propose(random).size() == 1) == single ? -0.01 : 0.01);
  };
  learn(true);
  const double after_single = share_of_single();
  learn(false);
  const double after_others = share_of_single();
  EXPECT_GT(after_single, 0.6);
  EXPECT_LT(after_others, 0.3);
}

TEST(JudgedMoves, AreThoseThatTheJudgeHasLearnedToPrefer) {
  const Problem problem = testing::Chain(60, 2);
  const MoveSpace space(problem, Triples(problem));
  std::vector<DeviceId> placement(60, DeviceId{0});
  std::fill(placement.begin() + 30, placement.end(), DeviceId{1});
  const auto even = [](std::span<const std::pair<OpId, DeviceId>> moves) { return Index(moves[0].first) % 2 == 0; };
  const auto share_of_even = [&](bool judged) {
    JudgedMoves moves(space, Judge(judged, 1), 1,
                      [&](std::span<const std::pair<OpId, DeviceId>> of, std::span<double> opinion) {
                        ASSERT_EQ(opinion.size(), 1u);
                        opinion[0] = even(of) ? 1 : -1;
                      });
    KnowOf(moves, problem, placement);
    Random random(5);
    int helped = 0;
    for (int i = 0; i < 1500; ++i) {
      const bool is_even = even(moves.Propose(random));
      moves.Learn(is_even ? -0.01 : 0.01);
      if (i >= 500) helped += is_even ? 1 : 0;
    }
    return helped / 1000.0;
  };
  EXPECT_GT(share_of_even(true), 0.9);
  EXPECT_LT(share_of_even(false), 0.8);
}

TEST(JudgedMoves, AreJudgedByTheirScheduleAndTheirOpinions) {
  Random random(6);
  const Problem problem = Constrained(random);
  const MoveSpace space(problem, Triples(problem));
  JudgedMoves moves(space, Judge(true, 2), 2,
                    [](std::span<const std::pair<OpId, DeviceId>> of, std::span<double> opinion) {
                      opinion[0] = 1.0 / static_cast<double>(of.size());
                      opinion[1] = static_cast<double>(Index(of[0].first)) / 30;
                    });
  MoveFeatures features(problem);
  std::vector<DeviceId> placement = space.units(0).AllOn(DeviceId{0});
  ASSERT_TRUE(space.units(0).Legalise(placement));
  const Schedule schedule(problem, placement);
  moves.Know(placement, schedule.starts);
  features.Know(placement, schedule.starts);
  for (int i = 0; i < 200; ++i) {
    const auto proposed = moves.Propose(random);
    ASSERT_FALSE(proposed.empty());
    const MoveFeatures::Row row = features.Of(proposed);
    std::vector<double> expected(row.begin(), row.end());
    expected.push_back(1.0 / static_cast<double>(proposed.size()));
    expected.push_back(static_cast<double>(Index(proposed[0].first)) / 30);
    EXPECT_THAT(moves.features(), ::testing::ElementsAreArray(expected));
    moves.Learn(random.Uniform(-0.01, 0.01));
  }
}

TEST(JudgedMoves, AreTheSameForTheSameSeed) {
  Random made(7);
  const Problem problem = Constrained(made);
  const MoveSpace space(problem, Triples(problem));
  std::vector<DeviceId> placement = space.units(0).AllOn(DeviceId{0});
  ASSERT_TRUE(space.units(0).Legalise(placement));
  const auto all = [&](uint64_t seed) {
    JudgedMoves moves(space, Judge(true));
    KnowOf(moves, problem, placement);
    Random random(seed);
    std::vector<Moves> proposed;
    for (int i = 0; i < 100; ++i) {
      const auto move = moves.Propose(random);
      proposed.emplace_back(move.begin(), move.end());
      moves.Learn(move.size() > 2 ? -0.01 : 0.01);
    }
    return proposed;
  };
  EXPECT_EQ(all(8), all(8));
  EXPECT_NE(all(8), all(9));
}

}  // namespace
}  // namespace berth
