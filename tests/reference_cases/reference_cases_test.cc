// Problems with the answers of a slow, obvious simulator: every number must agree to the last bit.
// BERTH_REFERENCE_CASES names another file of the same form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/file.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using Json = nlohmann::json;

Problem ReadProblem(const Json& json) {
  const Json& duration = json["duration"];
  const size_t devices = duration[0].size();
  GraphBuilder builder("case");
  for (size_t v = 0; v < duration.size(); ++v) {
    builder.AddOp("op" + std::to_string(v), "Op", {.workspace_bytes = json["ops"][v]["workspace_bytes"]});
  }
  for (const Json& tensor : json["tensors"]) {
    const size_t t = builder.AddTensor(tensor["producer"], tensor["bytes"], {}, tensor["output"]);
    for (const size_t op : tensor["consumers"]) builder.Consume(t, op);
  }
  for (const Json& parameter : json["parameters"]) {
    const size_t p = builder.AddParameter(parameter["bytes"]);
    for (const size_t op : parameter["consumers"]) builder.UseParameter(p, op);
  }
  std::vector<Device> list(devices);
  std::vector<Link> links;
  for (size_t p = 0; p < devices; ++p) {
    list[p].name = "d" + std::to_string(p);
    list[p].kind = "cpu";
    for (size_t q = 0; q < devices; ++q) {
      const double bandwidth = p == q ? 1.0 : json["bandwidth"][p][q].get<double>();
      links.push_back({.latency = {.value = json["latency"][p][q]}, .bandwidth = {.value = bandwidth}, .domain = {}});
    }
  }
  OpTimes times{.time = {}, .measured = {}, .source = "case"};
  for (const Json& row : duration) times.time.insert(times.time.end(), row.begin(), row.end());
  return Problem(std::make_shared<const Graph>(builder.Build()),
                 std::make_shared<const Cluster>("case", std::move(list), std::move(links)), std::move(times));
}

Plan ReadPlan(const Json& json) {
  Plan plan;
  for (const int device : json["placement"]) plan.device.push_back(DeviceId{device});
  if (!json["priority"].is_null()) plan.priority = json["priority"].get<std::vector<double>>();
  if (!json["sequence"].is_null()) {
    plan.sequence.emplace();
    for (const int op : json["sequence"][0]) plan.sequence->ops.push_back(OpId{op});
    for (const Json& pair : json["sequence"][1]) {
      plan.sequence->transfers.emplace_back(TensorId{pair[0].get<int>()}, DeviceId{pair[1].get<int>()});
    }
  }
  return plan;
}

using Transfer = std::tuple<int, int, int, double, double>;

// Under parallel(contention=...): null where the sequence contradicts itself.
void CheckParallel(const Evaluator& evaluator, const Plan& plan, const Json& answer) {
  const std::unique_ptr<Workspace> workspace = evaluator.NewWorkspace();
  std::vector<double> starts(plan.device.size());
  const Score score = evaluator.ScorePlan(plan.view(), *workspace, starts);
  const Timeline timeline = evaluator.Trace(plan.view());
  EXPECT_EQ(score, timeline.score);
  if (answer.is_null()) {
    EXPECT_FALSE(score.fits());
    EXPECT_EQ(score.time, kCannotRun);
    return;
  }
  EXPECT_TRUE(score.fits());
  EXPECT_EQ(score.time, answer["score"].get<double>());
  EXPECT_EQ(starts, answer["start"].get<std::vector<double>>());
  std::vector<Transfer> transfers;
  for (const TransferRun& t : timeline.transfers) {
    transfers.emplace_back(static_cast<int>(t.tensor), static_cast<int>(t.from), static_cast<int>(t.to), t.start,
                           t.end);
  }
  std::ranges::sort(transfers);
  EXPECT_EQ(transfers, answer["transfers"].get<std::vector<Transfer>>());
  std::vector<int64_t> peaks;
  for (const DeviceMemory& memory : timeline.memory) peaks.push_back(memory.peak_bytes);
  EXPECT_EQ(peaks, answer["peak_bytes"].get<std::vector<int64_t>>());
  for (size_t v = 0; v < starts.size(); ++v) EXPECT_EQ(timeline.ops[v].start, starts[v]);
  EXPECT_THAT(Verify(evaluator, plan.view(), timeline), testing::IsEmpty());
}

