// Op times from work and devices.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "placement/grouping.h"
#include "placement/problem.h"

namespace berth {

// time = overhead + max(FLOPs / (peak of the op's data type * efficiency of its class), bytes moved / memory bandwidth)
// (the roofline of Williams, Waterman and Patterson 2009, with an overhead per op). An op that does and moves nothing
// takes no time. A type that the device has no peak for runs at the f32 rate. kCannotRun where the device does not
// support the op.
OpTimes RooflineTimes(const Graph& graph, const Cluster& cluster);
// The same where groups of several ops are kernels: such a group has one overhead, the FLOPs of all its ops, each at
// its own rate, and moves the bytes that enter and leave it, those that several of its ops read once. The op with most
// FLOPs has the time of all.
OpTimes RooflineTimes(const Graph& graph, const Cluster& cluster, const Grouping& kernels);

// Gives the ops of a kernel the times that they take apart; what cannot run stays so. The kernel stays in the list.
void SplitKernel(const Kernel& kernel, size_t devices, OpTimes& times);
// Splits the kernels whose ops a placement puts on several devices, and takes them from the list.
void SplitKernels(std::span<const DeviceId> placement, size_t devices, OpTimes& times);

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
