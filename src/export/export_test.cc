#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "export/graphviz.h"
#include "export/picture.h"
#include "export/trace.h"
#include "placement/testing.h"

namespace berth {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

Plan Alternating(const Problem& problem) {
  Plan plan;
  for (size_t i = 0; i < problem.num_ops(); ++i) plan.device.push_back(MakeId<DeviceId>(i % problem.num_devices()));
  return plan;
}

// Everything one after another, each tensor sent when its op has ended, as often as is asked.
Timeline OneAfterAnother(const Problem& problem, const Plan& plan) {
  const Graph& graph = problem.graph();
  Timeline timeline;
  double now = 0;
  for (const OpId op : graph.ops()) {
    const DeviceId device = plan.device[Index(op)];
    timeline.ops.push_back({.device = device, .start = now, .end = now + problem.op_time(op, device)});
    now = timeline.ops.back().end;
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      std::set<DeviceId> destinations;
      for (const OpId consumer : graph.consumers(MakeId<TensorId>(t)))
        destinations.insert(plan.device[Index(consumer)]);
      destinations.erase(device);
      for (const DeviceId to : destinations) {
        const double length = problem.transfer_time(MakeId<TensorId>(t), device, to);
        timeline.transfers.push_back(
            {.tensor = MakeId<TensorId>(t), .from = device, .to = to, .start = now, .end = now + length});
      }
    }
  }
  timeline.score.time = now;
  timeline.memory.resize(problem.num_devices());
  timeline.memory[0].steps = {{.time = 0, .bytes = 10}, {.time = now, .bytes = 0}};
  return timeline;
}

TEST(Trace, EveryTrackIsNamedAndNoSlicesOverlapOnIt) {
  Random random(5);
  for (int i = 0; i < 30; ++i) {
    const Problem problem = testing::RandomProblem(random);
    const Plan plan{.device = testing::RandomPlacement(problem, random)};
    const Timeline timeline = OneAfterAnother(problem, plan);
    const json trace = json::parse(WriteTrace(problem, timeline));
    std::set<std::pair<int, int>> named;
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> slices;
    for (const json& event : trace["traceEvents"]) {
      const std::string phase = event["ph"];
      if (phase == "M" && event["name"] == "thread_name") named.emplace(event["pid"], event["tid"]);
      if (phase == "X") {
        const double start = event["ts"], length = event["dur"];
        EXPECT_GE(length, 0);
        slices[{event["pid"], event["tid"]}].emplace_back(start, start + length);
      }
      if (phase == "C") {
        EXPECT_TRUE(event["args"]["bytes"].is_number());
      }
    }
    size_t count = 0;
    for (auto& [track, list] : slices) {
      EXPECT_TRUE(named.contains(track));
      std::sort(list.begin(), list.end());
      for (size_t s = 1; s < list.size(); ++s) EXPECT_LE(list[s - 1].second, list[s].first + 1e-6);
      count += list.size();
    }
    EXPECT_EQ(count, timeline.ops.size() + timeline.transfers.size());
  }
}

TEST(Trace, ShowsOnlyLinksThatAreUsed) {
  const Problem problem = testing::Chain(3, 3);
  const Plan plan{.device = {DeviceId{0}, DeviceId{2}, DeviceId{2}}};
  const std::string trace = WriteTrace(problem, OneAfterAnother(problem, plan));
  EXPECT_THAT(trace, HasSubstr("d0 → d2"));
  EXPECT_THAT(trace, Not(HasSubstr("→ d1")));
  EXPECT_THAT(trace, HasSubstr(R"("name":"memory d0")"));
  EXPECT_THAT(trace, HasSubstr(R"("ts":1000000.000,"dur":1000000.000,"name":"op1")"));
}

TEST(Picture, HasABoxPerOpAndFoldsLargeGraphs) {
  const Problem small = testing::Chain(300, 2);
  const std::string dot = PictureDot(small, Alternating(small), OneAfterAnother(small, Alternating(small)));
  EXPECT_THAT(dot, HasSubstr("n299 ["));
  const Problem large = testing::Chain(301, 2);
  Plan halves{.device = std::vector<DeviceId>(301)};
  for (size_t i = 150; i < 301; ++i) halves.device[i] = DeviceId{1};
  const std::string folded = PictureDot(large, halves, OneAfterAnother(large, halves));
  EXPECT_THAT(folded, HasSubstr("150 ops"));
  EXPECT_THAT(folded, HasSubstr("n0 -> n1 "));
  EXPECT_THAT(folded, Not(HasSubstr("n2 [")));
}

TEST(Picture, FoldsFurtherWhenGroupsAreTooMany) {
  const Problem problem = testing::Chain(5000, 2);
  const Plan plan = Alternating(problem);
  const std::string dot = PictureDot(problem, plan, OneAfterAnother(problem, plan));
  EXPECT_THAT(dot, HasSubstr("n149 ["));
  EXPECT_THAT(dot, Not(HasSubstr("n300 [")));
}

TEST(Picture, NamesCannotBreakTheDrawing) {
  GraphBuilder builder("a\"b\\");
  builder.AddOp("x\"];\n evil\\", "T\xff<&>", {});
  const Problem problem = testing::UnitProblem(builder.Build(), 1);
  const Plan plan{.device = {DeviceId{0}}};
  const std::string svg = DotToSvg(PictureDot(problem, plan, OneAfterAnother(problem, plan)));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
  EXPECT_THAT(svg, HasSubstr("T?&lt;&amp;&gt;"));
}

TEST(Graphviz, SaysHowToMendWhatIsMissingOrFails) {
  EXPECT_THAT([] { DotToSvg("digraph {}", "berth-has-no-such-program"); },
              ::testing::ThrowsMessage<Error>(HasSubstr("install graphviz")));
  EXPECT_THAT([] { DotToSvg("digraph {"); }, ::testing::ThrowsMessage<Error>(HasSubstr("failed")));
}

}  // namespace
}  // namespace berth
