#include "report/guesses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/graph.h"
#include "placement/costs.h"
#include "placement/problem.h"
#include "report/json.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two equal devices, and a link that is guessed.
constexpr const char* kPair = R"(name: pair
provenance: vendor
devices:
  a: {kind: cpu, peak: {f32: 100GFLOP/s}, memory_bandwidth: 100GB/s, op_overhead: 4us guess, efficiency: {matmul: 1}}
  b: {kind: cpu, peak: {f32: 100GFLOP/s}, memory_bandwidth: 100GB/s, op_overhead: 4us guess, efficiency: {matmul: 1}}
links:
  - {latency: 10us guess, bandwidth: 10GB/s}
)";

// A source, two branches of ops that take 1 us and the overhead, and a sink.
Graph Branches(size_t length) {
  GraphBuilder builder("branches");
  const OpWork work{.flops = 1e5, .op_class = OpClass::kMatMul};
  const size_t source = builder.AddOp("source", "MatMul", work);
  const size_t start = builder.AddTensor(source, 1000);
  std::vector<size_t> ends;
  for (const char* branch : {"left", "right"}) {
    size_t tensor = start;
    for (size_t i = 0; i < length; ++i) {
      const size_t op = builder.AddOp(branch + std::to_string(i), "MatMul", work);
      builder.Consume(tensor, op);
      tensor = builder.AddTensor(op, 1000);
    }
    ends.push_back(tensor);
  }
  const size_t sink = builder.AddOp("sink", "MatMul", work);
  for (const size_t end : ends) builder.Consume(end, sink);
  builder.AddTensor(sink, 1000, "out", true);
  return builder.Build("branches");
}

// What the plan with one branch on each device gains over everything on `a`.
struct Split {
  std::shared_ptr<const Graph> graph;
  std::vector<DeviceId> plan, single;

  explicit Split(size_t length) : graph(std::make_shared<const Graph>(Branches(length))) {
    for (const OpId op : graph->ops()) {
      single.push_back(MakeId<DeviceId>(0));
      plan.push_back(MakeId<DeviceId>(graph->op_name(op).starts_with("right") ? 1 : 0));
    }
  }
  std::pair<double, double> operator()(const std::shared_ptr<const Cluster>& cluster) const {
    const Problem problem(graph, cluster, RooflineTimes(*graph, *cluster));
    EvaluatorCatalog catalog{"evaluator"};
    RegisterParallel(catalog);
    const auto evaluator = catalog.Make("parallel(contention=ports,io=everywhere)", problem, "");
    const auto workspace = evaluator->NewWorkspace();
    return {evaluator->ScorePlan({.device = plan}, *workspace).time,
            evaluator->ScorePlan({.device = single}, *workspace).time};
  }
  std::optional<GuessReport> Vary(const std::string& yaml, int64_t most = 1000) const {
    const auto cluster = std::make_shared<const Cluster>(ParseCluster(yaml, "test.yaml"));
    const auto [value, other] = (*this)(cluster);
    return VaryGuesses(*cluster, {}, "a alone", other / value, *this, most);
  }
};

TEST(VaryGuesses, SaysThatTheOverheadTurnsTheAdvice) {
  // Six ops beside six others save 30 us and cost two transfers of 10 us; of ops without overhead they save 6 us.
  std::string measured_link = kPair;
  measured_link.replace(measured_link.find("10us guess"), 10, "10us measured");
  const auto report = Split(6).Vary(measured_link);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->effects.size(), 1u) << "equal devices share a guess";
  EXPECT_EQ(report->evaluations, 4);
  EXPECT_GT(report->gain, 1);
  const GuessEffect* turning = report->turning();
  ASSERT_NE(turning, nullptr);
  EXPECT_EQ(turning->what, "op_overhead of a and b");
  EXPECT_LT(turning->low_gain, 1);
  EXPECT_GT(turning->high_gain, report->gain);
  EXPECT_EQ(turning->measure, "berth cluster detect");
  EXPECT_EQ(report->least, turning->low_gain);
  EXPECT_EQ(report->most, turning->high_gain);
  EXPECT_THAT(
      GuessHeadline(*report),
      HasSubstr("RESTS ON A GUESS: with op_overhead of a and b at 2.00 us instead of 4.00 us, a alone is better"));
  EXPECT_THAT(GuessLines(*report), AllOf(HasSubstr("with the guessed number from half"), HasSubstr("4 evaluations"),
                                         HasSubstr("; `berth cluster detect` measures it")));
  EXPECT_EQ(GuessJson(*report)["survives"], false);
}

