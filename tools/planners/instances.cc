// Instances whose optimum, or whose best known plan, has been published.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "placement/bound.h"
#include "tools/planners/rows.h"

namespace berth {
namespace {

struct Known {
  const char* file;
  const char* evaluator;  // empty: the file's own
  double best;
  const char* remark;
};

// Moirai's instances (arXiv:2312.04025), with the best that research/planners.md found in 40 s of annealing, without
// and with one-port transfers.
constexpr const char* kFree = "parallel(contention=none,io=everywhere)";
constexpr const char* kPorts = "parallel(contention=ports,io=everywhere)";
constexpr Known kMoirai[] = {{"example-1", kFree, 30, "optimum"},        {"example-1", kPorts, 30, "optimum"},
                             {"googlenet", kFree, 1.2829, "best known"}, {"googlenet", kPorts, 1.3390, "best known"},
                             {"yolov5x", kFree, 23.5020, "best known"},  {"yolov5x", kPorts, 23.7450, "best known"}};

Setup MakeRow(const Catalogs& catalogs, const std::string& file, const char* evaluator) {
  ProblemStrings strings;
  strings.model = file;
  strings.evaluator = evaluator;
  return MakeSetup(catalogs, strings);
}

void WriteCells(const Catalogs& catalogs, const Evaluator& evaluator, double known, const std::vector<Column>& columns,
                const Options& options) {
  for (const Cell& cell : PlayAll(catalogs, evaluator, columns, options.BudgetOr(10), 1)) {
    if (cell.value < 1e300) {
      fmt::print(" {:.6g}, {:+.2f} % ({:.2g} s) |", cell.value, 100 * (cell.value / known - 1), cell.seconds);
    } else {
      fmt::print(" {} |", Text(cell, false));
    }
  }
  fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace

void WriteInstances(const Catalogs& catalogs, const std::string& data, const Options& options) {
  const std::vector<Column> columns = options.ColumnsOr(
      {{"heft"}, {"etf"}, {"annealing(order=search,hot=0.001)", true}, {"multilevel", true}, {"auto", true}});
  fmt::print("\n### Planted optima\n\n");
  WriteHead({"instance"}, {"ops", "bound", "optimum"}, columns);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(data + "/planted")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const std::filesystem::path& file : files) {
    const std::string name = file.stem().string();
    if (fmt::format("instances {}", name).find(options.only) == std::string::npos) continue;
    const Setup setup = MakeRow(catalogs, file.string(), "");
    const double bound = LowerBound(*setup.evaluator).value();
    const double optimum = setup.instance->published.at("optimum");
    fmt::print("| {} | {} | {} | {} |", name, setup.problem->num_ops(), Number(bound), Number(optimum));
    WriteCells(catalogs, *setup.evaluator, optimum, columns, options);
  }
  fmt::print("\n### Moirai's instances\n\n");
  WriteHead({"instance", "transfers"}, {"ops", "bound", "known"}, columns);
  for (const Known& known : kMoirai) {
    if (fmt::format("instances {}", known.file).find(options.only) == std::string::npos) continue;
    const Setup setup = MakeRow(catalogs, fmt::format("{}/moirai/moirai_{}.json", data, known.file), known.evaluator);
    fmt::print("| {} | {} | {} | {} | {:.6g}, {} |", known.file, known.evaluator == kFree ? "side by side" : "by ports",
               setup.problem->num_ops(), Number(LowerBound(*setup.evaluator).value()), known.best, known.remark);
    WriteCells(catalogs, *setup.evaluator, known.best, columns, options);
  }
}

}  // namespace berth
