// What the benchmarks measure on.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cli/catalogs.h"
#include "placement/problem.h"

namespace berth {

inline const Catalogs& All() {
  static const Catalogs catalogs;
  return catalogs;
}

// Costs by roofline.
inline Problem MakeProblem(const std::string& model, const std::string& cluster_name, Problem::Options options = {}) {
  const auto graph = std::make_shared<const Graph>(ReadModel(model, All().models));
  const auto cluster = std::make_shared<const Cluster>(All().clusters.Make(cluster_name));
  return Problem(graph, cluster, All().costs.MakeTimes("roofline", *graph, *cluster), std::move(options));
}

// Each op on any device.
inline std::vector<DeviceId> AnyPlacement(const Problem& problem, Random& random) {
  std::vector<DeviceId> device;
  for (size_t v = 0; v < problem.num_ops(); ++v) {
    device.push_back(MakeId<DeviceId>(random.Below(problem.num_devices())));
  }
  return device;
}

}  // namespace berth