TEST(VaryGuesses, SaysThatAGainSurvives) {
  const auto report = Split(50).Vary(kPair);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->effects.size(), 2u) << "both ways of a link share a guess";
  EXPECT_EQ(report->turning(), nullptr);
  EXPECT_GT(report->least, 1);
  EXPECT_LT(report->least, report->gain);
  EXPECT_GT(report->most, report->gain);
  EXPECT_THAT(GuessHeadline(*report), IsEmpty());
  EXPECT_THAT(GuessLines(*report), HasSubstr("no single one; the gain depends most on "));
  EXPECT_EQ(GuessJson(*report)["survives"], true);
}

TEST(VaryGuesses, GoesThroughTheRangeThatTheFileSays) {
  std::string narrow = kPair;
  for (size_t at; (at = narrow.find("4us guess")) != std::string::npos;) {
    narrow.replace(at, 9, "4us from 3900ns to 4100ns guess");
  }
  narrow.replace(narrow.find("10us guess"), 10, "10us measured");
  const auto report = Split(6).Vary(narrow);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->effects.size(), 1u);
  EXPECT_EQ(report->effects[0].low_text, "3.90 us");
  EXPECT_EQ(report->effects[0].high_text, "4.10 us");
  EXPECT_EQ(report->turning(), nullptr) << "from half to double it turns the advice";
  EXPECT_THAT(GuessLines(*report), HasSubstr("or through the range that its file says"));
}

TEST(VaryGuesses, SaysNothingWhereNothingIsGuessed) {
  std::string measured = kPair;
  for (size_t at; (at = measured.find(" guess")) != std::string::npos;) measured.replace(at, 6, " measured");
  EXPECT_FALSE(Split(5).Vary(measured));
}

TEST(VaryGuesses, SaysThatItWouldTakeTooLong) {
  const auto report = Split(5).Vary(kPair, 7);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->evaluations, 0);
  EXPECT_THAT(GuessHeadline(*report), IsEmpty());
  EXPECT_THAT(GuessLines(*report), HasSubstr("not varied: that takes 8 evaluations"));
  EXPECT_TRUE(GuessJson(*report)["survives"].is_null());
}

TEST(GuessHeadline, SaysWhereTheRivalIsBetterToBeginWith) {
  EXPECT_THAT(GuessHeadline({.rival = "one_cut", .gain = 0.8}),
              HasSubstr("A BETTER PLAN IS KNOWN: one_cut is 1.25x better; a larger --budget"));
}

TEST(GuessReport, TakesPlansThatAreAsGoodForNoTurn) {
  GuessReport report{.rival = "one_cut", .gain = 1.001};
  GuessEffect& effect = report.effects.emplace_back();
  effect.low_gain = 0.9985;
  effect.high_gain = 1.002;
  EXPECT_EQ(report.turning(), nullptr);
  EXPECT_THAT(GuessHeadline(report), IsEmpty());
  report.gain = 1.2;
  effect.low_gain = 0.9;
  EXPECT_NE(report.turning(), nullptr);
}

