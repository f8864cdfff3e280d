// Families of graphs for policies that answer graphs which they have not seen (Addanki et al. 2019, section 4.3).
#pragma once

#include <string>
#include <vector>

#include "tools/learned/common.h"

namespace berth::learned {

struct Family {
  const char *name, *group;  // group: the grouping on which learned planners place
};
inline constexpr Family kFamilies[] = {
    {"enas_conv", "colocation"}, {"enas_rnn", "merge(size=64,balance=2)"}, {"nmt_like", "merge(size=64,balance=2)"}};

// One graph, and how it is grouped.
struct Case {
  std::string name{};
  Setup setup{};
  std::string group{};

  TrainingCase training() const { return {.name = name, .evaluator = *setup.evaluator, .group = group}; }
};

// At most so many graphs of a split, "train" or "test", on Placeto's simulator with two devices.
std::vector<Case> MakeCases(const Catalogs& catalogs, const Family& family, const std::string& split, size_t most);

std::vector<const Case*> Pointers(const std::vector<Case>& cases);
std::vector<TrainingCase> Lessons(const std::vector<const Case*>& cases);

}  // namespace berth::learned
