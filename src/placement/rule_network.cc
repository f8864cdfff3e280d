#include "placement/rule_network.h"

#include <algorithm>
#include <numeric>

namespace berth {
namespace {

// Dead ends of the search in one part before it looks for variables that must all differ, and before it is given up.
constexpr int kFewDeadEnds = 100;
constexpr int kMostDeadEnds = 20'000;

// Whether each of `variables` can get a device of its own: a bipartite matching by augmenting paths (Kuhn).
class Matching {
 public:
  Matching(const RuleNetwork& network, size_t devices) : network_(network), taken_by_(devices, kFree) {}

  bool Add(size_t variable) {
    seen_.assign(taken_by_.size(), 0);
    return Augment(variable);
  }

 private:
  static constexpr size_t kFree = static_cast<size_t>(-1);

  bool Augment(size_t variable) {
    for (size_t d = 0; d < taken_by_.size(); ++d) {
      if (seen_[d] != 0 || !network_.allowed(variable, MakeId<DeviceId>(d))) continue;
      seen_[d] = 1;
      if (taken_by_[d] != kFree && !Augment(taken_by_[d])) continue;
      taken_by_[d] = variable;
      return true;
    }
    return false;
  }

  const RuleNetwork& network_;
  std::vector<size_t> taken_by_;
  std::vector<uint8_t> seen_;
};

}  // namespace

RuleNetwork::RuleNetwork(size_t variables, size_t devices)
    : devices_(devices), allowed_(variables * devices, 1), rules_(variables) {}

void RuleNetwork::Separate(size_t a, size_t b) {
  rules_[a].push_back({.other = b, .mine = kAny, .theirs = kAny});
  rules_[b].push_back({.other = a, .mine = kAny, .theirs = kAny});
}

void RuleNetwork::ForbidPair(size_t a, DeviceId on, size_t b, DeviceId there) {
  rules_[a].push_back({.other = b, .mine = on, .theirs = there});
  rules_[b].push_back({.other = a, .mine = there, .theirs = on});
}

void RuleNetwork::Prepare() {
  std::vector<size_t> part_of(size(), size());
  for (size_t v = 0; v < size(); ++v) {
    std::ranges::sort(rules_[v]);
    const auto repeated = std::ranges::unique(rules_[v]);
    rules_[v].erase(repeated.begin(), repeated.end());
  }
  parts_.clear();
  for (size_t v = 0; v < size(); ++v) {
    if (part_of[v] < size()) continue;
    std::vector<size_t> part = {v};
    part_of[v] = parts_.size();
    for (size_t i = 0; i < part.size(); ++i) {
      for (const Rule& rule : rules_[part[i]]) {
        if (part_of[rule.other] < size()) continue;
        part_of[rule.other] = parts_.size();
        part.push_back(rule.other);
      }
    }
    std::ranges::sort(part);
    parts_.push_back(std::move(part));
  }
}

// Depth first, with two branches per decision: this device, or any but this. A variable with one device left takes it
// from those that it excludes, and so on, before the next decision. Where every variable has at most two devices, a
// choice that leads to no contradiction at once is right, and a variable with two wrong ones proves that there is no
// answer (the limited backtracking of 2-SAT; Even, Itai and Shamir 1976).
class RuleNetwork::Solver {
 public:
  Solver(const RuleNetwork& network, const std::function<double(size_t, DeviceId)>& cost)
      : network_(network), cost_(cost), left_(network.allowed_), count_(network.size()), weight_(network.size(), 1) {
    for (size_t v = 0; v < network.size(); ++v) {
      for (size_t d = 0; d < network.devices_; ++d) count_[v] += At(v, d);
    }
  }

  Answer SolvePart(const std::vector<size_t>& part) {
    int dead_ends = 0;
    bool in_order = true;
    if (!FollowSingles(part)) return Answer::kNo;
    const bool two_each = std::ranges::all_of(part, [&](size_t v) { return count_[v] <= 2; });
    const size_t settled = trail_.size();
    for (size_t next = 0;;) {
      const size_t v = in_order ? NextInOrder(part, next) : Hardest(part);
      if (v == kNone) break;
      const DeviceId device = Cheapest(v);
      decisions_.push_back({.variable = v, .device = device, .trail = trail_.size(), .next = next});
      if (Keep(v, device)) continue;
      do {
        if (decisions_.empty()) return Answer::kNo;
        if (++dead_ends > kMostDeadEnds) return Answer::kUnknown;
        const Decision wrong = decisions_.back();
        decisions_.pop_back();
        Undo(wrong.trail);
        next = wrong.next;
        if (Remove(wrong.variable, wrong.device) && Propagate()) break;
        if (two_each) return Answer::kNo;
      } while (true);
      if (in_order && dead_ends > kFewDeadEnds) {
        // Begin again with the variables that led to dead ends.
        if (MustDifferAndCannot(part)) return Answer::kNo;
        in_order = false;
        decisions_.clear();
        Undo(settled);
      }
    }
    decisions_.clear();
    return Answer::kYes;
  }

