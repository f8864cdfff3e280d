#include "placement/on_groups.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/error.h"
#include "base/parameters.h"

namespace berth {
namespace {

TEST(OnGroups, TellsWhatPlacesWhichGroups) {
  const auto on = OnGroups::Parse("on(planner=\"local_search(restarts=2)\", group=merge(size=4))");
  ASSERT_TRUE(on);
  EXPECT_EQ(on->group(), "merge(size=4)");
  EXPECT_EQ(on->planner(), "local_search(restarts=2)");
  EXPECT_FALSE(OnGroups::Parse("local_search(restarts=2)"));
}

TEST(OnGroups, HasTheDefaultsOfTheList) {
  const auto on = OnGroups::Parse("on");
  ASSERT_TRUE(on);
  EXPECT_EQ(on->group(), OnGroups::Parameters()[0].default_value);
  EXPECT_EQ(on->planner(), OnGroups::Parameters()[1].default_value);
}

TEST(OnGroups, NamesTheSameGroupsWithAnotherPlanner) {
  const auto name = [](const char* text) { return OnGroups::Parse(text)->NameWith("placeto(checkpoint=run/best)"); };
  EXPECT_EQ(name("on( planner=placeto, group=chain )"), "on(group=chain,planner=placeto(checkpoint=run/best))");
  EXPECT_EQ(name("on(planner=placeto)"), "on(planner=placeto(checkpoint=run/best))");
}

TEST(OnGroups, RefusesWhatItDoesNotTake) { EXPECT_THROW(OnGroups::Parse("on(groups=chain)"), Error); }

class Named : public Planner {
 public:
  Named(std::string name, bool learned) : name_(std::move(name)), learned_(learned) {}
  const std::string& name() const override { return name_; }
  PlannerFacts facts() const override { return {.learned = learned_}; }
  PlanResult MakePlan(const PlanRequest&) override { return {}; }

 private:
  std::string name_;
  bool learned_;
};

TEST(CheckLearns, TellsWhatTrainingWouldTeachNothing) {
  PlannerCatalog planners;
  const auto add = [&](const char* name, bool learned, std::vector<Parameter> parameters) {
    planners.Add({.name = name, .sentence = "-", .source = "-", .parameters = std::move(parameters)},
                 [learned](const Params& params, const PlannerCatalog&) {
                   return std::make_unique<Named>(params.canonical(), learned);
                 });
  };
  add("pupil", true, {Switch("train", "true", "-")});
  add("rule", false, {});
  add("several", false, {{.name = "planners", .type = ParameterType::kSpecs, .sentence = "-"}});
  const auto complaint = [&](const std::string& planner) -> std::string {
    try {
      CheckLearns(planner, planners);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(complaint("pupil"), "");
  EXPECT_EQ(complaint("on(group=chain,planner=pupil)"), "");
  EXPECT_EQ(complaint("pupil(train=false)"),
            "train: pupil(train=false): train=false means that nothing is trained; leave it out");
  EXPECT_EQ(complaint("rule"), "train: rule is not a learned planner; name one, like placeto or hsdag");
  EXPECT_EQ(complaint("on(planner=rule)"), complaint("rule"));
  EXPECT_EQ(complaint("on(planner=on(planner=pupil))"),
            "train: on(planner=pupil): on(...) cannot stand inside on(...); write on(group=...,planner=placeto)");
  EXPECT_EQ(complaint("several(rule,pupil)"),
            "train: several has no policy of its own to train; name pupil without it");
}

}  // namespace
}  // namespace berth
