#include "exec/detect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace berth {
namespace {

using ::testing::ElementsAre;

TEST(OnePerPhysicalCore, LeavesOutTheFurtherThreadsOfEach) {
  const std::filesystem::path folder = ::testing::TempDir() + "/berth_cores";
  std::filesystem::remove_all(folder);
  // Two cores of two threads each; of cpu4 nothing is said.
  for (int core = 0; core < 4; ++core) {
    const auto topology = folder / fmt::format("cpu{}", core) / "topology";
    std::filesystem::create_directories(topology);
    std::ofstream(topology / "thread_siblings_list") << (core % 2 == 0 ? "0,2\n" : "1,3\n");
  }
  EXPECT_THAT(OnePerPhysicalCore({0, 1, 2, 3, 4}, folder), ElementsAre(0, 1, 4));
  EXPECT_THAT(OnePerPhysicalCore({2, 3}, folder), ElementsAre(2, 3)) << "the others may not be used";
  EXPECT_THAT(OnePerPhysicalCore({5, 6}, folder / "nowhere"), ElementsAre(5, 6));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace berth
