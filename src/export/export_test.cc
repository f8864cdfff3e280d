#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "export/graphviz.h"
#include "export/picture.h"
#include "export/trace.h"
#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::unique_ptr<const Evaluator> EvaluatorOf(const Problem& problem, const std::string& name) {
  EvaluatorCatalog catalog("evaluator");
  RegisterParallel(catalog);
  RegisterSerial(catalog);
  return catalog.Make(name, problem);
}

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

TEST(Trace, OfTwoTimelinesHasTheTracksOfEachUnderItsName) {
  Random random(6);
  const Problem problem = testing::RandomProblem(random, {.ops = 9, .devices = 2});
  const Plan plan{.device = testing::RandomPlacement(problem, random)};
  const Timeline timeline = OneAfterAnother(problem, plan);
  const std::array<NamedTimeline, 2> both = {NamedTimeline{"predicted", timeline}, NamedTimeline{"measured", timeline}};
  const json trace = json::parse(WriteTrace(problem, both));
  std::map<int, std::string> processes;
  std::map<int, size_t> slices;
  std::set<int> flows;
  size_t flow_starts = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
    if (event["ph"] == "X") ++slices[event["pid"]];
    if (event["ph"] == "s") flows.insert(event["id"].get<int>()), ++flow_starts;
  }
  EXPECT_THAT(processes[1], ::testing::EndsWith(", predicted"));
  EXPECT_THAT(processes[3], ::testing::EndsWith(", measured"));
  EXPECT_EQ(slices[1], timeline.ops.size());
  EXPECT_EQ(slices[3], timeline.ops.size());
  EXPECT_EQ(slices[2], timeline.transfers.size());
  EXPECT_EQ(slices[4], timeline.transfers.size());
  EXPECT_EQ(flows.size(), flow_starts) << "an arrow would join the two";
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

// (process, track) -> its slices, as (start, end).
using Slices = std::map<std::pair<int, int>, std::vector<std::pair<double, double>>>;

Slices SlicesOf(const json& trace) {
  Slices slices;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double start = event["ts"], length = event["dur"];
    slices[{event["pid"], event["tid"]}].emplace_back(start, start + length);
  }
  return slices;
}

// By id, the events of each flow in order.
std::map<int, std::vector<json>> FlowsOf(const json& trace) {
  std::map<int, std::vector<json>> flows;
  for (const json& event : trace["traceEvents"]) {
    const std::string phase = event["ph"];
    if (phase == "s" || phase == "t" || phase == "f") flows[event["id"]].push_back(event);
  }
  return flows;
}

TEST(Trace, EveryFlowLeadsFromSliceToSliceForwardInTime) {
  Random random(11);
  size_t count = 0;
  for (int i = 0; i < 40; ++i) {
    const Problem problem = testing::RandomProblem(random);
    const Plan plan{.device = testing::RandomPlacement(problem, random)};
    const auto evaluator =
        EvaluatorOf(problem, i % 2 == 0 ? "parallel(contention=ports,io=everywhere)" : "serial(io=everywhere)");
    const json trace = json::parse(WriteTrace(problem, evaluator->Trace(plan.view())));
    const Slices slices = SlicesOf(trace);
    for (const auto& [id, events] : FlowsOf(trace)) {
      ++count;
      ASSERT_GE(events.size(), 2u);
      EXPECT_EQ(events.front()["ph"], "s");
      EXPECT_EQ(events.back()["ph"], "f");
      EXPECT_EQ(events.back()["bp"], "e");
      double before = 0;
      for (const json& event : events) {
        EXPECT_EQ(event["name"], events.front()["name"]);
        const double at = event["ts"];
        EXPECT_GE(at, before);
        before = at;
        const auto& track = slices.at({event["pid"], event["tid"]});
        // Of slices that touch, the moment belongs to the later one.
        EXPECT_TRUE(std::ranges::any_of(track, [&](const auto& slice) {
          return slice.first <= at && (at < slice.second || slice.first == slice.second);
        })) << event;
      }
    }
  }
  EXPECT_GT(count, 100u);
}