// The same problem on devices that hold nothing.
Problem WithoutMemory(const Problem& problem) {
  OpTimes times{.time = {}, .measured = {}, .source = "case"};
  for (const OpId op : problem.graph().ops()) {
    times.time.insert(times.time.end(), problem.op_times(op).begin(), problem.op_times(op).end());
  }
  return Problem(problem.shared_graph(), problem.shared_cluster(), std::move(times),
                 {.memory_limits = std::vector<int64_t>(problem.num_devices(), 0)});
}

// Score says by how much a plan exceeds its limits: with limits of zero, that is the sum of the peaks.
void CheckScoredPeaks(const Evaluator& evaluator, const Plan& plan, const Json& answer) {
  if (answer.is_null()) return;
  int64_t sum = 0;
  for (const int64_t peak : answer["peak_bytes"]) sum += peak;
  const std::unique_ptr<Workspace> workspace = evaluator.NewWorkspace();
  const Score score = evaluator.ScorePlan(plan.view(), *workspace);
  EXPECT_EQ(score.time, answer["score"].get<double>());
  EXPECT_EQ(score.excess_bytes, sum);
  EXPECT_EQ(score.fits(), sum == 0);
}

class ReferenceCases : public ::testing::Test {
 protected:
  ReferenceCases() {
    RegisterParallel(catalog_);
    RegisterSerial(catalog_);
    const char* other = std::getenv("BERTH_REFERENCE_CASES");
    path_ = other != nullptr ? other : BERTH_SOURCE_DIR "/tests/data/reference_cases.json";
    cases_ = ReadJson(path_);
  }

  // check(problem, plan, case) of every case, up to the first that is wrong.
  template <typename Check>
  void ForEachCase(Check check) {
    size_t checked = 0;
    for (const Json& json : cases_) {
      SCOPED_TRACE("case " + std::to_string(checked));
      check(ReadProblem(json["problem"]), ReadPlan(json), json);
      ++checked;
      if (HasFailure()) break;
    }
    EXPECT_GT(checked, 0u);
    RecordProperty("cases", static_cast<int>(checked));
    std::printf("%zu of %zu reference cases checked: %s\n", checked, cases_.size(), path_.c_str());
  }

  void CheckContention(const std::string& contention) {
    ForEachCase([&](const Problem& problem, const Plan& plan, const Json& json) {
      const Json& answer = json["answers"][contention];
      const std::string name = "parallel(contention=" + contention + ",io=everywhere)";
      CheckParallel(*catalog_.Make(name, problem), plan, answer);
      CheckScoredPeaks(*catalog_.Make(name, WithoutMemory(problem)), plan, answer);
    });
  }

  EvaluatorCatalog catalog_{"evaluator"};
  std::string path_;
  Json cases_;
};

TEST_F(ReferenceCases, AgreeWithoutContention) { CheckContention("none"); }
TEST_F(ReferenceCases, AgreeWithEgressPorts) { CheckContention("egress"); }
TEST_F(ReferenceCases, AgreeWithPortsAtBothEnds) { CheckContention("ports"); }

TEST_F(ReferenceCases, AgreeInSeries) {
  ForEachCase([&](const Problem& problem, const Plan& plan, const Json& json) {
    const double overhead = json["subgraph_overhead"];
    const auto serial = catalog_.Make(fmt::format("serial(subgraph_overhead={},io=everywhere)", overhead), problem);
    const Timeline timeline = serial->Trace(plan.view());
    EXPECT_EQ(timeline.score.time, json["answers"]["serial"]["score"].get<double>());
    EXPECT_EQ(timeline.subgraphs, json["answers"]["serial"]["subgraphs"].get<size_t>());
    EXPECT_THAT(Verify(*serial, plan.view(), timeline), testing::IsEmpty());
  });
}

}  // namespace
}  // namespace berth
