#include "plan/op_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "placement/testing.h"

namespace berth {
namespace {

// By definition, one op at a time: all that the op depends on, or that depends on it, however far.
std::set<OpId> Reached(const Graph& graph, OpId from, bool back) {
  std::set<OpId> reached = {from};
  for (bool grew = true; grew;) {
    grew = false;
    for (const TensorId tensor : graph.tensors()) {
      for (const OpId consumer : graph.consumers(tensor)) {
        const OpId near = back ? consumer : graph.producer(tensor), far = back ? graph.producer(tensor) : consumer;
        if (reached.contains(near)) grew |= reached.insert(far).second;
      }
    }
  }
  return reached;
}

std::vector<OpId> MovedSlowly(const Graph& graph, std::vector<OpId> order, OpId op, size_t to) {
  const auto from = static_cast<size_t>(std::ranges::find(order, op) - order.begin());
  const bool earlier = to < from;
  const std::set<OpId> reached = Reached(graph, op, earlier);
  const auto first = order.begin() + static_cast<ptrdiff_t>(std::min(from, to));
  const auto last = order.begin() + static_cast<ptrdiff_t>(std::max(from, to)) + 1;
  std::stable_partition(first, last, [&](OpId other) { return reached.contains(other) == earlier; });
  return order;
}

bool IsTopological(const Graph& graph, const OpOrder& order) {
  std::vector<OpId> sorted = order.ops();
  std::ranges::sort(sorted);
  const bool all = std::ranges::equal(sorted, graph.ops());
  return all && std::ranges::all_of(graph.tensors(), [&](TensorId tensor) {
           return std::ranges::all_of(graph.consumers(tensor), [&](OpId consumer) {
             return order.position(graph.producer(tensor)) < order.position(consumer);
           });
         });
}

TEST(OpOrder, MovesAnOpWithAllThatItDependsOn) {
  Random random(3);
  for (int i = 0; i < 20; ++i) {
    const Problem problem = testing::RandomProblem(random, {.ops = 25, .devices = 2});
    const Graph& graph = problem.graph();
    OpOrder order(graph, std::vector<double>(graph.num_ops(), 0));
    for (int k = 0; k < 40; ++k) {
      const auto op = MakeId<OpId>(random.Below(graph.num_ops()));
      const size_t to = random.Below(graph.num_ops());
      const std::vector<OpId> expected = MovedSlowly(graph, order.ops(), op, to);
      order.Move(op, to);
      ASSERT_EQ(order.ops(), expected);
      ASSERT_TRUE(IsTopological(graph, order));
    }
  }
}

TEST(OpOrder, TakesBackAllMovesSinceItWasKept) {
  Random random(4);
  const Problem problem = testing::RandomProblem(random, {.ops = 30, .devices = 2});
  const Graph& graph = problem.graph();
  OpOrder order(graph, std::vector<double>(graph.num_ops(), 0));
  for (int k = 0; k < 30; ++k) {
    const std::vector<OpId> before = order.ops();
    for (size_t moves = random.Below(4); moves > 0; --moves) {
      order.Move(MakeId<OpId>(random.Below(graph.num_ops())), random.Below(graph.num_ops()));
    }
    order.TakeBack();
    ASSERT_EQ(order.ops(), before);
    ASSERT_TRUE(IsTopological(graph, order));
    order.Move(MakeId<OpId>(random.Below(graph.num_ops())), random.Below(graph.num_ops()));
    order.Keep(std::vector<double>(graph.num_ops(), 0));
  }
}

}  // namespace
}  // namespace berth
