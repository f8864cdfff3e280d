// Values of objectives, as people and as machines read them.
#pragma once

#include <string>
#include <string_view>

#include "placement/objective.h"
#include "placement/problem.h"

namespace berth {

// Score::value and Bound::value in seconds, joules or shares of the best single device.
double ObjectiveNumber(const Problem& problem, const Objective& objective, double value);

// "3.21 ms", "1.20 J", "0.873".
std::string ObjectiveText(const Problem& problem, const Objective& objective, double value);

// "1.20 J", "35.0 mJ".
std::string JoulesText(double joules);

// "faster" where the time is what counts, else "better".
std::string_view BetterWord(const Objective& objective);

}  // namespace berth
