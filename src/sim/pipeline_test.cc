// `pipeline` and `pieces`, which share their problems.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "import/readers.h"
#include "import/split_file.h"
#include "placement/bound.h"
#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RandomPlacement;

EvaluatorCatalog Evaluators() {
  EvaluatorCatalog catalog("evaluator");
  RegisterPipeline(catalog);
  RegisterPieces(catalog);
  return catalog;
}

Score ScoreOf(const Evaluator& evaluator, std::span<const DeviceId> device, std::span<double> starts = {}) {
  const auto workspace = evaluator.NewWorkspace();
  return evaluator.ScorePlan({.device = device}, *workspace, starts);
}

struct Shape {
  size_t ops, accelerators, cpus;
  bool training;
  bool staging;
};

// Problems as the MSR data set has them: one tensor per op, accelerators with memory, CPUs, ops that no accelerator
// runs.
Problem MakeProblem(Random& random, const Shape& shape) {
  GraphBuilder builder("random");
  for (size_t v = 0; v < shape.ops; ++v) {
    builder.AddOp({}, "Node", {});
    if (shape.training && v >= shape.ops / 2) builder.MarkBackward(v);
    builder.AddTensor(v, static_cast<int64_t>(random.Below(4096)));
    for (size_t k = random.Below(3); k > 0 && v > 0; --k)
      builder.Consume(v - 1 - random.Below(std::min<size_t>(v, 9)), v);
    const size_t parameter = builder.AddParameter(static_cast<int64_t>(random.Below(1000)));
    builder.UseParameter(parameter, v);
    if (v > 0 && random.Chance(0.2)) builder.UseParameter(parameter, random.Below(v));
  }
  std::vector<Device> devices;
  for (size_t i = 0; i < shape.accelerators + shape.cpus; ++i) {
    const bool is_cpu = i >= shape.accelerators;
    devices.push_back({.name = "d" + std::to_string(i), .kind = is_cpu ? "cpu" : "acc"});
    if (!is_cpu) devices.back().memory = Quantity{.value = static_cast<double>(300 * shape.ops)};
  }
  std::vector<Link> links(devices.size() * devices.size());
  for (Link& link : links) {
    link.latency.value = random.Uniform(0, 0.2);
    link.bandwidth.value = random.Uniform(1000, 20000);
  }
  OpTimes times{.time = {}, .source = "random"};
  for (size_t v = 0; v < shape.ops; ++v) {
    const double time = random.Chance(0.2) ? 0 : random.Uniform();
    const bool cpu_only = shape.cpus > 0 && random.Chance(0.1);
    for (size_t d = 0; d < devices.size(); ++d)
      times.time.push_back(d >= shape.accelerators ? 7 * time : cpu_only ? kCannotRun : time);
  }
  Problem::Options options;
  for (size_t t = 0; shape.staging && t < shape.ops; ++t)
    options.staging.push_back(random.Chance(0.2) ? 0 : random.Uniform(0, 0.5));
  return Problem(std::make_shared<const Graph>(builder.Build()),
                 std::make_shared<const Cluster>("random", std::move(devices), std::move(links)), std::move(times),
                 std::move(options));
}

Problem AnyProblem(Random& random, bool training) {
  return MakeProblem(random, {.ops = 1 + random.Below(40),
                              .accelerators = 1 + random.Below(4),
                              .cpus = random.Below(3),
                              .training = training,
                              .staging = random.Chance(0.5)});
}

// --- pipeline
// ------------------------------------------------------------------------------------------------------------

// Tarnawski 2020, section 3, as it is written.
double LargestLoad(const Problem& problem, const std::vector<DeviceId>& device) {
  const Graph& graph = problem.graph();
  double largest = 0;
  for (const DeviceId d : problem.cluster().ids()) {
    double load = 0;
    for (const OpId op : graph.ops()) {
      if (device[Index(op)] == d) load += problem.op_time(op, d);
    }
    for (const TensorId t : graph.tensors()) {
      const DeviceId from = device[Index(graph.producer(t))];
      std::set<DeviceId> to;
      for (const OpId op : graph.consumers(t)) to.insert(device[Index(op)]);
      to.erase(from);
      if (!problem.has_staging()) {
        for (const DeviceId other : to) load += from == d || other == d ? problem.transfer_time(t, from, other) : 0;
      } else if (!problem.on_host(d) && ((from == d && !to.empty()) || to.contains(d))) {
        load += problem.staging(t);
      }
    }
    largest = std::max(largest, load);
  }
  return largest;
}

