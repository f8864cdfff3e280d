// A stable 64-bit hash for fingerprints: the same on every machine, written into plan files.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace berth {

// Feeds values in order; FNV-1a over bytes for strings, a multiply-mix for words. Not cryptographic.
class Hasher {
 public:
  Hasher& Add(uint64_t word) {
    state_ = (state_ ^ word) * 0x9E3779B97F4A7C15ull;
    state_ ^= state_ >> 32;
    return *this;
  }
  Hasher& Add(double number) { return Add(std::bit_cast<uint64_t>(number)); }
  Hasher& Add(std::string_view text) {
    uint64_t hash = 0xCBF29CE484222325ull;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
    return Add(hash);
  }
  uint64_t value() const { return state_; }
  // Sixteen hexadecimal digits.
  std::string Text() const;

 private:
  uint64_t state_ = 0x8445D61A4E774912ull;
};

}  // namespace berth
