// The learned planners, once they are needed.
#pragma once

#include "learn/module.h"

namespace berth {

// Whether this program was built with learned planners.
inline constexpr bool kCanLearn = BERTH_HAS_LEARN;

// Loads the library of the learned planners when it is first called; from any thread. Throws Error where it was not
// built, or is not beside the program.
const LearnModule& Learning();

}  // namespace berth
