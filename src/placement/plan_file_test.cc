#include "placement/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "placement/testing.h"

namespace berth {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Plan SomePlan(const Problem& problem, Random& random, bool priorities, bool sequence) {
  Plan plan;
  plan.device = testing::RandomPlacement(problem, random);
  for (const OpId op : problem.graph().ops()) plan.SetCause(op, random.Chance(0.5) ? "moved" : "start");
  if (priorities) {
    for (size_t i = 0; i < problem.num_ops(); ++i) plan.priority.push_back(random.Uniform());
  }
  if (sequence) plan.sequence = testing::RandomSequence(problem, plan.device, random);
  return plan;
}

PlanFile SomeFile(const Problem& problem, const Plan& plan) {
  PlanFile file = MakePlanFile(problem, plan);
  file.model = "net.onnx";
  file.shapes = {"input=1,3,224,224"};
  file.cluster = "two";
  file.device_file = "name: two\n\ndevices:\n  a: {kind: \"cpu\"}\n";
  file.costs = "roofline";
  file.constraints = {"pin a=d0", "keep-free 10%"};
  file.evaluator = "parallel(contention=ports)";
  file.planner = "annealing";
  file.seed = 18446744073709551615ull;
  file.budget = "200evals";
  file.ended = SearchEnd::kClock;
  file.score_seconds = 0.1 + 0.2;
  file.lower_bound_seconds = 1e-300;
  return file;
}

// Three ops in a row and one beside them, with these names.
Problem Named(const std::vector<std::string>& names, double bytes = 10, double latency = 0) {
  GraphBuilder builder("named");
  for (size_t i = 0; i < 4; ++i) {
    builder.AddOp(names[i], "T", {});
    builder.AddTensor(i, static_cast<int64_t>(bytes));
  }
  builder.Consume(0, 1);
  builder.Consume(1, 2);
  return Problem(std::make_shared<const Graph>(builder.Build()),
                 std::make_shared<const Cluster>(testing::UniformCluster(2, latency)),
                 {.time = std::vector<double>(8, 1.0), .source = "unit"});
}

std::string MessageOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
    return error.what();
  }
  return "no error";
}

std::string ParseMessage(std::string_view text) {
  return MessageOf([&] { ParsePlanFile(text, "p.json"); });
}

TEST(PlanFile, ComesBackAsItWasWritten) {
  Random random(7);
  for (int i = 0; i < 40; ++i) {
    const Problem problem = testing::RandomProblem(random);
    const Plan plan = SomePlan(problem, random, i % 2 == 1, i % 3 == 2);
    const std::string text = WritePlanFile(SomeFile(problem, plan));
    const PlanFile file = ParsePlanFile(text, "p.json");
    EXPECT_EQ(WritePlanFile(file), text);
    std::vector<std::string> warnings;
    EXPECT_EQ(BindPlan(file, problem, warnings), plan);
    EXPECT_THAT(warnings, IsEmpty());
  }
}

