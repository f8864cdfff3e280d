#include "base/in_parallel.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace berth {
namespace {

TEST(InParallel, CallsEachOnceAndThrowsTheFirstOfWhatWasThrown) {
  for (const int64_t threads : {1, 2, 5, 50}) {
    std::vector<int> called(20, 0);
    std::string what;
    try {
      InParallel(20, threads, [&](size_t i) {
        ++called[i];
        if (i == 7 || i == 13) throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    EXPECT_EQ(called, std::vector<int>(20, 1));
    EXPECT_EQ(what, "7");
  }
  InParallel(0, 3, [](size_t) { FAIL() << "there is nothing to call"; });
}

}  // namespace
}  // namespace berth
