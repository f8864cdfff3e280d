// How much memory and how many processors the system lets this process use.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace berth {

// What this process can still take before the system runs out: what the machine has available, or what its control
// groups (version 2) leave, if that is less; files that are cached do not count as held. Without swap. None where the
// system does not say. `root` stands for / in tests.
std::optional<Bytes> MemoryLeft(const std::string& root = "");

// The most that this process's control groups (version 2) let it have, whatever it and others in them hold. None where
// they do not say.
std::optional<Bytes> MemoryLimit(const std::string& root = "");

// The time of how many processors this process's control groups (version 2) let it have, like 1.5: what a container
// gets that is started with a limit. None where they do not say.
std::optional<double> ProcessorLimit(const std::string& root = "");

// ProcessorLimit, where it is less than the time of so many cores.
std::optional<double> ProcessorLimitBelow(size_t cores, const std::string& root = "");

// The cores that this process may use, ascending; core 0 where the system does not say.
std::vector<int> UsableCores();

// How many threads can compute side by side here, at least 1: one for each of UsableCores, but no more than
// ProcessorLimit, rounded up.
size_t UsableThreads(const std::string& root = "");

}  // namespace berth
