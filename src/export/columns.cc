#include "export/columns.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace berth {
namespace {

constexpr double kAspect = 1.6;  // width over height of a screen
constexpr size_t kMostColumns = 12;
// How many boxes may stand side by side: what is tried.
constexpr std::array<size_t, 8> kLayerWidths = {3, 4, 5, 6, 8, 10, 12, 16};

// What Graphviz makes of it, about, in points.
constexpr double kBoxGap = 14, kLineWidth = 14, kStubWidth = 60, kColumnGap = 40;

// Layers of at most `most` boxes, from the bottom up: each box as near above what it feeds as there is room, those
// first whose consumers stand lowest below (so that arrows are short), of these those first that most must precede.
// Coffman and Graham 1972 bound the width of a layered drawing like this.
std::vector<std::vector<size_t>> Layers(const Boxes& boxes, size_t most) {
  const size_t count = boxes.size();
  std::vector<std::vector<size_t>> before(count);
  std::vector<size_t> depth(count), waits(count), since(count);
  for (const auto& [from, to] : boxes.arrows) {
    before[to].push_back(from);
    depth[to] = std::max(depth[to], depth[from] + 1);
    ++waits[from];
  }
  std::vector<size_t> ready;
  for (size_t box = 0; box < count; ++box) {
    if (waits[box] == 0) ready.push_back(box);
  }
  std::vector<std::vector<size_t>> layers;
  while (!ready.empty()) {
    std::ranges::sort(ready, [&](size_t a, size_t b) {
      return std::tuple(since[a], depth[a], a) > std::tuple(since[b], depth[b], b);
    });
    std::vector<size_t> layer(ready.begin(), ready.begin() + static_cast<std::ptrdiff_t>(std::min(most, ready.size())));
    ready.erase(ready.begin(), ready.begin() + static_cast<std::ptrdiff_t>(layer.size()));
    for (const size_t box : layer) {
      for (const size_t other : before[box]) {
        if (--waits[other] > 0) continue;
        since[other] = layers.size();
        ready.push_back(other);
      }
    }
    std::ranges::sort(layer);
    layers.push_back(std::move(layer));
  }
  std::ranges::reverse(layers);
  return layers;
}

// Layers and where to cut them.
struct Arrangement {
  std::vector<std::vector<size_t>> layers;
  std::vector<size_t> cuts;  // first layer of each column, and the number of layers
  double size = std::numeric_limits<double>::infinity();
};

class Arranger {
 public:
  Arranger(const Boxes& boxes, const std::vector<double>& width, double layer_height, size_t most)
      : layer_height_(layer_height),
        layers_(Layers(boxes, most)),
        crossing_(layers_.size() + 1),
        layer_width_(layers_.size()) {
    std::vector<size_t> layer_of(boxes.size()), last(boxes.size());
    for (size_t i = 0; i < layers_.size(); ++i) {
      for (const size_t box : layers_[i]) {
        layer_of[box] = last[box] = i;
        layer_width_[i] += width[box] + kBoxGap;
      }
    }
    for (const auto& [from, to] : boxes.arrows) last[from] = std::max(last[from], layer_of[to]);
    for (size_t box = 0; box < boxes.size(); ++box) {
      for (size_t i = layer_of[box] + 1; i <= last[box]; ++i) {
        ++crossing_[i];
        if (i < last[box]) layer_width_[i] += kLineWidth;
      }
    }
  }

  // The best cut into so many columns: as little as possible crosses a cut, and no column is much longer than others.
  Arrangement Cut(size_t columns) const {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    const size_t count = layers_.size();
    const double even = static_cast<double>(count) / static_cast<double>(columns);
    const auto longest = static_cast<size_t>(1.35 * even + 1);
    std::vector<std::vector<double>> cost(columns + 1, std::vector<double>(count + 1, kNever));
    std::vector<std::vector<size_t>> start(columns + 1, std::vector<size_t>(count + 1));
    cost[0][0] = 0;
    for (size_t c = 1; c <= columns; ++c) {
      for (size_t end = c; end <= count; ++end) {
        for (size_t from = end > longest ? end - longest : 0; from < end; ++from) {
          const double over = std::max(0.0, static_cast<double>(end - from) / even - 1);
          const double sum =
              cost[c - 1][from] + 40 * over * over + (end < count ? static_cast<double>(crossing_[end]) : 0);
          if (sum >= cost[c][end]) continue;
          cost[c][end] = sum;
          start[c][end] = from;
        }
      }
    }
    Arrangement arrangement{.layers = layers_, .cuts = {count}};
    for (size_t c = columns; c > 0; --c) arrangement.cuts.push_back(start[c][arrangement.cuts.back()]);
    std::ranges::reverse(arrangement.cuts);
    if (cost[columns][count] < kNever) arrangement.size = Size(arrangement.cuts);
    return arrangement;
  }

  size_t num_layers() const { return layers_.size(); }

 private:
  // The height of a screen on which it is seen whole; a little more for each arrow that is torn.
  double Size(const std::vector<size_t>& cuts) const {
    double width = 0, height = 0;
    size_t torn = 0;
    for (size_t c = 0; c + 1 < cuts.size(); ++c) {
      double widest = kStubWidth * static_cast<double>(std::max(crossing_[cuts[c]], crossing_[cuts[c + 1]]));
      for (size_t i = cuts[c]; i < cuts[c + 1]; ++i) widest = std::max(widest, layer_width_[i]);
      width += widest + kColumnGap;
      height = std::max(height, layer_height_ * static_cast<double>(cuts[c + 1] - cuts[c] + 1));
      torn += crossing_[cuts[c]];
    }
    return std::max(width / kAspect, height) * (1 + 0.01 * static_cast<double>(torn));
  }

  double layer_height_;
  std::vector<std::vector<size_t>> layers_;
  std::vector<size_t> crossing_;  // how many boxes' arrows lead from above layer i to it or below
  std::vector<double> layer_width_;
};

}  // namespace

std::vector<Column> ArrangeInColumns(const Boxes& boxes, const std::vector<double>& width, double layer_height) {
  Arrangement best;
  for (const size_t most : kLayerWidths) {
    const Arranger arranger(boxes, width, layer_height, most);
    for (size_t columns = 1; columns <= std::min(kMostColumns, arranger.num_layers()); ++columns) {
      if (Arrangement arrangement = arranger.Cut(columns); arrangement.size < best.size) best = std::move(arrangement);
    }
  }
  std::vector<Column> columns;
  for (size_t c = 0; c + 1 < best.cuts.size(); ++c) {
    const auto at = [&](size_t i) { return best.layers.begin() + static_cast<std::ptrdiff_t>(i); };
    columns.push_back({.layers = {at(best.cuts[c]), at(best.cuts[c + 1])}});
  }
  return columns;
}

}  // namespace berth
