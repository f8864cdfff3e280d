// Op times from work and devices.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "placement/problem.h"

namespace berth {

// time = overhead + max(FLOPs / (peak of the op's data type * efficiency of its class), bytes moved / memory bandwidth)
// (the roofline of Williams, Waterman and Patterson 2009, with an overhead per op). An op that does and moves nothing
// takes no time. A type that the device has no peak for runs at the f32 rate. kCannotRun where the device does not
// support the op.
OpTimes RooflineTimes(const Graph& graph, const Cluster& cluster);

// The share of the peak that a class of ops reaches on a kind of device where a device file says nothing: our guesses.
double DefaultEfficiency(std::string_view device_kind, OpClass op_class);

// Measured times of one device, by op name.
struct OpProfile {
  std::string path;
  std::string device;  // the device or kind that it speaks of, as the file says; empty when it does not say
  std::map<std::string, Seconds, std::less<>> time_by_op;
};

// Replaces the column of every device in `devices` by what the profile has; what it lacks stays predicted, scaled by
// the median ratio measured / predicted over the ops that it has (`scaled`), and stays marked as predicted. Returns how
// many of the graph's ops were found. Throws Error when none was.
size_t ApplyProfile(const OpProfile& profile, const Graph& graph, const std::vector<DeviceId>& devices, OpTimes& times);

}  // namespace berth
