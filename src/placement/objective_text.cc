#include "placement/objective_text.h"

#include <fmt/format.h>

namespace berth {

double ObjectiveNumber(const Problem& problem, const Objective& objective, double value) {
  return objective.is_time() ? problem.ToSeconds(value).value : value;
}

std::string ObjectiveText(const Problem& problem, const Objective& objective, double value) {
  switch (objective.unit) {
    case Objective::Unit::kSeconds:
      return ToString(problem.ToSeconds(value));
    case Objective::Unit::kJoules:
      return JoulesText(value);
    case Objective::Unit::kShare:
      return fmt::format("{:.3g}", value);
  }
  return {};
}

std::string JoulesText(double joules) {
  if (joules == 0 || joules >= 0.9995) return WithPrefix(joules, "J");
  return joules >= 0.9995e-3 ? WithPrefix(joules * 1e3, "mJ") : WithPrefix(joules * 1e6, "uJ");
}

std::string_view BetterWord(const Objective& objective) { return objective.is_time() ? "faster" : "better"; }

}  // namespace berth
