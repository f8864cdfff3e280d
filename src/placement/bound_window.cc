#include "placement/bound_window.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "placement/units.h"

namespace berth {
namespace {

// Leaves that are off, or on with a value of their own; amounts are added to all leaves up to one; the largest of those
// that are on. O(log leaves) each.
class PrefixAdds {
 public:
  explicit PrefixAdds(size_t leaves) : width_(std::bit_ceil(std::max<size_t>(leaves, 1))) {
    added_.assign(2 * width_, 0);
    most_.assign(2 * width_, -kNever);
  }

  // All leaves before `end`.
  void Add(size_t end, double amount) {
    size_t node = 1, first = 0, width = width_;
    // The path to the leaf `end`; what lies left of it is added to whole.
    path_.clear();
    while (end > first && end < first + width) {
      path_.push_back(node);
      width /= 2;
      if (end >= first + width) {
        Raise(2 * node, amount);
        first += width;
        node = 2 * node + 1;
      } else {
        node = 2 * node;
      }
    }
    if (end >= first + width) Raise(node, amount);
    for (; !path_.empty(); path_.pop_back()) Renew(path_.back());
  }

  void Switch(size_t leaf, double value) {
    size_t node = width_ + leaf;
    most_[node] = std::max(most_[node], value + added_[node]);
    for (node /= 2; node > 0; node /= 2) Renew(node);
  }

  double most() const { return most_[1]; }

 private:
  void Raise(size_t node, double amount) {
    added_[node] += amount;
    most_[node] += amount;
  }
  void Renew(size_t node) { most_[node] = std::max(most_[2 * node], most_[2 * node + 1]) + added_[node]; }

  size_t width_;
  std::vector<double> added_, most_;
  std::vector<size_t> path_;
};

constexpr size_t kMostWindowOps = 50'000;

// WindowBound of some ops, of which each does its `work`.
double Spread(std::vector<OpId> ops, std::span<const double> head, std::span<const double> tail,
              std::span<const double> work) {
  std::erase_if(ops, [&](OpId op) { return head[Index(op)] == kNever; });
  std::ranges::sort(ops, [&](OpId a, OpId b) { return head[Index(a)] > head[Index(b)]; });
  std::vector<double> tails;
  for (const OpId op : ops) tails.push_back(tail[Index(op)]);
  std::ranges::sort(tails);
  tails.erase(std::ranges::unique(tails).begin(), tails.end());

  PrefixAdds sums(tails.size());
  double bound = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const size_t op = Index(ops[i]);
    const auto leaf = static_cast<size_t>(std::ranges::lower_bound(tails, tail[op]) - tails.begin());
    sums.Switch(leaf, tails[leaf]);
    sums.Add(leaf + 1, work[op]);
    const bool last = i + 1 == ops.size() || head[Index(ops[i + 1])] < head[op];
    if (last) bound = std::max(bound, head[op] + sums.most());
  }
  return bound;
}

// By op: the least of its times, each by the weight of its device; no part of a whole whose weights sum to 1 is less.
std::vector<double> RatedTimes(const Problem& problem, std::span<const double> weight) {
  std::vector<double> work(problem.num_ops(), kNever);
  for (const OpId op : problem.graph().ops()) {
    for (size_t p = 0; p < weight.size(); ++p) {
      const double time = problem.op_time(op, MakeId<DeviceId>(p));
      if (time < kNever) work[Index(op)] = std::min(work[Index(op)], weight[p] * time);
    }
  }
  return work;
}

// Ops in an order in which each stands after those that it needs; numbers of needed ops, which may repeat.
struct Network {
  std::vector<size_t> order;
  std::vector<size_t> first{};  // per op, into needs
  std::vector<size_t> needs{};

