#include "learn/method_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/parameters.h"

namespace berth {
namespace {

using ::testing::HasSubstr;

// A method that keeps what it was made with.
struct Toy {
  Toy() {
    AddMethod(catalog, {.name = "toy",
                        .sentence = "Learns nothing.",
                        .parameters = {Whole("size", "3", "how large it is")},
                        .modes = {{"ours", {{"size", "5"}, {"entropy", "0.5"}}},
                                  {"paper", {{"reward", "inverse"}, {"learning_rate", "0.25"}}},
                                  {"code", {{"reward", "inverse"}}}},
                        .default_evaluations = 77,
                        .make = [this](const Params&, const Params& params, Method&) { size = params.Int("size"); }});
  }
  Method Make(const std::string& text) { return catalog.Make(text); }
  const Parameter& Declared(const std::string& name) const {
    return *std::ranges::find(catalog.Find("toy")->info.parameters, name, &Parameter::name);
  }

  MethodCatalog catalog;
  int64_t size = 0;
};

TEST(MethodParameters, AModeSaysWhatIsNotGiven) {
  Toy toy;
  Method method = toy.Make("toy");
  EXPECT_EQ(toy.size, 5);
  EXPECT_EQ(method.learner.entropy.first, 0.5);
  EXPECT_EQ(method.rule.reward, Reward::kLog);
  EXPECT_EQ(method.default_evaluations, 77);
  EXPECT_EQ(method.name, "toy");

  method = toy.Make("toy(mode=paper)");
  EXPECT_EQ(toy.size, 3) << "the plain default, not that of the first mode";
  EXPECT_EQ(method.learner.entropy.first, 0);
  EXPECT_EQ(method.rule.reward, Reward::kInverse);
  EXPECT_EQ(method.learner.learning_rate.first, 0.25);

  method = toy.Make("toy(mode=paper,size=9,reward=time)");
  EXPECT_EQ(toy.size, 9);
  EXPECT_EQ(method.rule.reward, Reward::kNegative);
  EXPECT_EQ(method.name, "toy(mode=paper,size=9,reward=time)");
}

TEST(MethodParameters, ListsTellWhatOtherModesSay) {
  const Toy toy;
  EXPECT_EQ(toy.Declared("size").default_value, "5");
  EXPECT_EQ(toy.Declared("size").sentence, "how large it is; 3 in modes paper and code");
  EXPECT_THAT(toy.Declared("learning_rate").sentence, HasSubstr("; 0.25 in mode paper"));
  EXPECT_EQ(toy.Declared("epochs").sentence.find("in mode"), std::string::npos);
  EXPECT_EQ(toy.Declared("mode").choices, (std::vector<std::string>{"ours", "paper", "code"}));
}

TEST(MethodParameters, TheLastLearningRateIsTheFirstWhereOnlyThatIsGiven) {
  Toy toy;
  EXPECT_EQ(toy.Make("toy(learning_rate=0.5)").learner.learning_rate.last, 0.5);
  EXPECT_EQ(toy.Make("toy(learning_rate=0.001)").name, "toy(learning_rate=0.001)") << "its name says that it was given";
  EXPECT_EQ(toy.Make("toy(learning_rate=0.5,learning_rate_end=0.1)").learner.learning_rate.last, 0.1);
  EXPECT_EQ(toy.Make("toy(learning_rate=0)").learner.learning_rate.first, 0) << "an untrained twin";
}

// What all methods share has one name, one meaning and one place in every list.
TEST(MethodParameters, AllMethodsTakeTheSameParametersOfTraining) {
  MethodCatalog methods;
  RegisterMethods(methods);
  const std::vector<Parameter> training = TrainingParameters();
  for (const EntryInfo& info : methods.Infos()) {
    std::map<std::string, int> count;
    for (const Parameter& parameter : info.parameters) ++count[parameter.name];
    for (const Parameter& parameter : training) EXPECT_EQ(count[parameter.name], 1) << info.name << parameter.name;
    // Each default is one that the parameter takes.
    for (const Parameter& parameter : info.parameters) {
      if (parameter.default_value.empty()) continue;
      EXPECT_NO_THROW(methods.Make(fmt::format("{}({}={})", info.name, parameter.name, parameter.default_value)))
          << parameter.name;
    }
  }
}

// A name says all that was given, so that whoever makes it anew gets the same.
TEST(MethodParameters, TheNameOfAMethodMakesItAgain) {
  MethodCatalog methods;
  RegisterMethods(methods);
  for (const char* const name : {"tabular(learning_rate=0.5,learning_rate_end=0.1)", "tabular(learning_rate_end=0.1)",
                                 "rnn(learning_rate=0.001)", "hsdag(learning_rate=0.001,learning_rate_end=0.0003)",
                                 "placeto(mode=paper,learning_rate_end=0.0001)"}) {
    const Method once = methods.Make(name), again = methods.Make(once.name);
    EXPECT_EQ(once.name, again.name);
    EXPECT_EQ(once.learner.learning_rate.first, again.learner.learning_rate.first) << name;
    EXPECT_EQ(once.learner.learning_rate.last, again.learner.learning_rate.last) << name;
  }
}

// As published, and as the released code has it; the policies' own parameters are in their lists.
TEST(MethodParameters, ModesSetTheTrainingThatTheyAreNamedFor) {
  MethodCatalog methods;
  RegisterMethods(methods);
  const Method hsdag = methods.Make("hsdag(mode=paper)");
  EXPECT_EQ(hsdag.rule.reward, Reward::kInverse);
  EXPECT_EQ(hsdag.rule.credit, Credit::kOwn);
  EXPECT_EQ(hsdag.rule.baseline, Baseline::kNone);
  EXPECT_EQ(hsdag.rule.gamma, 0.95);
  EXPECT_EQ(hsdag.learner.learning_rate.first, 1e-4);
  EXPECT_EQ(hsdag.learner.learning_rate.last, 1e-4);
  EXPECT_EQ(hsdag.learner.entropy.first, 0);
  EXPECT_FALSE(hsdag.make_critic);
  const Method code = methods.Make("hsdag(mode=code)");
  EXPECT_EQ(code.rule.credit, Credit::kBuffer);
  EXPECT_EQ(code.learner.learning_rate.first, 1e-3);
  EXPECT_EQ(code.learner.learning_rate.last, 1e-3);
  EXPECT_TRUE(code.scoring.reject_single_device);
  const Method best = methods.Make("hsdag");
  EXPECT_EQ(best.rule.reward, Reward::kNegative);
  EXPECT_EQ(best.rule.baseline, Baseline::kBatch);
  EXPECT_EQ(best.learner.learning_rate.first, 1e-3);
  EXPECT_EQ(best.learner.learning_rate.last, 3e-4);
  EXPECT_EQ(best.imagined, 30);
  EXPECT_TRUE(best.make_critic);
  const Method placeto = methods.Make("placeto(mode=paper)");
  EXPECT_EQ(placeto.rule.reward, Reward::kNegative);
  EXPECT_EQ(placeto.rule.credit, Credit::kToGo);
  EXPECT_EQ(placeto.rule.baseline, Baseline::kWindow);
  EXPECT_EQ(placeto.rule.clip_ratio, 0);
  EXPECT_EQ(placeto.rule.epochs, 1);
  EXPECT_FALSE(placeto.rule.normalise);
  EXPECT_EQ(placeto.learner.learning_rate.first, 1e-3);
  EXPECT_EQ(placeto.learner.learning_rate.last, 1e-4);
  EXPECT_EQ(placeto.learner.entropy.first, 1);
  EXPECT_EQ(placeto.learner.clip_norm, 1.25);
  EXPECT_FALSE(placeto.seeded);
  const Method rnn = methods.Make("rnn(mode=paper)");
  EXPECT_EQ(rnn.rule.reward, Reward::kSquareRoot);
  EXPECT_EQ(rnn.rule.baseline, Baseline::kMoving);
  EXPECT_EQ(rnn.learner.rollouts, 4);
  EXPECT_EQ(rnn.learner.learning_rate.first, 0.1);
}

TEST(MethodParametersDeathTest, AModeWithAnUnknownValueIsAMistakeOfTheProgram) {
  MethodCatalog catalog;
  EXPECT_DEATH(AddMethod(catalog, {.name = "toy", .modes = {{"best", {{"credit", "all"}}}}, .make = {}}),
               "mode best of toy: .*credit=all");
}

TEST(MethodParametersDeathTest, AModeOfAnUnknownParameterIsAMistakeOfTheProgram) {
  MethodCatalog catalog;
  EXPECT_DEATH(AddMethod(catalog, {.name = "toy", .modes = {{"best", {{"sise", "3"}}}}, .make = {}}),
               "mode best of toy: .*no parameter .sise");
}

}  // namespace
}  // namespace berth
