// Files of Placeto's, Moirai's and the planted kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "cluster/presets.h"
#include "import/import.h"
#include "import/readers.h"
#include "import/testing.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kSamples = std::string(BERTH_SOURCE_DIR) + "/samples/";
const std::string kData = std::string(BERTH_SHARED_DIR) + "/data/";

using Reader = std::function<void(const std::string&)>;
const Reader kPlaceto = [](const std::string& text) { ReadPlaceto(text, "file.json"); };
const Reader kMoirai = [](const std::string& text) { ReadMoirai(text, "file.json").ToProblem(); };
const Reader kPlanted = [](const std::string& text) { ReadPlanted(text, "file.json").ToProblem(); };

std::string ErrorOf(const Reader& reader, const std::string& text) {
  try {
    reader(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The sample with `from` replaced.
std::string ErrorOf(const Reader& reader, std::string_view sample, std::string_view from, std::string_view to) {
  std::string text = ReadFile(kSamples + std::string(sample));
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return ErrorOf(reader, text.replace(at, from.size(), to));
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  return files;
}

TEST(ReadPlaceto, TakesMicrosecondsByKindOfDevice) {
  const Instance instance = ReadPlaceto(ReadFile(kSamples + "placeto.json"), "placeto.json");
  const Graph& graph = *instance.graph;
  EXPECT_EQ(graph.num_ops(), 8u);
  EXPECT_EQ(graph.num_edges(), 8u);
  EXPECT_EQ(graph.num_tensors(), 9u);
  EXPECT_EQ(graph.tensor_bytes(TensorId{1}), 380000);
  EXPECT_TRUE(graph.is_output(TensorId{8}));
  EXPECT_FALSE(instance.is_whole());
  EXPECT_EQ(instance.evaluator, "placeto");
  EXPECT_EQ(instance.options.seconds_per_unit, 1e-6);

  ClusterCatalog clusters("cluster");
  RegisterPlacetoCluster(clusters);
  const Problem problem = instance.On(std::make_shared<const Cluster>(clusters.Make("placeto(devices=2)")));
  EXPECT_EQ(problem.op_time(OpId{1}, DeviceId{1}), 900);
  EXPECT_EQ(problem.bandwidth()[1], 7600);
  const auto cpu = std::make_shared<const Cluster>(
      "pair", std::vector<Device>{{.name = "a", .kind = "cpu"}, {.name = "b", .kind = "npu"}},
      std::vector<Link>(4, Link{.bandwidth = {.value = 1e9}}));
  try {
    instance.On(cpu);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "sample: there are no costs for device b of kind npu; the file has costs for cpu and gpu: name "
                 "another cluster");
  }
}

TEST(ReadPlaceto, KeepsIdsThatAreNotTopological) {
  const Instance instance =
      ReadPlaceto(R"({"nodes": [{"id": 7, "cost_us": 1, "out_bytes": [1]}, {"id": 3, "cost_us": 2, "out_bytes": [2]}],
                                            "edges": [[3, 7, 0]]})",
                  "file.json");
  const OpId first = instance.graph->op_at_file_position(0);
  EXPECT_EQ(first, OpId{1});
  EXPECT_THAT(instance.file_ids, ElementsAre(3, 7));
  EXPECT_THAT(instance.times_by_kind.at("gpu"), ElementsAre(2, 1));
}

TEST(ReadPlaceto, TakesTheLastOfSeveralOutputsAndGivesUnlistedOnesNoBytes) {
  const Instance instance =
      ReadPlaceto(R"({"nodes": [{"id": 0, "cost_us": 1, "out_bytes": [5, 6]}, {"id": 1, "cost_us": 2, "out_bytes": []}],
                                            "edges": [[0, 1, 3], [0, 1, 1]]})",
                  "file.json");
  EXPECT_EQ(instance.graph->num_tensors(), 4u);
  EXPECT_EQ(instance.graph->tensor_bytes(TensorId{3}), 0);
  EXPECT_THAT(instance.graph->inputs_of(OpId{1}), ElementsAre(TensorId{1}));
  EXPECT_THAT(instance.graph->notes(), ::testing::Contains(HasSubstr("only the last counts")));
}

