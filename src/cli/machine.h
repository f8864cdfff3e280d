// The machine that the program runs on.
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace berth {

// "Intel(R) Xeon(R) Processor, 2 cores"; what the operating system calls it.
std::string ProcessorName();

// The cores that this process may use, for `split` devices.
struct DeviceCores {
  // One per physical core, since two threads of one share what computes; all where there are too few for that, or one
  // device has all.
  std::vector<int> cores;
  size_t physical;  // how many physical ones those are that the process may use
};
DeviceCores CoresFor(size_t split);

// Bytes of memory, 0 where the operating system does not say.
double MemoryBytes();

// The processor as one device, with the operating system's memory and guesses for the rest.
Cluster WholeProcessor();

}  // namespace berth
