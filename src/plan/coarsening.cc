#include "plan/coarsening.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "placement/layers.h"
#include "placement/mean_transfer.h"

namespace berth {
namespace {

constexpr double kFactor = 4;    // from one level to the next
constexpr double kEnough = 0.9;  // of the groups are left at most, when joining along tensors is worth going on with
constexpr double kShareOfDevice = 0.5;

}  // namespace

Coarsening::Coarsening(const Units& units, size_t fewest, const StopCheck& stop) : units_(units) {
  MakeGraph();
  levels_.push_back(group_of_);
  groups_.push_back(work_.size());
  const double all = std::accumulate(work_.begin(), work_.end(), 0.0);
  const double most = kShareOfDevice * all / static_cast<double>(units.problem().num_devices());
  while (work_.size() > fewest && !(stop && stop())) {
    const bool joined = Halve(most);
    const bool ends = !joined || work_.size() <= fewest;
    const bool next = static_cast<double>(work_.size()) * kFactor <= static_cast<double>(groups_.back());
    if (next || (ends && work_.size() < groups_.back())) {
      levels_.push_back(group_of_);
      groups_.push_back(work_.size());
    }
    if (ends) return;
  }
}

std::vector<int32_t> Coarsening::Labels(size_t level) const {
  std::vector<int32_t> labels;
  for (const OpId op : units_.problem().graph().ops()) {
    labels.push_back(static_cast<int32_t>(levels_[level][units_.unit_of(op)]));
  }
  return labels;
}

void Coarsening::MakeGraph() {
  const Problem& problem = units_.problem();
  const Graph& graph = problem.graph();
  group_of_.resize(units_.size());
  std::iota(group_of_.begin(), group_of_.end(), size_t{0});
  const Layers layers = FindLayers(problem);
  for (size_t unit = 0; unit < units_.size(); ++unit) {
    work_.push_back(units_.time(unit, units_.fastest(unit)));
    layer_.push_back(layers.layer_of[Index(units_.ops(unit).front())]);
  }
  const MeanTransfer transfer(problem);
  std::vector<size_t> to;
  for (const TensorId tensor : graph.tensors()) {
    const size_t from = units_.unit_of(graph.producer(tensor));
    to.clear();
    for (const OpId consumer : graph.consumers(tensor)) to.push_back(units_.unit_of(consumer));
    std::ranges::sort(to);
    to.erase(std::ranges::unique(to).begin(), to.end());
    const double time = transfer(tensor);
    // Units are numbered by their first ops, and ops in topological order.
    for (const size_t other : to) {
      if (other != from) edges_.push_back({std::min(from, other), std::max(from, other), time});
    }
  }
  std::vector<size_t> same(units_.size());
  std::iota(same.begin(), same.end(), size_t{0});
  Relabel(same, same.size());
}

// Sorts the edges between different groups, adds those of one pair, and finds the first of each group.
void Coarsening::Relabel(std::span<const size_t> group_of, size_t groups) {
  std::erase_if(edges_, [&](Edge& edge) {
    edge.from = group_of[edge.from];
    edge.to = group_of[edge.to];
    return edge.from == edge.to;
  });
  const auto ends = [](const Edge& edge) { return std::pair(edge.from, edge.to); };
  std::ranges::stable_sort(edges_, {}, ends);
  size_t kept = 0;
  for (const Edge& edge : edges_) {
    if (kept > 0 && ends(edges_[kept - 1]) == ends(edge)) {
      edges_[kept - 1].time += edge.time;
    } else {
      edges_[kept++] = edge;
    }
  }
  edges_.resize(kept);
  first_.assign(groups + 1, 0);
  for (const Edge& edge : edges_) ++first_[edge.from + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
}

// Of those that can be next, the one that became so last; of these, the one to which most is sent.
std::vector<size_t> Coarsening::Order() const {
  std::vector<size_t> missing(work_.size(), 0), order, ready;
  for (const Edge& edge : edges_) ++missing[edge.to];
  for (size_t group = work_.size(); group-- > 0;) {
    if (missing[group] == 0) ready.push_back(group);
  }
  std::vector<const Edge*> freed;
  while (!ready.empty()) {
    const size_t group = ready.back();
    ready.pop_back();
    order.push_back(group);
    freed.clear();
    for (size_t e = first_[group]; e < first_[group + 1]; ++e) {
      if (--missing[edges_[e].to] == 0) freed.push_back(&edges_[e]);
    }
    std::ranges::sort(freed, {}, [&](const Edge* edge) {
      return std::tuple(layer_[edge->to] == layer_[group], edge->time, -static_cast<double>(edge->to));
    });
    for (const Edge* edge : freed) ready.push_back(edge->to);
  }
  return order;
}

bool Coarsening::Halve(double most_work) {
  const std::vector<size_t> order = Order();
  struct Pair {
    bool one_layer, tied;
    double ratio;
    size_t first;  // in the order
  };
  std::vector<Pair> pairs;
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    const size_t a = order[i], b = order[i + 1];
    if (work_[a] + work_[b] > most_work) continue;
    const auto begin = edges_.begin() + static_cast<ptrdiff_t>(first_[a]);
    const auto end = edges_.begin() + static_cast<ptrdiff_t>(first_[a + 1]);
    const auto edge = std::ranges::lower_bound(begin, end, b, {}, &Edge::to);
    const bool tied = edge != end && edge->to == b;
    const double work = std::max(std::min(work_[a], work_[b]), std::numeric_limits<double>::min());
    pairs.push_back({layer_[a] >= 0 && layer_[a] == layer_[b], tied, tied ? edge->time / work : 0, i});
  }
  std::ranges::sort(pairs, {},
                    [](const Pair& pair) { return std::tuple(!pair.one_layer, !pair.tied, -pair.ratio, pair.first); });
  std::vector<uint8_t> joins_next(order.size() + 1, 0), taken(order.size() + 1, 0);
  size_t joined = 0;
  // Those of one layer while that brings enough; then those that a tensor joins; then any.
  for (const auto& [layers, ties] : {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
    if (static_cast<double>(order.size() - joined) <= kEnough * static_cast<double>(order.size())) break;
    for (const Pair& pair : pairs) {
      if ((!pair.one_layer && !layers) || (!pair.tied && !ties)) continue;
      if (taken[pair.first] != 0 || taken[pair.first + 1] != 0) continue;
      taken[pair.first] = taken[pair.first + 1] = joins_next[pair.first] = 1;
      ++joined;
    }
  }
  if (joined == 0) return false;
  std::vector<size_t> group_of(order.size());
  std::vector<double> work;
  std::vector<int32_t> layer;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && joins_next[i - 1] != 0) {
      work.back() += work_[order[i]];
      if (layer.back() != layer_[order[i]]) layer.back() = -1;
    } else {
      work.push_back(work_[order[i]]);
      layer.push_back(layer_[order[i]]);
    }
    group_of[order[i]] = work.size() - 1;
  }
  work_ = std::move(work);
  layer_ = std::move(layer);
  for (size_t& group : group_of_) group = group_of[group];
  Relabel(group_of, work_.size());
  return true;
}

}  // namespace berth
