#include "learn/hsdag_parse.h"

#include <algorithm>
#include <numeric>

namespace berth {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

// By node, the position of its best edge; kNone for a node without.
std::vector<size_t> DominantEdges(int32_t nodes, std::span<const ScoredEdge> edges) {
  std::vector<size_t> best(static_cast<size_t>(nodes), kNone);
  for (size_t e = 0; e < edges.size(); ++e) {
    size_t& of_node = best[static_cast<size_t>(edges[e].from)];
    if (of_node == kNone || edges[e].score > edges[of_node].score) of_node = e;
  }
  return best;
}

ParsedClusters Numbered(std::vector<int32_t> label) {
  ParsedClusters clusters;
  std::vector<int32_t> number(label.size() * 2, -1);
  for (const int32_t each : label) {
    int32_t& id = number[static_cast<size_t>(each)];
    if (id < 0) id = clusters.count++;
    clusters.of.push_back(id);
  }
  return clusters;
}

}  // namespace

ParsedClusters ParseInSequence(int32_t nodes, std::span<const ScoredEdge> edges) {
  std::vector<size_t> remaining;
  for (const size_t e : DominantEdges(nodes, edges)) {
    if (e != kNone) remaining.push_back(e);
  }
  std::ranges::stable_sort(remaining, [&](size_t a, size_t b) { return edges[a].score > edges[b].score; });
  std::vector<int32_t> label(static_cast<size_t>(nodes), -1);
  int32_t next = 0;
  while (!remaining.empty()) {
    std::vector<uint8_t> in(static_cast<size_t>(nodes), 0);
    const auto take = [&](int32_t node) {
      in[static_cast<size_t>(node)] = 1;
      label[static_cast<size_t>(node)] = next;
    };
    take(edges[remaining[0]].from);
    take(edges[remaining[0]].to);
    remaining.erase(remaining.begin());
    for (bool grew = true; grew;) {
      grew = false;
      // Those that point into the set as it was when the round began.
      const std::vector<uint8_t> before = in;
      std::erase_if(remaining, [&](size_t e) {
        if (before[static_cast<size_t>(edges[e].to)] == 0) return false;
        take(edges[e].from);
        return grew = true;
      });
    }
    ++next;
  }
  for (int32_t v = 0; v < nodes; ++v) {
    if (label[static_cast<size_t>(v)] < 0) label[static_cast<size_t>(v)] = next++;
  }
  return Numbered(std::move(label));
}

ParsedClusters ParseByUnion(int32_t nodes, std::span<const ScoredEdge> edges) {
  std::vector<int32_t> root(static_cast<size_t>(nodes));
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int32_t x) {
    while (root[static_cast<size_t>(x)] != x) {
      root[static_cast<size_t>(x)] = root[static_cast<size_t>(root[static_cast<size_t>(x)])];
      x = root[static_cast<size_t>(x)];
    }
    return x;
  };
  for (const size_t e : DominantEdges(nodes, edges)) {
    if (e == kNone) continue;
    const int32_t a = find(edges[e].from), b = find(edges[e].to);
    root[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }
  std::vector<int32_t> label;
  for (int32_t v = 0; v < nodes; ++v) label.push_back(find(v));
  return Numbered(std::move(label));
}

}  // namespace berth
