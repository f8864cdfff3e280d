#include "tools/fidelity/fidelity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace berth {

double RelativeDifference(const FidelityRow& row) {
  return row.ours == row.published ? 0 : (row.ours - row.published) / std::abs(row.published);
}

bool Agrees(const FidelityTable& table, const FidelityRow& row) {
  // Written so that a NaN agrees with nothing.
  return std::abs(RelativeDifference(row)) <= table.tolerance && row.fits == row.published_fits;
}

std::vector<FidelityTable> Fidelity(const std::string& shared) {
  std::vector<FidelityTable> tables;
  for (const auto& of_data_set : {MsrFidelity, PlacetoFidelity, ScheduleFidelity, HsdagFidelity}) {
    std::vector<FidelityTable> more = of_data_set(shared);
    if (more.empty()) return {};
    std::ranges::move(more, std::back_inserter(tables));
  }
  return tables;
}

std::string ToMarkdown(const std::vector<FidelityTable>& tables) {
  size_t rows = 0, equal = 0, agree = 0;
  for (const FidelityTable& table : tables) {
    for (const FidelityRow& row : table.rows) {
      ++rows;
      if (row.ours == row.published) ++equal;
      if (Agrees(table, row)) ++agree;
    }
  }
  std::string text = fmt::format(
      "# What the field has published, and what Berth computes\n\n"
      "Made by `./dev fidelity`. {} values, of which {} agree within the tolerance of their table and {} are equal to "
      "the last bit.\n"
      "The difference is relative; what a table's values were rounded to is its tolerance.\n",
      rows, agree, equal);
  for (const FidelityTable& table : tables) {
    fmt::format_to(std::back_inserter(text), "\n## {}\n\n{}\n\nTolerance: {}.\n\n", table.title, table.text,
                   table.tolerance == 0 ? "none, every bit" : fmt::format("{:g}", table.tolerance));
    text += "| | published | ours | difference | |\n|---|---:|---:|---:|---|\n";
    for (const FidelityRow& row : table.rows) {
      std::string note = row.note;
      const auto add = [&](std::string_view words) {
        note += note.empty() ? std::string(words) : fmt::format("; {}", words);
      };
      if (!row.fits) add("above the memory limit");
      if (row.fits != row.published_fits)
        add(row.published_fits ? "published as fitting" : "published as above the limit");
      if (!Agrees(table, row)) add("**differs**");
      const double difference = RelativeDifference(row);
      fmt::format_to(std::back_inserter(text), "| {} | {} | {} | {} | {} |\n", row.what, row.published, row.ours,
                     difference == 0 ? "0" : fmt::format("{:.1e}", difference), note);
    }
  }
  return text;
}

}  // namespace berth
