// The rules by which ops are grouped, as published.
#include <algorithm>
#include <map>
#include <numeric>
#include <queue>

#include "base/error.h"
#include "base/parameters.h"
#include "base/random.h"
#include "placement/fusion.h"
#include "placement/grouping.h"
#include "placement/layers.h"
#include "placement/mean_transfer.h"

namespace berth {
namespace {

// By op, 1 for one of a backward pass that must share its device with one of the forward pass: rules group the forward
// ops as if there were no others, and these follow. (Every activation has a second consumer in the backward pass, and
// groups of both passes, made apart, would be joined to a few large ones.)
std::vector<uint8_t> Followers(const Problem& problem) {
  const Graph& graph = problem.graph();
  std::vector<uint8_t> follows(graph.num_ops(), 0);
  for (const std::vector<OpId>& together : problem.constraints().colocate) {
    if (std::ranges::all_of(together, [&](OpId op) { return graph.is_backward(op); })) continue;
    for (const OpId op : together) follows[Index(op)] = graph.is_backward(op) ? 1 : 0;
  }
  return follows;
}

// Who feeds whom, each once; followers feed and are fed by nobody.
struct Neighbours {
  std::vector<std::vector<OpId>> producers, consumers;

  explicit Neighbours(const Problem& problem) : producers(problem.num_ops()), consumers(problem.num_ops()) {
    const Graph& graph = problem.graph();
    const std::vector<uint8_t> follows = Followers(problem);
    for (const TensorId tensor : graph.tensors()) {
      const OpId from = graph.producer(tensor);
      if (follows[Index(from)] != 0) continue;
      for (const OpId to : graph.consumers(tensor)) {
        if (follows[Index(to)] == 0) consumers[Index(from)].push_back(to);
      }
    }
    for (const OpId op : graph.ops()) {
      std::vector<OpId>& to = consumers[Index(op)];
      std::ranges::sort(to);
      to.erase(std::ranges::unique(to).begin(), to.end());
      for (const OpId consumer : to) producers[Index(consumer)].push_back(op);
    }
  }

  // The one op that feeds this one, if there is just one; else this one itself.
  OpId OnlyProducer(OpId op) const { return producers[Index(op)].size() == 1 ? producers[Index(op)].front() : op; }
  bool HasOneConsumer(OpId op) const { return consumers[Index(op)].size() == 1; }
};

std::vector<int32_t> Alone(const Graph& graph) {
  std::vector<int32_t> label(graph.num_ops());
  std::iota(label.begin(), label.end(), 0);
  return label;
}

// HSDAG's paper, appendix G, after Mirhoseini et al. 2017: an op joins its only producer if it is its only consumer.
// HSDAG's code: if it is its only producer, whatever other ops consume its output.
Grouping Colocation(const Problem& problem, bool only_consumer, int64_t most) {
  const Graph& graph = problem.graph();
  const Neighbours neighbours(problem);
  std::vector<int32_t> label = Alone(graph);
  std::vector<int64_t> size(graph.num_ops(), 1);  // by label
  for (const OpId op : graph.ops()) {
    const OpId producer = neighbours.OnlyProducer(op);
    if (producer == op || (only_consumer && !neighbours.HasOneConsumer(producer))) continue;
    const int32_t group = label[Index(producer)];
    if (most > 0 && size[static_cast<size_t>(group)] == most) continue;
    label[Index(op)] = group;
    ++size[static_cast<size_t>(group)];
  }
  return Grouping(graph, label);
}

// Contracts edges, heaviest first, and keeps the graph of the groups acyclic. An order of the groups is kept with it,
// in which every edge points forward: a second path between the ends of an edge lies between them there.
class Contraction {
 public:
  Contraction(const Problem& problem, const StopCheck& stop)
      : problem_(problem),
        stop_(stop),
        label_(Alone(problem.graph())),
        follows_(Followers(problem)),
        out_(problem.num_ops()),
        in_(problem.num_ops()),
        at_(problem.num_ops()) {
    const Graph& graph = problem.graph();
    for (const TensorId tensor : graph.tensors()) {
      const OpId from = graph.producer(tensor);
      if (follows_[Index(from)] != 0) continue;
      for (const OpId to : graph.consumers(tensor)) {
        if (follows_[Index(to)] != 0) continue;
        AddEdge(static_cast<int32_t>(from), static_cast<int32_t>(to), WeightOf(tensor));
      }
    }
    order_ = position_ = label_;
    members_.resize(problem.num_ops());
    for (const OpId op : graph.ops()) {
      members_[Index(op)] = {op};
      work_.push_back(std::ranges::min(problem.op_times(op)));
    }
    groups_ = static_cast<size_t>(std::ranges::count(follows_, 0));
  }

