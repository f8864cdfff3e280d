// Writes the sections of the pages in docs/learned to standard output: ./dev bench-learned. Every figure in it is
// measured here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "tools/learned/common.h"

namespace berth::learned {
namespace {

constexpr Part kParts[] = {
    {"hsdag", "HSDAG on Inception-V3", WriteHsdag},
    {"hsdag-others", "HSDAG on its other benchmarks", WriteHsdagOthers},
    {"hsdag-elsewhere", "HSDAG where ops run side by side, beside simple planners", WriteHsdagElsewhere},
    {"hsdag-learning", "which change makes HSDAG's published form learn", WriteHsdagLearning},
    {"hsdag-ablations", "what each part of it does", WriteHsdagAblations},
    {"placeto", "Placeto on its simulator", WritePlaceto, kPlacetoGraphs},
    {"placeto-ablations", "what each part of it does", WritePlacetoAblations, kPlacetoGraphs},
    {"hdp", "the recurrent placers on training steps, beside people's rules", WriteHdp},
    {"gdp", "GDP where the optimum is known", WriteGdp},
    {"gdp-batch", "one policy of GDP for many graphs, where the optimum is known", WriteGdpBatch},
    {"gdp-training", "GDP on training steps, beside people's rules", WriteGdpTraining},
    {"gdp-pace", "how soon GDP is as good as HDP", WriteGdpPace},
    {"gdp-transfer", "one policy of GDP for many graphs, and on graphs never seen", WriteGdpTransfer},
    {"gdp-large", "GDP on a large graph that it has not seen", WriteGdpLarge},
    {"gdp-scale", "GDP on large graphs", WriteGdpScale},
    {"training-graphs", "Placeto's own table: training on two and four GPUs", WriteTrainingGraphs},
    {"families", "graphs never seen", WriteFamilies},
    {"unrolled", "networks unrolled over other numbers of steps", WriteUnrolled},
    {"first-case", "a policy's answer as the start of hill climbing", WriteFirstCase},
};

int Run(int argc, char** argv) {
  bool quick = false;
  std::string pictures;
  const Part* part = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--short") {
      quick = true;
    } else if (argument == "--parts") {
      for (const Part& each : kParts) fmt::print("{}\n", each.name);
      return 0;
    } else if (argument == "--pictures" && i + 1 < argc) {
      pictures = argv[++i];
    } else {
      for (const Part& each : kParts) {
        if (argument == each.name) part = &each;
      }
      if (part == nullptr || argument != part->name) {
        std::vector<std::string> names;
        for (const Part& each : kParts) names.push_back(fmt::format("{} ({})", each.name, each.sentence));
        throw Error("'{}' is no part; there are {}", argument, fmt::join(names, ", "));
      }
    }
  }
  if (part == nullptr) throw Error("name a part, or --parts for a list of them");
  // A trial of all parts goes on; a section that is written anew must not become empty.
  if (quick && part->needs != nullptr && !std::filesystem::exists(part->needs)) {
    fmt::print("{}: left out, since there is no {}\n", part->name, part->needs);
    return 0;
  }
  part->write(Catalogs(), quick, pictures);
  return 0;
}

}  // namespace
}  // namespace berth::learned

int main(int argc, char** argv) try { return berth::learned::Run(argc, argv); } catch (const std::exception& error) {
  fmt::print(stderr, "bench-learned: {}\n", error.what());
  return 2;
}
