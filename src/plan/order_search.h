// The best order of a tiny placement, by branch and bound.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "placement/evaluator.h"
#include "placement/plan.h"
#include "placement/problem.h"

namespace berth {

// Under parallel execution a placement leaves open the order of the ops on each device and, where they queue, of the
// transfers on each port. Every schedule that starts all as early as its orders allow is reached by appending one
// activity (op or transfer) after another in the order of their starts; among these is a shortest one. Contention none,
// egress or ports. With a host for inputs and outputs, what a sequence cannot name keeps its place on the ports
// (docs/semantics.md): graph inputs before all else, by number and destination, and outputs that no op on the host
// consumes after all else, by number.
class OrderSearch {
 public:
  OrderSearch(const Problem& problem, Contention contention, std::optional<DeviceId> io_host);

  static constexpr int64_t kStopEach = 4096;
  // An order whose makespan is the least, and less than `below`; nothing when there is none, or `stop` said so before
  // one was found. `stop` is asked after each kStopEach beginnings of orders.
  struct Result {
    Sequence sequence;
    double makespan;
  };
  std::optional<Result> Best(std::span<const DeviceId> device, double below, const std::function<bool()>& stop);
  // Whether `stop` ended the last Best.
  bool stopped() const { return stopped_; }

 private:
  struct Activity {
    double length = 0;
    double tail = 0;          // the longest way from its end to the end of everything
    size_t resource[2] = {};  // equal when it holds only one
    double return_time = 0;   // from its end until the last of its outputs is on the host, where that needs no port
    OpId op{-1};              // else a transfer:
    std::pair<TensorId, DeviceId> transfer{};
    bool named = true;                                    // in the sequence
    std::vector<std::pair<size_t, double>> successors{};  // activity, and the time between
    size_t producers = 0;
  };
  // What appending an activity changes.
  struct State {
    std::vector<double> free;       // per resource
    std::vector<double> work_left;  // per device
    std::vector<double> release;    // per activity: when its producers are done
    std::vector<size_t> missing;    // per activity
    double last_start = 0;
    double finish = 0;  // of all that is appended
    double bound = 0;
  };

  bool queues() const { return contention_ != Contention::kNone; }
  // Appends a transfer that holds its ports, after `producer`; its number.
  size_t AddTransfer(size_t producer, TensorId tensor, DeviceId from, DeviceId to);
  void Follows(size_t before, size_t after, double lag);
  void MakeActivities(std::span<const DeviceId> device);
  void AddReturns(std::span<const DeviceId> device);
  void SetTails();
  State Beginning(std::span<const DeviceId> device) const;
  void Extend(const State& state);
  double Start(const State& state, size_t activity) const;
  Sequence MakeSequence() const;

  const Problem& problem_;
  Contention contention_;
  std::optional<DeviceId> io_host_;
  std::vector<Activity> activities_;
  std::vector<size_t> order_;  // activities, as appended
  std::vector<uint8_t> appended_;
  double best_ = 0;
  std::optional<Result> result_;
  const std::function<bool()>* stop_ = nullptr;
  bool stopped_ = false;
  int64_t nodes_ = 0;
};

}  // namespace berth
