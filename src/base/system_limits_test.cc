#include "base/system_limits.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/file.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMi = 1 << 20;

// A system's own files, below a folder of its own.
class SystemLimitsTest : public ::testing::Test {
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

  const std::string root_ = ::testing::TempDir() + "/berth_system_limits";
};

TEST_F(SystemLimitsTest, MemoryLeftIsWhatTheMachineHasAvailable) {
  PutMachine();
  EXPECT_EQ(Left(), 8192);
}

TEST_F(SystemLimitsTest, MemoryLeftIsWhatTheOwnGroupLeavesWithoutWhatIsOnlyCached) {
  PutMachine();
  Put("/proc/self/cgroup", "12:cpu:/other\n0::/jobs/one\n");
  Put("/sys/fs/cgroup/jobs/one/memory.max", "1073741824\n");
  Put("/sys/fs/cgroup/jobs/one/memory.current", "943718400\n");
  EXPECT_EQ(Left(), 124);
  Put("/sys/fs/cgroup/jobs/one/memory.stat", "anon 5\ninactive_file 104857600\nactive_file 7\n");
  EXPECT_EQ(Left(), 224);
}

TEST_F(SystemLimitsTest, TheMemoryLimitIsWhatItsGroupsLetAProcessHave) {
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

TEST_F(SystemLimitsTest, MemoryLeftMindsTheGroupsAbove) {
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
TEST_F(SystemLimitsTest, MemoryLeftMindsTheRootThatAContainerSees) {
  PutMachine();
  Put("/proc/self/cgroup", "0::/\n");
  Put("/sys/fs/cgroup/memory.max", "2147483648\n");
  Put("/sys/fs/cgroup/memory.current", "3147483648\n");
  EXPECT_EQ(Left(), 0);
}

// Docker's --cpus and Kubernetes' limits.
TEST_F(SystemLimitsTest, ProcessorsAreWhatTheGroupsLetAProcessHave) {
  const size_t cores = UsableCores().size();
  EXPECT_FALSE(ProcessorLimit(root_));
  EXPECT_EQ(UsableThreads(root_), cores);
  Put("/proc/self/cgroup", "0::/jobs/one\n");
  for (const char* no_limit : {"max 100000\n", "", "100000", "0 100000", "-1 100000", "100000 0"}) {
    Put("/sys/fs/cgroup/jobs/one/cpu.max", no_limit);
    EXPECT_FALSE(ProcessorLimit(root_)) << no_limit;
  }
  Put("/sys/fs/cgroup/jobs/cpu.max", "150000 100000\n");
  EXPECT_EQ(ProcessorLimit(root_), 1.5);
  EXPECT_EQ(ProcessorLimitBelow(2, root_), 1.5);
  EXPECT_FALSE(ProcessorLimitBelow(1, root_));
  EXPECT_EQ(UsableThreads(root_), std::min<size_t>(cores, 2));
  Put("/sys/fs/cgroup/jobs/one/cpu.max", "5000 100000\n");
  EXPECT_EQ(ProcessorLimit(root_), 0.05);
  EXPECT_EQ(UsableThreads(root_), 1U);
}

TEST_F(SystemLimitsTest, ThreadsAreNoMoreThanTheCoresThatTheProcessIsHeldTo) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(UsableCores().back()), &one);
  const std::vector<int> last = {UsableCores().back()};
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(UsableCores(), last);
  EXPECT_EQ(UsableThreads(root_), 1U);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

TEST_F(SystemLimitsTest, MemoryLeftIsUnknownWhereNothingSaysIt) { EXPECT_EQ(MemoryLeft(root_), std::nullopt); }

}  // namespace
}  // namespace berth
