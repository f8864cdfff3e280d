// What searches that improve a plan begin and end with.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
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
      : search_(search), request_(request), first_(search.best_score()) {}

  // The answer, with a cause for each op where the request asks for them. Its note: "3 climbs, " 4.2 % "below the
  // start".
  PlanResult Finish(std::string_view steps, std::string_view below) {
    PlanResult result = search_.Finish(false, fmt::format("{}{}", steps, Gain(below)));
    GiveCauses(request_, result, kFoundBySearch);
    return result;
  }

 private:
  std::string Gain(std::string_view below) const {
    const Score& best = search_.best_score();
    if (best.failed()) return "no plan has a score";
    if (first_.failed()) return "the first plan had no score";
    if (best.fits() && first_.outcome == Outcome::kTooBig) return "the first plan did not fit into memory";
    if (best.fits() && !first_.fits()) return "the first plan could not run";
    // Of plans that do not fit, the one with less to spare may take longer.
    const double gain = first_.value() > 0 ? std::max(0.0, 1 - best.value() / first_.value()) : 0;
    return fmt::format("{:.1f} % {}", 100 * gain, below);
  }

  Search& search_;
  const PlanRequest& request_;
  Score first_;
};

}  // namespace berth
