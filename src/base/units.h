// Quantities and identities that cannot be mixed up.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>

namespace berth {

// Identities. An enum class is its own type, costs nothing and lies in flat arrays as 32 bits; Index() opens it.
enum class OpId : int32_t {};
enum class TensorId : int32_t {};
enum class ParameterId : int32_t {};
enum class InputId : int32_t {};
enum class DeviceId : int32_t {};

template <typename Id>
concept Identity = std::is_enum_v<Id> && sizeof(Id) == sizeof(int32_t);

template <Identity Id>
constexpr size_t Index(Id id) {
  return static_cast<size_t>(id);
}

template <Identity Id>
constexpr Id MakeId(size_t index) {
  return static_cast<Id>(index);
}

// for (OpId op : Ids<OpId>(count)) ...
template <Identity Id>
class Ids : public std::ranges::view_interface<Ids<Id>> {
 public:
  constexpr Ids() = default;
  explicit constexpr Ids(size_t count) : count_(count) {}

  struct Iterator {
    using value_type = Id;
    using difference_type = std::ptrdiff_t;
    size_t index = 0;
    constexpr Id operator*() const { return MakeId<Id>(index); }
    constexpr Iterator& operator++() {
      ++index;
      return *this;
    }
    constexpr Iterator operator++(int) { return {index++}; }
    constexpr bool operator==(const Iterator&) const = default;
  };

  constexpr Iterator begin() const { return {0}; }
  constexpr Iterator end() const { return {count_}; }
  constexpr size_t size() const { return count_; }

 private:
  size_t count_ = 0;
};

// Time as people and files give it. Inside a Problem and its evaluators times are plain doubles in the Problem's own
// time unit (see Problem::seconds_per_unit), because some published sums are exact only in the unit of their data set.
struct Seconds {
  double value = 0;
  constexpr auto operator<=>(const Seconds&) const = default;
};
constexpr Seconds operator+(Seconds a, Seconds b) { return {a.value + b.value}; }
constexpr Seconds operator-(Seconds a, Seconds b) { return {a.value - b.value}; }
constexpr Seconds operator*(Seconds a, double factor) { return {a.value * factor}; }
constexpr double operator/(Seconds a, Seconds b) { return a.value / b.value; }

struct Bytes {
  int64_t value = 0;
  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes other) {
    value += other.value;
    return *this;
  }
};
constexpr Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
constexpr Bytes operator-(Bytes a, Bytes b) { return {a.value - b.value}; }

// "7.81 ms", "12.0 us", "0 s": three significant digits.
std::string ToString(Seconds time);
// "97.5 MiB", "512 B": binary prefixes.
std::string ToString(Bytes bytes);
// In whole units and rounded up, as an option takes it: a budget of so much is enough. "98MiB".
std::string ToBudget(Bytes bytes);
// "8.21 GFLOP": 1000-based prefix before `unit`.
std::string WithPrefix(double value, std::string_view unit);
std::string Count(int64_t count);                          // "6,125"
std::string Counted(int64_t count, std::string_view one);  // "1 op", "6,125 ops"

// "20us", "1.5 ms", "0.1s" -> seconds. "16GiB", "1.5 MB" -> bytes. "12GB/s" -> bytes per second (also in bit:
// "100Gbit/s"). "8.2TFLOP/s" -> operations per second. Each throws Error naming `text` and an example of what is
// expected.
Seconds ParseSeconds(std::string_view text);
Bytes ParseBytes(std::string_view text);
double ParseBytesPerSecond(std::string_view text);
double ParseFlopsPerSecond(std::string_view text);
// "2J", "350mJ", "1.5kJ", "0.2Wh" -> joules.
double ParseJoules(std::string_view text);
// "5%" or "0.05" -> 0.05; of any size.
double ParseShare(std::string_view text);

}  // namespace berth
