// Verify finds nothing in what the simulators make (their own tests), and each fault that is planted here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The fork on device 0, branches on 0, 1 and 1, the join on 0. Under ports: the tensor of the fork goes to 1, those of
// both branches there come back.
class VerifyTest : public ::testing::Test {
 protected:
  void Trace(const std::string& name) {
    EvaluatorCatalog catalog("evaluator");
    RegisterParallel(catalog);
    RegisterSerial(catalog);
    evaluator_ = catalog.Make(name, problem_);
    timeline_ = evaluator_->Trace(plan_.view());
    ASSERT_THAT(Faults(), IsEmpty());
  }
  // With all branches on device 1, the two that wait for the first, and what they send.
  void TraceWithTheLastBranchesSwapped() {
    plan_.device[1] = DeviceId{1};
    Trace("parallel(io=everywhere)");
    std::swap(timeline_.ops[2], timeline_.ops[3]);
    std::swap(timeline_.transfers[2].tensor, timeline_.transfers[3].tensor);
  }
  std::vector<std::string> Faults() const { return Verify(*evaluator_, plan_.view(), timeline_); }

  Problem problem_ = testing::ForkJoin(3, 2);
  Plan plan_{.device = {DeviceId{0}, DeviceId{0}, DeviceId{1}, DeviceId{1}, DeviceId{0}},
             .priority = {},
             .sequence = {},
             .cause = {},
             .cause_texts = {}};
  std::unique_ptr<Evaluator> evaluator_;
  Timeline timeline_;
};

TEST_F(VerifyTest, FindsAnOpThatIsMissing) {
  Trace("parallel(io=everywhere)");
  timeline_.ops.pop_back();
  EXPECT_THAT(Faults(), Contains(HasSubstr("the timeline has 4 ops, the graph 5")));
}

TEST_F(VerifyTest, FindsAnOpOnAnotherDevice) {
  Trace("parallel(io=everywhere)");
  timeline_.ops[1].device = DeviceId{1};
  EXPECT_THAT(Faults(), Contains(HasSubstr("op branch0 ran on another device")));
}

TEST_F(VerifyTest, FindsAnOpOfAnotherLength) {
  Trace("parallel(io=everywhere)");
  timeline_.ops[4].end += 1;
  EXPECT_THAT(Faults(), Contains(HasSubstr("op join runs from 5 to 7")));
}

TEST_F(VerifyTest, FindsTwoOpsAtOnceOnADevice) {
  Trace("parallel(io=everywhere)");
  timeline_.ops[3] = timeline_.ops[2];
  EXPECT_THAT(Faults(), Contains(HasSubstr("device d1: op branch2 starts at 2, while op branch1 runs until 3")));
}

TEST_F(VerifyTest, FindsAnOpBeforeItsInputs) {
  Trace("parallel(io=everywhere)");
  timeline_.ops[4] = {.device = DeviceId{0}, .start = 4.5, .end = 5.5};
  EXPECT_THAT(Faults(), Contains(HasSubstr("op join starts at 4.5, its last input is there at")));
}

TEST_F(VerifyTest, FindsAnOpThatWaitsForNothing) {
  Trace("parallel(io=everywhere)");
  timeline_.ops[1] = {.device = DeviceId{0}, .start = 1.5, .end = 2.5};
  EXPECT_THAT(Faults(), Contains(HasSubstr("op branch0 starts at 1.5")));
}

TEST_F(VerifyTest, FindsOpsInTheWrongOrder) {
  TraceWithTheLastBranchesSwapped();
  EXPECT_THAT(Faults(), Contains(HasSubstr("op branch2 starts before op branch1, which comes first")));
}

TEST_F(VerifyTest, FindsPrioritiesThatWereNotKept) {
  plan_.priority = {0, 3, 1, 2, 0};
  TraceWithTheLastBranchesSwapped();
  EXPECT_THAT(Faults(), Contains(HasSubstr("op branch1 starts before op branch2, which comes first")));
}

TEST_F(VerifyTest, FindsASequenceThatWasNotKept) {
  const Sequence forward{
      .ops = {OpId{0}, OpId{1}, OpId{2}, OpId{3}, OpId{4}},
      .transfers = {{TensorId{0}, DeviceId{1}}, {TensorId{2}, DeviceId{0}}, {TensorId{3}, DeviceId{0}}}};
  plan_.sequence = forward;
  Trace("parallel(contention=ports,io=everywhere)");
  std::swap(plan_.sequence->ops[2], plan_.sequence->ops[3]);
  EXPECT_THAT(Faults(), Contains(HasSubstr("op branch1 starts before its predecessor in the sequence ends")));
  plan_.sequence = forward;
  std::swap(plan_.sequence->transfers[1], plan_.sequence->transfers[2]);
  EXPECT_THAT(Faults(), Contains(HasSubstr("starts before its predecessor in the sequence ends")));
}

TEST_F(VerifyTest, FindsATransferThatIsMissing) {
  Trace("parallel(io=everywhere)");
  timeline_.transfers.erase(timeline_.transfers.begin());
  EXPECT_THAT(Faults(), Contains(HasSubstr("is missing")));
}

TEST_F(VerifyTest, FindsATransferThatIsMadeTwice) {
  Trace("parallel(io=everywhere)");
  timeline_.transfers.push_back(timeline_.transfers.back());
  EXPECT_THAT(Faults(), Contains(HasSubstr("is not needed, or made twice")));
}

TEST_F(VerifyTest, FindsATransferOfAnotherLength) {
  Trace("parallel(io=everywhere)");
  timeline_.transfers[0].end += 0.5;
  EXPECT_THAT(Faults(), Contains(HasSubstr("takes 1.5, not 1")));
}

