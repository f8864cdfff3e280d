// What a file brings: always a graph, and with published instances their own devices, costs, constraints and rule as well.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "placement/problem.h"

namespace berth {

struct Instance {
  std::shared_ptr<const Graph> graph{};
  std::shared_ptr<const Cluster> cluster{};  // null where the file describes no devices
  std::optional<OpTimes> times{};            // in options.seconds_per_unit; for the file's own cluster
  Problem::Options options{};
  // The execution model that the data set is published with, as a catalog string ("pipeline", "placeto"); empty: none.
  std::string evaluator{};

  bool is_whole() const { return cluster != nullptr && times.has_value(); }
};

}  // namespace berth
