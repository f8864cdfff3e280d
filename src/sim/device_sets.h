// Sets of devices as bits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace berth {

class DeviceSet {
 public:
  void Reset(size_t devices, bool full = false) { words_.assign((devices + 63) / 64, full ? ~uint64_t{0} : 0); }
  void Add(int32_t device) { words_[Word(device)] |= Bit(device); }
  void Remove(int32_t device) { words_[Word(device)] &= ~Bit(device); }
  bool Has(int32_t device) const { return (words_[Word(device)] & Bit(device)) != 0; }

  // visit(device) for each, ascending, and empties the set. The visitor does not change it.
  template <typename Visit>
  void TakeEach(Visit visit) {
    for (size_t w = 0; w < words_.size(); ++w) VisitBits(w, std::exchange(words_[w], 0), visit);
  }

  // visit(device) for what is in both, ascending.
  template <typename Visit>
  void ForEachIn(const DeviceSet& other, Visit visit) const {
    for (size_t w = 0; w < words_.size(); ++w) VisitBits(w, words_[w] & other.words_[w], visit);
  }

 private:
  static size_t Word(int32_t device) { return static_cast<size_t>(device) / 64; }
  static uint64_t Bit(int32_t device) { return uint64_t{1} << (device % 64); }
  template <typename Visit>
  static void VisitBits(size_t word, uint64_t bits, Visit& visit) {
    for (; bits != 0; bits &= bits - 1) visit(static_cast<int32_t>(word * 64) + std::countr_zero(bits));
  }

  std::vector<uint64_t> words_;
};

}  // namespace berth
