#include "placement/on_groups.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace berth
