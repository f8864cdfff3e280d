#include "learn/coarse_transfers.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "placement/testing.h"

namespace berth {
namespace {

// The same ops on the same devices, with times of transfers as a data set gives them.
Problem WithGivenTransfers(const Problem& problem, Random& random) {
  OpTimes times{.time = {}, .source = "given"};
  for (const OpId op : problem.graph().ops()) {
    for (const double time : problem.op_times(op)) times.time.push_back(time);
  }
  Problem::Options options;
  const size_t devices = problem.num_devices();
  for (size_t i = 0; i < problem.graph().num_tensors() * devices * devices; ++i) {
    options.explicit_transfers.push_back(random.Uniform());
  }
  return Problem(std::make_shared<const Graph>(problem.graph()), problem.shared_cluster(), std::move(times),
                 std::move(options));
}

// The tensors that leave a node, or go to `to` only; all of them looked at anew.
std::set<TensorId> Leaving(const Graph& ops, const Grouping& grouping, GroupId from, std::optional<GroupId> to) {
  std::set<TensorId> leaving;
  for (const TensorId tensor : ops.tensors()) {
    if (grouping.group_of(ops.producer(tensor)) != from) continue;
    for (const OpId consumer : ops.consumers(tensor)) {
      const GroupId reader = grouping.group_of(consumer);
      if (reader != from && (!to || reader == *to)) leaving.insert(tensor);
    }
  }
  return leaving;
}

double SlowTime(const Problem& problem, const std::set<TensorId>& tensors, DeviceId p, DeviceId q, bool empty_message) {
  double given = 0;
  int64_t bytes = 0;
  bool any = empty_message;
  for (const TensorId tensor : tensors) {
    if (problem.has_explicit_transfers()) given += problem.transfer_time(tensor, p, q);
    if (problem.graph().is_constant(tensor)) continue;
    bytes += problem.graph().tensor_bytes(tensor);
    any = true;
  }
  if (problem.has_explicit_transfers()) return given;
  return any ? problem.transfer_time(bytes, p, q) : 0;
}

void ExpectAsSlow(const Problem& problem, const CoarseGraph& graph) {
  const CoarseTransfers transfers(problem, graph);
  const auto mean = [&](const auto& time) {
    double sum = 0, pairs = 0;
    for (const DeviceId p : problem.cluster().ids()) {
      for (const DeviceId q : problem.cluster().ids()) {
        if (p != q) sum += time(p, q), ++pairs;
      }
    }
    return pairs > 0 ? sum / pairs : 0;
  };
  for (const GroupId node : graph.grouping.groups()) {
    const auto leaving = Leaving(problem.graph(), graph.grouping, node, {});
    const auto slow = [&](DeviceId p, DeviceId q) { return SlowTime(problem, leaving, p, q, true); };
    EXPECT_NEAR(transfers.MeanOfNode(Index(node)), mean(slow), 1e-9 * (1 + mean(slow)));
    mean([&](DeviceId p, DeviceId q) {
      EXPECT_NEAR(transfers.OfNode(Index(node), p, q), slow(p, q), 1e-9 * (1 + slow(p, q)));
      return 0;
    });
  }
  for (size_t edge = 0; edge < graph.quotient.edges.size(); ++edge) {
    const Quotient::Edge& ends = graph.quotient.edges[edge];
    const auto along = Leaving(problem.graph(), graph.grouping, ends.from, ends.to);
    const double slow = mean([&](DeviceId p, DeviceId q) { return SlowTime(problem, along, p, q, false); });
    EXPECT_NEAR(transfers.MeanOfEdge(edge), slow, 1e-9 * (1 + slow));
  }
}

TEST(CoarseTransfers, AreOfTensorsThatAreSentAndAsTheDataSetGivesThem) {
  Random random(5);
  for (int round = 0; round < 30; ++round) {
    const Problem problem =
        testing::RandomProblem(random, {.ops = 14, .devices = 1 + random.Below(4), .constants = 0.4});
    for (const char* rule : {"none", "paper", "layers"}) {
      const CoarseGraph graph = MakeCoarseGraph(problem, rule);
      ExpectAsSlow(problem, graph);
      ExpectAsSlow(WithGivenTransfers(problem, random), graph);
    }
  }
}

}  // namespace
}  // namespace berth
