// A model for people: what it consists of, and what it costs on given devices.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "placement/problem.h"

namespace berth {

std::string ModelPage(const Graph& graph);

// What all ops of one type take on each device, one after another.
struct TypeTimes {
  std::string_view op_type;
  size_t ops = 0;
  std::vector<double> seconds;  // by DeviceId; infinite where the device cannot run one of them
};
// The most expensive first, by the sum over the devices that can run it. O(ops * devices).
std::vector<TypeTimes> TimesByType(const Problem& problem);

// A table of them; of devices that are interchangeable the first.
std::string TypeTimesPage(const Problem& problem);

}  // namespace berth
