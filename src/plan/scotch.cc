#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <type_traits>
#include <vector>
// After <cstdio>: it uses FILE without declaring it.
#include <scotch.h>

#include "placement/search.h"
#include "plan/named_planner.h"
#include "plan/partition_graph.h"
#include "plan/planners.h"

namespace berth {
namespace {

static_assert(std::is_same_v<SCOTCH_Num, int32_t>, "Scotch must have been built with numbers of 32 bits");

// What Scotch makes with one function and frees with another.
template <typename Thing, auto kInit, auto kExit>
class ScotchHandle {
 public:
  ScotchHandle() { made_ = kInit(&thing_) == 0; }
  ~ScotchHandle() {
    if (made_) kExit(&thing_);
  }
  ScotchHandle(const ScotchHandle&) = delete;
  ScotchHandle& operator=(const ScotchHandle&) = delete;
  bool made() const { return made_; }
  Thing* get() { return &thing_; }

 private:
  Thing thing_;
  bool made_;
};
using ScotchGraph = ScotchHandle<SCOTCH_Graph, &SCOTCH_graphInit, &SCOTCH_graphExit>;
using ScotchMachine = ScotchHandle<SCOTCH_Arch, &SCOTCH_archInit, &SCOTCH_archExit>;
using ScotchStrategy = ScotchHandle<SCOTCH_Strat, &SCOTCH_stratInit, &SCOTCH_stratExit>;
using ScotchContext = ScotchHandle<SCOTCH_Context, &SCOTCH_contextInit, &SCOTCH_contextExit>;

// The devices as a weighted graph of their own: shares of the work, and how far apart any two are.
class ScotchDevices {
 public:
  ScotchDevices(const Problem& problem, const PartitionGraph& graph) {
    constexpr double kAllWork = 1e6;
    const std::vector<DeviceId>& devices = graph.devices();
    std::vector<double> apart;
    first_.push_back(0);
    for (size_t i = 0; i < devices.size(); ++i) {
      share_.push_back(std::max<SCOTCH_Num>(1, static_cast<SCOTCH_Num>(kAllWork * graph.work_shares()[i])));
      for (size_t k = 0; k < devices.size(); ++k) {
        if (k == i) continue;
        neighbour_.push_back(static_cast<SCOTCH_Num>(k));
        apart.push_back(MeanTransfer(problem, devices[i], devices[k]));
      }
      first_.push_back(static_cast<SCOTCH_Num>(neighbour_.size()));
    }
    SetDistances(apart);
    made_ = graph_.made() && machine_.made() && strategy_.made() &&
            SCOTCH_graphBuild(graph_.get(), 0, static_cast<SCOTCH_Num>(devices.size()), first_.data(), nullptr,
                              share_.data(), nullptr, static_cast<SCOTCH_Num>(neighbour_.size()), neighbour_.data(),
                              distance_.data()) == 0 &&
            SCOTCH_archBuild0(machine_.get(), graph_.get(), 0, nullptr, strategy_.get()) == 0;
  }

  bool made() const { return made_; }
  const SCOTCH_Arch* get() { return machine_.get(); }

 private:
  // Of a tensor of the graph's mean size, the average of both directions.
  static double MeanTransfer(const Problem& problem, DeviceId a, DeviceId b) {
    const Graph& graph = problem.graph();
    double bytes = 0;
    for (const TensorId tensor : graph.tensors()) bytes += static_cast<double>(graph.tensor_bytes(tensor));
    const auto mean = static_cast<int64_t>(bytes / std::max<double>(1, static_cast<double>(graph.num_tensors())));
    return (problem.transfer_time(mean, a, b) + problem.transfer_time(mean, b, a)) / 2;
  }

  // Whole numbers in proportion from 1 to 100: sums of transfers times distances must stay within 32 bits.
  void SetDistances(const std::vector<double>& apart) {
    const double least = apart.empty() ? 1 : *std::ranges::min_element(apart);
    for (const double time : apart) {
      const double ratio = least > 0 ? time / least : 1;
      distance_.push_back(static_cast<SCOTCH_Num>(std::round(std::clamp(4 * ratio, 4.0, 100.0))));
    }
  }

