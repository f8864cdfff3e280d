#include "exec/openvino.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "exec/worker_script.h"
#include "placement/testing.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Opens and runs anything, and ends, with these last words, where it is asked something that contains `fatal`.
std::string DiesOf(const std::string& fatal, const std::string& words) {
  return R"(
while read -r line; do
  case $line in
    *'"do":"open"'*) echo '{"ops": 2, "ops_found": 2, "ops_missing": [], "weights_filled": 0, "version": "none"}' ;;
    *')" +
         fatal + "'*) echo '" + words + R"(' >&2; kill -KILL $$ ;;
    *)
      way='{"seconds": [0.5, 0.5], "stolen": [0, 0], "precision": "f32", "subgraphs": 1}'
      ways=$way
      for more in $(echo "$line" | grep -o '"how"' | tail -n +2); do ways="$ways, $way"; done
      echo "{\"ways\": [$ways]}" ;;
  esac
done
)";
}

// Of a run in which an op is on the second device and the next on the first.
std::string DiesOfOnePlan() { return DiesOf(R"("device":[1,0])", "this plan is too much"); }

TEST(OpenVino, APlanThatEndsTheProcessIsTheOnlyOneThatFails) {
  const Script program(DiesOfOnePlan());
  const Problem problem = testing::Chain(2, 2);
  OpenVino runtime(problem, "model.onnx", program.path());
  const auto on = [](size_t first, size_t second) {
    return std::vector<DeviceId>{MakeId<DeviceId>(first), MakeId<DeviceId>(second)};
  };
  const std::vector<RunWay> ways = {{.how = "parallel", .device = on(0, 1)},
                                    {.how = "parallel", .device = on(1, 0)},
                                    {.how = "alone", .on = MakeId<DeviceId>(0)}};
  const std::vector<Measurement> measured = runtime.Run(ways, {.rounds = 2});
  ASSERT_EQ(measured.size(), 3u);
  EXPECT_THAT(measured[0].error, IsEmpty());
  EXPECT_EQ(measured[0].seconds.size(), 2u);
  EXPECT_THAT(measured[1].error, HasSubstr("signal 9"));
  EXPECT_THAT(measured[1].error, HasSubstr("this plan is too much"));
  EXPECT_THAT(measured[2].error, IsEmpty());
  // By itself it fails at once, and what comes after it runs.
  EXPECT_THAT(runtime.Run({ways[1]}, {.rounds = 2}).front().error, HasSubstr("signal 9"));
  EXPECT_THAT(runtime.Run({ways[0]}, {.rounds = 2}).front().error, IsEmpty());
}

TEST(OpenVino, APlanRunsWhereTheWholeModelThatItIsComparedWithEndsTheProcess) {
  const Script program(DiesOf(R"("compare":true)", "the whole model is too much"));
  const Problem problem = testing::Chain(2, 2);
  OpenVino runtime(problem, "model.onnx", program.path());
  const std::vector<RunWay> ways = {{.how = "parallel", .device = {DeviceId{0}, DeviceId{1}}},
                                    {.how = "alone", .on = DeviceId{1}}};
  for (const size_t count : {2, 1}) {
    const std::vector<Measurement> measured =
        runtime.Run({ways.begin(), ways.begin() + static_cast<ptrdiff_t>(count)}, {.rounds = 1, .compare = true});
    ASSERT_EQ(measured.size(), count);
    for (const Measurement& one : measured) {
      EXPECT_THAT(one.error, IsEmpty());
      EXPECT_FALSE(one.outputs);
      EXPECT_THAT(one.no_reference, HasSubstr("the whole model is too much"));
    }
  }
}

// In a slow first round and a second one at the pace of the device file.
constexpr const char* kSlowAtFirst = R"(
while read -r line; do
  case $line in
    *'"do":"open"'*) echo '{"ops": 2, "ops_found": 2, "ops_missing": [], "weights_filled": 0, "version": "none"}' ;;
    *'"do":"run"'*)
      echo '{"ways": [{"seconds": [0.6, 0.3, 0.3], "slowdown": [2, 1, 1], "stolen": [0, 0, 0], "precision": "f32", "subgraphs": 1}]}' ;;
    *)
      echo '{"devices": [{"ops": [[0.2, 2], [0.4, 2]], "kernels": [], "totals": [0.6], "seconds": [0.8, 0.8, 0.6], "slowdown": [2, 2, 2], "stolen": [0, 0, 0], "unassigned": 0}]}' ;;
  esac
done
)";

