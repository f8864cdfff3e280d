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

TEST(MethodParametersDeathTest, AModeOfAnUnknownParameterIsAMistakeOfTheProgram) {
  MethodCatalog catalog;
  EXPECT_DEATH(AddMethod(catalog, {.name = "toy", .modes = {{"best", {{"sise", "3"}}}}, .make = {}}),
               "toy: mode best sets sise");
}

}  // namespace
}  // namespace berth