TEST(GuessReport, NamesTheNumberThatMakesTheRivalOfAnEqualPlanBetter) {
  GuessReport report{.rival = "one_cut", .gain = 1.001, .least = 0.9, .most = 1.002};
  report.effects.push_back({.what = "latency of a -> b",
                            .low_text = "1.00 us",
                            .value_text = "2.00 us",
                            .high_text = "4.00 us",
                            .measure = "berth cluster detect",
                            .low_gain = 0.9,
                            .high_gain = 1.002});
  EXPECT_THAT(GuessHeadline(report), IsEmpty()) << "there is no gain that could rest on it";
  EXPECT_THAT(GuessLines(report),
              HasSubstr("latency of a -> b: at 1.00 us instead of 2.00 us, one_cut is 1.11x better"));
}

TEST(GuessHeadline, SpeaksOfTheAdviceWhereThePlanIsOneDevice) {
  GuessReport report{.rival = "metis", .on_one_device = true, .gain = 1.2};
  GuessEffect& effect = report.effects.emplace_back();
  effect.what = "peak f32 of cpu";
  effect.high_text = "2 TFLOP/s";
  effect.low_gain = 1.2;
  effect.high_gain = 0.9;
  EXPECT_THAT(GuessHeadline(report), HasSubstr("THE ADVICE RESTS ON A GUESS: with peak f32 of cpu at 2 TFLOP/s"));
}

// As in an NVLink mesh, where no two GPUs have the same links.
TEST(FindGuesses, VariesANumberOfAllDevicesOfOneEntryTogether) {
  const Cluster cluster = ParseCluster(R"(name: mesh
provenance: vendor
devices:
  gpu: {count: 3, kind: gpu, memory: 1GiB, peak: {f32: 1TFLOP/s}, memory_bandwidth: 1GB/s, op_overhead: 5us guess,
        half_rate_outputs: 300000 measured, efficiency: {conv: 0.5 measured}}
links:
  - {latency: 1us, bandwidth: 1GB/s}
  - {from: gpu0, to: gpu1, both: true, latency: 1us, bandwidth: 2GB/s}
)",
                                       "test.yaml");
  ASSERT_NE(cluster.class_of(DeviceId{0}), cluster.class_of(DeviceId{2}));
  const std::vector<Guess> guesses = FindGuesses(cluster, {});
  ASSERT_EQ(guesses.size(), 1u);
  EXPECT_EQ(guesses[0].what, "op_overhead of gpu0 and 2 more");
  const auto varied = guesses[0].with(1e-6);
  for (const DeviceId id : varied->ids()) EXPECT_EQ(varied->device(id).op_overhead.value, 1e-6);
}

TEST(FindGuesses, ChangesOneNumberAndNoOther) {
  const Cluster cluster = ParseCluster(R"(name: three
devices:
  a: {kind: cpu, peak: {f32: 1TFLOP/s}, memory_bandwidth: 1GB/s vendor, op_overhead: 0us, efficiency: {conv: 0.8}}
  b: {kind: gpu, peak: {f32: 2TFLOP/s vendor}, memory_bandwidth: 1GB/s vendor, op_overhead: 3us measured, memory: 1GiB,
      half_rate_outputs: 300000}
links:
  - {from: a, to: b, latency: 1us, bandwidth: 1GB/s vendor}
  - {from: b, to: a, latency: 2us, bandwidth: 1GB/s vendor}
)",
                                       "test.yaml");
  const std::vector<Guess> guesses = FindGuesses(cluster, {});
  std::vector<std::string> whats;
  for (const Guess& guess : guesses) {
    whats.push_back(guess.what);
    EXPECT_EQ(guess.with(guess.value)->fingerprint(), cluster.fingerprint()) << guess.what;
    EXPECT_NE(guess.with(guess.low)->fingerprint(), cluster.fingerprint()) << guess.what;
  }
  EXPECT_THAT(whats, ElementsAre("peak f32 of a", "efficiency conv of a", "half_rate_outputs of b", "latency of a -> b",
                                 "latency of b -> a"));
  EXPECT_EQ(guesses[2].high_text, "600,000");
  EXPECT_EQ(guesses[1].high, 1) << "no op is faster than the peak";
  EXPECT_EQ(guesses[1].measure, "berth profile");
}

}  // namespace
}  // namespace berth
