#include "placement/problem.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "placement/costs.h"
#include "placement/grouping.h"

namespace berth {

Problem::Problem(std::shared_ptr<const Graph> graph, std::shared_ptr<const Cluster> cluster, OpTimes times)
    : Problem(std::move(graph), std::move(cluster), std::move(times), Options{}) {}

Problem::Problem(std::shared_ptr<const Graph> graph, std::shared_ptr<const Cluster> cluster, OpTimes times,
                 Options options)
    : graph_(std::move(graph)),
      cluster_(std::move(cluster)),
      times_(std::move(times)),
      num_devices_(cluster_->num_devices()),
      seconds_per_unit_(options.seconds_per_unit),
      explicit_transfers_(std::move(options.explicit_transfers)),
      staging_(std::move(options.staging)),
      memory_limits_(std::move(options.memory_limits)),
      constraints_(std::move(options.constraints)) {
  const size_t routes = num_devices_ * num_devices_;
  BERTH_CHECK(times_.time.size() == num_ops() * num_devices_, "{} op times for {} ops on {} devices",
              times_.time.size(), num_ops(), num_devices_);
  BERTH_CHECK(times_.measured.empty() || times_.measured.size() == times_.time.size());
  BERTH_CHECK(explicit_transfers_.empty() || explicit_transfers_.size() == graph_->num_tensors() * routes);
  BERTH_CHECK(staging_.empty() || staging_.size() == graph_->num_tensors());
  BERTH_CHECK(seconds_per_unit_ > 0);
  for (const OpId op : graph_->ops()) {
    const std::span<const double> row = op_times(op);
    BERTH_CHECK(std::ranges::all_of(row, [](double t) { return t >= 0; }), "a time of op {} is negative or no number",
                graph_->op_name(op));
    if (std::ranges::all_of(row, [](double t) { return t == kCannotRun; })) {
      throw Error(
          "op {} ({}) can run on no device of cluster {}; add a device that supports it, or relax what forbids it",
          graph_->op_name(op), graph_->op_type(op), cluster_->name());
    }
  }
  latency_.assign(routes, 0);
  bandwidth_.assign(routes, std::numeric_limits<double>::infinity());
  for (const DeviceId from : cluster_->ids()) {
    for (const DeviceId to : cluster_->ids()) {
      if (from == to) continue;
      const Link& link = cluster_->link(from, to);
      const size_t route = Index(from) * num_devices_ + Index(to);
      // Dividing by 1 keeps every bit, so that problems in seconds mean exactly what the device file says.
      latency_[route] = link.latency.value / seconds_per_unit_;
      bandwidth_[route] = link.bandwidth.value * seconds_per_unit_;
    }
  }
  for (const DeviceId id : cluster_->ids()) on_host_.push_back(cluster_->device(id).kind == "cpu" ? 1 : 0);
  if (memory_limits_.empty()) {
    for (const DeviceId id : cluster_->ids()) {
      const std::optional<Quantity>& memory = cluster_->device(id).memory;
      memory_limits_.push_back(memory ? static_cast<int64_t>(memory->value) : std::numeric_limits<int64_t>::max());
    }
  }
  BERTH_CHECK(memory_limits_.size() == num_devices_);
  JoinKernels();
  CheckTotals();
}

void Problem::JoinKernels() {
  if (times_.kernels.empty()) return;
  std::vector<int32_t> label(num_ops());
  std::iota(label.begin(), label.end(), 0);
  for (const Kernel& kernel : times_.kernels) {
    BERTH_CHECK(kernel.ops.size() > 1 && kernel.apart.size() == kernel.ops.size() * num_devices_);
    for (const OpId op : kernel.ops) label[Index(op)] = static_cast<int32_t>(kernel.ops.front());
  }
  size_t dropped = 0;
  constraints_ = Grouped(*this, Grouping(*graph_, label), dropped).constraints();
  const Grouping together = ColocatedOps(*this);
  const auto is_split = [&](const Kernel& kernel) {
    return std::ranges::any_of(kernel.ops,
                               [&](OpId op) { return together.group_of(op) != together.group_of(kernel.ops.front()); });
  };
  split_kernels_ = std::erase_if(times_.kernels, [&](const Kernel& kernel) {
    if (!is_split(kernel)) return false;
    SplitKernel(kernel, num_devices_, times_);
    return true;
  });
}

// Nothing takes longer than everything one after another, each op on its slowest device and each tensor to all others.
void Problem::CheckTotals() const {
  const auto devices = static_cast<double>(num_devices_);
  double computing = 0, sending = 0, watts = 0, least_bandwidth = std::numeric_limits<double>::infinity();
  double slowest = 0;
  OpId slowest_op{};
  for (const OpId op : graph_->ops()) {
    double longest = 0;
    for (const double time : op_times(op)) longest = time < kCannotRun ? std::max(longest, time) : longest;
    computing += longest;
    if (longest > slowest) {
      slowest = longest;
      slowest_op = op;
    }
  }
  double bytes = static_cast<double>(graph_->total_tensor_bytes()),
         tensors = static_cast<double>(graph_->num_tensors());
  for (const InputId input : graph_->inputs()) bytes += static_cast<double>(graph_->input_bytes(input));
  tensors += static_cast<double>(graph_->num_inputs());
  for (const double bandwidth : bandwidth_) least_bandwidth = std::min(least_bandwidth, bandwidth);
  if (num_devices_ > 1) {
    sending = devices * (tensors * *std::ranges::max_element(latency_) + bytes / least_bandwidth);
    for (const double time : explicit_transfers_) sending += time;
    for (const double time : staging_) sending += devices * time;
  }
  for (const DeviceId id : cluster_->ids()) {
    watts += cluster_->device(id).watts_idle.value + cluster_->device(id).watts_busy.value;
  }
  const double all = ToSeconds(computing + sending).value;
  if (std::isfinite(computing + sending) && std::isfinite(all) && std::isfinite(all * watts)) return;
  const std::string largest = sending > computing || graph_->num_ops() == 0
                                  ? "the largest latency or the smallest bandwidth of its links"
                                  : fmt::format("the largest, like those of op {}, {} s", graph_->op_name(slowest_op),
                                                ToSeconds(slowest).value);
  throw Error(
      "{} on {}: its times add up to more than a number can hold: computing {} s, sending {} s, at {} W; correct {}",
      graph_->name(), cluster_->name(), ToSeconds(computing).value, ToSeconds(sending).value, watts, largest);
}

Problem Problem::With(Constraints constraints) const {
  Problem copy = *this;
  copy.constraints_ = std::move(constraints);
  return copy;
}

bool Problem::has_memory_limits() const {
  return std::ranges::any_of(memory_limits_, [](int64_t limit) { return limit < std::numeric_limits<int64_t>::max(); });
}

uint64_t Problem::fingerprint() const {
  Hasher hasher;
  hasher.Add(graph_->structural_fingerprint()).Add(cluster_->fingerprint()).Add(seconds_per_unit_);
  for (const double time : times_.time) hasher.Add(time);
  for (const double time : explicit_transfers_) hasher.Add(time);
  for (const double time : staging_) hasher.Add(time);
  for (const int64_t limit : memory_limits_) hasher.Add(static_cast<uint64_t>(limit));
  for (const auto& group : constraints_.colocate) {
    hasher.Add(uint64_t{group.size()});
    for (const OpId op : group) hasher.Add(uint64_t{Index(op)});
  }
  for (const auto& [a, b] : constraints_.separate) hasher.Add(uint64_t{Index(a)}).Add(uint64_t{Index(b)});
  for (const auto& [tensor, from, to] : constraints_.forbidden_transfers) {
    hasher.Add(uint64_t{Index(tensor)}).Add(uint64_t{Index(from)}).Add(uint64_t{Index(to)});
  }
  return hasher.value();
}

}  // namespace berth
