// The learned planners, once they are needed.
#pragma once

#include <array>

#include "learn/module.h"

namespace berth {

// Whether this program was built with learned planners; which they are; what is said of them where it was not.
inline constexpr bool kCanLearn = BERTH_HAS_LEARN;
inline constexpr std::array<const char*, 6> kLearnedPlanners = {"gdp", "hdp", "hsdag", "placeto", "rnn", "tabular"};
inline constexpr const char* kNeedsTorch =
    "needs libtorch, which is not in this build: ./dev build fetches it, where there is one for the processor";

// Whether several processes can train together.
#if defined(BERTH_HAS_MPI)
inline constexpr bool kHasMpi = BERTH_HAS_MPI;
#else
inline constexpr bool kHasMpi = false;
#endif

// Loads the library of the learned planners when it is first called; from any thread. Throws Error where it was not
// built, or is not beside the program.
const LearnModule& Learning();

}  // namespace berth
