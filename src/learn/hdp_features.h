// What the hierarchical placer reads: of each op for its grouper, and of the groups that were drawn for its placer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "learn/coarse_graph.h"
#include "learn/feature_table.h"
#include "placement/problem.h"

namespace berth {

enum class HdpFeatures : uint8_t {
  // Of the released code: of an op the number of its type, the shapes of its outputs, the numbers of its neighbours; of
  // a group edges to and from each group, ops of each type, summed shapes. Columns for the types of one graph.
  kCode,
  // The same with the code's slip, which adds the summed shapes to the first columns of types.
  kSlip,
  // Ours: types in kTypeColumns columns and what GDP's policy reads (gdp_features.h), which means the same on every
  // graph; of a group the mean of its ops, and its shares of them and of the work.
  kExtended,
};

// The ops that are grouped, nodes of a coarse graph in a topological order; those that only one device can run are left
// out, unless nothing would be left.
struct HdpInput {
  std::vector<int32_t> order;   // nodes
  FeatureTable ops;             // a row for each in this order
  std::vector<float> of_group;  // ops x group_columns: what is put together over the ops of a group
  size_t group_columns = 0;
  size_t averaged = 0;  // of these columns, the first so many by their mean over the group, the others by their sum
  bool scaled = false;  // as in the code: a group's row, edges included, is divided by one more than its largest number
  std::vector<std::pair<int32_t, int32_t>> edges;  // between positions in the order
  std::vector<std::string> types;                  // as in the code: of which op type each number and column is
};
HdpInput MakeHdpInput(const Problem& problem, const CoarseGraph& graph, HdpFeatures which);

// How many columns GroupFeatures makes.
size_t NumGroupColumns(const HdpInput& input, size_t groups);

// groups x columns: edges to each group, from each group, and what its ops have together. `group`: by position in the
// order. O(ops columns + edges + groups columns).
std::vector<float> GroupFeatures(const HdpInput& input, std::span<const int64_t> group, size_t groups);

}  // namespace berth
