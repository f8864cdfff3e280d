// The parameters of learned placers: those of training, which all share, and those of each one's own policy. What lists
// show as a default stands here, once.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/catalog.h"
#include "learn/method.h"

namespace berth {

// The parameters of training, in the order of lists. An entry without a value of a method's own has the default that
// stands here: REINFORCE as it is written down first, with Adam.
std::vector<Parameter> TrainingParameters();

// A mode: a named set of parameter values, as in mode=paper. Names and values are text; a parameter that a mode leaves
// out has its own default.
struct Mode {
  std::string name{};
  std::vector<std::pair<std::string, std::string>> values{};
};

// One learned placer, as its file declares it.
struct MethodDeclaration {
  std::string name{}, sentence{}, source{};
  std::vector<Parameter> parameters{};  // of its policy
  // The first mode is the default one; a method with one mode has no parameter `mode`.
  std::vector<Mode> modes{};
  int64_t default_evaluations = 2000;
  // Sets what is the method's own: its policy, its critic, what it refuses. `given` tells what the user has written,
  // `params` all values with those of the mode. Training is set already, and may be completed. Throws Error where
  // parameters contradict one another.
  std::function<void(const Params& given, const Params& params, Method& method)> make{};
};

// Enters it, with all parameters, into the catalog. A mode that names a parameter or a value which is not there is a
// mistake of the program.
void AddMethod(MethodCatalog& catalog, MethodDeclaration declaration);

}  // namespace berth
