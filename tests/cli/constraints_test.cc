// Constraints on the built program: kept, stored, contradictory, mistaken.
#include <gmock/gmock.h>

#include "tests/cli/run_berth.h"

namespace berth::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// On cpu_gpu, whose devices are cpu and gpu.
Outcome Plan(std::vector<std::string> options) {
  options.insert(options.begin(), {"plan", "resnet50", "--cluster", "cpu_gpu", "--budget", "100evals"});
  return RunBerth(options);
}

std::vector<std::string> With(std::vector<std::string> options, const std::vector<std::string>& more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

void ExpectMistake(const std::vector<std::string>& options, const std::string& message) {
  const Outcome outcome = Plan(options);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_EQ(outcome.err, "berth: " + message + "\n");
}

// Of an answer that there is no plan.
json Impossible(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_EQ(outcome.json().at("feasible"), false);
  return outcome.json().at("impossible");
}

std::vector<std::string> Stated(const json& impossible) {
  std::vector<std::string> texts;
  for (const json& one : impossible.at("constraints")) texts.push_back(one.at("constraint"));
  return texts;
}

TEST(Constraints, AreKeptByPlansAndNamedByReports) {
  const std::vector<std::string> rules = {
      "--pin",      "/layer1/*=gpu",      "--forbid",   "type:Gemm=gpu",
      "--colocate", "/layer3/layer3.0/*", "--separate", "/conv1/Conv,/layer4/layer4.2/conv3/Conv",
      "--memory",   "gpu=80MiB"};
  const Outcome page = Plan(rules);
  EXPECT_EQ(page.code, 0) << page.err;
  EXPECT_THAT(page.out, AllOf(HasSubstr("keeps        pin /layer1/*=gpu"), HasSubstr("memory gpu=80MiB")));

  const json plan = Plan(With(rules, {"--json"})).json();
  const json& place = plan.at("assignment");
  for (const auto& [op, device] : place.items()) {
    if (op.starts_with("/layer1/")) {
      EXPECT_EQ(device, "gpu") << op;
    }
    if (op.starts_with("/layer3/layer3.0/")) {
      EXPECT_EQ(device, place.at("/layer3/layer3.0/conv1/Conv")) << op;
    }
  }
  EXPECT_EQ(place.at("/fc/Gemm"), "cpu");
  EXPECT_NE(place.at("/conv1/Conv"), place.at("/layer4/layer4.2/conv3/Conv"));
  EXPECT_EQ(plan.at("constraints").size(), 5u);

  const Outcome compared =
      RunBerth(With({"compare", "resnet50", "--planners", "heft,mincut", "--budget", "50evals"}, rules));
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_THAT(compared.out, AllOf(HasSubstr("keeps        pin /layer1/*=gpu"),
                                  HasSubstr("it cannot keep ops apart (constraint separate)")));
}

TEST(Constraints, OfAFileAreThoseOfTheCommandLine) {
  const Folder folder;
  Write(folder / "rules.yaml", "pin: [/layer1/*=gpu]\nforbid:\n  - type:Gemm=gpu\nkeep-free: 10%\n");
  const json file = Plan({"--constraints", folder / "rules.yaml", "--json"}).json();
  const json line =
      Plan({"--pin", "/layer1/*=gpu", "--forbid", "type:Gemm=gpu", "--keep-free", "10%", "--json"}).json();
  EXPECT_EQ(file.at("constraints"), line.at("constraints"));
  EXPECT_EQ(file.at("assignment"), line.at("assignment"));
}

TEST(Constraints, AreInThePlanFile) {
  const Folder folder;
  const std::string plan = folder / "p.json";
  EXPECT_EQ(Plan({"--pin", "/layer1/*=cpu", "--forbid-transfer", "/maxpool/MaxPool_output_0=gpu>cpu", "-o", plan}).code,
            0);
  const std::vector<std::string> check = {"check", plan};
  EXPECT_THAT(RunBerth(check).out, HasSubstr("held    constraints: 2 kept"));
  EXPECT_THAT(RunBerth({"simulate", "--plan", plan}).out, HasSubstr("keeps        pin /layer1/*=cpu"));
  EXPECT_THAT(RunBerth({"explain", plan, "--op", "/layer1/layer1.0/conv1/Conv"}).out, HasSubstr("gpu not allowed"));
  EXPECT_THAT(RunBerth({"explain", plan, "--op", "/maxpool/MaxPool"}).out, HasSubstr("(not allowed)"));

  // Another question about the same plan.
  const std::vector<std::string> other = With(check, {"--pin", "/layer1/*=gpu"});
  const Outcome broken = RunBerth(other);
  EXPECT_EQ(broken.code, 1);
  EXPECT_EQ(broken.out,
            "MISSED  constraints: pin /layer1/*=gpu: op /layer1/layer1.0/conv1/Conv is on cpu (the first of 22 such "
            "ops)\n");
  EXPECT_EQ(RunBerth(With(other, {"--json"})).json().at("passed"), false);
  const Outcome simulated = RunBerth({"simulate", "--plan", plan, "--pin", "/layer1/*=gpu"});
  EXPECT_EQ(simulated.code, 2);
  EXPECT_THAT(simulated.err, HasSubstr("p.json: breaks constraint `pin /layer1/*=gpu`"));
}

TEST(Constraints, HoldForGivenPlacementsToo) {
  const std::vector<std::string> call = {"check", "--model", "chain(ops=4)", "--placement", "0,0,1,1"};
  EXPECT_EQ(RunBerth(With(call, {"--pin", "*_0=cpu"})).code, 0);
  EXPECT_EQ(RunBerth(With(call, {"--pin", "*_3=cpu"})).code, 1);
}

TEST(Constraints, MistakesNameThePlaceAndTheNearestName) {
  ExpectMistake({"--pin", "/conv1/Cov=gpu"},
                "pin '/conv1/Cov=gpu': no op of resnet50 matches '/conv1/Cov', did you mean '/conv1/Conv'?");
  ExpectMistake({"--pin", "/leyer1/*=gpu"},
                "pin '/leyer1/*=gpu': no op of resnet50 matches '/leyer1/*', did you mean '/layer1/*'?");
  ExpectMistake({"--forbid", "re:.*blubb=gpu"},
                "forbid 're:.*blubb=gpu': no op of resnet50 matches 're:.*blubb'; the first is '/conv1/Conv'");
  ExpectMistake({"--pin", "/conv1/*=gpo"},
                "pin '/conv1/*=gpo': cluster cpu_gpu has no device 'gpo' (did you mean gpu?); it has cpu, gpu");
  ExpectMistake({"--keep-free", "10"}, "keep-free '10': '10' is no share of the whole: write 10% or 0.1");
  ExpectMistake(
      {"--memory", "gpu=1000GiB"},
      "memory 'gpu=1000GiB': gpu has only 14.9 GiB; a budget can lower that, not raise it (a device file can)");
  ExpectMistake({"--constraints", "nowhere.yaml"},
                "nowhere.yaml: cannot be read: No such file or directory; check the path");
  ExpectMistake({"--planner", "mincut", "--separate", "/conv1/Conv,/fc/Gemm"},
                "mincut does not answer this problem: it cannot keep ops apart (constraint separate); `berth list "
                "planners` shows others");
  const Folder folder;
  const std::string rules = folder / "rules.yaml";
  Write(rules, "forbid: a=cpu\npni: b=cpu\n");
  const Outcome outcome = Plan({"--constraints", rules});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("rules.yaml:2: list of constraints: unknown key 'pni' (did you mean pin?)"));
}

