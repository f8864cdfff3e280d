#include "export/boxes.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

#include "base/error.h"
#include "base/hash.h"

namespace berth {
namespace {

using Arrow = std::pair<size_t, size_t>;

void SortUnique(std::vector<Arrow>& arrows) {
  std::ranges::sort(arrows);
  arrows.erase(std::ranges::unique(arrows).begin(), arrows.end());
}

std::vector<Arrow> OpArrows(const Graph& graph) {
  std::vector<Arrow> arrows;
  for (const TensorId tensor : graph.tensors()) {
    for (const OpId consumer : graph.consumers(tensor)) {
      arrows.emplace_back(Index(graph.producer(tensor)), Index(consumer));
    }
  }
  SortUnique(arrows);
  return arrows;
}

// Who is at the other end of each box's arrows, ascending.
class Neighbours {
 public:
  Neighbours(size_t boxes, const std::vector<Arrow>& arrows, bool forward) : start_(boxes + 1) {
    const auto from = [&](const Arrow& arrow) { return forward ? arrow.first : arrow.second; };
    for (const Arrow& arrow : arrows) ++start_[from(arrow) + 1];
    std::partial_sum(start_.begin(), start_.end(), start_.begin());
    std::vector<size_t> next(start_.begin(), start_.end() - 1);
    items_.resize(arrows.size());
    for (const Arrow& arrow : arrows) items_[next[from(arrow)]++] = forward ? arrow.second : arrow.first;
  }
  std::span<const size_t> operator[](size_t box) const {
    return std::span(items_).subspan(start_[box], start_[box + 1] - start_[box]);
  }

 private:
  std::vector<size_t> start_, items_;
};

class Folding {
 public:
  Folding(const Graph& graph, std::span<const DeviceId> device)
      : box_of_(graph.num_ops()), size_(graph.num_ops(), 1), arrows_(OpArrows(graph)) {
    std::iota(box_of_.begin(), box_of_.end(), size_t{0});
    for (const DeviceId id : device) device_.push_back(Index(id));
  }

  size_t count() const { return size_.size(); }
  size_t num_arrows() const { return arrows_.size(); }

  // Merges pairs of neighbours, each box at most once, the smallest first, at most `most` pairs of at most
  // `largest` ops together; across devices only if `mixed`. Returns how many.
  //
  // No merge makes a cycle, nor do all of them together: where b is fed by a alone (or a feeds b alone) no path from a
  // to b leads over a third box, and none does between boxes with the same neighbours on both sides. Merges of other
  // pairs leave both properties as they are.
  size_t MergePairs(size_t largest, bool mixed, size_t most) {
    const Neighbours after(count(), arrows_, true), before(count(), arrows_, false);
    std::vector<std::tuple<size_t, size_t, size_t>> pairs;  // ops together, the boxes
    const auto consider = [&](size_t a, size_t b) {
      const bool together = mixed || (device_[a] == device_[b] && device_[a] != kMixed);
      if (together && size_[a] + size_[b] <= largest) pairs.emplace_back(size_[a] + size_[b], a, b);
    };
    for (size_t box = 0; box < count(); ++box) {
      if (before[box].size() == 1) consider(before[box].front(), box);
      if (after[box].size() == 1) consider(box, after[box].front());
    }
    ForEachTwins(after, before, consider);
    std::ranges::sort(pairs);
    std::vector<size_t> into(count());
    std::iota(into.begin(), into.end(), size_t{0});
    std::vector<bool> used(count());
    size_t merged = 0;
    for (const auto& [ops, a, b] : pairs) {
      if (merged == most) break;
      if (used[a] || used[b]) continue;
      used[a] = used[b] = true;
      into[b] = a;
      ++merged;
    }
    if (merged > 0) Merge(into);
    return merged;
  }

  // Cuts the boxes, in a topological order, into `parts` of about as many.
  void Cut(size_t parts) {
    const std::vector<size_t> position = TopologicalPosition();
    std::vector<size_t> into(count()), first(parts, count());
    for (size_t box = 0; box < count(); ++box) {
      into[box] = position[box] * parts / count();
      first[into[box]] = std::min(first[into[box]], box);
    }
    for (size_t& part : into) part = first[part];
    Merge(into);
  }

  Boxes Finish() {
    const std::vector<size_t> position = TopologicalPosition();
    Boxes boxes;
    boxes.ops.resize(count());
    for (size_t op = 0; op < box_of_.size(); ++op) {
      boxes.of_op.push_back(position[box_of_[op]]);
      boxes.ops[boxes.of_op.back()].push_back(MakeId<OpId>(op));
    }
    for (const auto& [from, to] : arrows_) boxes.arrows.emplace_back(position[from], position[to]);
    std::ranges::sort(boxes.arrows);
    return boxes;
  }