TEST(PlanFile, KeepsItsStringsAndNumbers) {
  const Problem problem = Named({"a", "b", "c", "d"});
  Plan plan{.device = std::vector<DeviceId>(4)};
  const PlanFile file = ParsePlanFile(WritePlanFile(SomeFile(problem, plan)), "p.json");
  EXPECT_EQ(file.model, "net.onnx");
  EXPECT_EQ(file.shapes, std::vector<std::string>{"input=1,3,224,224"});
  EXPECT_EQ(file.constraints, (std::vector<std::string>{"pin a=d0", "keep-free 10%"}));
  EXPECT_EQ(file.device_file, "name: two\n\ndevices:\n  a: {kind: \"cpu\"}\n");
  EXPECT_EQ(file.ended, SearchEnd::kClock);
  EXPECT_EQ(file.seed, 18446744073709551615ull);
  EXPECT_EQ(file.score_seconds, 0.1 + 0.2);
  EXPECT_EQ(file.lower_bound_seconds, 1e-300);
  EXPECT_EQ(file.ops, (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST(PlanFile, FollowsNamesWhenOpsOfEqualShapeAreSwapped) {
  const Plan plan{.device = {DeviceId{0}, DeviceId{1}, DeviceId{1}, DeviceId{0}}};
  const PlanFile file = ParsePlanFile(WritePlanFile(SomeFile(Named({"a", "b", "c", "d"}), plan)), "p.json");
  std::vector<std::string> warnings;
  const Plan bound = BindPlan(file, Named({"b", "a", "c", "d"}), warnings);
  EXPECT_EQ(bound.device, (std::vector<DeviceId>{DeviceId{1}, DeviceId{0}, DeviceId{1}, DeviceId{0}}));
}

TEST(PlanFile, FollowsPositionsWhenOpsWereRenamed) {
  const Plan plan{.device = {DeviceId{0}, DeviceId{1}, DeviceId{1}, DeviceId{0}}};
  const PlanFile file = ParsePlanFile(WritePlanFile(SomeFile(Named({"a", "b", "c", "d"}), plan)), "p.json");
  std::vector<std::string> warnings;
  EXPECT_EQ(BindPlan(file, Named({"w", "x", "y", "z"}), warnings).device, plan.device);
  EXPECT_EQ(BindPlan(file, Named({"b", "x", "y", "z"}), warnings).device, plan.device);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(PlanFile, RefusesAChangedModelAndOnlyWarnsOfAChangedCluster) {
  const Plan plan{.device = std::vector<DeviceId>(4)};
  const PlanFile file = ParsePlanFile(WritePlanFile(SomeFile(Named({"a", "b", "c", "d"}), plan)), "p.json");
  std::vector<std::string> warnings;
  EXPECT_THAT(MessageOf([&] { BindPlan(file, Named({"a", "b", "c", "d"}, 11), warnings); }),
              AllOf(HasSubstr("p.json"), HasSubstr("named has changed"), HasSubstr("berth plan")));
  EXPECT_THAT(MessageOf([&] { BindPlan(file, testing::Chain(3, 2), warnings); }), HasSubstr("for 4 ops"));
  EXPECT_THAT(warnings, IsEmpty());
  EXPECT_EQ(BindPlan(file, Named({"a", "b", "c", "d"}, 10, 1), warnings).device, plan.device);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], HasSubstr("what-if"));
}

TEST(PlanFile, RefusesADeviceThatTheClusterLacksOnlyWhenItIsUsed) {
  const Problem two = Named({"a", "b", "c", "d"});
  const Problem one(two.shared_graph(), std::make_shared<const Cluster>(testing::UniformCluster(1)),
                    {.time = std::vector<double>(4, 1.0), .source = "unit"});
  std::vector<std::string> warnings;
  const Plan spread{.device = {DeviceId{0}, DeviceId{1}, DeviceId{1}, DeviceId{0}}};
  EXPECT_THAT(
      MessageOf([&] { BindPlan(ParsePlanFile(WritePlanFile(SomeFile(two, spread)), "p.json"), one, warnings); }),
      AllOf(HasSubstr("'d1'"), HasSubstr("it has: d0")));
  const Plan single{.device = std::vector<DeviceId>(4)};
  EXPECT_EQ(BindPlan(ParsePlanFile(WritePlanFile(SomeFile(two, single)), "p.json"), one, warnings).device,
            single.device);
}

TEST(PlanFile, EveryTruncationIsRefusedInOneLine) {
  Random random(3);
  const Problem problem = testing::RandomProblem(random, {.ops = 3, .devices = 2});
  const std::string text = WritePlanFile(SomeFile(problem, SomePlan(problem, random, true, true)));
  for (size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_THAT(ParseMessage(std::string_view(text).substr(0, size)), HasSubstr("p.json")) << size;
  }
}

TEST(PlanFile, EveryMissingOrMistypedKeyIsNamed) {
  Random random(3);
  const Problem problem = testing::RandomProblem(random, {.ops = 5, .devices = 2});
  const auto document = nlohmann::json::parse(WritePlanFile(SomeFile(problem, SomePlan(problem, random, true, true))));
  const nlohmann::json flat = document.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    const nlohmann::json::json_pointer at(pointer);
    for (const nlohmann::json& wrong : {nlohmann::json(nlohmann::json::object()), nlohmann::json(-1.5)}) {
      if (value.is_number() && !value.is_number_integer() && wrong.is_number()) continue;
      nlohmann::json changed = document;
      changed[at] = wrong;
      EXPECT_THAT(ParseMessage(changed.dump()), HasSubstr("p.json: ")) << pointer << " = " << wrong;
    }
    if (document[at.parent_pointer()].is_array()) continue;
    nlohmann::json changed = document;
    changed[at.parent_pointer()].erase(at.back());
    EXPECT_THAT(ParseMessage(changed.dump()), HasSubstr("p.json: ")) << pointer;
  }
}

TEST(PlanFile, SaysWhereTheMistakeIs) {
  const Plan plan{.device = std::vector<DeviceId>(4)};
  auto document = nlohmann::json::parse(WritePlanFile(SomeFile(Named({"a", "b", "c", "d"}), plan)));
  document["ops"][2]["device"] = "tpu";
  EXPECT_EQ(ParseMessage(document.dump()), "p.json: ops[2].device: 'tpu' is no device of this plan; there are: d0, d1");
  document["ops"][2] = {{"op", "c"}, {"device", "d0"}, {"colour", "red"}};
  EXPECT_EQ(ParseMessage(document.dump()), "p.json: ops[2].colour: unknown key; remove it");
  document["ended"] = "badly";
  EXPECT_EQ(ParseMessage(document.dump()),
            "p.json: ended: there is no 'badly'; expected one of itself, evaluations, clock, interrupted");
  EXPECT_EQ(ParseMessage("{\"berth_plan\": 1}"),
            "p.json: berth_plan: this Berth reads plans of version 2, not 1; make a new one with `berth plan`");
  EXPECT_THAT(ParseMessage("{\"berth_plan\": 2, \"berth_plan\": 2}"), HasSubstr("the key 'berth_plan' is there twice"));
  EXPECT_THAT(ParseMessage("[1]"), HasSubstr("is no plan file"));
  EXPECT_THAT(ParseMessage("\x08 a model"),
              HasSubstr("is no plan file of Berth's (it is no JSON object); `berth plan"));
  EXPECT_THAT(ParseMessage(""), HasSubstr("is empty"));
  EXPECT_THAT(ParseMessage("{\"berth_plan\": 1e999}"), HasSubstr("a number beyond"));
}

TEST(PlanFile, ListsOfAMillionLevelsAreRefused) {
  const Plan plan{.device = std::vector<DeviceId>(4)};
  std::string text = WritePlanFile(SomeFile(Named({"a", "b", "c", "d"}), plan));
  constexpr size_t kLevels = 1'000'000;
  const std::string deep = std::string(kLevels, '[') + std::string(kLevels, ']');
  text.insert(text.rfind('}'), ", \"sequence\": {\"ops\": [" + deep + "], \"transfers\": []}");
  EXPECT_EQ(ParseMessage(text), "p.json: sequence.ops: array is no position in ops, which has 4");
}

TEST(PlanFile, NamesThatAreNotUtf8DoNotPreventIt) {
  const Plan plan{.device = {DeviceId{0}, DeviceId{1}, DeviceId{1}, DeviceId{0}}};
  const Problem problem = Named({"a\xff\"", "b\n", "c", "d"});
  const PlanFile file = ParsePlanFile(WritePlanFile(SomeFile(problem, plan)), "p.json");
  std::vector<std::string> warnings;
  EXPECT_EQ(BindPlan(file, problem, warnings).device, plan.device);
}

}  // namespace
}  // namespace berth
