// How soon one planner is as good as another.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/learned/rows.h"

namespace berth::learned {

struct Racer {
  std::string name;               // for readers
  std::vector<std::string> rows;  // their titles in each table; per table the best of them counts
};

// A table with a line per graph: how soon `quick` is as good as `slow` ends in the median. The evaluations and seconds
// of `slow` until it was so good, and those of its whole search, over those of `quick`; medians over seeds, of which
// some may never be.
void PrintPace(std::span<const Table> tables, const Racer& quick, const Racer& slow);

}  // namespace berth::learned
