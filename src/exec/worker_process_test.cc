#include "exec/worker_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/stopwatch.h"
#include "exec/worker_script.h"

namespace berth {
namespace {

std::string NameOf(const Script& script) { return std::filesystem::path(script.path()).filename(); }

TEST(WorkerProcess, AnswersOneLineForEachThatItIsAsked) {
  const Script echo("while read -r line; do echo \"{\\\"said\\\": $line}\"; done\n");
  WorkerProcess worker(echo.path());
  EXPECT_EQ(worker.Ask({{"a", 1}}, 10)["said"]["a"], 1);
  EXPECT_EQ(worker.Ask({{"a", 2}}, 10)["said"]["a"], 2);
  EXPECT_EQ(worker.Ask({{"a", "b\xe4"}}, 10)["said"]["a"], "b\xef\xbf\xbd") << "no UTF-8";
  EXPECT_TRUE(worker.alive());
}

TEST(WorkerProcess, SaysWhatOneThatDiesWroteLast) {
  const Script dies("read -r line; echo first >&2; echo 'the device is gone' >&2; kill -SEGV $$\n");
  WorkerProcess worker(dies.path());
  const std::string error = worker.Ask({{"a", 1}}, 10)["error"];
  EXPECT_EQ(error, NameOf(dies) + " was ended by signal 11 (Segmentation fault): the device is gone");
  EXPECT_FALSE(worker.alive());
  EXPECT_EQ(worker.Ask({{"a", 1}}, 10)["error"], NameOf(dies) + " is gone");
}

std::string ErrorAbout(WorkerProcess& worker, const std::string& file) {
  try {
    worker.AskAbout(file, {{"a", 1}}, 10);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(WorkerProcess, NamesTheFileOfWhichItSaysNothingItself) {
  const Script answers("read -r line; echo '{\"b\": 2}'; read -r line; echo '{\"error\": \"net.onnx: no op\"}'\n");
  WorkerProcess worker(answers.path());
  EXPECT_EQ(worker.AskAbout("net.onnx", {{"a", 1}}, 10)["b"], 2);
  EXPECT_EQ(ErrorAbout(worker, "net.onnx"), "net.onnx: no op");
  const Script dies("read -r line; exit 3\n");
  WorkerProcess died(dies.path());
  EXPECT_EQ(ErrorAbout(died, "net.onnx"), "net.onnx: " + NameOf(dies) + " ended with code 3");
}

TEST(WorkerProcess, KnowsThatItDiedWhileItWasAskedNothing) {
  const Script once("read -r line; echo '{}'\n");
  WorkerProcess worker(once.path());
  EXPECT_FALSE(worker.Ask({{"a", 1}}, 10).contains("error"));
  bool died = false;
  for (const Stopwatch watch; !died && watch.seconds() < 30; ::usleep(1000)) died = worker.DiedMeanwhile();
  EXPECT_TRUE(died);
  EXPECT_FALSE(worker.alive());
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

TEST(WorkerProcess, ThatDoesNotReadALongQuestionIsEndedToo) {
  const Script deaf("exec sleep 60\n");
  const nlohmann::json question = {{"a", std::string(size_t{1} << 20, 'x')}};  // more than a pipe holds
  WorkerProcess slow(deaf.path());
  EXPECT_EQ(slow.Ask(question, 0.1)["error"], "no answer within 100 ms");
  WorkerProcess stopped(deaf.path());
  EXPECT_EQ(stopped.Ask(question, 60, [] { return true; })["error"], "stopped");
  const Script reads("read -r line; echo \"{\\\"length\\\": ${#line}}\"\n");
  WorkerProcess heard(reads.path());
  EXPECT_EQ(heard.Ask(question, 60)["length"], question.dump().size());
}

TEST(WorkerProcess, ThatSpeaksNoJsonOrEndsByItselfIsNoCrash) {
  const Script babbles("read -r line; echo hello; exec sleep 60\n");
  WorkerProcess worker(babbles.path());
  EXPECT_EQ(worker.Ask({{"a", 1}}, 10)["error"], NameOf(babbles) + " gave an answer that is no JSON object");
  const Script ends("exit 3\n");
  WorkerProcess ended(ends.path());
  EXPECT_EQ(ended.Ask({{"a", 1}}, 10)["error"], NameOf(ends) + " ended with code 3");
  EXPECT_THROW(WorkerProcess("/nowhere/berth-openvino"), Error);
}

}  // namespace
}  // namespace berth