TEST(ReadPlaceto, ReadsEveryPublishedGraph) {
  const auto files = FilesIn(kData + "placeto/graphs");
  if (files.empty()) GTEST_SKIP() << "no data set in " << kData;
  EXPECT_EQ(files.size(), 17u);
  for (const std::string& path : files) {
    const std::string content = ReadFile(path);
    EXPECT_TRUE(LooksLikePlaceto(content) && !LooksLikePlanted(content) && !LooksLikeMoirai(content)) << path;
    EXPECT_GT(ReadPlaceto(content, path).graph->num_ops(), 0u) << path;
  }
}

TEST(ReadPlaceto, SaysWhatIsWrongWhere) {
  const auto error = [](std::string_view from, std::string_view to) {
    return ErrorOf(kPlaceto, "placeto.json", from, to);
  };
  EXPECT_EQ(error("\"cost_us\": 900", "\"cost_us\": -900"),
            "file.json: nodes[1].cost_us: expected an integer from 0 to 1000000000000");
  EXPECT_THAT(error("\"cost_us\": 900", "\"cost_us\": 1.5"), HasSubstr("nodes[1].cost_us: expected an integer"));
  EXPECT_THAT(error("\"cost_us\": 900", "\"cost_us\": NaN"), HasSubstr("file.json:"));
  EXPECT_THAT(error("\"cost_us\": 900", "\"price\": 900"), HasSubstr("nodes[1].cost_us: is missing"));
  EXPECT_EQ(error("\"id\": 5", "\"id\": 4"),
            "file.json: nodes[5].id: 4 is the id of nodes[4] already; give each node its own");
  EXPECT_EQ(error("[0, 4, 1]", "[0, 44, 1]"),
            "file.json: edges[1][1]: no node has the id 44; remove the edge or add the node");
  EXPECT_EQ(error("[0, 4, 1]", "[0, 4]"), "file.json: edges[1]: has 2 entries; expected 3");
  EXPECT_EQ(error("[0, 4, 1]", "[0, 4, -1]"), "file.json: edges[1][2]: is -1; expected an integer from 0 to 65535");
  EXPECT_EQ(error("[760000, 380000]", "[760000, \"many\"]"),
            "file.json: nodes[0].out_bytes[1]: is string; expected an integer from 0 to 70368744177664");
  std::string many = "1";
  for (int i = 0; i < 65536; ++i) many += ",1";
  EXPECT_EQ(error("[760000, 380000]", "[" + many + "]"),
            "file.json: nodes[0].out_bytes: has 65537 entries; expected at most 65536");
  // Every edge asks for as many outputs as a node may have.
  std::string nodes, edges;
  for (int i = 0; i < 17; ++i) {
    nodes += fmt::format("{{\"id\": {}, \"cost_us\": 1, \"out_bytes\": []}},", i);
    edges += fmt::format("{}[{}, 17, 65535]", i > 0 ? "," : "", i);
  }
  EXPECT_THAT(ErrorOf(kPlaceto, fmt::format("{{\"nodes\": [{}{{\"id\": 17, \"cost_us\": 1, \"out_bytes\": []}}], "
                                            "\"edges\": [{}]}}",
                                            nodes, edges)),
              HasSubstr("edges[15]: output 65535 and those before it: more than 1000000 outputs"));
  EXPECT_THAT(error("\"n_nodes\": 8", "\"n_nodes\": 9"),
              HasSubstr("n_nodes: is 9, but there are 8; the file is cut or was edited"));
  EXPECT_THAT(error("\"note\"", "\"remark\""), HasSubstr("remark"));
  EXPECT_THAT(error("[3, 7, 0]", "[7, 0, 0]"), HasSubstr("cycle"));
  EXPECT_THAT(error("microseconds", "seconds"), HasSubstr("expected microseconds"));
  EXPECT_EQ(ErrorOf(kPlaceto, "{\"nodes\": [], \"edges\": []}"),
            "file.json: nodes: is empty; there is nothing to place");
}

