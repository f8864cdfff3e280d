#include "plan/favourites.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "placement/mean_transfer.h"

namespace berth {
namespace {

// Edges one after another, each where it makes no second favourite.
std::vector<OpId> TakeInOrder(size_t num_ops, std::span<const FavouriteEdge> edges, std::span<const size_t> order) {
  std::vector<OpId> child(num_ops, OpId{-1});
  std::vector<uint8_t> is_child(num_ops, 0);
  for (const size_t e : order) {
    const auto& [from, to, time] = edges[e];
    if (child[Index(from)] != OpId{-1} || is_child[Index(to)] != 0) continue;
    child[Index(from)] = to;
    is_child[Index(to)] = 1;
  }
  return child;
}

}  // namespace

std::vector<FavouriteEdge> FavouriteEdges(const Units& units) {
  const Problem& problem = units.problem();
  const Graph& graph = problem.graph();
  const MeanTransfer transfer(problem);
  std::vector<FavouriteEdge> edges;
  for (const OpId op : graph.ops()) {
    const size_t first = edges.size();
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      const auto tensor = MakeId<TensorId>(t);
      const double time = transfer(tensor);
      if (time <= 0) continue;
      for (const OpId consumer : graph.consumers(tensor)) {
        if (units.unit_of(consumer) != units.unit_of(op)) edges.push_back({op, consumer, time});
      }
    }
    const auto begin = edges.begin() + static_cast<ptrdiff_t>(first);
    std::sort(begin, edges.end(), [](const FavouriteEdge& a, const FavouriteEdge& b) {
      return std::pair(a.to, -a.time) < std::pair(b.to, -b.time);
    });
    // Of several tensors the longest.
    edges.erase(std::unique(begin, edges.end(), [](const auto& a, const auto& b) { return a.to == b.to; }),
                edges.end());
  }
  return edges;
}

Favourites HeaviestFavourites(const Units& units) {
  const std::vector<FavouriteEdge> edges = FavouriteEdges(units);
  std::vector<size_t> order(edges.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t e) { return -edges[e].time; });
  return {.child = TakeInOrder(units.problem().num_ops(), edges, order)};
}

std::vector<OpId> RoundFavourites(size_t num_ops, std::span<const FavouriteEdge> edges, std::span<const double> x) {
  std::vector<size_t> order;
  for (size_t e = 0; e < edges.size(); ++e) {
    if (x[e] < 0.5) order.push_back(e);
  }
  std::ranges::stable_sort(order, {}, [&](size_t e) { return x[e]; });
  return TakeInOrder(num_ops, edges, order);
}

#if !BERTH_HAS_HIGHS
std::optional<Favourites> FavouritesByProgram(const Units&, const StopCheck&) { return std::nullopt; }
#endif

}  // namespace berth
