// What a timeline comes to: who was busy, what travelled, and which chain of events took the time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "placement/problem.h"
#include "placement/timeline.h"

namespace berth {

// One device's part. Times are in the Problem's time unit.
struct DeviceUse {
  int64_t ops = 0;
  double busy = 0;  // op times summed
  int64_t transfers_in = 0, transfers_out = 0;
  int64_t bytes_in = 0, bytes_out = 0;
};

// An event of the critical path: an op, or a transfer by its position in Timeline::transfers.
struct PathStep {
  bool is_transfer = false;
  size_t index = 0;
  double start = 0, end = 0;
};

struct RunSummary {
  double makespan = 0;  // Score::time
  std::vector<DeviceUse> devices;
  int64_t transfers = 0;
  int64_t transfer_bytes = 0;
  double joules = 0;  // 0 where it is not known

  // A chain of events in which each starts when (and because) the one before it ended: from the last event back to the
  // start. Shortening anything else does not help.
  std::vector<PathStep> path;          // in time order
  std::vector<double> path_by_device;  // op time on the path
  double path_transfers = 0;           // transfer time on the path
  // What of the makespan is neither: subgraph overheads of `serial`, waiting in a given sequence.
  double path_other = 0;
  // Only one device works at a time, whatever depends on what (`serial`). Set by MakePlanReport: a Timeline does not
  // tell.
  bool in_turns = false;
  std::string untold_because{};  // Timeline::untold_because

  size_t busiest() const;  // the device with the most op time
};

RunSummary Summarize(const Problem& problem, const Timeline& timeline);

// What limits the run, in one sentence without the full stop: "gpu, which computes 97 % of the time".
std::string DescribeLimit(const Problem& problem, const RunSummary& summary);

struct HolderNames {
  std::string_view kind{};  // "weight", "tensor", "copy", "workspace", "input"
  std::string_view name{};  // of the weight, the tensor or the input
  std::string_view op{};    // that makes the tensor, or needs the workspace
};
HolderNames NamesOf(const Graph& graph, const MemoryHolder& holder);

// "weight conv1.w (9.00 MiB)": what a memory holder is.
std::string DescribeHolder(const Graph& graph, const MemoryHolder& holder);

}  // namespace berth
