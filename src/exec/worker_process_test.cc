#include "exec/worker_process.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/stopwatch.h"

namespace berth {
namespace {

// A program that is a shell script.
class Script {
 public:
  explicit Script(const std::string& body) {
    std::string folder = (std::filesystem::temp_directory_path() / "berth_worker_XXXXXX").string();
    BERTH_CHECK(::mkdtemp(folder.data()) != nullptr);
    folder_ = folder;
    std::ofstream(path()) << "#!/bin/sh\n" << body;
    std::filesystem::permissions(path(), std::filesystem::perms::owner_all);
  }
  ~Script() { std::filesystem::remove_all(folder_); }
  std::string path() const { return (folder_ / "program").string(); }

 private:
  std::filesystem::path folder_;
};

TEST(WorkerProcess, AnswersOneLineForEachThatItIsAsked) {
  const Script echo("while read -r line; do echo \"{\\\"said\\\": $line}\"; done\n");
  WorkerProcess worker(echo.path());
  EXPECT_EQ(worker.Ask({{"a", 1}}, 10)["said"]["a"], 1);
  EXPECT_EQ(worker.Ask({{"a", 2}}, 10)["said"]["a"], 2);
  EXPECT_TRUE(worker.alive());
}

TEST(WorkerProcess, SaysWhatOneThatDiesWroteLast) {
  const Script dies("read -r line; echo first >&2; echo 'the device is gone' >&2; kill -SEGV $$\n");
  WorkerProcess worker(dies.path());
  const std::string error = worker.Ask({{"a", 1}}, 10)["error"];
  EXPECT_EQ(error, "the process that measures was ended by signal 11 (Segmentation fault): the device is gone");
  EXPECT_FALSE(worker.alive());
  EXPECT_EQ(worker.Ask({{"a", 1}}, 10)["error"], "the process that measures is gone");
}

TEST(WorkerProcess, IsEndedWhenItTakesTooLongOrSomebodyAsksForIt) {
  const Script hangs("read -r line; exec sleep 60\n");
  const Stopwatch watch;
  WorkerProcess slow(hangs.path());
  EXPECT_EQ(slow.Ask({{"a", 1}}, 0.1)["error"], "no answer within 100 ms");
  EXPECT_FALSE(slow.alive());
  WorkerProcess stopped(hangs.path());
  EXPECT_EQ(stopped.Ask({{"a", 1}}, 60, [] { return true; })["error"], "stopped");
  EXPECT_LT(watch.seconds(), 30);
}

TEST(WorkerProcess, ThatSpeaksNoJsonOrEndsByItselfIsNoCrash) {
  const Script babbles("read -r line; echo hello; exec sleep 60\n");
  WorkerProcess worker(babbles.path());
  EXPECT_EQ(worker.Ask({{"a", 1}}, 10)["error"], "the process that measures gave an answer that is no JSON object");
  const Script ends("exit 3\n");
  WorkerProcess ended(ends.path());
  EXPECT_EQ(ended.Ask({{"a", 1}}, 10)["error"], "the process that measures ended with code 3");
  EXPECT_THROW(WorkerProcess("/nowhere/berth-openvino"), Error);
}

}  // namespace
}  // namespace berth