  ScotchGraph graph_;
  ScotchMachine machine_;
  ScotchStrategy strategy_;
  std::vector<SCOTCH_Num> first_, neighbour_, share_, distance_;
  bool made_;
};

// The part of each unit; empty where Scotch fails.
std::vector<SCOTCH_Num> MapOnto(const PartitionGraph& graph, ScotchDevices& machine, double imbalance) {
  std::vector<SCOTCH_Num> part(graph.size(), 0), tie;
  if (graph.size() == 0 || !machine.made()) return {};
  for (const int32_t time : graph.ties()) tie.push_back(std::max(1, time / 100));  // they are multiplied by distances
  ScotchContext context;
  ScotchGraph graph_alone, bound;
  ScotchStrategy strategy;
  if (!context.made() || !graph_alone.made() || !bound.made() || !strategy.made()) return {};
  constexpr int kThreads = 1;
  const auto parts = static_cast<SCOTCH_Num>(graph.devices().size());
  const bool fine =
      SCOTCH_contextOptionSetNum(context.get(), SCOTCH_OPTIONNUMDETERMINISTIC, 1) == 0 &&
      SCOTCH_contextRandomClone(context.get()) == 0 &&
      SCOTCH_contextThreadSpawn(context.get(), kThreads, nullptr) == 0 &&
      SCOTCH_graphBuild(graph_alone.get(), 0, static_cast<SCOTCH_Num>(graph.size()), graph.firsts().data(), nullptr,
                        graph.times().data(), nullptr, static_cast<SCOTCH_Num>(tie.size()), graph.neighbours().data(),
                        tie.data()) == 0 &&
      SCOTCH_stratGraphMapBuild(strategy.get(), SCOTCH_STRATQUALITY, parts, imbalance) == 0;
  if (!fine) return {};
  SCOTCH_contextRandomSeed(context.get(), 1);
  SCOTCH_contextRandomReset(context.get());
  if (SCOTCH_contextBindGraph(context.get(), graph_alone.get(), bound.get()) != 0 ||
      SCOTCH_graphMap(bound.get(), machine.get(), strategy.get(), part.data()) != 0) {
    return {};
  }
  return part;
}

// Static mapping (Pellegrini and Roman 1996): the graph of the ops, without the direction of its edges, onto the graph
// of the devices, whose vertices have the share of the work that their speed gives them and whose edges are longer the
// longer a transfer takes. The opponent of Mirhoseini et al. 2017 (section 4.2) and Placeto (Addanki et al. 2019). It
// knows no memory. Strictly and loosely balanced, each by first come and by rank: four evaluations.
class ScotchPlanner : public Partitioner {
 public:
  explicit ScotchPlanner(const Params& params) : Partitioner(params, "Scotch") {}

  PlanResult MakePlan(const PlanRequest& request) override {
    Search search(request);
    const Units units(request.problem());
    const PartitionGraph graph(units);
    PartitionTrials trials(search, units);
    ScotchDevices machine(request.problem(), graph);
    for (const double imbalance : {0.03, 0.3}) {
      if (!search.Done()) trials.Try(graph.Placement(MapOnto(graph, machine, imbalance)));
    }
    return trials.Finish(request);
  }
};

}  // namespace

void RegisterScotch(PlannerCatalog& catalog) {
  catalog.Add({.name = "scotch",
               .sentence = "Static mapping by Scotch onto the devices as a weighted graph: near ones for ops that "
                           "exchange much.",
               .source = "Pellegrini and Roman 1996; as an opponent Mirhoseini et al. 2017 and Addanki et al. 2019",
               .parameters = {}},
              [](const Params& params, const PlannerCatalog&) { return std::make_unique<ScotchPlanner>(params); });
}

}  // namespace berth
