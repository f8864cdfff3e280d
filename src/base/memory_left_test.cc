#include "base/memory_left.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMi = 1 << 20;

// A system's own files, below a folder of its own.
class MemoryLeftTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::remove_all(root_); }
  void TearDown() override { fs::remove_all(root_); }

  void Put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    WriteFile(root_ + path, text);
  }
  void PutMachine() const {
    Put("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree:  1024 kB\nMemAvailable:    8388608 kB\nBuffers: x\n");
  }
  int64_t Left() const { return MemoryLeft(root_).value_or(Bytes{-1}).value / kMi; }

  const std::string root_ = ::testing::TempDir() + "/berth_memory_left";
};

TEST_F(MemoryLeftTest, IsWhatTheMachineHasAvailable) {
  PutMachine();
  EXPECT_EQ(Left(), 8192);
}

TEST_F(MemoryLeftTest, IsWhatTheOwnGroupLeavesWithoutWhatIsOnlyCached) {
  PutMachine();
  Put("/proc/self/cgroup", "12:cpu:/other\n0::/jobs/one\n");
  Put("/sys/fs/cgroup/jobs/one/memory.max", "1073741824\n");
  Put("/sys/fs/cgroup/jobs/one/memory.current", "943718400\n");
  EXPECT_EQ(Left(), 124);
  Put("/sys/fs/cgroup/jobs/one/memory.stat", "anon 5\ninactive_file 104857600\nactive_file 7\n");
  EXPECT_EQ(Left(), 224);
}

TEST_F(MemoryLeftTest, OfAMachineIsWhatItsGroupsLetItHave) {
  PutMachine();
  EXPECT_FALSE(MemoryLimit(root_));
  Put("/proc/self/cgroup", "0::/jobs/one\n");
  Put("/sys/fs/cgroup/jobs/one/memory.max", "max\n");
  EXPECT_FALSE(MemoryLimit(root_));
  Put("/sys/fs/cgroup/jobs/memory.max", "104857600\n");
  Put("/sys/fs/cgroup/memory.max", "1048576000\n");
  ASSERT_TRUE(MemoryLimit(root_));
  EXPECT_EQ(MemoryLimit(root_)->value, 104857600);
}

TEST_F(MemoryLeftTest, MindsTheGroupsAbove) {
  PutMachine();
  Put("/proc/self/cgroup", "0::/jobs/one\n");
  Put("/sys/fs/cgroup/jobs/one/memory.max", "max\n");
  Put("/sys/fs/cgroup/jobs/one/memory.current", "1048576\n");
  EXPECT_EQ(Left(), 8192);
  Put("/sys/fs/cgroup/jobs/memory.max", "104857600\n");
  Put("/sys/fs/cgroup/jobs/memory.current", "1048576\n");
  EXPECT_EQ(Left(), 99);
}

// In a container the group is the root of what it sees.
TEST_F(MemoryLeftTest, MindsTheRootThatAContainerSees) {
  PutMachine();
  Put("/proc/self/cgroup", "0::/\n");
  Put("/sys/fs/cgroup/memory.max", "2147483648\n");
  Put("/sys/fs/cgroup/memory.current", "3147483648\n");
  EXPECT_EQ(Left(), 0);
}

TEST_F(MemoryLeftTest, IsUnknownWhereNothingSaysIt) { EXPECT_EQ(MemoryLeft(root_), std::nullopt); }

}  // namespace
}  // namespace berth