TEST(Pipeline, IsTheLargestLoad) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    const Problem problem = AnyProblem(random, random.Chance(0.5));
    const auto evaluator = Evaluators().Make("pipeline(memory=none)", problem);
    const std::vector<DeviceId> device = RandomPlacement(problem, random);
    const double expected = LargestLoad(problem, device);
    EXPECT_NEAR(ScoreOf(*evaluator, device).time, expected, 1e-12 * expected);
  }
}

TEST(Pipeline, PaysOncePerSenderAndOncePerReceivingAccelerator) {
  GraphBuilder builder("fan");
  for (int v = 0; v < 5; ++v) builder.AddOp({}, "Node", {});
  builder.AddTensor(0, 1);
  for (size_t v = 1; v < 5; ++v) builder.Consume(0, v);
  std::vector<Device> devices{{.name = "a", .kind = "acc"}, {.name = "b", .kind = "acc"}, {.name = "c", .kind = "cpu"}};
  const Problem problem(
      std::make_shared<const Graph>(builder.Build()),
      std::make_shared<const Cluster>("c", devices, std::vector<Link>(9, Link{.bandwidth = {.value = 1}})),
      {.time = std::vector<double>(15, 1.0), .source = "unit"}, {.staging = {0.25}});
  const auto evaluator = Evaluators().Make("pipeline", problem);
  const DeviceId a{0}, b{1}, c{2};
  EXPECT_EQ(ScoreOf(*evaluator, std::vector{a, b, b, b, c}).time, 3.25);  // b: three ops and one tensor
  EXPECT_EQ(ScoreOf(*evaluator, std::vector{a, a, a, b, c}).time, 3.25);  // a: three ops, sent once
  EXPECT_EQ(ScoreOf(*evaluator, std::vector{c, c, c, c, b}).time, 4);     // the CPU pays nothing
  const Timeline timeline = evaluator->Trace({.device = std::vector{a, b, b, b, c}});
  ASSERT_EQ(timeline.transfers.size(), 2u);
  EXPECT_EQ(timeline.transfers[0].part, TransferPart::kReceive);
  EXPECT_EQ(timeline.transfers[0].to, b);
  EXPECT_EQ(timeline.transfers[1].part, TransferPart::kSend);
}

TEST(Pipeline, AddsForwardAndBackwardLoadsOrTheirMaxima) {
  GraphBuilder builder("passes");
  for (int v = 0; v < 4; ++v) builder.AddOp({}, "Node", {});
  builder.MarkBackward(2);
  builder.MarkBackward(3);
  OpTimes times{.time = {3, 3, 1, 1, 1, 1, 4, 4}, .source = "given"};
  const Problem problem(std::make_shared<const Graph>(builder.Build()),
                        std::make_shared<const Cluster>(testing::UniformCluster(2)), times);
  const std::vector<DeviceId> device{DeviceId{0}, DeviceId{1}, DeviceId{0}, DeviceId{1}};
  EXPECT_EQ(ScoreOf(*Evaluators().Make("pipeline", problem), device).time, 5);              // max(3 + 1, 1 + 4)
  EXPECT_EQ(ScoreOf(*Evaluators().Make("pipeline(passes=max)", problem), device).time, 7);  // 3 + 4
}

TEST(Pipeline, OverlapsOnlyWhenAsked) {
  GraphBuilder builder("overlap");
  builder.AddOp({}, "Node", {});
  builder.AddOp({}, "Node", {});
  builder.AddTensor(0, 5);
  builder.Consume(0, 1);
  const Problem problem(std::make_shared<const Graph>(builder.Build()),
                        std::make_shared<const Cluster>(testing::UniformCluster(2)),
                        {.time = {1, 1, 2, 2}, .source = "given"});
  const std::vector<DeviceId> device{DeviceId{0}, DeviceId{1}};
  EXPECT_EQ(ScoreOf(*Evaluators().Make("pipeline", problem), device).time, 7);
  EXPECT_EQ(ScoreOf(*Evaluators().Make("pipeline(overlap=true)", problem), device).time, 5);
}