TEST(ReadMoirai, GivesEachEdgeATensorWithTimesOfItsOwn) {
  const Problem problem = ReadMoirai(ReadFile(kSamples + "moirai.json"), "moirai.json").ToProblem();
  EXPECT_EQ(problem.num_devices(), 2u);
  EXPECT_EQ(problem.op_time(OpId{1}, DeviceId{0}), 4);
  EXPECT_EQ(problem.graph().op_name(OpId{1}), "task20");
  EXPECT_EQ(problem.graph().num_tensors(), 4u);
  EXPECT_EQ(problem.transfer_time(TensorId{1}, DeviceId{0}, DeviceId{1}), 2.5);
  EXPECT_EQ(problem.transfer_time(TensorId{3}, DeviceId{1}, DeviceId{0}), 3.5);
  EXPECT_EQ(problem.memory_limit(DeviceId{1}), 6);
  EXPECT_EQ(problem.graph().total_parameter_bytes(), 10);
}

TEST(ReadMoirai, ReadsEveryPublishedInstance) {
  const auto files = FilesIn(kData + "moirai");
  if (files.empty()) GTEST_SKIP() << "no data set in " << kData;
  EXPECT_EQ(files.size(), 3u);
  for (const std::string& path : files) {
    const std::string content = ReadFile(path);
    EXPECT_TRUE(LooksLikeMoirai(content) && !LooksLikePlanted(content) && !LooksLikePlaceto(content)) << path;
    const Instance instance = ReadMoirai(content, path);
    EXPECT_EQ(instance.evaluator, "parallel(contention=ports,io=everywhere)");
    EXPECT_EQ(instance.graph->num_tensors(), instance.graph->num_edges());
    instance.ToProblem();
  }
}

TEST(ReadMoirai, SaysWhatIsWrongWhere) {
  const auto error = [](std::string_view from, std::string_view to) {
    return ErrorOf(kMoirai, "moirai.json", from, to);
  };
  EXPECT_EQ(error("[4.0, 2.0]", "[4.0, -2.0]"),
            "file.json: tasks[1].time[1]: is -2; expected a number from 0 to 1000000000000000");
  EXPECT_EQ(error("[4.0, 2.0]", "[4.0]"), "file.json: tasks[1].time: has 1 entries; expected 2");
  EXPECT_EQ(error("\"id\": 30", "\"id\": 20"),
            "file.json: tasks[2].id: 20 is the id of tasks[1] already; give each task its own");
  EXPECT_EQ(error("\"dst\": 30", "\"dst\": 31"),
            "file.json: edges[1].dst: no task has the id 31; remove the edge or add the task");
  EXPECT_EQ(error("[[0.0, 1.5], [1.0, 0.0]]", "[[0.0, 1.5], [1.0, 0.5]]"),
            "file.json: edges[0].comm[1][1]: is 0.5; a tensor that stays on its device takes no time");
  EXPECT_THAT(error("\"mem\": 3.0", "\"mem\": null"), HasSubstr("tasks[0].mem: expected a number, not null"));
  EXPECT_EQ(error("\"mem\": 3.0", "\"mem\": 1e14"),
            "file.json: tasks[0].mem: is 100000000000000; expected a number from 0 to 70368744177664");
  EXPECT_THAT(error("\"memory\"", "\"memories\""), HasSubstr("memory: is missing"));
  EXPECT_THAT(error("\"num_devices\": 2", "\"num_devices\": 3"), HasSubstr("memory: has 2 entries; expected 3"));
}

TEST(ReadPlanted, BringsThePlantedPlanAndTheOptimum) {
  const Instance instance = ReadPlanted(ReadFile(kSamples + "planted.json"), "planted.json");
  const Problem problem = instance.ToProblem();
  EXPECT_EQ(instance.published.at("optimum"), 10);
  ASSERT_TRUE(instance.plan.has_value());
  EXPECT_THAT(instance.plan->device, ElementsAre(DeviceId{0}, DeviceId{1}, DeviceId{0}, DeviceId{1}));
  EXPECT_EQ(FindViolation(problem, instance.plan->view()), std::nullopt);
  EXPECT_EQ(problem.transfer_time(TensorId{2}, DeviceId{1}, DeviceId{0}), 5.5);
}

