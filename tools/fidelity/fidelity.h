// What the field has published, beside what Berth computes for the same: docs/fidelity.md, and the test of the same
// name.
#pragma once

#include <string>
#include <vector>

namespace berth {

struct FidelityRow {
  std::string what{};
  double published = 0;
  double ours = 0;
  // Whether the plan fits into the devices' memory.
  bool published_fits = true;
  bool fits = true;
  std::string note{};
};

// A table: one kind of value of one data set.
struct FidelityTable {
  std::string title{};
  std::string text{};    // what is compared, and by which rule; Markdown
  double tolerance = 0;  // relative: what published values were rounded to
  std::vector<FidelityRow> rows{};
};

// (ours - published) / published; 0 where both are equal.
double RelativeDifference(const FidelityRow& row);
bool Agrees(const FidelityTable& table, const FidelityRow& row);

// One function per data set, from the folder of shared data; empty where it is not there.
std::vector<FidelityTable> MsrFidelity(const std::string& shared);
std::vector<FidelityTable> PlacetoFidelity(const std::string& shared);
std::vector<FidelityTable> ScheduleFidelity(const std::string& shared);
std::vector<FidelityTable> HsdagFidelity(const std::string& shared);

// All data sets; empty where one of them is not there, so that no page lacks a part of it.
std::vector<FidelityTable> Fidelity(const std::string& shared);

std::string ToMarkdown(const std::vector<FidelityTable>& tables);

}  // namespace berth