TEST(Constraints, AMistakeInAPlanFileNamesIt) {
  const Folder folder;
  const std::string plan = folder / "p.json";
  EXPECT_EQ(Plan({"--pin", "/layer1/*=cpu", "-o", plan}).code, 0);
  std::string text = Content(plan);
  text.replace(text.find("/layer1/*"), 9, "/layerx/*");
  Write(plan, text);
  const Outcome outcome = RunBerth({"check", plan});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "berth: " + plan +
                             ": constraints: pin '/layerx/*=cpu': no op of resnet50 matches '/layerx/*', did you mean "
                             "'/layer1/*'?\n");
}

TEST(NoPlan, WhatToDoAboutMemoryIsEnough) {
  const json lacks = Impossible(Plan({"--pin", "*=gpu", "--memory", "gpu=1MiB", "--json"}));
  const std::string remedy = lacks.at("remedies").at(1);
  const std::string needed = remedy.substr(remedy.rfind(' ') + 1);
  EXPECT_THAT(remedy, HasSubstr("raise `memory gpu=1MiB`: gpu needs at least ")) << lacks;
  // The weights have room then; what more is needed, a search says.
  const Outcome outcome = Plan({"--pin", "*=gpu", "--memory", "gpu=" + needed, "--json"});
  EXPECT_FALSE(outcome.json().contains("impossible")) << needed;
}

