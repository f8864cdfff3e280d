// The machine that the program runs on.
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace berth {

// "Intel(R) Xeon(R) Processor, 2 cores"; what the operating system calls it.
std::string ProcessorName();

// The cores that this process may use, ascending.
std::vector<int> UsableCores();

// Bytes of memory, 0 where the operating system does not say.
double MemoryBytes();

// The processor as one device, without any numbers but its memory.
Cluster WholeProcessor();

}  // namespace berth