  // `balance`: times the mean work of a group that one may hold, or 0 for any; where that leaves more groups than
  // `target`, twice as much, and so on.
  Grouping Shrink(size_t target, double balance) {
    const double whole = std::accumulate(work_.begin(), work_.end(), 0.0);
    double most = balance > 0 ? balance * whole / static_cast<double>(target) : whole;
    ContractUpTo(most, target);
    for (; groups_ > target && most < whole && !stopped_; ContractUpTo(most, target)) most *= 2;
    if (stopped_) {
      JoinNeighbours(target);
    } else {
      JoinTheUnconnected(target);
    }
    std::vector<int32_t> label(problem_.num_ops());
    for (size_t group = 0; group < members_.size(); ++group) {
      for (const OpId op : members_[group]) label[Index(op)] = static_cast<int32_t>(group);
    }
    return Grouping(problem_.graph(), label);
  }

 private:
  struct Edge {
    double weight;
    int32_t from, to;
    // The heap's largest: the heaviest, then the first.
    bool operator<(const Edge& other) const {
      return std::tuple(weight, -from, -to) < std::tuple(other.weight, -other.from, -other.to);
    }
  };

  void ContractUpTo(double most, size_t target) {
    heap_ = {};
    for (size_t group = 0; group < out_.size(); ++group) {
      for (const auto& [to, weight] : out_[group]) heap_.push({weight, static_cast<int32_t>(group), to});
    }
    for (int64_t step = 0; groups_ > target && !heap_.empty(); ++step) {
      if (step % 64 == 0 && stop_ && stop_()) {
        stopped_ = true;
        return;
      }
      const Edge edge = heap_.top();
      heap_.pop();
      const auto found = out(edge.from).find(edge.to);
      // Entries of edges that were contracted or grew since stay in the heap.
      if (found == out(edge.from).end() || found->second != edge.weight) continue;
      if (work(edge.from) + work(edge.to) > most * (1 + 1e-9) || HasSecondPath(edge)) continue;
      Contract(edge.from, edge.to);
    }
  }

  double& work(int32_t group) { return work_[static_cast<size_t>(group)]; }
  std::map<int32_t, double>& out(int32_t group) { return out_[static_cast<size_t>(group)]; }
  std::map<int32_t, double>& in(int32_t group) { return in_[static_cast<size_t>(group)]; }
  int32_t& position(int32_t group) { return position_[static_cast<size_t>(group)]; }

  // Bytes, none of a constant's, which is not sent; where a data set gives transfer times instead, their mean over
  // pairs of devices.
  double WeightOf(TensorId tensor) const {
    const Graph& graph = problem_.graph();
    if (!problem_.has_explicit_transfers()) {
      return graph.is_constant(tensor) ? 0 : static_cast<double>(graph.tensor_bytes(tensor));
    }
    return MeanTransfer(problem_)(tensor);
  }

  void AddEdge(int32_t from, int32_t to, double weight) {
    out(from)[to] += weight;
    in(to)[from] += weight;
  }

