// Writes docs/fusion.md to standard output: ./dev fusion.   usage: fusion [MODEL...]: only their lines
#include <fmt/core.h>

#include "base/error.h"
#include "tools/fusion/agreement.h"

int main(int argc, char** argv) try {
  std::vector<berth::FusionRow> rows;
  for (int i = 1; i < argc; ++i) rows.push_back(berth::CheckFusion(argv[i], "given"));
  if (argc == 1) rows = berth::CheckFusionOfAll(BERTH_SHARED_DIR "/zoo");
  fmt::print("{}", berth::FusionPage(rows));
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "fusion: {}\n", error.what());
  return 2;
}
