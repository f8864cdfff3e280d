// What the benchmarks measure on.
#pragma once

#include <memory>
#include <string>
#include <utility>

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
  return Problem(graph, cluster, All().costs.MakeTimes("roofline(fusion=none)", *graph, *cluster), std::move(options));
}

}  // namespace berth
