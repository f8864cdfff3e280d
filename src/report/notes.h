// What a reader should know before trusting a number.
#pragma once

#include <string>
#include <vector>

#include "graph/doubtful_sizes.h"
#include "placement/evaluator.h"

namespace berth {

// How many numbers of a cluster are measured, from a vendor, or guessed.
struct ProvenanceCount {
  size_t measured = 0, vendor = 0, guess = 0;
  size_t all() const { return measured + vendor + guess; }
};
ProvenanceCount CountProvenance(const Cluster& cluster);

// Op types that are costed by their bytes only, with how many ops are of each, most first.
std::vector<std::pair<std::string, size_t>> BytesOnlyTypes(const Graph& graph);

// "12 of 300 ops (4 %) with 34 % of the work".
std::string DescribeDoubtful(const Graph& graph, const DoubtfulSizes& doubtful);

// One line each: guesses in the cluster, ops without a formula, times that were predicted, what the evaluator leaves
// out, notes of the importer.
std::vector<std::string> HonestyNotes(const Evaluator& evaluator);

}  // namespace berth
