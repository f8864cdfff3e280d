// Writes docs/models.md to standard output: ./dev models.   usage: models [FOLDER]
#include <fmt/core.h>

#include "base/error.h"
#include "tools/models/models.h"

int main(int argc, char** argv) try {
  const auto rows = berth::CheckModels(argc > 1 ? argv[1] : BERTH_SHARED_DIR "/zoo");
  fmt::print("{}", berth::ModelsPage(rows));
  bool all = true;
  for (const auto& row : rows) all = all && row.holds();
  return all ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "models: {}\n", error.what());
  return 2;
}
