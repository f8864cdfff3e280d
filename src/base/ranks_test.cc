#include "base/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/thread_ranks.h"

namespace berth {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::RunRanks;

TEST(RanksTest, EachHasWhatAllHaveGivenInTheOrderOfRanks) {
  const auto mistakes = RunRanks(3, [](Ranks& ranks) {
    for (int round = 0; round < 50; ++round) {
      const auto all = ranks.Exchange(fmt::format("{} of {}", ranks.rank(), round));
      const auto of = [&](int rank) { return fmt::format("{} of {}", rank, round); };
      EXPECT_THAT(all, ElementsAre(of(0), of(1), of(2)));
    }
    EXPECT_EQ(ranks.Any(false), false);
    EXPECT_EQ(ranks.Any(ranks.rank() == 2), true);
    EXPECT_EQ(ranks.FromFirst([&] { return fmt::to_string(ranks.rank()); }), "0");
  });
  EXPECT_THAT(mistakes, Each(IsEmpty()));
}

TEST(RanksTest, OneByItselfHasWhatItGave) {
  Alone alone;
  EXPECT_THAT(alone.Exchange("a"), ElementsAre("a"));
  EXPECT_TRUE(alone.first());
  EXPECT_EQ(alone.End("a mistake"), "") << "nobody else has one";
}

TEST(RanksTest, AMistakeOfOneEndsThoseThatWaitForIt) {
  const auto mistakes = RunRanks(3, [](Ranks& ranks) {
    ranks.Exchange("all is well");
    if (ranks.rank() == 1) throw Error("no such file");
    ranks.Exchange("still");
    ADD_FAILURE() << "rank 1 has said nothing";
  });
  const std::string told = "rank 1 on a thread: no such file";
  EXPECT_THAT(mistakes, ElementsAre(told, "no such file", told));
}

TEST(RanksTest, AMistakeIsToldToThoseThatAreDone) {
  const auto mistakes = RunRanks(2, [](Ranks& ranks) {
    if (ranks.rank() == 1) throw Error("too late");
  });
  EXPECT_THAT(mistakes, ElementsAre("rank 1 on a thread: too late", "too late"));
}

TEST(RanksTest, AMistakeOfAllIsEverybodysOwn) {
  const auto mistakes = RunRanks(2, [](Ranks&) { throw Error("no such planner"); });
  EXPECT_THAT(mistakes, Each("no such planner"));
}

}  // namespace
}  // namespace berth
