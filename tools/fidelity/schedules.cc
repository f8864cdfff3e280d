// Instances whose optimum is known, each with a plan that reaches it, and the sizes of HSDAG's graphs.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "import/model_families.h"
#include "import/readers.h"
#include "placement/grouping.h"
#include "sim/simulators.h"
#include "tools/fidelity/fidelity.h"

namespace berth {
namespace {

double ScoreOf(const Problem& problem, const Plan& plan, std::string_view evaluator, bool& fits) {
  EvaluatorCatalog evaluators("evaluator");
  RegisterParallel(evaluators);
  const auto violation = FindViolation(problem, plan.view());
  BERTH_CHECK(!violation, "{}", violation.value_or(""));
  const Score score = evaluators.Make(evaluator, problem)->Trace(plan.view()).score;
  fits = score.fits();
  return score.time;
}

// A plan that keeps the order of `ops`, and of the transfers, which leave one by one for the consumers in this order.
// Numbers are those of the file's tasks.
Plan InOrder(const Graph& graph, std::span<const int> device, std::span<const int> ops,
             std::span<const int> transfers) {
  Plan plan;
  plan.device.resize(graph.num_ops());
  for (size_t p = 0; p < device.size(); ++p)
    plan.device[Index(graph.op_at_file_position(p))] = static_cast<DeviceId>(device[p]);
  Sequence& sequence = plan.sequence.emplace();
  for (const int position : ops) sequence.ops.push_back(graph.op_at_file_position(static_cast<size_t>(position)));
  for (const int tensor : transfers) {
    const auto id = static_cast<TensorId>(tensor);
    sequence.transfers.emplace_back(id, plan.device[Index(graph.consumers(id).front())]);
  }
  return plan;
}

void AddPlanted(const std::string& folder, FidelityTable& table) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  }
  std::ranges::sort(paths);
  for (const std::string& path : paths) {
    const Instance instance = ReadPlanted(ReadFile(path), path);
    FidelityRow row{.what = instance.graph->name(), .published = instance.published.at("optimum")};
    row.ours = ScoreOf(instance.ToProblem(), *instance.plan, instance.evaluator, row.fits);
    table.rows.push_back(std::move(row));
  }
}

// The first of three devices that are full to the last unit; found by a search, proven optimal by an integer program.
void AddMoirai(const std::string& path, FidelityTable& table) {
  constexpr int kDevice[] = {2, 2, 1, 2, 0, 0, 1, 1, 1, 2, 0, 1, 2, 0};
  constexpr int kOps[] = {0, 2, 7, 1, 3, 9, 4, 5, 6, 8, 10, 11, 12, 13};
  constexpr int kTransfers[] = {1, 4, 7, 2, 3, 9, 10, 8, 12, 13, 15, 16, 14, 18, 17};
  const Instance instance = ReadMoirai(ReadFile(path), path);
  const Plan plan = InOrder(*instance.graph, kDevice, kOps, kTransfers);
  FidelityRow row{.what = "Moirai, example-1", .published = 30};
  row.ours = ScoreOf(instance.ToProblem(), plan, "parallel(contention=ports,io=everywhere)", row.fits);
  table.rows.push_back(std::move(row));
}

void AddClassic(const std::string& path, FidelityTable& table) {
  constexpr int kDevice[] = {2, 2, 1, 0, 2, 0, 1, 0, 1, 1};
  constexpr int kOps[] = {0, 2, 6, 3, 1, 5, 7, 4, 8, 9};
  const Instance instance = ReadPlanted(ReadFile(path), path);
  const Graph& graph = *instance.graph;
  std::vector<int> transfers;
  for (const TensorId tensor : graph.tensors()) {
    const OpId consumer = graph.consumers(tensor).front();
    if (kDevice[Index(graph.producer(tensor))] != kDevice[Index(consumer)])
      transfers.push_back(static_cast<int>(tensor));
  }
  FidelityRow row{.what = "Topcuoglu et al. 2002, figure 2", .published = instance.published.at("optimum")};
  row.ours = ScoreOf(instance.ToProblem(), InOrder(graph, kDevice, kOps, transfers), instance.evaluator, row.fits);
  table.rows.push_back(std::move(row));
}

}  // namespace

std::vector<FidelityTable> ScheduleFidelity(const std::string& shared) {
  if (!std::filesystem::exists(shared + "/data/planted")) return {};
  FidelityTable table{
      .title = "Known optima",
      .text =
          "In the unit of the file, of a plan that reaches the optimum: the planted one; for Moirai's first "
          "example (one-port transfers per edge, memory full to the last unit) and for the example of the "
          "HEFT paper a strict sequence. Inputs and outputs are everywhere (io=everywhere).",
      .tolerance = 0};
  AddPlanted(shared + "/data/planted", table);
  AddMoirai(shared + "/data/moirai/moirai_example-1.json", table);
  AddClassic(shared + "/data/classic/topcuoglu.json", table);
  return {std::move(table)};
}

std::vector<FidelityTable> HsdagFidelity(const std::string&) {
  FidelityTable table{
      .title = "HSDAG: sizes of graphs",
      .text =
          "Nodes and edges of the networks that HSDAG (Duan et al. 2024) measured: as it prints them in table "
          "1 for the raw IR, and coarsened by its co-location, by the paper's rule and by the released code's, as "
          "counted independently of Berth. Of BERT 73 nodes and 75 edges are arranged by guess.",
      .tolerance = 0};
  struct Expected {
    std::string name, grouping;
    double nodes, edges;
  };
  const std::string paper = "colocation(rule=paper)", code = "colocation(rule=code)";
  ModelCatalog models("model");
  RegisterIrModels(models);
  GroupingCatalog groupings("grouping");
  RegisterGroupings(groupings);
  for (const Expected& e : {Expected{"ir_resnet50", "", 396, 411}, Expected{"ir_resnet50", paper, 237, 252},
                            Expected{"ir_resnet50", code, 237, 252}, Expected{"ir_inception_v3", "", 728, 764},
                            Expected{"ir_inception_v3", paper, 435, 471}, Expected{"ir_inception_v3", code, 424, 460},
                            Expected{"ir_bert_base", "", 1009, 1071}}) {
    const auto graph = std::make_shared<const Graph>(models.Make(e.name));
    double nodes = static_cast<double>(graph->num_ops()), edges = static_cast<double>(graph->num_edges());
    if (!e.grouping.empty()) {
      std::vector<Device> devices(1);
      devices.front().name = "cpu";
      const auto cluster = std::make_shared<const Cluster>("one", std::move(devices), std::vector<Link>(1));
      const Problem problem(graph, cluster, {.time = std::vector<double>(graph->num_ops()), .source = "none"});
      const Grouping grouping = groupings.Make(e.grouping, problem, {});
      nodes = static_cast<double>(grouping.num_groups());
      edges = static_cast<double>(MakeQuotient(problem, grouping).edges.size());
    }
    const std::string what = e.name + (e.grouping.empty() ? ", raw" : ", " + e.grouping);
    table.rows.push_back({.what = what + ", nodes", .published = e.nodes, .ours = nodes});
    table.rows.push_back({.what = what + ", edges", .published = e.edges, .ours = edges});
  }
  return {std::move(table)};
}

}  // namespace berth
