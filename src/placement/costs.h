// Op times from work and devices.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "placement/grouping.h"
#include "placement/problem.h"

namespace berth {

// time = overhead + max(FLOPs / (peak of the op's data type * efficiency of its class), bytes moved / memory bandwidth)
// (the roofline of Williams, Waterman and Patterson 2009, with an overhead per op). A convolution or product of
// matrices that makes n values computes at n / (n + half_rate_outputs) of that rate; of a product, whose long sums are
// divided, n is at least its multiply-adds / 768. On a gpu or igpu each step of a
// recurrent layer or a loop has an overhead. An op that does and moves nothing takes no time. A type that the device
// has no peak for runs at the f32 rate. Where the device computes f32 in another precision, f32 ops have the peak of
// that type and move half the bytes. kCannotRun where the device does not support the op.
OpTimes RooflineTimes(const Graph& graph, const Cluster& cluster);
// The same where groups of several ops are kernels: such a group has one overhead, the FLOPs of all its ops, each at
// its own rate, and moves the bytes that enter and leave it, those that several of its ops read once. HeadOf has the
// time of all.
OpTimes RooflineTimes(const Graph& graph, const Cluster& cluster, const Grouping& kernels);

// The op that has the time of a kernel: the one with most FLOPs, of equal ones the first.
OpId HeadOf(const Graph& graph, std::span<const OpId> kernel);

// Gives the ops of a kernel the times that they take apart; what cannot run stays so. The kernel stays in the list.
void SplitKernel(const Kernel& kernel, size_t devices, OpTimes& times);
// Makes kernels of these groups, joined with the kernels that `times` has already where they share ops: the time of the
// whole is the sum of its ops', and apart each takes what it takes in `times`.
void JoinKernels(const Graph& graph, const Grouping& groups, OpTimes& times);
// Each op takes the least of what it takes in its kernel and apart, and there are no kernels: whichever of them a plan
// splits, it takes no less.
void LoosenKernels(size_t devices, OpTimes& times);
// Splits the kernels whose ops a placement puts on several devices, and takes them from the list.
void SplitKernels(std::span<const DeviceId> placement, size_t devices, OpTimes& times);

// The share of the peak that a class of ops reaches on a kind of device where a device file says nothing: our guesses.
double DefaultEfficiency(std::string_view device_kind, OpClass op_class);

}  // namespace berth
