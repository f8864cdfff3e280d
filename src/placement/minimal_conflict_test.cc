#include "placement/minimal_conflict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"

namespace berth {
namespace {

TEST(MinimalConflict, FindsAnySetAndGivesUpWhenAsked) {
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    const size_t count = 1 + random.Below(40);
    std::set<size_t> wanted;
    for (size_t k = random.Below(5); k > 0; --k) wanted.insert(random.Below(count));
    int questions = 0;
    const auto conflict = MinimalConflict(count, [&](std::span<const size_t> members) -> std::optional<bool> {
      ++questions;
      return std::ranges::all_of(wanted, [&](size_t w) { return std::ranges::find(members, w) != members.end(); });
    });
    ASSERT_TRUE(conflict);
    EXPECT_EQ(std::set(conflict->begin(), conflict->end()), wanted);
    EXPECT_LE(questions, 60);
  }
  EXPECT_EQ(MinimalConflict(5, [](std::span<const size_t>) { return std::optional<bool>(); }), std::nullopt);
}

}  // namespace
}  // namespace berth