  std::span<const size_t> needed(size_t op) const { return {needs.data() + first[op], first[op + 1] - first[op]}; }
};

Network NetworkOf(const Graph& graph) {
  Network network{.order = std::vector<size_t>(graph.num_ops()), .first = {0}};
  std::iota(network.order.begin(), network.order.end(), size_t{0});
  for (const OpId op : graph.ops()) {
    for (const TensorId tensor : graph.inputs_of(op)) network.needs.push_back(Index(graph.producer(tensor)));
    network.first.push_back(network.needs.size());
  }
  return network;
}

Network Reversed(const Network& network) {
  Network reversed{.order = {network.order.rbegin(), network.order.rend()}};
  const size_t ops = network.order.size();
  reversed.first.assign(ops + 1, 0);
  for (const size_t need : network.needs) ++reversed.first[need + 1];
  std::partial_sum(reversed.first.begin(), reversed.first.end(), reversed.first.begin());
  reversed.needs.resize(network.needs.size());
  std::vector<size_t> next(reversed.first.begin(), reversed.first.end() - 1);
  for (size_t op = 0; op < ops; ++op) {
    for (const size_t need : network.needed(op)) reversed.needs[next[need]++] = op;
  }
  return reversed;
}

// How many ops each depends on, by sets of bits, some columns at a time.
std::vector<uint32_t> Ancestors(const Network& network) {
  constexpr size_t kWords = 16;
  const size_t ops = network.order.size();
  std::vector<uint32_t> count(ops, 0);
  std::vector<std::array<uint64_t, kWords>> set(ops);
  for (size_t begin = 0; begin < ops; begin += 64 * kWords) {
    // In the order of the network nothing before `begin` depends on these.
    for (size_t i = begin; i < ops; ++i) {
      const size_t op = network.order[i];
      auto& mine = set[op];
      mine.fill(0);
      for (const size_t need : network.needed(op)) {
        for (size_t w = 0; w < kWords; ++w) mine[w] |= set[need][w];
      }
      for (const uint64_t word : mine) count[op] += static_cast<uint32_t>(std::popcount(word));
      if (i < begin + 64 * kWords) mine[(i - begin) / 64] |= uint64_t{1} << ((i - begin) % 64);
    }
    for (size_t i = begin; i < std::min(ops, begin + 64 * kWords); ++i) set[network.order[i]].fill(0);
  }
  return count;
}

// Of ops with about as many before them, the one that has the fewest beside it.
std::vector<uint8_t> StandAlone(std::span<const uint32_t> before, std::span<const uint32_t> after, size_t looks) {
  const size_t ops = before.size();
  constexpr size_t kNone = static_cast<size_t>(-1);
  std::vector<size_t> chosen(looks, kNone);
  const auto related = [&](size_t op) { return before[op] + after[op]; };
  for (size_t op = 0; op < ops; ++op) {
    size_t& best = chosen[looks * before[op] / ops];
    if (best == kNone || related(op) > related(best)) best = op;
  }
  std::vector<uint8_t> alone(ops, 0);
  for (const size_t op : chosen) {
    if (op != kNone) alone[op] = 1;
  }
  return alone;
}

// In the order of the network: by paths from what was raised before, and where an op stands alone by all work before
// it.
void RaiseHeads(const Network& network, std::span<const double> work, std::span<const double> least,
                std::span<const uint8_t> alone, std::vector<double>& head) {
  std::vector<double> rest(head.size(), -1);  // from the end of an op that is needed to the start of this one
  for (size_t i = 0; i < head.size(); ++i) {
    const size_t op = network.order[i];
    for (const size_t need : network.needed(op)) head[op] = std::max(head[op], head[need] + least[need]);
    if (alone[op] == 0) continue;
    std::ranges::fill(rest, -1);
    std::vector<OpId> needed;
    rest[op] = 0;
    for (size_t k = i + 1; k-- > 0;) {
      const size_t user = network.order[k];
      if (rest[user] < 0) continue;
      if (user != op) needed.push_back(MakeId<OpId>(user));
      const double through = rest[user] + (user == op ? 0 : least[user]);
      for (const size_t need : network.needed(user)) rest[need] = std::max(rest[need], through);
    }
    head[op] = std::max(head[op], Spread(std::move(needed), head, rest, work));
  }
}

}  // namespace

double WindowBound(const Problem& problem, const Windows& windows, std::span<const double> weight) {
  std::vector<OpId> ops;
  for (const OpId op : problem.graph().ops()) ops.push_back(op);
  return Spread(std::move(ops), windows.head, windows.tail, RatedTimes(problem, weight));
}

void RaiseWindows(const Problem& problem, std::span<const double> weight, size_t looks, Windows& windows) {
  if (problem.num_ops() > kMostWindowOps || problem.num_ops() < 3) return;
  const Network forward = NetworkOf(problem.graph()), backward = Reversed(forward);
  const std::vector<double> work = RatedTimes(problem, weight);
  std::vector<double> least(problem.num_ops());
  for (const OpId op : problem.graph().ops()) least[Index(op)] = std::ranges::min(problem.op_times(op));
  if (std::ranges::max(least) == kNever) return;
  const std::vector<uint32_t> before = Ancestors(forward), after = Ancestors(backward);
  const std::vector<uint8_t> alone = StandAlone(before, after, looks);
  RaiseHeads(forward, work, least, alone, windows.head);
  // What is left after an op is, of the graph read backwards, when it can start.
  RaiseHeads(backward, work, least, alone, windows.tail);
}

double GroupBound(const Problem& problem, const Windows& windows) {
  const Units units(problem);
  double bound = 0;
  for (size_t unit = 0; unit < units.size(); ++unit) {
    if (units.ops(unit).size() < 2) continue;
    double head = kNever, tail = kNever;
    for (const OpId op : units.ops(unit)) {
      head = std::min(head, windows.head[Index(op)]);
      tail = std::min(tail, windows.tail[Index(op)]);
    }
    const double work = units.time(unit, units.fastest(unit));
    if (head < kNever && work < kNever) bound = std::max(bound, head + work + tail);
  }
  return bound;
}

}  // namespace berth