TEST(Pipeline, CountsTheParametersOfADevice) {
  GraphBuilder builder("memory");
  for (int v = 0; v < 3; ++v) builder.AddOp({}, "Node", {});
  builder.UseParameter(builder.AddParameter(100), 0);
  const size_t shared = builder.AddParameter(10);
  builder.UseParameter(shared, 0);
  builder.UseParameter(shared, 1);
  builder.UseParameter(shared, 2);
  const Problem problem(std::make_shared<const Graph>(builder.Build()),
                        std::make_shared<const Cluster>(testing::UniformCluster(2, 0, 1, 105)),
                        {.time = std::vector<double>(6, 1.0), .source = "unit"});
  const auto evaluator = Evaluators().Make("pipeline", problem);
  const std::vector<DeviceId> device{DeviceId{0}, DeviceId{0}, DeviceId{1}};
  const Score score = ScoreOf(*evaluator, device);
  EXPECT_FALSE(score.fits());
  EXPECT_EQ(score.excess_bytes, 5);
  const Timeline timeline = evaluator->Trace({.device = device});
  EXPECT_EQ(timeline.memory[0].peak_bytes, 110);
  EXPECT_EQ(timeline.memory[1].peak_bytes, 10);
  EXPECT_THAT(timeline.infeasible_because, HasSubstr("d0 holds 110 B"));
  EXPECT_TRUE(ScoreOf(*Evaluators().Make("pipeline(memory=none)", problem), device).fits());
}

TEST(Pipeline, ASessionScoresMovesAsThoughInFullToTheLastBit) {
  Random random(2);
  for (int round = 0; round < 60; ++round) {
    const Problem problem = AnyProblem(random, random.Chance(0.5));
    for (const char* name : {"pipeline", "pipeline(overlap=true,memory=none)", "pipeline(passes=max)",
                             "pipeline(overlap=true,passes=max)"}) {
      const auto evaluator = Evaluators().Make(name, problem);
      std::vector<DeviceId> device = RandomPlacement(problem, random);
      const auto workspace_of_session = evaluator->NewWorkspace();
      const auto session = evaluator->NewSession({.device = device}, *workspace_of_session);
      EXPECT_EQ(session->score(), ScoreOf(*evaluator, device));
      for (int step = 0; step < 40; ++step) {
        const std::vector<DeviceId> other = RandomPlacement(problem, random);
        std::vector<std::pair<OpId, DeviceId>> moves;
        std::vector<DeviceId> moved = device;
        for (size_t k = 1 + random.Below(4); k > 0; --k) {
          const auto op = MakeId<OpId>(random.Below(problem.num_ops()));
          moves.emplace_back(op, other[Index(op)]);
          moved[Index(op)] = other[Index(op)];
        }
        const Score before = session->score();
        EXPECT_EQ(session->Try(moves), ScoreOf(*evaluator, moved));
        EXPECT_EQ(session->score(), before);
        EXPECT_TRUE(std::ranges::equal(session->device(), device));
        if (random.Chance(0.5)) {
          session->Commit();
          device = moved;
          EXPECT_EQ(session->score(), ScoreOf(*evaluator, device));
        }
      }
    }
  }
}

// --- pieces
// --------------------------------------------------------------------------------------------------------------

// A problem of a chain of ops with unit times on two accelerators and a CPU, staging 0.25 each.
Problem UnitChain(size_t ops) {
  GraphBuilder builder("chain");
  for (size_t v = 0; v < ops; ++v) {
    builder.AddOp({}, "Node", {});
    builder.AddTensor(v, 1);
    if (v > 0) builder.Consume(v - 1, v);
  }
  std::vector<Device> devices{{.name = "a", .kind = "acc"}, {.name = "b", .kind = "acc"}, {.name = "c", .kind = "cpu"}};
  return Problem(std::make_shared<const Graph>(builder.Build()),
                 std::make_shared<const Cluster>("c", devices, std::vector<Link>(9, Link{.bandwidth = {.value = 1}})),
                 {.time = std::vector<double>(3 * ops, 1.0), .source = "unit"},
                 {.staging = std::vector<double>(ops, 0.25)});
}