  DeviceId device(size_t v) const {
    for (size_t d = 0; d < network_.devices_; ++d) {
      if (At(v, d) != 0) return MakeId<DeviceId>(d);
    }
    return kNowhere;
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  struct Decision {
    size_t variable;
    DeviceId device;
    size_t trail;  // its length before
    size_t next;
  };

  uint8_t At(size_t v, size_t d) const { return left_[v * network_.devices_ + d]; }

  size_t NextInOrder(const std::vector<size_t>& part, size_t& next) const {
    while (next < part.size() && count_[part[next]] == 1) ++next;
    return next < part.size() ? part[next] : kNone;
  }

  // Few devices left, many dead ends (Boussemart et al. 2004, dom/wdeg).
  size_t Hardest(const std::vector<size_t>& part) const {
    size_t best = kNone;
    const auto ease = [&](size_t v) { return static_cast<double>(count_[v]) / weight_[v]; };
    for (const size_t v : part) {
      if (count_[v] > 1 && (best == kNone || ease(v) < ease(best))) best = v;
    }
    return best;
  }

  DeviceId Cheapest(size_t v) const {
    DeviceId best = kNowhere;
    for (size_t d = 0; d < network_.devices_; ++d) {
      const auto device = MakeId<DeviceId>(d);
      if (At(v, d) != 0 && (best == kNowhere || cost_(v, device) < cost_(v, best))) best = device;
    }
    return best;
  }

  bool FollowSingles(const std::vector<size_t>& part) {
    for (const size_t v : part) {
      if (count_[v] == 0) return false;
      if (count_[v] == 1) queue_.push_back(v);
    }
    return Propagate();
  }

  bool Keep(size_t v, DeviceId device) {
    for (size_t d = 0; d < network_.devices_; ++d) {
      if (MakeId<DeviceId>(d) != device) Remove(v, MakeId<DeviceId>(d));
    }
    return Propagate();
  }

  // False when `v` has no device left.
  bool Remove(size_t v, DeviceId device) {
    const size_t at = v * network_.devices_ + Index(device);
    if (left_[at] == 0) return true;
    left_[at] = 0;
    trail_.push_back(at);
    if (--count_[v] == 1) queue_.push_back(v);
    if (count_[v] == 0) ++weight_[v];
    return count_[v] > 0;
  }

  bool Propagate() {
    bool possible = true;
    while (possible && !queue_.empty()) {
      const size_t v = queue_.back();
      queue_.pop_back();
      const DeviceId here = device(v);
      for (const Rule& rule : network_.rules_[v]) {
        if (rule.mine != kAny && rule.mine != here) continue;
        possible = Remove(rule.other, rule.mine == kAny ? here : rule.theirs);
        if (!possible) break;
      }
    }
    queue_.clear();
    return possible;
  }

  void Undo(size_t length) {
    for (; trail_.size() > length; trail_.pop_back()) {
      left_[trail_.back()] = 1;
      ++count_[trail_.back() / network_.devices_];
    }
  }

  // Greedy cliques of variables that must all differ, one around each; a matching says whether there is a device for
  // each. O(variables x clique x rules), for parts that are hard anyway.
  bool MustDifferAndCannot(const std::vector<size_t>& part) const {
    const auto differ = [&](size_t a, size_t b) {
      const Rule wanted{.other = b, .mine = kAny, .theirs = kAny};
      return std::ranges::binary_search(network_.rules_[a], wanted);
    };
    std::vector<size_t> most_first = part;
    std::ranges::stable_sort(most_first, std::ranges::greater(), [&](size_t v) { return network_.rules_[v].size(); });
    most_first.resize(std::min<size_t>(most_first.size(), 50));
    for (const size_t first : most_first) {
      std::vector<size_t> clique = {first}, others;
      for (const Rule& rule : network_.rules_[first]) {
        if (rule.mine == kAny) others.push_back(rule.other);
      }
      std::ranges::stable_sort(others, std::ranges::greater(), [&](size_t v) { return network_.rules_[v].size(); });
      Matching matching(network_, network_.devices_);
      if (!matching.Add(first)) return true;
      for (const size_t v : others) {
        if (!std::ranges::all_of(clique, [&](size_t u) { return differ(u, v); })) continue;
        if (!matching.Add(v)) return true;
        clique.push_back(v);
      }
    }
    return false;
  }

  const RuleNetwork& network_;
  const std::function<double(size_t, DeviceId)>& cost_;
  std::vector<uint8_t> left_;   // variables x devices
  std::vector<size_t> count_;   // devices left, per variable
  std::vector<double> weight_;  // 1 + dead ends, per variable
  std::vector<size_t> trail_;   // what was removed from left_
  std::vector<size_t> queue_;   // variables with one device left, to be followed
  std::vector<Decision> decisions_;
};

RuleNetwork::Answer RuleNetwork::Solve(std::span<DeviceId> device,
                                       const std::function<double(size_t, DeviceId)>& cost) const {
  Solver solver(*this, cost);
  Answer answer = Answer::kYes;
  for (const std::vector<size_t>& part : parts_) {
    const Answer one = solver.SolvePart(part);
    // What is impossible in one part is impossible, whatever is unknown of the others.
    if (one == Answer::kNo) return one;
    if (one == Answer::kUnknown) answer = one;
  }
  if (answer != Answer::kYes) return answer;
  for (size_t v = 0; v < size(); ++v) device[v] = solver.device(v);
  return answer;
}

}  // namespace berth