  // Marks what `from` reaches before `to`, without the edge between them; true as soon as that includes `to`.
  bool Reaches(int32_t from, int32_t to) {
    ++round_;
    stack_.assign(1, from);
    while (!stack_.empty()) {
      const int32_t group = stack_.back();
      stack_.pop_back();
      for (const auto& [next, weight] : out(group)) {
        if (next == to && group != from) return true;
        if (next == to || position(next) > position(to) || at_[static_cast<size_t>(next)] == round_) continue;
        at_[static_cast<size_t>(next)] = round_;
        stack_.push_back(next);
      }
    }
    return false;
  }
  bool HasSecondPath(const Edge& edge) {
    // It would leave `from` and enter `to` by other edges.
    if (out(edge.from).size() == 1 || in(edge.to).size() == 1) return false;
    return Reaches(edge.from, edge.to);
  }

  // Directly after HasSecondPath() said no.
  void Contract(int32_t from, int32_t to) {
    if (out(from).size() == 1) {
      // All that feeds either of them lies before `to`.
      order_[static_cast<size_t>(position(from))] = -1;
      Put(from, static_cast<size_t>(position(to)));
    } else if (in(to).size() == 1) {
      // All that either of them feeds lies behind `from`.
      order_[static_cast<size_t>(position(to))] = -1;
    } else {
      Reorder(from, to);
    }
    out(from).erase(to);
    in(to).erase(from);
    for (const auto& [group, weight] : out(to)) {
      in(group).erase(to);
      AddEdge(from, group, weight);
      heap_.push({out(from)[group], from, group});
    }
    for (const auto& [group, weight] : in(to)) {
      out(group).erase(to);
      AddEdge(group, from, weight);
      heap_.push({out(group)[from], group, from});
    }
    out(to).clear();
    in(to).clear();
    Absorb(from, to);
  }

  void Reorder(int32_t from, int32_t to) {
    // What `from` reaches moves behind the new group, the rest between the two in front of it.
    const auto first = static_cast<size_t>(position(from)), last = static_cast<size_t>(position(to));
    moved_.clear();
    size_t next = first;
    for (size_t p = first; p <= last; ++p) {
      const int32_t group = order_[p];
      if (group < 0 || group == from || group == to) continue;
      if (at_[static_cast<size_t>(group)] == round_) {
        moved_.push_back(group);
      } else {
        Put(group, next++);
      }
    }
    Put(from, next++);
    for (const int32_t group : moved_) Put(group, next++);
    for (; next <= last; ++next) order_[next] = -1;
  }
  void Put(int32_t group, size_t place) {
    order_[place] = group;
    position(group) = static_cast<int32_t>(place);
  }
  void Absorb(int32_t group, int32_t other) {
    std::vector<OpId>& from = members_[static_cast<size_t>(other)];
    std::vector<OpId>& to = members_[static_cast<size_t>(group)];
    if (from.size() > to.size()) std::swap(from, to);
    to.insert(to.end(), from.begin(), from.end());
    from.clear();
    work(group) += work(other);
    --groups_;
  }

  // When there is no time for more: runs of the order of the groups, with equal shares of the work.
  void JoinNeighbours(size_t target) {
    const double share = std::accumulate(work_.begin(), work_.end(), 0.0) / static_cast<double>(target);
    size_t left = target;
    int32_t run = -1;
    for (const int32_t group : order_) {
      if (group < 0 || members_[static_cast<size_t>(group)].empty() || follows_[static_cast<size_t>(group)] != 0)
        continue;
      if (run < 0 || (work(run) + work(group) > share && left > 1)) {
        left -= run < 0 ? 0 : 1;
        run = group;
      } else {
        Absorb(run, group);
      }
    }
  }

  // Groups without edges: the two with the least work, again and again.
  void JoinTheUnconnected(size_t target) {
    if (groups_ <= target) return;
    using Part = std::pair<double, int32_t>;
    std::priority_queue<Part, std::vector<Part>, std::greater<>> parts;
    for (size_t group = 0; group < members_.size(); ++group) {
      if (members_[group].empty() || follows_[group] != 0) continue;
      parts.push({work_[group], static_cast<int32_t>(group)});
    }
    while (groups_ > target) {
      const Part a = parts.top();
      parts.pop();
      const Part b = parts.top();
      parts.pop();
      Absorb(a.second, b.second);
      parts.push({a.first + b.first, a.second});
    }
  }

