#include "tools/fusion/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "exec/openvino.h"
#include "import/import.h"
#include "placement/fusion.h"

namespace berth {
namespace {

std::string Percentage(size_t part, size_t whole) {
  return whole == 0 ? "-" : fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string Cells(const FusionRow& row) {
  const size_t fused = row.both + row.openvino_only;
  return fmt::format("{} | {} | {} | {} | {} | {} | {}", row.edges, Percentage(row.named, row.edges), fused,
                     row.both + row.rules_only, Percentage(row.both, row.both + row.rules_only),
                     Percentage(row.both, fused),
                     fused + row.rules_only == 0 ? std::string("-") : fmt::format("{:.3f}", row.f1()));
}

}  // namespace

void FusionRow::Add(const FusionRow& other) {
  edges += other.edges;
  named += other.named;
  both += other.both;
  rules_only += other.rules_only;
  openvino_only += other.openvino_only;
}

double FusionRow::f1() const {
  const size_t all = 2 * both + rules_only + openvino_only;
  return all == 0 ? 1 : 2 * static_cast<double>(both) / static_cast<double>(all);
}

bool IsLearntFrom(std::string_view file_name) {
  return Hasher().Add(file_name.substr(0, file_name.find('.'))).value() % 2 == 0;
}

FusionRow CheckFusion(const std::string& path, const std::string& family) {
  FusionRow row{.file = std::filesystem::path(path).filename().string(), .family = family};
  row.learnt = IsLearntFrom(row.file);
  const ModelCatalog none("model");
  const auto graph = std::make_shared<const Graph>(ReadModel(path, none));
  Device core;
  core.name = "core";
  core.kind = "cpu";
  core.runs_on = "CPU";
  core.cores = {0};
  const auto cluster = std::make_shared<const Cluster>("core", std::vector<Device>{core}, std::vector<Link>(1));
  const Problem problem(graph, cluster, {.time = std::vector<double>(graph->num_ops(), 0), .source = "none"});

  std::vector<std::set<size_t>> kernels(graph->num_ops());
  try {
    size_t number = 0;
    for (const MeasuredKernel& kernel : OpenVino(problem, path).Kernels(DeviceId{0})) {
      for (const OpId op : kernel.ops) kernels[Index(op)].insert(number);
      ++number;
    }
  } catch (const Error& error) {
    row.refusal = error.what();
    return row;
  }
  const Grouping rules = FusedOps(*graph);
  for (const TensorId tensor : graph->tensors()) {
    if (graph->is_constant(tensor)) continue;
    const OpId from = graph->producer(tensor);
    for (const OpId to : graph->consumers(tensor)) {
      ++row.edges;
      const std::set<size_t>&a = kernels[Index(from)], &b = kernels[Index(to)];
      if (a.empty() || b.empty()) continue;
      ++row.named;
      const bool fused = std::ranges::any_of(a, [&](size_t kernel) { return b.contains(kernel); });
      const bool by_rules = rules.group_of(from) == rules.group_of(to);
      row.both += fused && by_rules ? 1 : 0;
      row.rules_only += by_rules && !fused ? 1 : 0;
      row.openvino_only += fused && !by_rules ? 1 : 0;
    }
  }
  return row;
}

std::vector<FusionRow> CheckFusionOfAll(const std::string& zoo) {
  OpenVinoProgram();  // an Error now, not one for each model
  std::vector<FusionRow> rows;
  for (const auto& [name, path] : ShippedModels()) rows.push_back(CheckFusion(path, "shipped"));
  std::vector<std::string> files;
  if (std::filesystem::is_directory(zoo)) {
    for (const auto& entry : std::filesystem::directory_iterator(zoo)) {
      if (entry.path().extension() == ".onnx") files.push_back(entry.path().string());
    }
  }
  std::ranges::sort(files);
  for (const std::string& file : files) {
    const std::string name = std::filesystem::path(file).filename().string();
    rows.push_back(CheckFusion(file, name.substr(0, name.find('_'))));
  }
  return rows;
}

std::string FusionPage(const std::vector<FusionRow>& rows) {
  constexpr std::string_view kColumns =
      "edges | named | fused by OpenVINO | by the rules | precision | recall | F1 |\n";
  std::string text =
      "# What is one kernel: the rules beside OpenVINO\n\n"
      "Made by `./dev fusion`. The rules of `roofline(fusion=openvino)` ([costs.md](costs.md)) see the graph alone. "
      "Here they are compared with OpenVINO's runtime model of the same file, compiled for one core of this machine's "
      "processor in f32 with random weights.\n\n"
      "An edge is a pair of an op and one that reads its result; what depends on constants alone is left out. It is "
      "fused where both ops are in one kernel. OpenVINO's kernels tell the names of what they were made of, but not of "
      "all: what a transformation has replaced (most of a layer normalisation or a Gelu that is written out, a "
      "multiplication by weights whose bias is an op of its own) has no name left. `named` is the share of the edges "
      "with two names, on which alone the two are compared.\n\n"
      "The rules were written looking at half of the models: those whose names have an even hash "
      "(`tools/fusion/agreement.cc`; forms of one model are on one side). The other half was looked at by this program "
      "alone.\n\n";
  std::map<std::pair<bool, std::string>, std::pair<size_t, FusionRow>> sums;
  size_t refused = 0;
  for (const FusionRow& row : rows) {
    refused += row.refusal.empty() ? 0 : 1;
    if (!row.refusal.empty()) continue;
    for (const std::string& family : {row.family, std::string("~")}) {
      auto& [count, sum] = sums[{row.learnt, family}];
      ++count;
      sum.Add(row);
    }
  }
  text += fmt::format("| models | family | files | {}|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n", kColumns);
  for (const auto& [key, value] : sums) {
    const auto& [count, sum] = value;
    const bool all = key.second == "~";
    const std::string_view mark = all ? "**" : "";
    text += fmt::format("| {0}{1}{0} | {0}{2}{0} | {3} | {4} |\n", mark, key.first ? "looked at" : "not looked at",
                        all ? "all" : key.second, count, Cells(sum));
  }
  text += fmt::format("\n{} of {} files are refused by OpenVINO, or by the reader here.\n\n", refused, rows.size());
  text += fmt::format("| file | looked at | {}|---|---|---:|---:|---:|---:|---:|---:|---:|\n", kColumns);
  for (const FusionRow& row : rows) {
    text += fmt::format("| {} | {} | {} |\n", row.file, row.learnt ? "yes" : "no",
                        row.refusal.empty() ? Cells(row) : row.refusal + " | | | | | |");
  }
  return text;
}

}  // namespace berth