TEST(Pieces, CallsAnAcceleratorAsAWhole) {
  const Problem problem = UnitChain(4);
  const auto evaluator = Evaluators().Make("pieces", problem);
  const DeviceId a{0}, b{1}, c{2};
  EXPECT_EQ(ScoreOf(*evaluator, std::vector{a, a, a, a}).time, 4);
  EXPECT_EQ(ScoreOf(*evaluator, std::vector{c, c, c, c}).time, 4);
  EXPECT_EQ(ScoreOf(*evaluator, std::vector{a, a, b, b}).time, 4.5);
  EXPECT_EQ(ScoreOf(*evaluator, std::vector{c, a, a, c}).time, 4.5);
  std::vector<double> starts(4);
  ScoreOf(*evaluator, std::vector{c, a, a, c}, starts);
  EXPECT_EQ(starts, (std::vector{0.0, 1.25, 2.25, 3.5}));
}

TEST(Pieces, RefusesMoreThanQPiecesButStillScoresThem) {
  const Problem problem = UnitChain(3);
  const std::vector<DeviceId> device{DeviceId{0}, DeviceId{2}, DeviceId{0}};
  const Score one = ScoreOf(*Evaluators().Make("pieces", problem), device);
  EXPECT_FALSE(one.fits());
  EXPECT_EQ(one.time, 3.5);
  EXPECT_THAT(Evaluators().Make("pieces", problem)->Trace({.device = device}).infeasible_because,
              HasSubstr("a would be called for 2 pieces, 1 at most"));
  EXPECT_TRUE(ScoreOf(*Evaluators().Make("pieces(q=2)", problem), device).fits());
  EXPECT_TRUE(ScoreOf(*Evaluators().Make("pieces(q=0)", problem), device).fits());
}

TEST(Pieces, CutsPiecesFinerThatWouldWaitForOneAnother) {
  // 0 -> 1 and 2 -> 3, with 0 and 3 on a, 1 and 2 on b: as whole pieces, each would wait for the other.
  GraphBuilder builder("circle");
  for (int v = 0; v < 4; ++v) builder.AddOp({}, "Node", {});
  builder.Consume(builder.AddTensor(0, 1), 1);
  builder.Consume(builder.AddTensor(2, 1), 3);
  std::vector<Device> devices{{.name = "a", .kind = "acc"}, {.name = "b", .kind = "acc"}};
  const Problem problem(
      std::make_shared<const Graph>(builder.Build()),
      std::make_shared<const Cluster>("c", devices, std::vector<Link>(4, Link{.bandwidth = {.value = 1}})),
      {.time = std::vector<double>(8, 1.0), .source = "unit"}, {.staging = {0.25, 0.25}});
  const std::vector<DeviceId> device{DeviceId{0}, DeviceId{1}, DeviceId{1}, DeviceId{0}};
  const Score score = ScoreOf(*Evaluators().Make("pieces(q=2)", problem), device);
  EXPECT_EQ(score.time, 2.5);
  EXPECT_TRUE(score.fits());
  EXPECT_FALSE(ScoreOf(*Evaluators().Make("pieces(q=1)", problem), device).fits());
}

TEST(Pieces, RefusesTrainingGraphs) {
  Random random(3);
  const Problem problem =
      MakeProblem(random, {.ops = 4, .accelerators = 1, .cpus = 1, .training = true, .staging = true});
  EXPECT_THROW(Evaluators().Make("pieces", problem), Error);
}

// --- both
// ----------------------------------------------------------------------------------------------------------------

