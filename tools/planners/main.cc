// Writes the tables of docs/planners.md to standard output: ./dev bench-planners. Every figure in it is measured here.
//   usage: planners [--seconds N | --evaluations N] [--only TEXT] [--planners LIST]
//          planners --why
// TEXT is part of a row's title, which begins with training, inference, memory, time, large or instances.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tools/planners/rows.h"
#include "tools/planners/why.h"

namespace berth {
namespace {

int Run(int argc, char** argv) {
  Options options;
  bool why = false;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view argument = argv[i];
    if (argument == "--why") {
      why = true;
      --i;  // it has no value
      continue;
    }
    if (i + 1 == argc) throw Error("{} wants a value", argument);
    if (argument == "--seconds") {
      options.budget = Budget{.seconds = std::stod(argv[i + 1])};
    } else if (argument == "--evaluations") {
      options.budget = Budget{.evaluations = std::stoll(argv[i + 1])};
    } else if (argument == "--only") {
      options.only = argv[i + 1];
    } else if (argument == "--planners") {
      for (std::string& name : SplitList(argv[i + 1])) options.columns.push_back({std::move(name), true});
    } else {
      throw Error("it knows --seconds N, --evaluations N, --only TEXT and --planners LIST, not {}", argument);
    }
  }
  const Catalogs catalogs;
  if (why) {
    WriteWhy(catalogs);
    return 0;
  }
  WritePapers(catalogs, options);
  WriteMemory(catalogs, options);
  WriteTime(catalogs, options);
  WriteLarge(catalogs, options);
  const std::string data = BERTH_SHARED_DIR "/data";
  if (std::filesystem::exists(data)) {
    WriteInstances(catalogs, data, options);
  } else {
    fmt::print(stderr, "bench-planners: {} is not here: no published instances\n", data);
  }
  return 0;
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) try { return berth::Run(argc, argv); } catch (const std::exception& error) {
  fmt::print(stderr, "bench-planners: {}\n", error.what());
  return 2;
}
