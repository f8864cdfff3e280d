#include "placement/bound_window.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "placement/testing.h"

namespace berth {
namespace {

// Straight from the definition.
double SlowWindowBound(const Problem& problem, const Windows& windows, std::span<const double> weight) {
  double bound = 0;
  for (const double h : windows.head) {
    for (const double t : windows.tail) {
      double sum = 0;
      int count = 0;
      for (const OpId op : problem.graph().ops()) {
        if (windows.head[Index(op)] < h || windows.tail[Index(op)] < t) continue;
        double least = kCannotRun;
        for (size_t p = 0; p < weight.size(); ++p) {
          least = std::min(least, weight[p] * problem.op_time(op, MakeId<DeviceId>(p)));
        }
        sum += least;
        ++count;
      }
      if (count > 0) bound = std::max(bound, h + t + sum);
    }
  }
  return bound;
}

TEST(WindowBound, IsTheLargestOverAllWindows) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const Problem problem = testing::RandomProblem(random, {});
    Windows windows;
    for (size_t v = 0; v < problem.num_ops(); ++v) {
      // Many are equal.
      windows.head.push_back(static_cast<double>(random.Below(8)) / 2);
      windows.tail.push_back(round % 2 == 0 ? random.Uniform(0, 3) : static_cast<double>(random.Below(3)));
    }
    const std::vector<double> weight(problem.num_devices(), 1 / static_cast<double>(problem.num_devices()));
    const double expected = SlowWindowBound(problem, windows, weight);
    EXPECT_NEAR(WindowBound(problem, windows, weight), expected, 1e-12 * expected);
  }
}

// `width` ops side by side, one that needs them all, and as many that need that one.
Problem Hourglass(size_t width, size_t devices) {
  GraphBuilder builder("hourglass");
  const size_t ops = 2 * width + 1;
  for (size_t v = 0; v < ops; ++v) {
    builder.AddOp("", "Unit", {});
    builder.AddTensor(v, 0);
  }
  for (size_t v = 0; v < width; ++v) {
    builder.Consume(v, width);
    builder.Consume(width, width + 1 + v);
  }
  return Problem(std::make_shared<const Graph>(builder.Build()),
                 std::make_shared<const Cluster>(testing::UniformCluster(devices)),
                 {.time = std::vector<double>(ops * devices, 1), .source = "test"});
}

TEST(RaiseWindows, AddsUpWhatComesBeforeAndAfterAnOpThatStandsAlone) {
  const Problem problem = Hourglass(8, 4);
  Windows windows{.head = std::vector<double>(17, 0), .tail = std::vector<double>(17, 0)};
  const std::vector<double> weight(4, 0.25);
  RaiseWindows(problem, weight, 5, windows);
  EXPECT_EQ(windows.head[8], 2);
  EXPECT_EQ(windows.tail[8], 2);
  EXPECT_EQ(windows.head[0], 0);
  EXPECT_EQ(windows.head[16], 3);
  EXPECT_EQ(windows.tail[0], 3);
  EXPECT_EQ(WindowBound(problem, windows, weight), 5);  // two, one, two; the longest path is 3, the work 17 / 4
}

TEST(GroupBound, IsTheGroupWithWhatComesBeforeAndAfter) {
  // Of a chain of six the second and the fourth share a device: no more than the chain; of ops side by side, their sum.
  const Problem chain = testing::Chain(6, 2).With({.colocate = {{OpId{1}, OpId{3}}}});
  const Windows windows{.head = {0, 1, 2, 3, 4, 5}, .tail = {5, 4, 3, 2, 1, 0}};
  EXPECT_EQ(GroupBound(chain, windows), 1 + 2 + 2);
  GraphBuilder builder("independent");
  for (int v = 0; v < 6; ++v) builder.AddOp("", "Unit", {});
  const Problem apart =
      testing::UnitProblem(builder.Build(), 6).With({.colocate = {{OpId{1}, OpId{3}, OpId{4}, OpId{5}}}});
  EXPECT_EQ(GroupBound(apart, {.head = std::vector<double>(6, 0), .tail = std::vector<double>(6, 0.5)}), 4.5);
}

}  // namespace
}  // namespace berth
