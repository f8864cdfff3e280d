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
    EXPECT_FALSE(score.feasible);
    EXPECT_EQ(score.time, kCannotRun);
    return;
  }
  EXPECT_TRUE(score.feasible);
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

// Score says by how much a plan exceeds its limits: with limits of zero, that is the sum of the peaks.
void CheckScoredPeaks(const Evaluator& evaluator, const Plan& plan, const Json& answer) {
  if (answer.is_null()) return;
  int64_t sum = 0;
  for (const int64_t peak : answer["peak_bytes"]) sum += peak;
  const std::unique_ptr<Workspace> workspace = evaluator.NewWorkspace();
  const Score score = evaluator.ScorePlan(plan.view(), *workspace);
  EXPECT_EQ(score.time, answer["score"].get<double>());
  EXPECT_EQ(score.excess_bytes, sum);
  EXPECT_EQ(score.feasible, sum == 0);
}

TEST(ReferenceCases, AgreeToTheLastBit) {
  const char* other = std::getenv("BERTH_REFERENCE_CASES");
  const std::string path = other != nullptr ? other : BERTH_SOURCE_DIR "/tests/data/reference_cases.json";
  const Json cases = ReadJson(path);
  EvaluatorCatalog catalog("evaluator");
  RegisterParallel(catalog);
  RegisterSerial(catalog);
  size_t checked = 0;
  for (const Json& json : cases) {
    SCOPED_TRACE("case " + std::to_string(checked) + " of " + path);
    const Problem problem = ReadProblem(json["problem"]);
    const Problem without_memory(
        problem.shared_graph(), problem.shared_cluster(),
        {.time = {problem.op_times(OpId{0}).begin(),
                  problem.op_times(OpId{0}).begin() + problem.num_ops() * problem.num_devices()},
         .measured = {},
         .source = "case"},
        {.memory_limits = std::vector<int64_t>(problem.num_devices(), 0)});
    const Plan plan = ReadPlan(json);
    for (const std::string contention : {"none", "egress", "ports"}) {
      SCOPED_TRACE(contention);
      const Json& answer = json["answers"][contention];
      CheckParallel(*catalog.Make("parallel(contention=" + contention + ")", problem), plan, answer);
      CheckScoredPeaks(*catalog.Make("parallel(contention=" + contention + ")", without_memory), plan, answer);
    }
    const double overhead = json["subgraph_overhead"];
    const auto serial = catalog.Make(fmt::format("serial(subgraph_overhead={})", overhead), problem);
    const Timeline timeline = serial->Trace(plan.view());
    EXPECT_EQ(timeline.score.time, json["answers"]["serial"]["score"].get<double>());
    EXPECT_EQ(timeline.subgraphs, json["answers"]["serial"]["subgraphs"].get<size_t>());
    EXPECT_THAT(Verify(*serial, plan.view(), timeline), testing::IsEmpty());
    ++checked;
    if (HasFailure()) break;
  }
  EXPECT_GT(checked, 0u);
  RecordProperty("cases", static_cast<int>(checked));
  std::printf("%zu reference cases checked: %s\n", checked, path.c_str());
}

}  // namespace
}  // namespace berth
