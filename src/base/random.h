// Random numbers that repeat on every machine: our own generator and our own distributions (those of the standard
// library differ between implementations).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility>

#include "base/error.h"

namespace berth {

// xoshiro256** (Blackman and Vigna 2018), seeded by splitmix64. Cheap to copy, 32 bytes.
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {
    for (uint64_t& word : state_) word = SplitMix(seed);
  }

  // An independent stream named by (iteration, sample). It depends on this generator's seed only, not on how much was
  // drawn, so that parallel work gives the same numbers on any number of threads and in any order.
  Random Fork(uint64_t iteration, uint64_t sample = 0) const {
    uint64_t mixed = seed_;
    mixed = SplitMix(mixed) ^ (iteration * 0xD1B54A32D192ED03ull + 0x8CB92BA72F3D8DD7ull);
    mixed = SplitMix(mixed) ^ (sample * 0xABC98388FB8FAC03ull + 0x2545F4914F6CDD1Dull);
    return Random(SplitMix(mixed));
  }

  uint64_t Next() {
    const uint64_t result = Rotate(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = Rotate(state_[3], 45);
    return result;
  }

  // Uniform in 0 .. count - 1, without bias (Lemire 2019). count > 0.
  size_t Below(size_t count) {
    BERTH_CHECK(count > 0);
    const uint64_t n = count;
    __extension__ using Wide = unsigned __int128;
    Wide product = static_cast<Wide>(Next()) * n;
    if (static_cast<uint64_t>(product) < n) {
      const uint64_t threshold = (0 - n) % n;
      while (static_cast<uint64_t>(product) < threshold) product = static_cast<Wide>(Next()) * n;
    }
    return static_cast<size_t>(product >> 64);
  }

  // Uniform in [0, 1), 53 bits.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }
  bool Chance(double probability) { return Uniform() < probability; }

  // Standard normal (Box and Muller), two uniforms a call.
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    return radius * std::cos(2 * std::numbers::pi * Uniform());
  }

  // Fisher-Yates.
  template <typename T>
  void Shuffle(std::span<T> items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[Below(i)]);
  }

 private:
  static uint64_t Rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

  static uint64_t SplitMix(uint64_t& state) {
    uint64_t z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }

  uint64_t seed_;
  uint64_t state_[4];
};

}  // namespace berth
