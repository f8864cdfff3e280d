// What a file brings: always a graph, and with published instances their own devices, costs, constraints and rule as well.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "placement/costs.h"
#include "placement/problem.h"

namespace berth {

struct Instance {
  std::shared_ptr<const Graph> graph{};
  std::shared_ptr<const Cluster> cluster{};  // null where the file describes no devices
  std::optional<OpTimes> times{};            // in options.seconds_per_unit; for the file's own cluster
  Problem::Options options{};
  // What the file calls each op, by OpId; empty where it has no numbers. Split files use them.
  std::vector<int64_t> file_ids{};
  // The execution model that the data set is published with, as a catalog string ("pipeline", "placeto"); empty: none.
  std::string evaluator{};

  // Measured on one device that the file does not describe, by op name: ApplyProfile puts it onto devices of the user's.
  std::optional<OpProfile> profile{};

  bool is_whole() const { return cluster != nullptr && times.has_value(); }
  // Of a whole instance.
  Problem ToProblem() const { return Problem(graph, cluster, *times, options); }
};

}  // namespace berth
