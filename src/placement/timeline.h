// What ran where, from when to when. One type for simulated and for measured runs, so that judging a simulator is a
// diff.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/units.h"
#include "graph/graph.h"

namespace berth {

// Times are in the Problem's time unit (Problem::ToSeconds).
struct OpRun {
  DeviceId device{};
  double start = 0;
  double end = 0;
  bool operator==(const OpRun&) const = default;
};

// Of a transfer, what the interval shows. Where the ends are busy at different times (`pipeline`, `pieces`), each has
// an interval of its own: on `from` when it sends, on `to` when it receives. What goes to the host's memory has from ==
// to.
enum class TransferPart : uint8_t { kWhole, kSend, kReceive };

struct TransferRun {
  TensorId tensor{};  // with is_input: the number of a graph input
  DeviceId from{};
  DeviceId to{};
  double start = 0;
  double end = 0;
  bool is_input = false;
  TransferPart part = TransferPart::kWhole;
  bool operator==(const TransferRun&) const = default;
};

// Bytes of the tensor or graph input that a transfer carries, and its name.
int64_t TransferBytes(const Graph& graph, const TransferRun& transfer);
std::string_view TransferName(const Graph& graph, const TransferRun& transfer);

// One thing that occupies memory at the moment of the peak.
struct MemoryHolder {
  enum class Kind : uint8_t { kParameter, kTensor, kCopy, kWorkspace, kInput };
  Kind kind;
  int32_t id;  // of the parameter, tensor, op or input
  int64_t bytes;
  bool operator==(const MemoryHolder&) const = default;
};

struct MemoryStep {
  double time;
  int64_t bytes;  // from here on
  bool operator==(const MemoryStep&) const = default;
};

struct DeviceMemory {
  int64_t peak_bytes = 0;
  double peak_time = 0;                 // when the peak is first reached
  std::vector<MemoryHolder> holders{};  // at that moment, largest first
  std::vector<MemoryStep> steps{};      // the level over time
};

// What became of a plan, from the best to the worst.
enum class Outcome : uint8_t {
  kFits,
  kTooBig,      // it needs more memory than some device has
  kImpossible,  // it breaks another rule of its evaluator: its sequence waits for itself, an op is where it cannot run
  kFailed,      // it has no score: the run ended with an error, or was stopped. Workspace::failure says why
};

// The answer of an Evaluator's Score: data, also for a plan that does not fit.
struct Score {
  double time = 0;  // makespan, serial sum, largest load, measured mean: in the Problem's time unit
  Outcome outcome = Outcome::kFits;
  int32_t runs = 1;                   // of which the time is the mean
  int64_t excess_bytes = 0;           // summed over devices, above their memory
  std::optional<double> objective{};  // of what planners minimise, where that is not the time alone (objective.h)
  double spread = 0;                  // of these runs: the longest time less the shortest

  bool fits() const { return outcome == Outcome::kFits; }
  bool failed() const { return outcome == Outcome::kFailed; }
  // What planners minimise; infinity of a plan that failed.
  double value() const { return objective.value_or(time); }
  bool operator==(const Score&) const = default;

  static constexpr Score Failed() {
    return {.time = std::numeric_limits<double>::infinity(), .outcome = Outcome::kFailed, .runs = 0};
  }
};
// Whether two plans' times differ by more than the runs of either are apart; always where neither was run more than
// once.
inline bool CanBeToldApart(const Score& a, const Score& b) {
  const double noise = std::max(a.spread, b.spread);
  return noise == 0 || std::abs(a.time - b.time) > noise;
}
// A score is made, copied and compared in the inner loop of every search.
static_assert(std::is_trivially_copyable_v<Score>);

struct Timeline {
  Score score{};
  std::string infeasible_because{};      // empty, or one line: the device, its peak, its limit, the moment
  std::vector<OpRun> ops{};              // by op
  std::string untold_because{};          // why `ops` and `transfers` have no times; empty where they have
  std::vector<TransferRun> transfers{};  // by start, then tensor and destination
  std::vector<DeviceMemory> memory{};    // by device; empty when not tracked
  size_t subgraphs = 0;                  // serial, parts and measured runs: how many the runtime makes; else 0
};

}  // namespace berth
