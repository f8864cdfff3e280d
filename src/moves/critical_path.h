// Which ops a plan waits for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "placement/problem.h"

namespace berth {

// Pairs of an op that waited for its device and one that ran there meanwhile. As many as the square of the ops where
// all are ready at once, so an op's are kept as a piece of its device's order.
class Waits {
 public:
  Waits() = default;
  // `order`: of all ops, by device and then by time.
  explicit Waits(std::vector<OpId> order) : order_(std::move(order)) {}

  // Of an op that waited for those at the places [first, end) of the order; at least one.
  void Add(OpId op, size_t first, size_t end) {
    pieces_.push_back({.op = op, .end = end, .last_pair = size() + end - first});
  }
  bool empty() const { return pieces_.empty(); }
  size_t size() const { return pieces_.empty() ? 0 : pieces_.back().last_pair; }
  // The op that waited, and one that ran meanwhile: of each op the last one first. O(log ops).
  std::pair<OpId, OpId> operator[](size_t pair) const {
    const auto piece = std::ranges::upper_bound(pieces_, pair, {}, &Piece::last_pair);
    const size_t before = piece == pieces_.begin() ? 0 : std::prev(piece)->last_pair;
    return {piece->op, order_[piece->end - 1 - (pair - before)]};
  }

 private:
  struct Piece {
    OpId op;
    size_t end, last_pair;  // pairs up to and with this piece's
  };
  std::vector<OpId> order_;
  std::vector<Piece> pieces_;
};

// From the op that ends last back to one that waits for nothing: each waits for the one after it, which is the op
// before it on its device where that ended just then, and else the producer whose tensor can come last. Transfers that
// queue are not followed.
struct CriticalPath {
  std::vector<OpId> ops{};
  // Of these, those that waited for their device: with each op that ran there since the inputs of the first were there.
  Waits waits{};
};

// `starts`: of all ops, under a placement. O(ops log ops + edges).
CriticalPath FindCriticalPath(const Problem& problem, std::span<const DeviceId> device, std::span<const double> starts);

}  // namespace berth
