// Learned planners as they stand in the catalog, but smaller: under the sanitizers each run of theirs takes seconds.
#pragma once

#include <string>

namespace berth::testing {

inline std::string SmallForm(const std::string& planner) {
  if (planner == "gdp") return "gdp(hidden=8,heads=2,inner=16,sage=1,layers=1,rollouts=4,epochs=1)";
  if (planner == "hdp") return "hdp(hidden=8,grouper_hidden=8,groups=6,rollouts=2,epochs=1)";
  if (planner == "hsdag") return "hsdag(hidden=16,imagined=2)";
  if (planner == "placeto") return "placeto(rounds=2,rollouts=1,epochs=1)";
  if (planner == "rnn") return "rnn(hidden=8,rollouts=4,epochs=1)";
  return planner;
}

}  // namespace berth::testing
