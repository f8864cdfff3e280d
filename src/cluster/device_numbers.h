// All numbers of a device in one list, for what treats them alike: checks, counts of guesses, lists of sources.
#pragma once

#include <string>
#include <string_view>

#include "cluster/cluster.h"

namespace berth {

// Calls visit(key, entry, quantity), two std::string_view and a reference, for each number of a `Device` or `const
// Device`. `key` is what a device file calls it; `entry` the data type, op class or state under that key ("f32" of
// peak, "busy" of watts), or empty. A number that a file leaves out is visited too, as a guess of 0; an unlimited
// memory is none.
template <typename AnyDevice, typename Visit>
void ForEachNumber(AnyDevice& device, const Visit& visit) {
  const auto visit_all = [&](std::string_view key, auto& quantities) {
    for (auto& [entry, quantity] : quantities) visit(key, entry, quantity);
  };
  if (device.memory) visit("memory", "", *device.memory);
  visit_all("peak", device.peak);
  visit("memory_bandwidth", "", device.memory_bandwidth);
  visit("op_overhead", "", device.op_overhead);
  visit_all("efficiency", device.efficiency);
  visit("half_rate_outputs", "", device.half_rate_outputs);
  visit("part_overhead", "", device.part_overhead);
  visit_all("cut_read", device.cut_read);
  visit_all("cut_write", device.cut_write);
  visit("watts", "idle", device.watts_idle);
  visit("watts", "busy", device.watts_busy);
}

// "op_overhead", "peak f32".
inline std::string NumberName(std::string_view key, std::string_view entry) {
  std::string name(key);
  if (!entry.empty()) name.append(" ").append(entry);
  return name;
}

}  // namespace berth