TEST(ReadPlanted, ReadsEveryPublishedInstance) {
  auto files = FilesIn(kData + "planted");
  if (files.empty()) GTEST_SKIP() << "no data set in " << kData;
  EXPECT_EQ(files.size(), 12u);
  files.push_back(kData + "classic/topcuoglu.json");
  for (const std::string& path : files) {
    const std::string content = ReadFile(path);
    EXPECT_TRUE(LooksLikePlanted(content) && !LooksLikePlaceto(content) && !LooksLikeMoirai(content)) << path;
    EXPECT_GT(ReadPlanted(content, path).published.at("optimum"), 0) << path;
  }
  EXPECT_EQ(ReadPlanted(ReadFile(files.back()), files.back()).published.at("heft_makespan"), 80);
}

TEST(ReadPlanted, SaysWhatIsWrongWhere) {
  const auto error = [](std::string_view from, std::string_view to) {
    return ErrorOf(kPlanted, "planted.json", from, to);
  };
  EXPECT_EQ(error("[7.5, 6]", "[7.5, -6]"),
            "file.json: cost[1][1]: is -6; expected a number from 0 to 1000000000000000");
  EXPECT_EQ(error("[7.5, 6]", "[7.5]"), "file.json: cost[1]: has 1 entries; expected 2");
  EXPECT_EQ(error("[1, 3, 5.5]", "[1, 4, 5.5]"), "file.json: edges[2][1]: is 4; expected an integer from 0 to 3");
  EXPECT_EQ(error("[1, 3, 5.5]", "[1, 3, \"x\"]"), "file.json: edges[2][2]: is string; expected a number");
  EXPECT_EQ(error("[1, 6]]", "[2, 6]]"), "file.json: planted[3][0]: is 2; expected an integer from 0 to 1");
  EXPECT_EQ(error(", [1, 6]]", "]"), "file.json: planted: has 3 entries; expected 4");
  EXPECT_THAT(error("\"optimum\"", "\"optimal\""), HasSubstr("optimal"));
  const std::string row = fmt::format("[{}]", fmt::join(std::vector<int>(1024, 1), ","));
  std::string edges = "[0, 1, 1]";
  for (int i = 1; i < 129; ++i) edges += ", [0, 1, 1]";
  EXPECT_THAT(ErrorOf(kPlanted, fmt::format("{{\"procs\": 1024, \"cost\": [{0}, {0}], \"edges\": [{1}]}}", row, edges)),
              HasSubstr("procs: is 1024: too many for 129 edges"));
}

TEST(ReadInstance, KnowsEachSampleByItsContent) {
  const ModelCatalog models("model");
  EXPECT_EQ(ReadInstance(kSamples + "placeto.json", models).evaluator, "placeto");
  EXPECT_EQ(ReadInstance(kSamples + "moirai.json", models).evaluator, "parallel(contention=ports,io=everywhere)");
  EXPECT_TRUE(ReadInstance(kSamples + "planted.json", models).plan.has_value());
  EXPECT_EQ(ReadInstance(kSamples + "ir.xml", models).graph->num_ops(), 3u);
  EXPECT_EQ(ReadInstance(kSamples + "ir.xml", models, {.format = "ir(view=raw)"}).graph->num_ops(), 9u);
}

// Each damaged file is read, or refused in one line that names it.
TEST(ReadInstance, AnyDamageIsAnErrorOrAnInstance) {
  const std::pair<const char*, const Reader*> kinds[] = {
      {"placeto.json", &kPlaceto}, {"moirai.json", &kMoirai}, {"planted.json", &kPlanted}};
  Random random(20260101);
  for (const auto& [sample, reader] : kinds) {
    const std::string whole = ReadFile(kSamples + sample);
    for (int round = 0; round < 1500; ++round) {
      const std::string text = testing::Damaged(whole, random, "0123456789-e.[]{},\":");
      try {
        (*reader)(text);
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("file.json"));
        EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("\n")));
      }
    }
  }
}

}  // namespace
}  // namespace berth
