#include "moves/clusters.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

#include "moves/rank.h"

namespace berth {
namespace {

struct Edge {
  size_t from, to;
  double time;
};

// Of the tensors between different labels, each once per pair, both ways added; by from < to.
std::vector<Edge> EdgesBetween(const Units& units, std::span<const size_t> label) {
  const Problem& problem = units.problem();
  const Graph& graph = problem.graph();
  const MeanTransfer transfer(problem);
  std::vector<Edge> edges;
  std::vector<size_t> to;
  for (const TensorId tensor : graph.tensors()) {
    const size_t from = label[units.unit_of(graph.producer(tensor))];
    to.clear();
    for (const OpId consumer : graph.consumers(tensor)) to.push_back(label[units.unit_of(consumer)]);
    std::ranges::sort(to);
    to.erase(std::ranges::unique(to).begin(), to.end());
    std::erase(to, from);
    if (to.empty()) continue;
    const double time = transfer(tensor);
    for (const size_t other : to) edges.push_back({std::min(from, other), std::max(from, other), time});
  }
  const auto ends = [](const Edge& edge) { return std::pair(edge.from, edge.to); };
  std::ranges::stable_sort(edges, {}, ends);
  size_t kept = 0;
  for (size_t e = 0; e < edges.size(); ++e) {
    if (kept > 0 && ends(edges[kept - 1]) == ends(edges[e])) {
      edges[kept - 1].time += edges[e].time;
    } else {
      edges[kept++] = edges[e];
    }
  }
  edges.resize(kept);
  return edges;
}

// Joins units as the header says.
class Joiner {
 public:
  Joiner(const Units& units, double least_ratio, double most_work)
      : least_ratio_(least_ratio), most_work_(most_work), label_(units.size()), ties_(units.size()) {
    std::iota(label_.begin(), label_.end(), size_t{0});
    for (size_t unit = 0; unit < units.size(); ++unit) {
      double least = kCannotRun;
      for (const DeviceId device : units.problem().cluster().ids()) least = std::min(least, units.time(unit, device));
      work_.push_back(least);
    }
    for (const Edge& edge : EdgesBetween(units, label_)) {
      ties_[edge.from][edge.to] = ties_[edge.to][edge.from] = edge.time;
    }
  }

  std::vector<size_t> Join() {
    for (size_t a = 0; a < ties_.size(); ++a) {
      for (const auto& [b, time] : ties_[a]) {
        if (a < b) Offer(a, b, time);
      }
    }
    while (!offers_.empty()) {
      const auto [ratio, a, b, time] = offers_.top();
      offers_.pop();
      const auto found = ties_[a].find(b);
      // Entries of what was joined since, or of ties that grew, stay in the queue.
      if (found == ties_[a].end() || found->second != time) continue;
      if (Ratio(a, b, time) != ratio) {
        Offer(a, b, time);  // work has grown
      } else if (work_[a] + work_[b] <= most_work_) {
        Absorb(a, b);
      }
    }
    std::vector<size_t> root(label_.size());
    for (size_t unit = 0; unit < label_.size(); ++unit) {
      size_t v = unit;
      while (label_[v] != v) v = label_[v] = label_[label_[v]];
      root[unit] = v;
    }
    return root;
  }

 private:
  using Entry = std::tuple<double, size_t, size_t, double>;
  struct Later {
    // The largest ratio first.
    bool operator()(const Entry& x, const Entry& y) const {
      const auto& [x_ratio, x_a, x_b, x_time] = x;
      const auto& [y_ratio, y_a, y_b, y_time] = y;
      return std::tuple(-x_ratio, x_a, x_b) > std::tuple(-y_ratio, y_a, y_b);
    }
  };

  double Ratio(size_t a, size_t b, double time) const {
    const double work = std::min(work_[a], work_[b]);
    return work > 0 ? time / work : time > 0 ? std::numeric_limits<double>::infinity() : 0;
  }
  void Offer(size_t a, size_t b, double time) {
    if (a > b) std::swap(a, b);
    const double ratio = Ratio(a, b, time);
    if (ratio >= least_ratio_ && ratio > 0) offers_.emplace(ratio, a, b, time);
  }
  void Absorb(size_t a, size_t b) {
    if (ties_[a].size() < ties_[b].size()) std::swap(a, b);
    label_[b] = a;
    work_[a] += work_[b];
    ties_[a].erase(b);
    for (const auto& [other, time] : ties_[b]) {
      if (other == a) continue;
      ties_[other].erase(b);
      ties_[other][a] = ties_[a][other] += time;
      Offer(a, other, ties_[a][other]);
    }
    ties_[b].clear();
  }

