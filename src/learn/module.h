// The learned planners as a library that the program loads when it needs them: to load libtorch takes a fifth of a
// second, and no other command should wait for it. No torch in it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/ranks.h"
#include "learn/planners.h"
#include "learn/training.h"

namespace berth {

struct LearnModule {
  void (*enter)(PlannerCatalog& catalog);  // all learned planners
  TrainingResult (*train)(const TrainingRequest& request);
  std::vector<std::pair<std::string, std::string>> (*training_arguments)(const std::string& folder);
  std::unique_ptr<Ranks> (*join_ranks)();  // mpi_ranks.h; null where Berth was built without MPI
};

// The name of the library, and that of the LearnModule in it.
inline constexpr const char* kLearnLibrary = "libberth_learn.so";
inline constexpr const char* kLearnSymbol = "berth_learn_module";

}  // namespace berth
