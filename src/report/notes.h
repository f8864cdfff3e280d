// What a reader should know before trusting a number.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "placement/problem.h"

namespace berth {

// How many numbers of a cluster are measured, from a vendor, or guessed.
struct ProvenanceCount {
  size_t measured = 0, vendor = 0, guess = 0;
  size_t all() const { return measured + vendor + guess; }
};
ProvenanceCount CountProvenance(const Cluster& cluster);

// Op types that are costed by their bytes only, with how many ops are of each, most first.
std::vector<std::pair<std::string, size_t>> BytesOnlyTypes(const Graph& graph);

// Ops of which some size is no more than estimated, or unknown, and what they mean for the model.
struct DoubtfulSizes {
  size_t ops = 0;
  double share_of_ops = 0, share_of_work = 0;  // work: FLOP, or bytes moved where the model has no FLOP
  OpId first{};                                // in the order of the graph
};
// Of exactly this certainty; nothing where there is no such op. O(ops).
std::optional<DoubtfulSizes> FindDoubtful(const Graph& graph, Certainty certainty);

// "12 of 300 ops (4 %), with 34 % of the work".
std::string DescribeDoubtful(const Graph& graph, const DoubtfulSizes& doubtful);

// One line each: guesses in the cluster, ops without a formula, times that were predicted, notes of the importer.
std::vector<std::string> HonestyNotes(const Problem& problem);

}  // namespace berth
