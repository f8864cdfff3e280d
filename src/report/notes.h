// What a reader should know before trusting a number.
#pragma once

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

// One line each: guesses in the cluster, ops without a formula, times that were predicted, notes of the importer.
std::vector<std::string> HonestyNotes(const Problem& problem);

}  // namespace berth
