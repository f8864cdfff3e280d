#include "exec/parts.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

#include "base/error.h"

namespace berth {
namespace {

// The nodes that are used on another device than their own.
std::vector<bool> Exported(std::span<const std::vector<int32_t>> predecessors, std::span<const int32_t> device) {
  std::vector<bool> exported(device.size(), false);
  for (size_t node = 0; node < device.size(); ++node) {
    for (const int32_t from : predecessors[node]) {
      if (device[static_cast<size_t>(from)] != device[node]) exported[static_cast<size_t>(from)] = true;
    }
  }
  return exported;
}

// Sets of nodes that are joined one after another.
class Pieces {
 public:
  explicit Pieces(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  int32_t Of(int32_t node) {
    while (parent_[static_cast<size_t>(node)] != node) {
      node = parent_[static_cast<size_t>(node)] = parent_[static_cast<size_t>(parent_[static_cast<size_t>(node)])];
    }
    return node;
  }
  // The smallest node stands for its piece.
  void Join(int32_t a, int32_t b) {
    a = Of(a), b = Of(b);
    parent_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }

 private:
  std::vector<int32_t> parent_;
};

// Of all parts that could run next the one whose first node is the earliest; parts come numbered by first node.
std::vector<int32_t> Order(const std::vector<Part>& parts) {
  std::vector<size_t> waits(parts.size());
  std::vector<std::vector<int32_t>> after(parts.size());
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  for (size_t part = 0; part < parts.size(); ++part) {
    waits[part] = parts[part].before.size();
    for (const int32_t before : parts[part].before)
      after[static_cast<size_t>(before)].push_back(static_cast<int32_t>(part));
    if (waits[part] == 0) ready.push(static_cast<int32_t>(part));
  }
  std::vector<int32_t> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const int32_t next : after[static_cast<size_t>(order.back())]) {
      if (--waits[static_cast<size_t>(next)] == 0) ready.push(next);
    }
  }
  BERTH_CHECK(order.size() == parts.size(), "parts wait for each other");
  return order;
}

}  // namespace

Parts CutIntoParts(std::span<const std::vector<int32_t>> predecessors, std::span<const int32_t> device) {
  const size_t count = device.size();
  const std::vector<bool> exported = Exported(predecessors, device);
  std::vector<int32_t> phase(count, 0);
  Pieces pieces(count);
  for (size_t node = 0; node < count; ++node) {
    for (const int32_t from : predecessors[node]) {
      BERTH_CHECK(from >= 0 && static_cast<size_t>(from) < node, "nodes are numbered topologically");
      const size_t v = static_cast<size_t>(from);
      phase[node] = std::max(phase[node], phase[v] + (exported[v] || device[v] != device[node] ? 1 : 0));
    }
    for (const int32_t from : predecessors[node]) {
      const size_t v = static_cast<size_t>(from);
      if (device[v] == device[node] && phase[v] == phase[node]) pieces.Join(from, static_cast<int32_t>(node));
    }
  }

  std::vector<Part> parts;
  std::vector<int32_t> number(count, -1), part_of(count);
  for (size_t node = 0; node < count; ++node) {
    int32_t& part = number[static_cast<size_t>(pieces.Of(static_cast<int32_t>(node)))];
    if (part < 0) {
      part = static_cast<int32_t>(parts.size());
      parts.push_back({.device = device[node]});
    }
    part_of[node] = part;
    parts[static_cast<size_t>(part)].nodes.push_back(static_cast<int32_t>(node));
  }
  for (size_t node = 0; node < count; ++node) {
    Part& part = parts[static_cast<size_t>(part_of[node])];
    for (const int32_t from : predecessors[node]) {
      if (part_of[static_cast<size_t>(from)] != part_of[node])
        part.before.push_back(part_of[static_cast<size_t>(from)]);
    }
  }
  for (Part& part : parts) {
    std::ranges::sort(part.before);
    part.before.erase(std::ranges::unique(part.before).begin(), part.before.end());
  }

  const std::vector<int32_t> order = Order(parts);
  std::vector<int32_t> rank(parts.size());
  for (size_t i = 0; i < order.size(); ++i) rank[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  Parts result{.parts = std::vector<Part>(parts.size()), .part_of = std::vector<int32_t>(count)};
  for (size_t part = 0; part < parts.size(); ++part) {
    for (int32_t& before : parts[part].before) before = rank[static_cast<size_t>(before)];
    std::ranges::sort(parts[part].before);
    result.parts[static_cast<size_t>(rank[part])] = std::move(parts[part]);
  }
  for (size_t node = 0; node < count; ++node) {
    result.part_of[node] = rank[static_cast<size_t>(part_of[node])];
  }
  return result;
}

double EndAtOtherSpeeds(std::span<const Part> parts, std::span<const PartRun> runs, std::span<const double> slowdown) {
  std::vector<double> end(parts.size(), 0);
  std::vector<size_t> last(slowdown.size(), parts.size());  // by device, the part that ran there last
  double all = 0;
  for (size_t part = 0; part < parts.size(); ++part) {
    const auto device = static_cast<size_t>(parts[part].device);
    double could_begin = 0, begins = 0;
    const auto wait_for = [&](size_t other) {
      could_begin = std::max(could_begin, runs[other].end);
      begins = std::max(begins, end[other]);
    };
    for (const int32_t before : parts[part].before) wait_for(static_cast<size_t>(before));
    if (last[device] < parts.size()) wait_for(last[device]);
    begins += runs[part].begin - could_begin;
    end[part] = begins + (runs[part].end - runs[part].begin) / slowdown[device];
    last[device] = part;
    all = std::max(all, end[part]);
  }
  return all;
}

}  // namespace berth