 private:
  static constexpr size_t kMixed = SIZE_MAX;  // ops of several devices

  // Calls `consider` for boxes that follow each other in a list of those with the same neighbours on both sides.
  template <typename Consider>
  void ForEachTwins(const Neighbours& after, const Neighbours& before, const Consider& consider) const {
    std::vector<std::tuple<uint64_t, size_t, size_t>> keys;  // hash of the neighbours, device, box
    for (size_t box = 0; box < count(); ++box) {
      Hasher hash;
      for (const auto& list : {before[box], after[box]}) {
        hash.Add(list.size());
        for (const size_t other : list) hash.Add(other);
      }
      keys.emplace_back(hash.value(), device_[box], box);
    }
    std::ranges::sort(keys);
    for (size_t i = 1; i < keys.size(); ++i) {
      const size_t a = std::get<2>(keys[i - 1]), b = std::get<2>(keys[i]);
      if (std::get<0>(keys[i - 1]) != std::get<0>(keys[i])) continue;
      if (std::ranges::equal(before[a], before[b]) && std::ranges::equal(after[a], after[b])) consider(a, b);
    }
  }

  // Box i becomes part of box into[i].
  void Merge(const std::vector<size_t>& into) {
    constexpr size_t kNone = SIZE_MAX;
    std::vector<size_t> number(count(), kNone), size, device;
    for (size_t box = 0; box < count(); ++box) {
      size_t& at = number[into[box]];
      if (at == kNone) {
        at = size.size();
        size.push_back(0);
        device.push_back(device_[box]);
      }
      size[at] += size_[box];
      if (device[at] != device_[box]) device[at] = kMixed;
    }
    for (size_t& box : box_of_) box = number[into[box]];
    for (auto& [from, to] : arrows_) {
      from = number[into[from]];
      to = number[into[to]];
    }
    std::erase_if(arrows_, [](const Arrow& arrow) { return arrow.first == arrow.second; });
    SortUnique(arrows_);
    size_ = std::move(size);
    device_ = std::move(device);
  }

  // Kahn's algorithm, the smallest number first.
  std::vector<size_t> TopologicalPosition() const {
    const Neighbours after(count(), arrows_, true);
    std::vector<size_t> missing(count()), position(count());
    for (const auto& [from, to] : arrows_) ++missing[to];
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t box = 0; box < count(); ++box) {
      if (missing[box] == 0) ready.push(box);
    }
    size_t next = 0;
    while (!ready.empty()) {
      const size_t box = ready.top();
      ready.pop();
      position[box] = next++;
      for (const size_t other : after[box]) {
        if (--missing[other] == 0) ready.push(other);
      }
    }
    BERTH_CHECK(next == count(), "arrows lead back");
    return position;
  }

  std::vector<size_t> box_of_;         // by op
  std::vector<size_t> size_, device_;  // by box
  std::vector<Arrow> arrows_;
};

}  // namespace

Boxes BoxPerOp(const Graph& graph) {
  Boxes boxes;
  for (const OpId op : graph.ops()) {
    boxes.ops.push_back({op});
    boxes.of_op.push_back(Index(op));
  }
  boxes.arrows = OpArrows(graph);
  return boxes;
}

Boxes FoldOps(const Graph& graph, std::span<const DeviceId> device, size_t most_boxes, size_t most_arrows) {
  Folding folding(graph, device);
  const size_t even = 2 * ((graph.num_ops() + most_boxes - 1) / most_boxes);
  constexpr size_t kUneven = 4;
  size_t largest = even;
  bool mixed = false;
  const auto too_many = [&] { return folding.count() > most_boxes || folding.num_arrows() > most_arrows; };
  while (too_many()) {
    const size_t count = folding.count();
    // Where only the arrows are too many, a tenth of the boxes at once: nobody knows how many it takes.
    const size_t wanted = count > most_boxes ? count - most_boxes : std::max<size_t>(count / 10, 1);
    const size_t merged = folding.MergePairs(largest, mixed, wanted);
    // With many boxes a few merges are not worth a pass.
    const bool stuck = merged == 0 || (count > 2000 && merged < count / 50 && merged < wanted);
    if (!stuck) continue;
    if (largest < kUneven * even) {
      largest *= 2;
    } else if (!mixed) {
      mixed = true;
      largest = even;
    } else {
      break;
    }
  }
  for (size_t parts = std::min(most_boxes, folding.count()); too_many(); parts = parts * 3 / 4) folding.Cut(parts);
  return folding.Finish();
}

}  // namespace berth
