#include <metis.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "placement/search.h"
#include "plan/causes.h"
#include "plan/clusters.h"
#include "plan/contiguous.h"
#include "plan/named_planner.h"
#include "plan/planners.h"
#include "plan/rank.h"

namespace berth {
namespace {

// Sums of METIS's weights must stay within its 32-bit numbers.
constexpr double kMostSum = 5e8;

// Whole numbers in proportion, at least `least` each.
std::vector<idx_t> Scaled(const std::vector<double>& values, idx_t least) {
  double sum = 0;
  for (const double value : values) sum += value;
  std::vector<idx_t> scaled;
  for (const double value : values) {
    scaled.push_back(std::max(least, static_cast<idx_t>(sum > 0 ? std::round(value / sum * kMostSum) : 0)));
  }
  return scaled;
}

// Multilevel k-way partition (Karypis and Kumar 1998) of the ops that must share a device as one, without the direction
// of edges: least transfer time is cut, and each device has the share of the work that its speed gives it, and, as a
// second constraint, the share of the bytes that its memory gives it. The graph-partitioning opponent of the papers
// (Mirhoseini et al. 2017, section 4.2; Zhou et al. 2019). Tries work alone and both constraints, each strictly and
// loosely balanced, each by first come and by rank: eight evaluations.
class MetisPlanner : public NamedPlanner {
 public:
  explicit MetisPlanner(const Params& params) : NamedPlanner(params) {}

  PlannerFacts facts() const override {
    return {.space = PlannerFacts::Space::kPriorities, .deterministic_without_seed = true, .simple = true};
  }

  std::optional<std::string> Refuses(const Problem& problem, const Evaluator& evaluator) const override {
    if (problem.num_devices() < 2) return "it needs two devices";
    if (problem.num_ops() > 5'000'000) return "METIS counts in 32 bits: at most 5,000,000 ops";
    return NamedPlanner::Refuses(problem, evaluator);
  }

  PlanResult MakePlan(const PlanRequest& request) override {
    Search search(request);
    const Problem& problem = request.problem();
    const Units units(problem);
    const Clusters alone(units);
    const NetworkGraph graph(alone);
    std::vector<double> rank;
    if (request.evaluator.facts().uses_priorities) rank = UpwardRank(problem);
    for (const idx_t constraints : {1, 2}) {
      for (const double imbalance : {1.03, 1.3}) {
        Plan plan{.device = units.Legal(graph.Partition(constraints, imbalance))};
        for (const bool ranked : {false, true}) {
          if (search.Done() || (ranked && rank.empty())) continue;
          if (ranked) plan.priority = rank;
          search.Evaluate(plan.view(), kCause);
        }
      }
    }
    PlanResult result = search.Finish();
    GiveCauses(problem, result.plan, kCause);
    return result;
  }

 private:
  static constexpr const char* kCause = "in its part of the partition";

  // The units as METIS wants them.
  class NetworkGraph {
   public:
    explicit NetworkGraph(const Clusters& alone) : units_(alone.units()), devices_(DevicesBySpeed(units_.problem())) {
      const Problem& problem = units_.problem();
      std::vector<double> time, bytes, tie;
      first_.push_back(0);
      for (size_t unit = 0; unit < alone.size(); ++unit) {
        time.push_back(units_.time(unit, units_.fastest(unit)));
        bytes.push_back(static_cast<double>(alone.bytes(unit)));
        for (const Clusters::Tie& other : alone.ties(unit)) {
          neighbour_.push_back(static_cast<idx_t>(other.cluster));
          tie.push_back(other.time);
        }
        first_.push_back(static_cast<idx_t>(neighbour_.size()));
      }
      time_ = Scaled(time, 0);
      bytes_ = Scaled(bytes, 0);
      tie_ = Scaled(tie, 1);
      SetShares(problem);
    }

    // A device per op.
    std::vector<DeviceId> Partition(idx_t constraints, double imbalance) const {
      auto count = static_cast<idx_t>(units_.size()), parts = static_cast<idx_t>(devices_.size());
      std::vector<DeviceId> device(units_.problem().num_ops(), devices_.front());
      if (count == 0) return device;
      std::vector<idx_t> weight, part(units_.size(), 0);
      std::vector<real_t> share;
      for (size_t unit = 0; unit < units_.size(); ++unit) {
        weight.push_back(time_[unit]);
        if (constraints == 2) weight.push_back(bytes_[unit]);
      }
      for (size_t i = 0; i < devices_.size(); ++i) {
        share.push_back(static_cast<real_t>(work_share_[i]));
        if (constraints == 2) share.push_back(static_cast<real_t>(memory_share_[i]));
      }
      std::vector<real_t> balance(static_cast<size_t>(constraints), static_cast<real_t>(imbalance));
      idx_t options[METIS_NOPTIONS], cut = 0;
      METIS_SetDefaultOptions(options);
      options[METIS_OPTION_SEED] = 1;
      // METIS changes nothing that it is given, but does not say so; it draws from the C library's random numbers.
      static std::mutex mutex;
      const std::lock_guard lock(mutex);
      const int outcome = METIS_PartGraphKway(
          &count, &constraints, const_cast<idx_t*>(first_.data()), const_cast<idx_t*>(neighbour_.data()), weight.data(),
          nullptr, const_cast<idx_t*>(tie_.data()), &parts, share.data(), balance.data(), options, &cut, part.data());
      if (outcome != METIS_OK) return device;
      for (size_t unit = 0; unit < units_.size(); ++unit) {
        units_.Put(device, unit, devices_[static_cast<size_t>(part[unit])]);
      }
      return device;
    }

   private:
    void SetShares(const Problem& problem) {
      double speeds = 0, memories = 0;
      for (const DeviceId device : devices_) {
        double time = 0;
        for (size_t unit = 0; unit < units_.size(); ++unit) {
          time += units_.can_run(unit, device) ? units_.time(unit, device) : 0;
        }
        work_share_.push_back(time > 0 ? 1 / time : 1);
        speeds += work_share_.back();
        // Those without a limit count as one another.
        const int64_t limit = problem.memory_limit(device);
        memory_share_.push_back(problem.has_memory_limits() ? static_cast<double>(std::min<int64_t>(limit, 1LL << 50))
                                                            : 1);
        memories += memory_share_.back();
      }
      for (double& share : work_share_) share /= speeds;
      // METIS wants a little for each, also for a device without any memory.
      constexpr double kLeast = 1e-6;
      for (double& share : memory_share_) share = std::max(kLeast, share / std::max(memories, 1e-300));
    }

    const Units& units_;
    const std::vector<DeviceId> devices_;  // by part
    std::vector<idx_t> first_, neighbour_, tie_;
    std::vector<idx_t> time_, bytes_;  // by unit
    std::vector<double> work_share_, memory_share_;
  };
};

}  // namespace

void RegisterMetis(PlannerCatalog& catalog) {
  catalog.Add(
      {.name = "metis",
       .sentence = "Graph partitioning by METIS: the least transfer time between parts of equal work and memory.",
       .source = "Karypis and Kumar 1998; as an opponent Mirhoseini et al. 2017 and GDP (Zhou et al. 2019)",
       .parameters = {}},
      [](const Params& params, const PlannerCatalog&) { return std::make_unique<MetisPlanner>(params); });
}

}  // namespace berth
