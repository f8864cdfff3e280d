// Timelines for Perfetto (ui.perfetto.dev) and chrome://tracing.
#pragma once

#include <span>
#include <string>

#include "placement/problem.h"
#include "placement/timeline.h"

namespace berth {

// The Trace Event Format as JSON: one track per device, one per link that is used (several where transfers overlap on
// it), and a memory counter per device. Flow events, named as the tensor, lead from the op that makes a tensor through
// its transfer to each op that reads it there, each at a moment within that slice. Times are rounded to nanoseconds,
// both ends alike, so that neighbours stay neighbours.
std::string WriteTrace(const Problem& problem, const Timeline& timeline);

// Several of one problem above each other, each with its tracks and its name: a plan as predicted and as measured.
struct NamedTimeline {
  std::string name;
  const Timeline& timeline;
};
std::string WriteTrace(const Problem& problem, std::span<const NamedTimeline> timelines);

}  // namespace berth
