#include "plan/partition_graph.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "moves/rank.h"
#include "plan/causes.h"
#include "plan/contiguous.h"

namespace berth {
namespace {

constexpr double kMostSum = 5e8;

// Whole numbers in proportion, at least `least` each.
std::vector<int32_t> Scaled(const std::vector<double>& values, int32_t least) {
  double sum = 0;
  for (const double value : values) sum += value;
  std::vector<int32_t> scaled;
  for (const double value : values) {
    scaled.push_back(std::max(least, static_cast<int32_t>(sum > 0 ? std::round(value / sum * kMostSum) : 0)));
  }
  return scaled;
}

}  // namespace

PartitionGraph::PartitionGraph(const Units& units) : units_(units), devices_(DevicesBySpeed(units.problem())) {
  const Clusters alone(units);
  std::vector<double> time, bytes, tie;
  first_.push_back(0);
  for (size_t unit = 0; unit < alone.size(); ++unit) {
    time.push_back(units.time(unit, units.fastest(unit)));
    bytes.push_back(static_cast<double>(alone.bytes(unit)));
    for (const Clusters::Tie& other : alone.ties(unit)) {
      neighbour_.push_back(static_cast<int32_t>(other.cluster));
      tie.push_back(other.time);
    }
    first_.push_back(static_cast<int32_t>(neighbour_.size()));
  }
  time_ = Scaled(time, 0);
  bytes_ = Scaled(bytes, 0);
  tie_ = Scaled(tie, 1);
  // A device that can run next to nothing is not fast.
  const auto useless = [&](DeviceId device) {
    for (size_t unit = 0; unit < units.size(); ++unit) {
      if (units.can_run(unit, device)) return false;
    }
    return true;
  };
  if (const auto useful = std::ranges::count_if(devices_, std::not_fn(useless)); useful > 1) {
    std::erase_if(devices_, useless);
  }
  double speeds = 0;
  for (const DeviceId device : devices_) {
    const double all = TimeOfAll(units.problem(), device);
    work_share_.push_back(all > 0 ? 1 / all : 1);
    speeds += work_share_.back();
  }
  for (double& share : work_share_) share /= speeds;
}

std::vector<DeviceId> PartitionGraph::Placement(std::span<const int32_t> part) const {
  std::vector<DeviceId> device(units_.problem().num_ops(), devices_.front());
  for (size_t unit = 0; unit < part.size(); ++unit) {
    units_.Put(device, unit, devices_[static_cast<size_t>(part[unit])]);
  }
  return device;
}

PlannerFacts Partitioner::facts() const {
  return {.space = PlannerFacts::Space::kPriorities, .deterministic_without_seed = true, .simple = true};
}

std::optional<std::string> Partitioner::Refuses(const Problem& problem, const Evaluator& evaluator) const {
  if (problem.num_devices() < 2) return "it needs two devices";
  if (problem.num_ops() > 5'000'000) return library_ + " counts in 32 bits: at most 5,000,000 ops";
  return NamedPlanner::Refuses(problem, evaluator);
}

PartitionTrials::PartitionTrials(Search& search, const Units& units) : search_(search), units_(units) {
  if (search.evaluator().facts().uses_priorities) rank_ = UpwardRank(units.problem());
}

void PartitionTrials::Try(const std::vector<DeviceId>& device) {
  Plan plan{.device = units_.Legal(device)};
  for (const bool ranked : {false, true}) {
    if (search_.Done() || (ranked && rank_.empty())) continue;
    if (ranked) plan.priority = rank_;
    search_.Evaluate(plan.view(), kCause);
  }
}

PlanResult PartitionTrials::Finish(const PlanRequest& request) {
  PlanResult result = search_.Finish();
  GiveCauses(request, result, kCause);
  return result;
}

}  // namespace berth
