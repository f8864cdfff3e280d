// Writes docs/fidelity.md to standard output: ./dev fidelity.
#include <fmt/core.h>

#include "base/error.h"
#include "tools/fidelity/fidelity.h"

int main() try {
  const auto tables = berth::Fidelity(BERTH_SHARED_DIR);
  if (tables.empty())
    throw berth::Error("{}: not all data sets are here (data/msr-dnn-partitioning, data/placeto, data/planted)",
                       BERTH_SHARED_DIR);
  fmt::print("{}", berth::ToMarkdown(tables));
  for (const auto& table : tables) {
    for (const auto& row : table.rows) {
      if (!Agrees(table, row)) return 1;
    }
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "fidelity: {}\n", error.what());
  return 2;
}