TEST(OpenVino, TellsRunsAndProfilesAtThePaceOfTheDeviceFile) {
  const Script program(kSlowAtFirst);
  const Problem problem = testing::Chain(2, 2);
  OpenVino runtime(problem, "model.onnx", program.path());
  const Measurement measured = runtime.Run({{.how = "alone", .on = DeviceId{0}}}, {.rounds = 3}).front();
  EXPECT_THAT(measured.seconds, ElementsAre(0.6, 0.3, 0.3)) << "as they were";
  EXPECT_EQ(measured.seconds_at_file_pace(), 0.3);
  EXPECT_EQ(measured.typical_slowdown(), 1);
  const std::vector<DeviceId> devices = {DeviceId{0}};
  const OpMeasurement profile = runtime.Profile(devices, {.rounds = 3}).front();
  EXPECT_EQ(profile.slowdown, 2);
  EXPECT_THAT(profile.seconds, ElementsAre(0.4, 0.4, 0.3));
  EXPECT_THAT(profile.op_seconds, ElementsAre(0.2, 0.4)) << "these come so";
}

TEST(OpenVino, RunsOfWhichNoPaceIsKnownAreToldAsTheyWere) {
  const Measurement measured{.seconds = {0.5, 0.7}};
  EXPECT_EQ(measured.seconds_at_file_pace(), 0.6);
  EXPECT_EQ(measured.typical_slowdown(), 1);
}

TEST(OpenVino, DrawsOpsByTheirPredictedTimesWhereTheirOwnCannotBeMeasured) {
  const Script program(DiesOf(R"("do":"op_times")", "no counters"));
  const Problem problem = testing::Chain(3, 2);
  OpenVino runtime(problem, "model.onnx", program.path());
  const std::vector<DeviceId> device = {DeviceId{0}, DeviceId{1}, DeviceId{1}};
  const OpMeasurement ops = runtime.ProfileHetero(device, {.rounds = 2});
  EXPECT_THAT(ops.error, HasSubstr("no counters"));
  const std::vector<double>& seconds = ops.op_seconds;
  ASSERT_EQ(seconds.size(), 3u);
  for (const OpId op : problem.graph().ops()) {
    EXPECT_EQ(seconds[Index(op)], problem.op_time(op, device[Index(op)]) * problem.seconds_per_unit());
  }
  const Measurement run{.seconds = {0.5}, .subgraphs = 2};
  const Timeline timeline = MakeMeasuredTimeline(problem, device, run, seconds);
  EXPECT_NEAR(timeline.ops.back().end * problem.seconds_per_unit(), 0.5, 1e-12);
  for (const OpRun& op : timeline.ops) EXPECT_GT(op.end, op.start);
}

TEST(OpenVino, RefusesAnswersThatDoNotFitTheProblem) {
  const auto answers = [](const std::string& with) {
    return R"(
read -r line; echo '{"ops": 2, "ops_found": 2, "ops_missing": [], "weights_filled": 0, "version": "none"}'
read -r line; echo ')" +
           with + "'\n";
  };
  const auto way = [](const std::string& parts, const std::string& seconds = "[0.5, 0.5]") {
    return R"({"ways": [{"seconds": )" + seconds +
           R"(, "stolen": [0, 0], "precision": "f32", "subgraphs": 1, "parts": )" + parts +
           R"(, "part_runs": [[0, 1]], "part_seconds": [1], "transfers": []}]})";
  };
  const auto profile = [](const std::string& ops, const std::string& kernels = "[]") {
    return R"({"devices": [{"ops": )" + ops + R"(, "kernels": )" + kernels +
           R"(, "totals": [1], "seconds": [1], "stolen": [0], "unassigned": 0}]})";
  };
  const std::string ops = "[[0.1, 2], [0.1, 2]]";
  const Problem problem = testing::Chain(2, 2);
  const std::vector<DeviceId> devices = {DeviceId{0}};
  struct Case {
    std::string answer, what;
  };
  for (const Case& one : std::vector<Case>{
           {way(R"([{"device": 7, "ops": [0, 1]}])"), "device 7, where there are 2"},
           {way(R"([{"device": -1, "ops": [0, 1]}])"), "device -1, where there are 2"},
           {way(R"([{"device": 0, "ops": [0, 2]}])"), "op 2, where there are 2"},
           {way("[]", "[0.5]"), "1 run, where 2 were asked for"},
           {profile("[[0.1, 2]]"), "1 op, where 2 were asked for"},
           {profile(ops, "[[0, 5]]"), "op 5, where there are 2"},
           {R"({"devices": []})", "0 devices, where 1 were asked for"},
       }) {
    const Script program(answers(one.answer));
    OpenVino runtime(problem, "model.onnx", program.path());
    try {
      if (one.answer.starts_with(R"({"ways")")) {
        runtime.Run({{.how = "alone", .on = DeviceId{0}}}, {.rounds = 2});
      } else {
        runtime.Profile(devices, {.rounds = 1});
      }
      ADD_FAILURE() << "it took " << one.answer;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("berth-openvino tells of " + one.what));
    }
  }
}

TEST(OpenVino, RefusesAPathThatItCannotNameToTheProcess) {
  const Script program(DiesOfOnePlan());
  const Problem problem = testing::Chain(2, 2);
  try {
    const OpenVino runtime(problem, "mod\xe8le.onnx", program.path());
    FAIL() << "it took the path";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("its path is not UTF-8"));
  }
}

}  // namespace
}  // namespace berth
