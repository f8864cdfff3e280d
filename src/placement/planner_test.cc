#include "placement/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace berth {
namespace {

using ::testing::HasSubstr;

TEST(Budget, ReadsEvaluationsSecondsOrBoth) {
  EXPECT_EQ(Budget::Parse("200evals").evaluations, 200);
  EXPECT_EQ(Budget::Parse("10s").seconds, 10);
  const Budget both = Budget::Parse("200evals, 500ms");
  EXPECT_EQ(both.evaluations, 200);
  EXPECT_EQ(both.seconds, 0.5);
  EXPECT_EQ(both.ToString(), "200evals,0.5s");
}

TEST(Budget, RefusesWhatIsNone) {
  for (const char* text :
       {"evals", "0evals", "-3evals", "10", "1.5evals", "0s", "soon", "10s,", "", "1s,2s", "10evals,10evals"}) {
    try {
      Budget::Parse(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("200evals,10s")) << text;
    }
  }
}

}  // namespace
}  // namespace berth
