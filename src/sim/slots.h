// When what is under way ends: a time per slot, few enough to look at all of them.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "placement/problem.h"
#include "sim/snapshot.h"

namespace berth {

class Slots {
 public:
  // All kNever.
  void Reset(size_t count) { ends_.assign((count + kWidth - 1) / kWidth * kWidth, kNever); }

  void Save(Snapshot& to) const { to.PutAll(ends_); }
  void Load(Snapshot::Reader& from) { from.TakeAll(ends_); }

  double operator[](size_t slot) const { return ends_[slot]; }
  void Set(size_t slot, double end) { ends_[slot] = end; }

  // Four chains of comparisons at once, where one would wait for itself.
  double Least() const {
    const auto lesser = [](double a, double b) { return b < a ? b : a; };
    double a = kNever, b = kNever, c = kNever, d = kNever;
    for (size_t i = 0; i < ends_.size(); i += 4) {
      a = lesser(a, ends_[i]);
      b = lesser(b, ends_[i + 1]);
      c = lesser(c, ends_[i + 2]);
      d = lesser(d, ends_[i + 3]);
    }
    return lesser(lesser(a, b), lesser(c, d));
  }

  // visit(slot) for those that end at `now`, ascending. Eight comparisons without a branch cost less than one wrong
  // guess.
  template <typename Visit>
  void ForEachAt(double now, Visit visit) const {
    for (size_t first = 0; first < ends_.size(); first += kWidth) {
      uint32_t set = 0;
      for (size_t i = 0; i < kWidth; ++i) set |= static_cast<uint32_t>(ends_[first + i] == now) << i;
      for (; set != 0; set &= set - 1) visit(first + static_cast<size_t>(std::countr_zero(set)));
    }
  }

 private:
  static constexpr size_t kWidth = 8;
  std::vector<double> ends_;
};

}  // namespace berth
