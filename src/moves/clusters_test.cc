#include "moves/clusters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "moves/rank.h"
#include "placement/testing.h"

namespace berth {
namespace {

// The rule of the header, each pair looked at anew before each step.
std::vector<std::vector<size_t>> SlowClusters(const Units& units, double least_ratio, double most_work) {
  const Problem& problem = units.problem();
  const Graph& graph = problem.graph();
  const MeanTransfer transfer(problem);
  std::vector<size_t> label(units.size());
  std::iota(label.begin(), label.end(), size_t{0});
  // Ties add up from those of units, as in the quick way, so that equal sums are equal.
  std::map<std::pair<size_t, size_t>, double> tie;
  for (const TensorId tensor : graph.tensors()) {
    std::set<size_t> others;
    const size_t from = units.unit_of(graph.producer(tensor));
    for (const OpId op : graph.consumers(tensor)) others.insert(units.unit_of(op));
    others.erase(from);
    for (const size_t to : others) tie[{std::min(from, to), std::max(from, to)}] += transfer(tensor);
  }
  std::vector<double> work(units.size());
  for (size_t unit = 0; unit < units.size(); ++unit) work[unit] = units.time(unit, units.fastest(unit));
  for (;;) {
    std::tuple<double, size_t, size_t> best{0, 0, 0};
    for (const auto& [ends, time] : tie) {
      const auto& [a, b] = ends;
      const double least = std::min(work[a], work[b]);
      const double ratio = least > 0 ? time / least : time > 0 ? std::numeric_limits<double>::infinity() : 0;
      if (ratio < least_ratio || ratio == 0 || work[a] + work[b] > most_work) continue;
      if (ratio > std::get<0>(best)) best = {ratio, a, b};
    }
    const auto [ratio, a, b] = best;
    if (ratio == 0) break;
    for (size_t& each : label) each = each == b ? a : each;
    work[a] += work[b];
    std::map<std::pair<size_t, size_t>, double> joined;
    for (const auto& [ends, time] : tie) {
      const size_t x = ends.first == b ? a : ends.first, y = ends.second == b ? a : ends.second;
      if (x != y) joined[{std::min(x, y), std::max(x, y)}] += time;
    }
    tie = std::move(joined);
  }
  std::map<size_t, std::vector<size_t>> members;
  for (size_t unit = 0; unit < units.size(); ++unit) members[label[unit]].push_back(unit);
  std::vector<std::vector<size_t>> clusters;
  for (auto& [root, each] : members) clusters.push_back(std::move(each));
  std::ranges::sort(clusters);
  return clusters;
}

TEST(Clusters, AreThoseOfTheSlowWay) {
  Random random(1);
  for (int round = 0; round < 150; ++round) {
    // No two ratios are equal here, so that there is only one answer: each tensor has one consumer.
    GraphBuilder builder("random");
    for (size_t op = 0; op < 4 + static_cast<size_t>(round) % 20; ++op) {
      builder.AddOp("", "Op", {.flops = random.Uniform(0.1, 1)});
      for (size_t edges = random.Below(4); op > 0 && edges > 0; --edges) {
        const size_t tensor = builder.AddTensor(random.Below(op), static_cast<int64_t>(random.Below(1'000'000)));
        builder.Consume(tensor, op);
      }
    }
    Graph graph = builder.Build();
    OpTimes times{.time = {}, .source = "random"};
    for (const OpId op : graph.ops()) {
      times.time.push_back(graph.work(op).flops);
      times.time.push_back(graph.work(op).flops * random.Uniform(0.5, 2));
    }
    const Problem problem(std::make_shared<const Graph>(std::move(graph)),
                          std::make_shared<const Cluster>(testing::UniformCluster(2, 0.1, 500'000)), std::move(times));
    const Units units(problem);
    double whole = 0;
    for (size_t unit = 0; unit < units.size(); ++unit) whole += units.time(unit, units.fastest(unit));
    const double ratio = random.Uniform(0.1, 3), most = whole * random.Uniform(0.2, 1);
    const Clusters clusters(units, ratio, most);
    std::vector<std::vector<size_t>> found;
    for (size_t c = 0; c < clusters.size(); ++c) {
      found.emplace_back(clusters.units_of(c).begin(), clusters.units_of(c).end());
    }
    std::ranges::sort(found);
    ASSERT_EQ(found, SlowClusters(units, ratio, most)) << round;
  }
}

TEST(Clusters, KnowTheirWorkTheirTiesAndTheirBytes) {
  Random random(2);
  for (int round = 0; round < 40; ++round) {
    const Problem problem = testing::RandomProblem(random);
    const Units units(problem);
    const Clusters clusters(units, 0.5, 1e9);
    std::vector<double> time(clusters.size() * problem.num_devices(), 0);
    for (const OpId op : problem.graph().ops()) {
      for (const DeviceId device : problem.cluster().ids()) {
        time[clusters.cluster_of(op) * problem.num_devices() + Index(device)] += problem.op_time(op, device);
      }
    }
    for (size_t c = 0; c < clusters.size(); ++c) {
      for (const DeviceId device : problem.cluster().ids()) {
        EXPECT_DOUBLE_EQ(clusters.time(c, device), time[c * problem.num_devices() + Index(device)]);
      }
      for (const Clusters::Tie& tie : clusters.ties(c)) {
        const auto back = clusters.ties(tie.cluster);
        EXPECT_TRUE(std::ranges::any_of(
            back, [&](const Clusters::Tie& other) { return other.cluster == c && other.time == tie.time; }));
      }
    }
  }
}

}  // namespace
}  // namespace berth
