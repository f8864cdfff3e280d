// Importing each shipped model, from the file to the Graph.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/problems.h"

namespace berth {
namespace {

void BM_Import(benchmark::State& state, const std::string& path) {
  size_t ops = 0, edges = 0;
  for (auto _ : state) {
    const Graph graph = ReadModel(path, All().models);
    ops = graph.num_ops();
    edges = graph.num_edges();
  }
  state.counters["ops"] = static_cast<double>(ops);
  state.counters["edges"] = static_cast<double>(edges);
}

const bool kRegistered = [] {
  for (const auto& [name, path] : ShippedModels()) {
    benchmark::RegisterBenchmark(("BM_Import/" + name).c_str(), BM_Import, path)->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace berth
