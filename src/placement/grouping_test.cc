#include "placement/grouping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "placement/testing.h"

namespace berth {
namespace {

GroupingCatalog Groupings() {
  GroupingCatalog catalog("grouping");
  RegisterGroupings(catalog);
  return catalog;
}

constexpr const char* kAll[] = {"colocation",
                                "colocation(rule=code)",
                                "chain",
                                "chain(most=3)",
                                "fusion",
                                "merge(size=1)",
                                "merge(size=7)",
                                "merge(size=5,balance=2)",
                                "layers",
                                "random",
                                "random(groups=3,seed=2)"};

std::vector<std::set<OpId>> Producers(const Graph& graph) {
  std::vector<std::set<OpId>> producers(graph.num_ops());
  for (const OpId op : graph.ops()) {
    for (const TensorId tensor : graph.inputs_of(op)) producers[Index(op)].insert(graph.producer(tensor));
  }
  return producers;
}

TEST(Grouping, IsAPartitionWhateverTheRule) {
  Random random(1);
  const GroupingCatalog catalog = Groupings();
  for (int round = 0; round < 40; ++round) {
    const Problem problem = testing::RandomProblem(random);
    for (const char* name : kAll) {
      const Grouping grouping = catalog.Make(name, problem, {});
      size_t count = 0;
      OpId before{-1};
      for (const GroupId group : grouping.groups()) {
        ASSERT_FALSE(grouping.ops_of(group).empty());
        ASSERT_TRUE(std::ranges::is_sorted(grouping.ops_of(group)));
        ASSERT_LT(before, grouping.ops_of(group).front());
        before = grouping.ops_of(group).front();
        for (const OpId op : grouping.ops_of(group)) ASSERT_EQ(grouping.group_of(op), group);
        count += grouping.ops_of(group).size();
      }
      ASSERT_EQ(count, problem.num_ops());
    }
  }
}

TEST(Grouping, ColocationByTheCodeHasAGroupPerOpThatDoesNotHaveExactlyOneProducer) {
  Random random(2);
  for (int round = 0; round < 60; ++round) {
    const Problem problem = testing::RandomProblem(random);
    size_t count = 0;
    for (const auto& producers : Producers(problem.graph())) count += producers.size() != 1 ? 1 : 0;
    EXPECT_EQ(Groupings().Make("colocation(rule=code)", problem, {}).num_groups(), count);
  }
}

TEST(Grouping, ColocationByThePaperJoinsOnlyChildrenWithOnlyParents) {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    const Problem problem = testing::RandomProblem(random);
    const auto producers = Producers(problem.graph());
    std::vector<std::set<OpId>> consumers(problem.num_ops());
    for (const OpId op : problem.graph().ops()) {
      for (const OpId producer : producers[Index(op)]) consumers[Index(producer)].insert(op);
    }
    const Grouping grouping = Groupings().Make("colocation", problem, {});
    const Grouping chains = Groupings().Make("chain(most=3)", problem, {});
    size_t links = 0;
    for (const OpId op : problem.graph().ops()) {
      for (const OpId producer : producers[Index(op)]) {
        const bool link = producers[Index(op)].size() == 1 && consumers[Index(producer)].size() == 1;
        EXPECT_EQ(grouping.group_of(op) == grouping.group_of(producer), link);
        links += link ? 1 : 0;
      }
    }
    EXPECT_EQ(grouping.num_groups(), problem.num_ops() - links);
    EXPECT_TRUE(MakeQuotient(problem, grouping).acyclic);
    for (const GroupId group : chains.groups()) EXPECT_LE(chains.ops_of(group).size(), 3u);
  }
}

TEST(Grouping, FusionPutsElementwiseOpsBehindWhatFeedsThemAlone) {
  GraphBuilder builder("fusion");
  const auto add = [&](OpClass op_class, std::initializer_list<size_t> inputs) {
    const size_t op = builder.AddOp("", "Op", {.op_class = op_class});
    builder.AddTensor(op, 8);
    for (const size_t input : inputs) builder.Consume(input, op);
  };
  add(OpClass::kConv, {});             // 0
  add(OpClass::kElementwise, {0});     // 1 bias
  add(OpClass::kNormalization, {1});   // 2
  add(OpClass::kConv, {2});            // 3: 2 has two consumers
  add(OpClass::kElementwise, {2, 3});  // 4 residual joins 3
  add(OpClass::kDataMovement, {4});    // 5
  const Problem problem = testing::UnitProblem(builder.Build(), 2);
  const Grouping grouping = Groupings().Make("fusion", problem, {});
  std::vector<int32_t> group;
  for (const OpId op : problem.graph().ops()) group.push_back(static_cast<int32_t>(grouping.group_of(op)));
  EXPECT_EQ(group, (std::vector<int32_t>{0, 0, 0, 1, 1, 2}));
}

// The same rule, slowly: the heaviest edge of the quotient whose contraction leaves it acyclic, again and again.
Grouping MergeSlowly(const Problem& problem, size_t size) {
  std::vector<int32_t> label;
  for (const OpId op : problem.graph().ops()) label.push_back(static_cast<int32_t>(op));
  while (true) {
    const Grouping grouping(problem.graph(), label);
    if (grouping.num_groups() <= size) return grouping;
    // A label is the group's number in the fast version: that of the producer's side survives.
    std::map<std::pair<int32_t, int32_t>, int64_t> weight;
    for (const TensorId tensor : problem.graph().tensors()) {
      for (const OpId consumer : problem.graph().consumers(tensor)) {
        const int32_t from = label[Index(problem.graph().producer(tensor))], to = label[Index(consumer)];
        if (from != to) weight[{from, to}] += problem.graph().tensor_bytes(tensor);
      }
    }
    std::vector<std::tuple<int64_t, int32_t, int32_t>> edges;
    for (const auto& [ends, bytes] : weight) edges.emplace_back(-bytes, ends.first, ends.second);
    std::ranges::sort(edges);
    bool contracted = false;
    for (const auto& [bytes, from, to] : edges) {
      std::vector<int32_t> joined = label;
      std::ranges::replace(joined, to, from);
      if (!MakeQuotient(problem, Grouping(problem.graph(), joined)).acyclic) continue;
      label = joined;
      contracted = true;
      break;
    }
    if (!contracted) return grouping;  // only groups without edges are left
  }
}

TEST(Grouping, MergeContractsTheHeaviestEdgeThatLeavesNoCycle) {
  Random random(4);
  for (int round = 0; round < 60; ++round) {
    const Problem problem = testing::RandomProblem(random, {.ops = 30});
    const size_t size = 4 + random.Below(20);
    const Grouping slow = MergeSlowly(problem, size);
    const Grouping fast = Groupings().Make(fmt::format("merge(size={})", size), problem, {});
    EXPECT_EQ(fast.num_groups(), size);
    EXPECT_TRUE(MakeQuotient(problem, fast).acyclic);
    if (slow.num_groups() > size) continue;
    for (const OpId op : problem.graph().ops()) ASSERT_EQ(fast.group_of(op), slow.group_of(op)) << round;
  }
}

TEST(Grouping, AMergeWhoseTimeIsOverMakesAsManyGroupsTheQuickWay) {
  Random random(12);
  for (int round = 0; round < 40; ++round) {
    const Problem problem = testing::RandomProblem(random, {.ops = 200});
    int asked = 0;
    const int allowed = round % 4;
    const Grouping grouping = Groupings().Make("merge(size=12)", problem, [&] { return asked++ >= allowed; });
    EXPECT_LE(grouping.num_groups(), 12U);
    EXPECT_GT(grouping.num_groups(), 1U);
    EXPECT_TRUE(MakeQuotient(problem, grouping).acyclic);
  }
}

TEST(Grouping, MergeWithABalanceMakesNoGroupOfMostOfTheWork) {
  // A chain whose tensors shrink: merged by bytes alone, its first ops swallow one after another.
  GraphBuilder builder("funnel");
  for (size_t v = 0; v < 64; ++v) {
    builder.AddOp("op" + std::to_string(v), "Unit", {});
    builder.AddTensor(v, static_cast<int64_t>(1000 - v), {}, v == 63);
    if (v > 0) builder.Consume(v - 1, v);
  }
  const Problem problem = testing::UnitProblem(builder.Build(), 2);
  const auto largest = [&](const char* name) {
    const Grouping grouping = Groupings().Make(name, problem, {});
    EXPECT_EQ(grouping.num_groups(), 8U) << name;
    EXPECT_TRUE(MakeQuotient(problem, grouping).acyclic);
    size_t ops = 0;
    for (const GroupId group : grouping.groups()) ops = std::max(ops, grouping.ops_of(group).size());
    return ops;
  };
  EXPECT_EQ(largest("merge(size=8)"), 57U);
  EXPECT_EQ(largest("merge(size=8,balance=1)"), 8U);
  EXPECT_EQ(largest("merge(size=8,balance=2)"), 16U);
}

// a -> b -> c forward; each has a backward op that needs what it made, and must be with it.
TEST(Grouping, GroupsTheForwardOpsOfATrainingGraphAndItsBackwardOpsFollow) {
  GraphBuilder builder("training");
  for (const char* name : {"a", "b", "c", "grad/c", "grad/b", "grad/a"}) builder.AddOp(name, "Unit", {});
  for (size_t v = 0; v < 6; ++v) {
    builder.AddTensor(v, 1, {}, v == 5);
    if (v > 0) builder.Consume(v - 1, v);
    if (v >= 3) builder.MarkBackward(v);
    if (v >= 4) builder.Consume(5 - v, v);
  }
  Problem::Options options;
  options.constraints.colocate = {{OpId{0}, OpId{5}}, {OpId{1}, OpId{4}}, {OpId{2}, OpId{3}}};
  const Problem problem = testing::UnitProblem(builder.Build(), 2, std::move(options));
  for (const char* name : {"colocation", "chain", "merge(size=1)"}) {
    const Grouping grouping = Groupings().Make(name, problem, {});
    EXPECT_EQ(std::vector<OpId>(grouping.ops_of(GroupId{0}).begin(), grouping.ops_of(GroupId{0}).end()),
              (std::vector<OpId>{OpId{0}, OpId{1}, OpId{2}}))
        << name;
    EXPECT_EQ(grouping.num_groups(), 4U) << name << ": backward ops follow by the constraint";
    size_t dropped = 0;
    EXPECT_EQ(ColocatedOps(Grouped(problem, grouping, dropped)).num_groups(), 1U) << name;
  }
  // Backward ops that nothing ties to a forward op are ops like others.
  const Problem untied = testing::UnitProblem(Graph(problem.graph()), 2);
  EXPECT_EQ(Groupings().Make("merge(size=1)", untied, {}).num_groups(), 1U);
}

TEST(Grouping, AQuotientAddsUpWhatItsGroupsHave) {
  Random random(5);
  for (int round = 0; round < 30; ++round) {
    const Problem problem = testing::RandomProblem(random, {.ops = 25, .devices = 3});
    const Graph& graph = problem.graph();
    const Grouping grouping = Groupings().Make("colocation(rule=code)", problem, {});
    const Quotient quotient = MakeQuotient(problem, grouping);
    double in_groups = 0, in_ops = 0;
    for (const double time : quotient.time) in_groups += time;
    for (const OpId op : graph.ops()) {
      for (const double time : problem.op_times(op)) in_ops += time;
    }
    EXPECT_NEAR(in_groups, in_ops, 1e-9);
    for (const Quotient::Edge& edge : quotient.edges) {
      EXPECT_NE(edge.from, edge.to);
      int64_t bytes = 0;
      for (const TensorId tensor : graph.tensors()) {
        const bool goes =
            std::ranges::any_of(graph.consumers(tensor), [&](OpId c) { return grouping.group_of(c) == edge.to; });
        if (goes && grouping.group_of(graph.producer(tensor)) == edge.from) bytes += graph.tensor_bytes(tensor);
      }
      EXPECT_EQ(edge.bytes, bytes);
    }
  }
}

TEST(Grouping, JoinsWhatTheProblemKeepsTogether) {
  // 0 and 3, 3 and 5: three ops that share a device, through two constraints.
  const Problem problem = testing::Chain(7, 2).With({.colocate = {{OpId{0}, OpId{3}}, {OpId{5}, OpId{3}}}});
  const Grouping alone = ColocatedOps(problem);
  EXPECT_EQ(alone.num_groups(), 5U);
  EXPECT_THAT(alone.ops_of(GroupId{0}), ::testing::ElementsAre(OpId{0}, OpId{3}, OpId{5}));
  const Grouping more = JoinColocated(problem, {9, 9, 4, 7, 4, 1, -2});
  EXPECT_EQ(more.num_groups(), 3U);
  EXPECT_THAT(more.ops_of(GroupId{0}), ::testing::ElementsAre(OpId{0}, OpId{1}, OpId{3}, OpId{5}));
  EXPECT_THAT(more.ops_of(GroupId{1}), ::testing::ElementsAre(OpId{2}, OpId{4}));
}

TEST(Grouping, SortsGroupsTopologicallyAndThoseOnACycleToo) {
  Random random(8);
  for (int round = 0; round < 50; ++round) {
    const Problem problem = testing::RandomProblem(random, {.devices = 2});
    std::vector<int32_t> label;
    const size_t groups = 1 + random.Below(problem.num_ops());
    for (size_t v = 0; v < problem.num_ops(); ++v) label.push_back(static_cast<int32_t>(random.Below(groups)));
    const Grouping grouping(problem.graph(), label);
    const Quotient quotient = MakeQuotient(problem, grouping);
    const std::vector<GroupId> order = TopologicalOrder(quotient);
    EXPECT_EQ(std::set<GroupId>(order.begin(), order.end()).size(), grouping.num_groups());
    EXPECT_EQ(order.size(), grouping.num_groups());
    if (!quotient.acyclic) continue;
    std::vector<size_t> place(order.size());
    for (size_t i = 0; i < order.size(); ++i) place[Index(order[i])] = i;
    for (const Quotient::Edge& edge : quotient.edges) EXPECT_LT(place[Index(edge.from)], place[Index(edge.to)]);
  }
  const Quotient cycle =
      MakeQuotient(testing::Chain(4, 2), Grouping(testing::Chain(4, 2).graph(), std::vector<int32_t>{0, 1, 0, 1}));
  EXPECT_FALSE(cycle.acyclic);
  EXPECT_THAT(TopologicalOrder(cycle), ::testing::ElementsAre(GroupId{0}, GroupId{1}));
}

// The first op is on d0, the third on d1, and the first tensor may not be sent: the second is on d0, too, and not in
// one group with the third. What comes after them may be in groups.
TEST(Grouping, AGroupThatContradictsOnlyByOtherConstraintsLeavesTheOthersMade) {
  const Problem chain = testing::Chain(9, 2);
  std::vector<int32_t> label(9);
  for (int32_t op = 0; op < 9; ++op) label[static_cast<size_t>(op)] = (op + 1) / 2;  // 0, 1 2, 3 4, 5 6, 7 8
  OpTimes times{.time = std::vector<double>(18, 1), .source = "unit"};
  times.time[1] = times.time[4] = kCannotRun;
  const Problem problem(std::make_shared<const Graph>(chain.graph()), chain.shared_cluster(), std::move(times),
                        {.constraints = {.forbidden_transfers = {{TensorId{0}, DeviceId{0}, DeviceId{1}}}}});
  size_t dropped = 0;
  const Problem grouped = Grouped(problem, Grouping(problem.graph(), label), dropped);
  EXPECT_EQ(dropped, 1u);
  EXPECT_EQ(grouped.constraints().colocate.size(), 3u);
}

TEST(Grouping, AGroupedProblemDemandsWhatTheGroupsSayAndKeepsItsOwnConstraints) {
  Random random(6);
  for (int round = 0; round < 60; ++round) {
    const Problem plain = testing::RandomProblem(random, {.ops = 30, .devices = 3, .forbidden = 0.2});
    const Problem problem =
        plain.With({.colocate = {{OpId{1}, OpId{4}}}, .separate = {{OpId{2}, OpId{9}}, {OpId{3}, OpId{7}}}});
    const Grouping grouping = Groupings().Make("merge(size=6)", problem, {});
    size_t dropped = 0;
    const Problem grouped = Grouped(problem, grouping, dropped);
    EXPECT_EQ(grouped.constraints().separate, problem.constraints().separate);
    std::set<OpId> seen;
    for (const std::vector<OpId>& group : grouped.constraints().colocate) {
      for (const OpId op : group) EXPECT_TRUE(seen.insert(op).second) << "groups overlap";
      EXPECT_TRUE(std::ranges::any_of(problem.cluster().ids(), [&](DeviceId device) {
        return std::ranges::all_of(group, [&](OpId op) { return problem.can_run(op, device); });
      }));
      for (const auto& [a, b] : problem.constraints().separate) {
        EXPECT_FALSE(std::ranges::count(group, a) > 0 && std::ranges::count(group, b) > 0);
      }
    }
    const auto together = std::ranges::find_if(
        grouped.constraints().colocate, [](const auto& group) { return std::ranges::count(group, OpId{1}) > 0; });
    ASSERT_NE(together, grouped.constraints().colocate.end());
    EXPECT_EQ(std::ranges::count(*together, OpId{4}), 1);
  }
}

}  // namespace
}  // namespace berth
