#include "exec/cut_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "exec/parts.h"
#include "placement/testing.h"

namespace berth {
namespace {

// Runs that cost what `truth` says, and `noise` more or less, as a share.
Measurement Simulated(const Problem& problem, const std::vector<DeviceId>& device, const CutCosts& truth, double noise,
                      Random& random) {
  std::vector<std::vector<int32_t>> predecessors(problem.num_ops());
  std::vector<int32_t> numbers;
  for (const OpId op : problem.graph().ops()) {
    numbers.push_back(static_cast<int32_t>(device[Index(op)]));
    for (const TensorId tensor : problem.graph().inputs_of(op)) {
      predecessors[Index(op)].push_back(static_cast<int32_t>(problem.graph().producer(tensor)));
    }
  }
  const Parts parts = CutIntoParts(predecessors, numbers);
  Measurement measurement;
  for (size_t number = 0; number < parts.parts.size(); ++number) {
    const Part& part = parts.parts[number];
    MeasuredPart measured{.device = MakeId<DeviceId>(static_cast<size_t>(part.device))};
    double length = truth.part_overhead;
    std::vector<TensorId> read;
    for (const int32_t node : part.nodes) {
      const auto op = MakeId<OpId>(static_cast<size_t>(node));
      measured.ops.push_back(op);
      length += problem.op_time(op, measured.device);
      for (const TensorId tensor : problem.graph().inputs_of(op)) {
        const auto from = Index(problem.graph().producer(tensor));
        if (parts.part_of[from] == static_cast<int32_t>(number) || std::ranges::count(read, tensor) > 0) continue;
        read.push_back(tensor);
        length += static_cast<double>(problem.graph().tensor_bytes(tensor)) *
                  truth.read[static_cast<size_t>(problem.graph().work(op).op_class)];
      }
      for (size_t t = problem.graph().first_output(op); t < problem.graph().end_output(op); ++t) {
        const auto tensor = MakeId<TensorId>(t);
        const bool leaves = std::ranges::any_of(problem.graph().consumers(tensor), [&](OpId reader) {
          return parts.part_of[Index(reader)] != static_cast<int32_t>(number);
        });
        if (!leaves) continue;
        length += static_cast<double>(problem.graph().tensor_bytes(tensor)) *
                  truth.write[static_cast<size_t>(problem.graph().work(op).op_class)];
      }
    }
    measured.seconds = length * (1 + noise * (2 * random.Uniform() - 1));
    measurement.parts.push_back(std::move(measured));
  }
  return measurement;
}

// A chain of diamonds in milliseconds and megabytes, ops of three classes.
Problem Diamonds() {
  GraphBuilder builder("diamonds");
  size_t last = builder.AddOp("start", "Op", {.op_class = OpClass::kConv});
  size_t tensor = builder.AddTensor(last, 1'000'000);
  for (int i = 0; i < 12; ++i) {
    const size_t left = builder.AddOp("left" + std::to_string(i), "Op", {.op_class = OpClass::kConv});
    const size_t right = builder.AddOp("right" + std::to_string(i), "Op", {.op_class = OpClass::kReduction});
    const size_t join = builder.AddOp("join" + std::to_string(i), "Op", {.op_class = OpClass::kDataMovement});
    builder.Consume(tensor, left);
    builder.Consume(tensor, right);
    builder.Consume(builder.AddTensor(left, 300'000 + 50'000 * i), join);
    builder.Consume(builder.AddTensor(right, 900'000 - 30'000 * i), join);
    tensor = builder.AddTensor(join, 500'000 + 40'000 * i, {}, i == 11);
  }
  std::vector<Device> devices(2);
  devices[0].name = "a", devices[1].name = "b";
  devices[0].kind = devices[1].kind = "cpu";
  std::vector<Link> links(4);
  for (Link& link : links) link.bandwidth.value = 1e9;
  auto graph = std::make_shared<Graph>(builder.Build());
  OpTimes times{.time = {}, .measured = {}, .source = "test"};
  for (size_t i = 0; i < 2 * graph->num_ops(); ++i) times.time.push_back(1e-3 + 1e-5 * static_cast<double>(i / 2));
  return Problem(graph, std::make_shared<Cluster>("two", devices, links), times);
}

CutCosts Truth() {
  CutCosts truth{.part_overhead = 2e-5};
  truth.read.fill(1e-10);
  truth.write.fill(2e-10);
  truth.read[static_cast<size_t>(OpClass::kReduction)] = 8e-10;
  truth.write[static_cast<size_t>(OpClass::kDataMovement)] = 0;
  return truth;
}

TEST(CutFit, FindsTheCostsThatMadeTheRuns) {
  const Problem problem = Diamonds();
  Random random(1);
  const CutCosts truth = Truth();
  CutFit fit;
  for (int run = 0; run < 40; ++run) {
    const std::vector<DeviceId> device = testing::RandomPlacement(problem, random);
    fit.Add(problem, Simulated(problem, device, truth, 0, random), 1);
  }
  const CutCosts found = fit.Fit();
  EXPECT_NEAR(found.part_overhead, truth.part_overhead, 4e-6);
  for (const OpClass op_class : {OpClass::kConv, OpClass::kReduction, OpClass::kDataMovement}) {
    const auto number = static_cast<size_t>(op_class);
    EXPECT_NEAR(found.read[number], truth.read[number], 2e-11) << number;
    EXPECT_NEAR(found.write[number], truth.write[number], 2e-11) << number;
  }
}

// Other programs lengthen whole runs, by which the speed is told, and not their parts.
TEST(CutFit, LeavesOutRunsDuringWhichOthersHadTheCoresWhereThereAreOthers) {
  const Problem problem = Diamonds();
  Random random(1);
  const CutCosts truth = Truth();
  CutFit fit;
  for (int run = 0; run < 80; ++run) {
    Measurement measured = Simulated(problem, testing::RandomPlacement(problem, random), truth, 0, random);
    if (run % 2 == 0) measured.stolen = 0.4;
    fit.Add(problem, measured, run % 2 == 0 ? 2 : 1);
    if (run == 0) {
      EXPECT_GT(fit.num_parts(), 0U) << "there is no other yet";
      EXPECT_EQ(fit.Fit().part_overhead, 0);
    }
  }
  EXPECT_NEAR(fit.Fit().part_overhead, truth.part_overhead, 4e-6);
}

// A machine that is slower for a while is slower at cuts, too; costs are of the speed at which op times were measured.
TEST(CutFit, FindsTheSameCostsWhereTheMachineIsSlower) {
  const Problem problem = Diamonds();
  const CutCosts truth = Truth();
  for (const double speed : {0.8, 1.3}) {
    Random random(1);
    CutFit fit;
    for (int run = 0; run < 40; ++run) {
      Measurement measured = Simulated(problem, testing::RandomPlacement(problem, random), truth, 0, random);
      for (MeasuredPart& part : measured.parts) part.seconds *= speed;
      fit.Add(problem, measured, speed);
    }
    const CutCosts found = fit.Fit();
    EXPECT_NEAR(found.part_overhead, truth.part_overhead, 4e-6);
    const auto reduction = static_cast<size_t>(OpClass::kReduction);
    EXPECT_NEAR(found.read[reduction], truth.read[reduction], 2e-11);
    EXPECT_NEAR(found.write[reduction], truth.write[reduction], 2e-11);
  }
}

TEST(CutFit, ComesNearWhereRunsAreNoisy) {
  const Problem problem = Diamonds();
  Random random(2);
  const CutCosts truth = Truth();
  CutFit fit;
  for (int run = 0; run < 40; ++run) {
    fit.Add(problem, Simulated(problem, testing::RandomPlacement(problem, random), truth, 0.05, random), 1);
  }
  const CutCosts found = fit.Fit();
  const auto reduction = static_cast<size_t>(OpClass::kReduction), conv = static_cast<size_t>(OpClass::kConv);
  EXPECT_NEAR(found.read[reduction], truth.read[reduction], 1.5e-10);
  EXPECT_NEAR(found.read[conv], truth.read[conv], 1.5e-10);
  for (const double cost : found.read) EXPECT_GE(cost, 0);
  for (const double cost : found.write) EXPECT_GE(cost, 0);
}

TEST(CutFit, AClassThatWasNeverSeenTakesAfterTheMean) {
  const Problem problem = Diamonds();
  Random random(3);
  CutFit fit;
  for (int run = 0; run < 20; ++run) {
    fit.Add(problem, Simulated(problem, testing::RandomPlacement(problem, random), Truth(), 0, random), 1);
  }
  const CutCosts found = fit.Fit();
  const double unseen = found.read[static_cast<size_t>(OpClass::kRecurrent)];
  EXPECT_GT(unseen, 1e-10);
  EXPECT_LT(unseen, 8e-10);
}

TEST(CutFit, AClassThatWasNeverSeenStaysAsItWasKnown) {
  const Problem problem = Diamonds();
  Random random(3);
  CutCosts known = Truth();
  known.read[static_cast<size_t>(OpClass::kRecurrent)] = 7e-9;
  known.read[static_cast<size_t>(OpClass::kConv)] = 7e-9;
  CutFit fit(known);
  for (int run = 0; run < 40; ++run) {
    fit.Add(problem, Simulated(problem, testing::RandomPlacement(problem, random), Truth(), 0, random), 1);
  }
  const CutCosts found = fit.Fit();
  EXPECT_NEAR(found.read[static_cast<size_t>(OpClass::kRecurrent)], 7e-9, 1e-12);
  EXPECT_NEAR(found.read[static_cast<size_t>(OpClass::kConv)], 1e-10, 1e-10);  // seen, and found to be cheaper
}

TEST(CutFit, ARunThatFailedAddsNothing) {
  CutFit fit;
  fit.Add(Diamonds(), {.error = "the process ended"}, 1);
  EXPECT_EQ(fit.num_parts(), 0);
  EXPECT_EQ(fit.Fit().part_overhead, 0);
}

TEST(CutFit, ItsNumbersReachTheDeviceFileAndComeBack) {
  const Cluster cluster = WithCutCosts(Diamonds().cluster(), Truth(), "runs");
  const Cluster again = ParseCluster(WriteCluster(cluster), "again");
  EXPECT_EQ(again.fingerprint(), cluster.fingerprint());
  EXPECT_EQ(again.device(DeviceId{0}).cut_read.at("reduction").value, 1 / 8e-10);
  EXPECT_FALSE(again.device(DeviceId{0}).cut_write.contains("data_movement"));
  ASSERT_TRUE(CutCostsOf(again));
  EXPECT_DOUBLE_EQ(CutCostsOf(again)->read[static_cast<size_t>(OpClass::kReduction)], 8e-10);
  EXPECT_FALSE(CutCostsOf(Diamonds().cluster()));
  EXPECT_NE(cluster.fingerprint(), Diamonds().cluster().fingerprint());
}

}  // namespace
}  // namespace berth