TEST(Trace, AFlowLeadsFromTheProducerThroughTheTransferToEachReader) {
  // "maker" on d0 feeds two ops on d1 and one on its own device.
  GraphBuilder builder("fan");
  const size_t maker = builder.AddOp("maker", "Op", {});
  const size_t tensor = builder.AddTensor(maker, 10, "made");
  for (const char* name : {"far1", "far2", "near"}) builder.Consume(tensor, builder.AddOp(name, "Op", {}));
  const Problem problem = testing::UnitProblem(builder.Build(), 2);
  const Plan plan{.device = {DeviceId{0}, DeviceId{1}, DeviceId{1}, DeviceId{0}}};
  const Timeline timeline = EvaluatorOf(problem, "parallel(io=everywhere)")->Trace(plan.view());
  ASSERT_EQ(timeline.transfers.size(), 1u);
  const auto microseconds = [&](double units) { return problem.ToSeconds(units).value * 1e6; };
  const auto flows = FlowsOf(json::parse(WriteTrace(problem, timeline)));
  ASSERT_EQ(flows.size(), 2u);
  for (const auto& [id, events] : flows) {
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(events[0]["name"], "made");
    EXPECT_EQ(events[0]["tid"], 1);
    EXPECT_NEAR(events[0]["ts"].get<double>(), microseconds(timeline.ops[0].end), 0.0011);
    EXPECT_LT(events[0]["ts"].get<double>(), microseconds(timeline.ops[0].end));
    EXPECT_EQ(events[1]["ph"], "t");
    EXPECT_EQ(events[1]["pid"], 2);
    EXPECT_NEAR(events[1]["ts"].get<double>(), microseconds(timeline.transfers[0].start), 1e-9);
    EXPECT_EQ(events[2]["tid"], 2);
  }
  EXPECT_NEAR(flows.at(1)[2]["ts"].get<double>(), microseconds(timeline.ops[1].start), 1e-9);
  EXPECT_NEAR(flows.at(2)[2]["ts"].get<double>(), microseconds(timeline.ops[2].start), 1e-9);
}

// The text between `[` and `]` of each node whose name begins like this and a digit.
std::vector<std::string> Nodes(const std::string& dot, const std::string& prefix) {
  std::vector<std::string> nodes;
  std::istringstream lines(dot);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find_first_not_of(' ');
    if (at == line.npos || line.compare(at, prefix.size(), prefix) != 0 || line.find(" -> ") != line.npos) continue;
    if (const size_t open = line.find(" ["); open != line.npos && std::isdigit(line[at + prefix.size()]) != 0)
      nodes.push_back(line.substr(open));
  }
  return nodes;
}

std::string DotOf(const Problem& problem, const Plan& plan) {
  return PictureDot(problem, plan, OneAfterAnother(problem, plan));
}

// Width over height of an SVG.
double Aspect(const std::string& svg) {
  double width = 0, height = 0;
  const size_t at = svg.find("<svg width=");
  EXPECT_EQ(std::sscanf(svg.c_str() + at, "<svg width=\"%lfpt\" height=\"%lfpt\"", &width, &height), 2);
  return width / height;
}

TEST(Picture, HasABoxPerOpUpTo300) {
  const Problem small = testing::Chain(300, 2);
  EXPECT_EQ(Nodes(DotOf(small, Alternating(small)), "n").size(), 300u);
}

TEST(Picture, FoldsLargerGraphsAndSaysWhatABoxHolds) {
  const Problem large = testing::Chain(301, 2);
  Plan halves{.device = std::vector<DeviceId>(301)};
  for (size_t i = 150; i < 301; ++i) halves.device[i] = DeviceId{1};
  const std::vector<std::string> nodes = Nodes(DotOf(large, halves), "n");
  EXPECT_LE(nodes.size(), kFoldedBoxes);
  EXPECT_GT(nodes.size(), kFoldedBoxes / 2);
  size_t folded = 0;
  for (const std::string& node : nodes) {
    folded += node.find(" ops  ") != node.npos ? 1 : 0;
    EXPECT_THAT(node, Not(HasSubstr("striped")));  // each holds ops of one device
  }
  EXPECT_GT(folded, 100u);
}

TEST(Picture, ShowsBothDevicesOfABoxWhereTheyAlternate) {
  const Problem problem = testing::Chain(5000, 2);
  const std::vector<std::string> nodes = Nodes(DotOf(problem, Alternating(problem)), "n");
  EXPECT_LE(nodes.size(), kFoldedBoxes);
  for (const std::string& node : nodes) EXPECT_THAT(node, HasSubstr("style=striped"));
}

TEST(Picture, HasTheShapeOfAScreen) {
  const Problem chain = testing::Chain(186, 2), fan = testing::ForkJoin(26, 2);
  for (const Problem* problem : {&chain, &fan}) {
    const double aspect = Aspect(DrawDot(DotOf(*problem, Alternating(*problem)), PictureFormat::kSvg));
    EXPECT_GT(aspect, 0.8);
    EXPECT_LT(aspect, 3.2);
  }
}

