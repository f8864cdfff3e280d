// Tasks of policies that decide about groups of ops, the nodes of a coarse graph, all at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "learn/coarse_graph.h"
#include "learn/policy.h"

namespace berth {

struct NodeTask : Task {
  NodeTask(const Problem& of, std::string_view colocation)
      : Task(of), coarse(MakeCoarseGraph(of, colocation)), placer(of, coarse) {}

  // The placement of a device per node in `order`, which names each node once; the rules are kept.
  void Place(std::span<const int32_t> order, std::span<const int64_t> device, std::span<DeviceId> placement) const;
  // What is decided of each node in an order: Episode::device, and Episode::priority or nothing.
  struct Decided {
    std::span<const int64_t> device, priority{};
  };
  // The scores of such plans, as one after another would get them, on the search's threads; fewer where its budget or
  // `options.stop` ended it.
  std::vector<Score> ScoresOf(std::span<const int32_t> order, std::span<const Decided> decided, Search& search,
                              const PlayOptions& options) const;
  std::vector<Score> ScoresOf(std::span<const int32_t> order, std::span<const std::unique_ptr<Episode>> episodes,
                              Search& search, const PlayOptions& options) const;
  // Their costs, in time units.
  std::vector<double> CostsOf(std::span<const int32_t> order, std::span<const Decided> decided, Search& search,
                              const PlayOptions& options) const;
  std::vector<double> CostsOf(std::span<const int32_t> order, std::span<const std::unique_ptr<Episode>> episodes,
                              Search& search, const PlayOptions& options) const;

  // Of each op, the level of its node.
  std::vector<double> Priorities(std::span<const int32_t> order, std::span<const int64_t> level) const;

  CoarseGraph coarse;
  NodePlacer placer;

 private:
  std::vector<double> Costs(std::span<const Score> scores, const PlayOptions& options) const;
};

}  // namespace berth
