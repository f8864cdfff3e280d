// What searches that improve a plan begin and end with.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "placement/search.h"
#include "plan/causes.h"

namespace berth {

// The cause of an op for which no other reason is found.
inline constexpr const char* kFoundBySearch = "found by search";

class Improvement {
 public:
  // What it begins with is the search's best by now.
  Improvement(Search& search, const PlanRequest& request)
      : search_(search), request_(request), first_(search.best_score().value()) {}

  // The answer, with a cause for each op where the request asks for them. Its note: "3 climbs, " 4.2 % "below the
  // start".
  PlanResult Finish(std::string_view steps, std::string_view below) {
    const double gain = first_ > 0 ? 1 - search_.best_score().value() / first_ : 0;
    PlanResult result = search_.Finish(false, fmt::format("{}{:.1f} % {}", steps, 100 * gain, below));
    GiveCauses(request_, result, kFoundBySearch);
    return result;
  }

 private:
  Search& search_;
  const PlanRequest& request_;
  double first_;
};

}  // namespace berth
