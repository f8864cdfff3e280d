// Sets of devices as bits, one per row of a flat array.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/snapshot.h"

namespace berth {

class DeviceSets {
 public:
  // All empty.
  void Reset(size_t rows, size_t devices) {
    words_ = (devices + 63) / 64;
    bits_.assign(rows * words_, 0);
  }
  void Save(Snapshot& to) const { to.PutAll(bits_); }
  void Load(Snapshot::Reader& from) { from.TakeAll(bits_); }

  void Fill(size_t row) {
    for (size_t w = 0; w < words_; ++w) bits_[row * words_ + w] = ~uint64_t{0};
  }

  void Add(size_t row, int32_t device) { bits_[Word(row, device)] |= Bit(device); }
  void Remove(size_t row, int32_t device) { bits_[Word(row, device)] &= ~Bit(device); }
  bool Has(size_t row, int32_t device) const { return (bits_[Word(row, device)] & Bit(device)) != 0; }

  // visit(device) for each in a row, ascending, and empties the row. The visitor does not change it.
  template <typename Visit>
  void TakeEach(size_t row, Visit visit) {
    for (size_t w = 0; w < words_; ++w) VisitBits(w, std::exchange(bits_[row * words_ + w], 0), visit);
  }

  // visit(device) for what is in both rows, ascending.
  template <typename Visit>
  void ForEachInBoth(size_t row, size_t other, Visit visit) const {
    for (size_t w = 0; w < words_; ++w) VisitBits(w, bits_[row * words_ + w] & bits_[other * words_ + w], visit);
  }

 private:
  size_t Word(size_t row, int32_t device) const { return row * words_ + static_cast<size_t>(device) / 64; }
  static uint64_t Bit(int32_t device) { return uint64_t{1} << (device % 64); }
  template <typename Visit>
  static void VisitBits(size_t word, uint64_t bits, Visit& visit) {
    for (; bits != 0; bits &= bits - 1) visit(static_cast<int32_t>(word * 64) + std::countr_zero(bits));
  }

  size_t words_ = 0;
  std::vector<uint64_t> bits_;
};

}  // namespace berth
