// What a network is made of, as sets of ops that searches move whole.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "placement/layers.h"
#include "placement/units.h"

namespace berth {

// The layers of a network, and its ops joined by what would be costly to send, loosely and strictly: partitions, one
// beside the other. Immutable; one serves many threads.
class Structure {
 public:
  explicit Structure(const Units& units);

  // Of all partitions, those of more than one unit that are not the whole.
  size_t num_parts() const { return first_.size() - 1; }
  std::span<const OpId> part(size_t i) const { return {ops_.data() + first_[i], first_[i + 1] - first_[i]}; }
  // Parts of one partition have equal numbers here.
  size_t partition_of(size_t part) const { return partition_[part]; }

  const ForwardOrder& order() const { return order_; }

 private:
  void Add(const std::vector<size_t>& label);

  const Units& units_;
  ForwardOrder order_;
  std::vector<size_t> first_{0};
  std::vector<OpId> ops_;
  std::vector<size_t> partition_;
  size_t partitions_ = 0;
};

}  // namespace berth
