// What a file brings: always a graph, and with published instances their own devices, costs, constraints and rule as
// well.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "placement/plan.h"
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

  // Times by kind of device ("gpu"), by OpId, in options.seconds_per_unit, where the file describes no devices:
  // TimesOn.
  std::map<std::string, std::vector<double>, std::less<>> times_by_kind{};

  // A plan that the file brings, and what it says about its problem, by its own words ("optimum"), in
  // options.seconds_per_unit.
  std::optional<Plan> plan{};
  std::map<std::string, double, std::less<>> published{};

  bool is_whole() const { return cluster != nullptr && times.has_value(); }
  // Of a whole instance.
  Problem ToProblem() const { return Problem(graph, cluster, *times, options); }
  // times_by_kind on a cluster of the user's. Throws Error for a device of a kind that the file has no times for.
  OpTimes TimesOn(const Cluster& cluster) const;
  // Of an instance with times_by_kind.
  Problem On(std::shared_ptr<const Cluster> cluster) const;
};

}  // namespace berth