  const Problem& problem_;
  const StopCheck& stop_;
  std::vector<int32_t> label_;
  std::vector<uint8_t> follows_;                     // by op
  std::vector<std::map<int32_t, double>> out_, in_;  // by group: other group, weight
  std::vector<int64_t> at_;                          // by group: the round in which it was last reached
  int64_t round_ = 0;
  std::vector<int32_t> order_, position_;  // groups by place (-1: none), and back
  std::vector<std::vector<OpId>> members_;
  std::vector<double> work_;  // by group: its ops on their fastest devices, in time units
  std::priority_queue<Edge> heap_;
  std::vector<int32_t> stack_, moved_;
  size_t groups_ = 0;
  bool stopped_ = false;
};

Grouping AtRandom(const Problem& problem, size_t groups, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> label(problem.num_ops());
  for (int32_t& group : label) group = static_cast<int32_t>(random.Below(groups));
  return Grouping(problem.graph(), label);
}

}  // namespace

void RegisterGroupings(GroupingCatalog& catalog) {
  catalog.Add(
      {.name = "colocation",
       .sentence = "HSDAG's co-location: an op joins the one op that feeds it",
       .source = "Duan et al. 2024 (HSDAG), appendix G; after Mirhoseini et al. 2017",
       .parameters = {{.name = "rule",
                       .type = ParameterType::kChoice,
                       .default_value = "paper",
                       .sentence =
                           "paper: only if no other op consumes its output; code: always, as in the released code",
                       .choices = {"paper", "code"}}}},
      [](const Params& params, const Problem& problem, const StopCheck&) {
        return Colocation(problem, params.Text("rule") == "paper", 0);
      });
  catalog.Add({.name = "chain",
               .sentence = "linear chains: an op and the only op that it feeds, if that has no other input",
               .source = "-",
               .parameters = {Whole("most", "0",
                                    "ops in a group at most; 0 for any number, which is colocation(rule=paper)", 0)}},
              [](const Params& params, const Problem& problem, const StopCheck&) {
                return Colocation(problem, true, params.Int("most"));
              });
  catalog.Add({.name = "fusion",
               .sentence = "what a runtime executes as one kernel, by the rules of roofline(fusion=openvino)",
               .source = "OpenVINO's CPU plugin; docs/costs.md has the rules",
               .parameters = {}},
              [](const Params&, const Problem& problem, const StopCheck&) { return FusedOps(problem.graph()); });
  catalog.Add(
      {.name = "merge",
       .sentence = "merge-and-colocate: contracts the edge with most bytes, without cycles, down to a number of groups",
       .source = "Addanki et al. 2019 (Placeto); its code is not published, this is the reading of the Baechi fork",
       .parameters = {Whole("size", "50",
                            "how many groups; of a training graph the forward ops are grouped, and each backward op "
                            "joins the group of its forward op",
                            1),
                      Real("balance", "0",
                           "the most work in a group, as a multiple of the mean (doubled while too many groups are "
                           "left); 0: no limit, which ends with one large group",
                           0, 1e9)}},
      [](const Params& params, const Problem& problem, const StopCheck& stop) {
        return Contraction(problem, stop).Shrink(static_cast<size_t>(params.Int("size")), params.Real("balance"));
      });
  catalog.Add(
      {.name = "layers",
       .sentence = "whole layers: what shares weights over the steps of a recurrent network, with what hangs on "
                   "it; else blocks, by names or where few bytes cross",
       .source = "-",
       .parameters = {}},
      [](const Params&, const Problem& problem, const StopCheck&) {
        return Grouping(problem.graph(), FindLayers(problem).layer_of);
      });
  catalog.Add({.name = "random",
               .sentence = "each op in a random group: the baseline that other groupings should beat",
               .source = "-",
               .parameters = {Whole("groups", "50", "how many groups, at most", 1),
                              Whole("seed", "1", "seed of the random numbers", 0)}},
              [](const Params& params, const Problem& problem, const StopCheck&) {
                return AtRandom(problem, static_cast<size_t>(params.Int("groups")),
                                static_cast<uint64_t>(params.Int("seed")));
              });
}

}  // namespace berth
