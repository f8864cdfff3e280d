// What everything on one device takes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "placement/evaluator.h"

namespace berth {

struct SingleDevices {
  std::vector<std::optional<Score>> score{};  // by device; none where it may not have all ops, or cannot run one

  int64_t evaluations() const;  // that this took
  // By device, in time units; kCannotRun where it has no score or lacks the memory.
  std::vector<double> times() const;
  std::vector<double> spreads() const;  // Score::spread of these; 0 where there is none
};
// Whether this is one device alone; also of no op.
bool OnOneDevice(std::span<const DeviceId> device);
// One evaluation for each device that may have all ops.
SingleDevices ScoreSingleDevices(const Evaluator& evaluator);

}  // namespace berth