TEST(NoPlan, SaysThatConstraintsKeepAModelOffADevice) {
  EXPECT_THAT(Plan({"--pin", "*=cpu"}).out, HasSubstr("the whole model does not run on gpu with these constraints"));
}

TEST(NoPlan, NamesTheSmallestConflict) {
  const std::vector<std::string> rules = {"--keep-free", "10%",           "--pin", "/layer1/*=gpu",
                                          "--pin",       "/layer2/*=cpu", "--pin", "*conv3*=gpu"};
  const Outcome page = Plan(rules);
  EXPECT_EQ(page.code, 1);
  EXPECT_THAT(page.err, IsEmpty());
  EXPECT_THAT(
      page.out,
      AllOf(HasSubstr("No plan exists: op /layer2/layer2.0/conv3/Conv (Conv) may be on no device."),
            HasSubstr("The 2 constraints that together make it so:\n    - pin /layer2/*=cpu\n    - pin *conv3*=gpu\n"),
            HasSubstr("What to do (one of these; if more is wrong, it shows then):"), Not(HasSubstr("layer1"))));
  const json impossible = Impossible(Plan(With(rules, {"--json"})));
  EXPECT_EQ(impossible.at("kind"), "placement");
  EXPECT_THAT(Stated(impossible), ElementsAre("pin /layer2/*=cpu", "pin *conv3*=gpu"));
  EXPECT_THAT(impossible.at("ops"), ElementsAre("/layer2/layer2.0/conv3/Conv"));
  EXPECT_EQ(impossible.at("remedies").size(), 2u);

  EXPECT_THAT(Stated(Impossible(Plan({"--pin", "/layer1/*=gpu", "--colocate", "/layer*", "--separate",
                                      "/layer1/layer1.0/Add,/layer4/layer4.0/Add", "--json"}))),
              ElementsAre("colocate /layer*", "separate /layer1/layer1.0/Add,/layer4/layer4.0/Add"));
  EXPECT_EQ(RunBerth({"compare", "resnet50", "--pin", "/fc/*=gpu", "--forbid", "*=gpu"}).code, 1);
}

TEST(NoPlan, NamesTheMemoryThatCannotBeEnough) {
  const std::vector<std::string> rules = {"--pin", "type:Conv=gpu", "--memory", "gpu=10MiB", "--keep-free", "cpu=50%"};
  const json impossible = Impossible(Plan(With(rules, {"--json"})));
  EXPECT_EQ(impossible.at("kind"), "memory");
  EXPECT_THAT(Stated(impossible), ElementsAre("pin type:Conv=gpu", "memory gpu=10MiB"));
  EXPECT_THAT(impossible.at("devices"), ElementsAre("gpu"));
  EXPECT_EQ(impossible.at("available_bytes"), 10 << 20);
  EXPECT_GT(impossible.at("needed_bytes"), 80 << 20);
  EXPECT_THAT(Plan(rules).out, HasSubstr("raise `memory gpu=10MiB`: gpu needs at least 90MiB"));
  // What a remedy says is enough.
  EXPECT_NE(Plan({"--pin", "type:Conv=gpu", "--memory", "gpu=100MiB"}).code, 2);
}

TEST(NoPlan, IsNotClaimedWithoutProof) {
  const Outcome outcome = Plan({"--memory", "*=50MiB"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("DOES NOT FIT"), HasSubstr("though there may be one"), HasSubstr("or allow")));
}

}  // namespace
}  // namespace berth::testing