TEST(Picture, SaysModelClusterAndTimeAndNamesTheDevices) {
  const Problem problem = testing::Chain(3, 2);
  const Plan plan = Alternating(problem);
  const Timeline timeline = OneAfterAnother(problem, plan);
  const std::string dot = PictureDot(problem, plan, timeline);
  EXPECT_THAT(dot, HasSubstr(fmt::format("{} on {}: {}", problem.graph().name(), problem.cluster().name(),
                                         ToString(problem.ToSeconds(timeline.score.time)))));
  EXPECT_EQ(Nodes(dot, "device").size(), 2u);
  EXPECT_THAT(dot, HasSubstr("d0\\n2 ops, "));
  EXPECT_THAT(dot, HasSubstr("d1\\n1 op, "));
  EXPECT_THAT(dot, HasSubstr("red arrow"));
}

TEST(Picture, NamesTheDeviceInTheBoxWhereColoursReturn) {
  const Problem problem = testing::Chain(12, 12);
  const std::vector<std::string> nodes = Nodes(DotOf(problem, Alternating(problem)), "n");
  EXPECT_THAT(nodes[0], HasSubstr("on d0"));
  EXPECT_THAT(nodes[9], HasSubstr("on d9"));
}

TEST(Picture, NamesCannotBreakTheDrawing) {
  GraphBuilder builder("a\"b\\");
  builder.AddOp("x\"];\n evil\\", "T\xff<&>", {});
  builder.AddOp("a&lt;b", "Unit", {});
  const Problem problem = testing::UnitProblem(builder.Build(), 1);
  const Plan plan{.device = {DeviceId{0}, DeviceId{0}}};
  const std::string svg = DrawDot(DotOf(problem, plan), PictureFormat::kSvg);
  EXPECT_THAT(svg, HasSubstr("</svg>"));
  EXPECT_THAT(svg, AllOf(HasSubstr("T?&lt;&amp;&gt;"), HasSubstr("a&amp;lt;b")));
}

TEST(Graphviz, WritesTheFormatThatTheNameEndsIn) {
  EXPECT_EQ(PictureFormatOf("a.b/plan.svg"), PictureFormat::kSvg);
  EXPECT_EQ(PictureFormatOf("PLAN.PNG"), PictureFormat::kPng);
  EXPECT_EQ(PictureFormatOf("plan.pdf"), PictureFormat::kPdf);
  for (const char* name : {"plan.jpg", "plan", "svg", "a.svg/plan"}) {
    EXPECT_THAT([&] { PictureFormatOf(name); }, ::testing::ThrowsMessage<Error>(HasSubstr(".svg, .png or .pdf")));
  }
  EXPECT_THAT(DrawDot("digraph {a}", PictureFormat::kSvg), HasSubstr("</svg>"));
  EXPECT_THAT(DrawDot("digraph {a}", PictureFormat::kPng), StartsWith("\x89PNG"));
  EXPECT_THAT(DrawDot("digraph {a}", PictureFormat::kPdf), StartsWith("%PDF"));
}

TEST(Graphviz, SaysHowToMendWhatIsMissingOrFails) {
  EXPECT_THAT([] { DrawDot("digraph {}", PictureFormat::kSvg, {}, "berth-has-no-such-program"); },
              ::testing::ThrowsMessage<Error>(HasSubstr("install graphviz")));
  EXPECT_THAT([] { CheckGraphviz("berth-has-no-such-program"); },
              ::testing::ThrowsMessage<Error>(HasSubstr("install graphviz")));
  EXPECT_NO_THROW(CheckGraphviz());
  EXPECT_THAT([] { DrawDot("digraph {", PictureFormat::kSvg); }, ::testing::ThrowsMessage<Error>(HasSubstr("failed")));
}

// A program in place of `dot` that never ends.
class Endless {
 public:
  Endless() {
    std::string name = (std::filesystem::temp_directory_path() / "berth_dot_XXXXXX").string();
    const int file = ::mkstemp(name.data());
    path_ = name;
    ::close(file);
    std::ofstream(path_) << "#!/bin/sh\nexec sleep 1000\n";
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  ~Endless() { std::filesystem::remove(path_); }
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

TEST(Graphviz, IsStoppedWhenItTakesTooLong) {
  const Endless endless;
  EXPECT_THAT([&] { DrawDot("digraph {}", PictureFormat::kSvg, {.seconds = 0.2}, endless.path()); },
              ::testing::ThrowsMessage<Error>("Graphviz was not done after 0.2 s and was stopped"));
}

TEST(Graphviz, IsStoppedWhenItIsNotWantedAnyMore) {
  const Endless endless;
  std::atomic<bool> cancelled = false;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    cancelled = true;
  });
  EXPECT_THAT(
      [&] { DrawDot("digraph {}", PictureFormat::kSvg, {.seconds = 60, .cancelled = &cancelled}, endless.path()); },
      ::testing::ThrowsMessage<Error>("stopped by Ctrl-C"));
  later.join();
}

}  // namespace
}  // namespace berth