  double least_ratio_, most_work_;
  std::vector<size_t> label_;                   // by unit: the one that it has joined, or itself
  std::vector<std::map<size_t, double>> ties_;  // by unit that stands for others: both ways
  std::vector<double> work_;
  std::priority_queue<Entry, std::vector<Entry>, Later> offers_;
};

}  // namespace

Clusters::Clusters(const Units& units) : units_(units) {
  std::vector<size_t> label(units.size());
  std::iota(label.begin(), label.end(), size_t{0});
  Number(label);
}

Clusters::Clusters(const Units& units, double least_ratio, double most_work) : units_(units) {
  Number(Joiner(units, least_ratio, most_work).Join());
}

void Clusters::Number(std::span<const size_t> label) {
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  std::vector<size_t> number(units_.size(), kNone);
  size_t count = 0;
  for (const size_t each : label) {
    if (number[each] == kNone) number[each] = count++;
    cluster_of_.push_back(number[each]);
  }
  first_.assign(count + 1, 0);
  for (const size_t cluster : cluster_of_) ++first_[cluster + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  members_.resize(units_.size());
  std::vector<size_t> next(first_.begin(), first_.end() - 1);
  for (size_t unit = 0; unit < units_.size(); ++unit) members_[next[cluster_of_[unit]]++] = unit;
  SetTies();
  SetSums();
}

void Clusters::SetTies() {
  const std::vector<Edge> edges = EdgesBetween(units_, cluster_of_);
  first_tie_.assign(size() + 1, 0);
  for (const Edge& edge : edges) {
    ++first_tie_[edge.from + 1];
    ++first_tie_[edge.to + 1];
  }
  std::partial_sum(first_tie_.begin(), first_tie_.end(), first_tie_.begin());
  ties_.resize(2 * edges.size());
  std::vector<size_t> next(first_tie_.begin(), first_tie_.end() - 1);
  for (const Edge& edge : edges) {
    ties_[next[edge.from]++] = {edge.to, edge.time};
    ties_[next[edge.to]++] = {edge.from, edge.time};
  }
}

void Clusters::SetSums() {
  const Problem& problem = units_.problem();
  const Graph& graph = problem.graph();
  time_.assign(size() * problem.num_devices(), 0);
  bytes_.assign(size(), 0);
  for (const OpId op : graph.ops()) {
    const size_t cluster = cluster_of(op);
    for (const DeviceId device : problem.cluster().ids()) {
      time_[cluster * problem.num_devices() + Index(device)] += problem.op_time(op, device);
    }
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      bytes_[cluster] += graph.tensor_bytes(MakeId<TensorId>(t));
    }
  }
  std::vector<size_t> users;
  for (const ParameterId parameter : graph.parameters()) {
    users.clear();
    for (const OpId op : graph.parameter_consumers(parameter)) users.push_back(cluster_of(op));
    std::ranges::sort(users);
    users.erase(std::ranges::unique(users).begin(), users.end());
    for (const size_t cluster : users) bytes_[cluster] += graph.parameter_bytes(parameter);
  }
}

std::optional<Clusters> TieUnits(const Units& units, double least_ratio) {
  constexpr double kMostWork = 1.05;  // of a cluster, as a multiple of that share
  constexpr size_t kMostOps = 500'000;
  if (units.problem().num_ops() > kMostOps) return std::nullopt;
  double work = 0;
  for (size_t unit = 0; unit < units.size(); ++unit) work += units.time(unit, units.fastest(unit));
  const double share = work / static_cast<double>(units.problem().num_devices());
  std::optional<Clusters> clusters(std::in_place, units, least_ratio, kMostWork * share);
  if (clusters->size() == units.size()) clusters.reset();
  return clusters;
}

}  // namespace berth
