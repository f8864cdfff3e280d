#include <fcntl.h>
#include <metis.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <numeric>
#include <type_traits>
#include <vector>

#include "placement/search.h"
#include "plan/contiguous.h"
#include "plan/named_planner.h"
#include "plan/partition_graph.h"
#include "plan/planners.h"

namespace berth {
namespace {

static_assert(std::is_same_v<idx_t, int32_t>, "METIS must have been built with indices of 32 bits");

// METIS prints what it takes for mistakes, as that a part will be empty, to standard output, where our answer goes:
// while this lives nothing is printed there.
class Silence {
 public:
  Silence() {
    std::fflush(stdout);
    before_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (before_ >= 0 && nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO);
    if (nowhere >= 0) ::close(nowhere);
  }
  ~Silence() {
    if (before_ < 0) return;
    std::fflush(stdout);
    ::dup2(before_, STDOUT_FILENO);
    ::close(before_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  int before_;
};

// Multilevel k-way partition (Karypis and Kumar 1998) of the ops that must share a device as one, without the direction
// of edges: least transfer time is cut, and each device has the share of the work that its speed gives it, and, as a
// second constraint, the share of the bytes that its memory gives it. The graph-partitioning opponent of the papers
// (Mirhoseini et al. 2017, section 4.2; Zhou et al. 2019). Tries work alone and both constraints, each strictly and
// loosely balanced, each by first come and by rank: eight evaluations.
class MetisPlanner : public Partitioner {
 public:
  explicit MetisPlanner(const Params& params) : Partitioner(params, "METIS") {}

  PlanResult MakePlan(const PlanRequest& request) override {
    Search search(request);
    const Units units(request.problem());
    const PartitionGraph graph(units);
    const std::vector<double> memory_shares = MemoryShares(request.problem(), graph.devices());
    PartitionTrials trials(search, units);
    for (const idx_t constraints : {1, 2}) {
      for (const double imbalance : {1.03, 1.3}) {
        if (!search.Done()) trials.Try(Partition(graph, memory_shares, constraints, imbalance));
      }
    }
    return trials.Finish(request);
  }

 private:
  static std::vector<double> MemoryShares(const Problem& problem, const std::vector<DeviceId>& devices) {
    std::vector<double> shares = MemoryOfEach(problem, devices);
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    // METIS wants a little for each, also for a device without any memory.
    constexpr double kLeast = 1e-6;
    for (double& share : shares) share = std::max(kLeast, share / std::max(sum, 1e-300));
    return shares;
  }

  // A device per op.
  static std::vector<DeviceId> Partition(const PartitionGraph& graph, const std::vector<double>& memory_shares,
                                         idx_t constraints, double imbalance) {
    auto count = static_cast<idx_t>(graph.size()), parts = static_cast<idx_t>(graph.devices().size());
    if (count == 0) return graph.Placement({});
    std::vector<idx_t> weight, part(graph.size(), 0);
    std::vector<real_t> share;
    for (size_t unit = 0; unit < graph.size(); ++unit) {
      weight.push_back(graph.times()[unit]);
      if (constraints == 2) weight.push_back(graph.bytes()[unit]);
    }
    for (size_t i = 0; i < graph.devices().size(); ++i) {
      share.push_back(static_cast<real_t>(graph.work_shares()[i]));
      if (constraints == 2) share.push_back(static_cast<real_t>(memory_shares[i]));
    }
    std::vector<real_t> balance(static_cast<size_t>(constraints), static_cast<real_t>(imbalance));
    idx_t options[METIS_NOPTIONS], cut = 0;
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = 1;
    // METIS changes nothing that it is given, but does not say so; it draws from the C library's random numbers.
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    const Silence silence;
    const int outcome = METIS_PartGraphKway(&count, &constraints, const_cast<idx_t*>(graph.firsts().data()),
                                            const_cast<idx_t*>(graph.neighbours().data()), weight.data(), nullptr,
                                            const_cast<idx_t*>(graph.ties().data()), &parts, share.data(),
                                            balance.data(), options, &cut, part.data());
    return graph.Placement(outcome == METIS_OK ? part : std::vector<idx_t>{});
  }
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