TEST_F(VerifyTest, FindsATransferBeforeItsProducerEnds) {
  Trace("parallel(io=everywhere)");
  timeline_.transfers[0].start = 0.5;
  timeline_.transfers[0].end = 1.5;
  EXPECT_THAT(Faults(), Contains(HasSubstr("before there is anything to send")));
}

TEST_F(VerifyTest, FindsATransferThatWaitsForNothing) {
  for (const std::string name : {"parallel(io=everywhere)", "parallel(contention=egress,io=everywhere)",
                                 "parallel(contention=ports,io=everywhere)"}) {
    Trace(name);
    timeline_.transfers.back().start += 0.5;
    timeline_.transfers.back().end += 0.5;
    timeline_.ops[4].start += 0.5;
    timeline_.ops[4].end += 0.5;
    EXPECT_THAT(Faults(), Contains(::testing::AnyOf(HasSubstr("with nothing to wait for"),
                                                    HasSubstr("when none of its ports is freed"))))
        << name;
  }
}

// Two sources on one device, and one on another, send to a third at the same time.
class VerifyPortsTest : public VerifyTest {
 protected:
  VerifyPortsTest() {
    GraphBuilder builder("fan");
    builder.AddOp("a", "Op", {});
    builder.AddOp("b", "Op", {});
    const size_t last = builder.AddOp("c", "Op", {});
    for (const size_t op : {0, 0, 1}) builder.Consume(builder.AddTensor(op, 1), last);
    problem_ = testing::UnitProblem(builder.Build(), 3);
    plan_.device = {DeviceId{0}, DeviceId{1}, DeviceId{2}};
  }
};

TEST_F(VerifyPortsTest, FindsTwoTransfersAtOnceOnAPort) {
  Trace("parallel(contention=ports,io=everywhere)");
  timeline_.transfers[2].start = timeline_.transfers[1].start;
  timeline_.transfers[2].end = timeline_.transfers[1].end;
  EXPECT_THAT(Faults(), Contains(HasSubstr("incoming port of d2")));
  Trace("parallel(contention=egress,io=everywhere)");
  for (TransferRun& move : timeline_.transfers) move.start = 1, move.end = 2;
  std::ranges::sort(timeline_.transfers, {}, &TransferRun::tensor);
  EXPECT_THAT(Faults(), Contains(HasSubstr("outgoing port of d0")));
}

TEST_F(VerifyTest, FindsAScoreThatIsNotTheEnd) {
  for (const std::string name : {"parallel(io=everywhere)", "serial(io=everywhere)"}) {
    Trace(name);
    timeline_.score.time -= 1;
    EXPECT_THAT(Faults(), Contains(HasSubstr("the score is"))) << name;
  }
}

TEST_F(VerifyTest, FindsSubgraphsThatAreMiscounted) {
  Trace("serial(subgraph_overhead=0.5,io=everywhere)");
  EXPECT_EQ(timeline_.subgraphs, 4u);  // fork and branch0; branch1; branch2; join
  timeline_.subgraphs = 3;
  EXPECT_THAT(Faults(), Contains(HasSubstr("3 subgraphs are counted, there are 4")));
}

TEST_F(VerifyTest, FindsThingsAtOnceInSeries) {
  Trace("serial(io=everywhere)");
  timeline_.ops[1] = {.device = DeviceId{0}, .start = 0.5, .end = 1.5};
  EXPECT_THAT(Faults(), Contains(HasSubstr("everything: ")));
}

TEST_F(VerifyTest, FindsMemoryThatDoesNotAddUp) {
  Trace("parallel(io=everywhere)");
  Timeline whole = timeline_;
  timeline_.memory[0].peak_bytes += 1;
  EXPECT_THAT(Faults(), Contains(HasSubstr("d0 has a peak of")));
  timeline_ = whole;
  timeline_.memory[0].steps.pop_back();
  EXPECT_THAT(Faults(), Contains(HasSubstr("the memory over time of d0 does not add up")));
  timeline_ = whole;
  timeline_.memory[1].holders.pop_back();
  EXPECT_THAT(Faults(), Contains(HasSubstr("what fills d1 at its peak is")));
  timeline_ = whole;
  timeline_.memory.pop_back();
  EXPECT_THAT(Faults(), Contains(HasSubstr("memory is reported of 1 devices")));
}

TEST_F(VerifyTest, FindsAPlanThatIsWronglyCalledFeasible) {
  problem_ = Problem(problem_.shared_graph(), problem_.shared_cluster(),
                     {.time = std::vector<double>(10, 1), .measured = {}, .source = "unit"}, {.memory_limits = {1, 1}});
  Trace("parallel(io=everywhere)");
  EXPECT_FALSE(timeline_.score.fits());
  timeline_.score.outcome = Outcome::kFits;
  EXPECT_THAT(Faults(), Contains(HasSubstr("is called feasible")));
  timeline_.score.excess_bytes = 0;
  EXPECT_THAT(Faults(), Contains(HasSubstr("the score lacks 0 bytes")));
}

TEST_F(VerifyTest, FindsARunWithoutEndThatIsCalledFeasible) {
  plan_.sequence = Sequence{.ops = {OpId{4}, OpId{0}, OpId{1}, OpId{2}, OpId{3}}, .transfers = {}};
  Trace("parallel(io=everywhere)");
  timeline_.score.outcome = Outcome::kFits;
  EXPECT_THAT(Faults(), Contains(HasSubstr("a run that never ends is called feasible")));
}

}  // namespace
}  // namespace berth