TEST(TarnawskiModels, TracesKeepTheRulesAndAgreeWithScores) {
  Random random(4);
  for (int round = 0; round < 150; ++round) {
    const Problem problem = AnyProblem(random, false);
    const Problem training = AnyProblem(random, true);
    for (const char* name :
         {"pipeline", "pipeline(overlap=true)", "pipeline(passes=max)", "pipeline(overlap=true,passes=max,memory=none)",
          "pieces", "pieces(q=2,memory=none)", "pieces(q=0)"}) {
      for (const Problem* p : {&problem, &training}) {
        if (p == &training && std::string_view(name).starts_with("pieces")) continue;
        const auto evaluator = Evaluators().Make(name, *p);
        EXPECT_EQ(evaluator->name(), name);
        const std::vector<DeviceId> device = RandomPlacement(*p, random);
        const PlanView plan{.device = device};
        const Timeline timeline = evaluator->Trace(plan);
        EXPECT_THAT(Verify(*evaluator, plan, timeline), IsEmpty()) << name;
        std::vector<double> starts(p->num_ops());
        EXPECT_EQ(ScoreOf(*evaluator, device, starts), timeline.score) << name;
        for (const OpId op : p->graph().ops()) EXPECT_EQ(starts[Index(op)], timeline.ops[Index(op)].start) << name;
        EXPECT_LE(LowerBound(*evaluator).time, timeline.score.time) << name;
      }
    }
  }
}

TEST(TarnawskiModels, VerifyNoticesWhatIsWrong) {
  const Problem problem = UnitChain(4);
  const std::vector<DeviceId> device{DeviceId{0}, DeviceId{0}, DeviceId{1}, DeviceId{2}};
  const PlanView plan{.device = device};
  for (const char* name : {"pipeline", "pieces"}) {
    const auto evaluator = Evaluators().Make(name, problem);
    const Timeline good = evaluator->Trace(plan);
    const auto faults = [&](auto change) {
      Timeline bad = good;
      change(bad);
      return Verify(*evaluator, plan, bad);
    };
    EXPECT_THAT(faults([](Timeline&) {}), IsEmpty());
    EXPECT_THAT(faults([](Timeline& t) { t.score.time *= 1.001; }), Not(IsEmpty()));
    EXPECT_THAT(faults([](Timeline& t) { t.ops[1].end += 0.5; }), Not(IsEmpty()));
    EXPECT_THAT(faults([](Timeline& t) { t.ops[1] = t.ops[0]; }), Not(IsEmpty()));
    EXPECT_THAT(faults([](Timeline& t) { t.transfers.pop_back(); }), Not(IsEmpty()));
    EXPECT_THAT(faults([](Timeline& t) { t.transfers.push_back(t.transfers.back()); }), Not(IsEmpty()));
    EXPECT_THAT(faults([](Timeline& t) { t.score.outcome = Outcome::kTooBig; }), Not(IsEmpty()));
    EXPECT_THAT(faults([](Timeline& t) { t.memory[0].peak_bytes += 1; }), Not(IsEmpty()));
  }
}

TEST(TarnawskiModels, BoundsAreTightWhereNothingMustBeMoved) {
  const Problem problem = UnitChain(6);
  const auto pipeline = Evaluators().Make("pipeline", problem);
  EXPECT_NEAR(LowerBound(*pipeline).time, 2, 1e-9);  // six ops, three devices
  EXPECT_NEAR(LowerBound(*Evaluators().Make("pieces", problem)).time, 6, 1e-9);
}

TEST(Piper, ALoadUnderPipelineIsItsTimePerSample) {
  const std::string path = std::string(BERTH_SOURCE_DIR) + "/samples/piper.json";
  const Problem problem = ReadPiper(ReadFile(path), path).ToProblem();
  const std::vector<DeviceId> device{DeviceId{0}, DeviceId{1}, DeviceId{1}};
  // Stage 0: p = 0.25 and two edges out, 2c/B = 0.125 and 0.25. Stage 1: 1.5 and the same edges in.
  EXPECT_EQ(ScoreOf(*Evaluators().Make("pipeline", problem), device).time, 1.875);
}

TEST(Msr, TheSamplesSplitHasTheLoadThatItSays) {
  const std::string folder = std::string(BERTH_SOURCE_DIR) + "/samples/";
  const Instance instance = ReadMsr(ReadFile(folder + "msr_training.json"), "msr");
  const Problem problem = instance.ToProblem();
  const Plan plan = ReadSplit(ReadFile(folder + "msr_training.split.json"), "split", instance);
  EXPECT_EQ(ScoreOf(*Evaluators().Make("pipeline", problem), plan.device).time, 14.875);
}

}  // namespace
}  // namespace berth
