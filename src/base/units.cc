#include "base/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "base/error.h"

namespace berth {
namespace {

// Decimal units move the point in the text, so that 20us is the double nearest to 0.00002; binary ones multiply.
struct Unit {
  std::string_view name;
  int exponent;  // of ten
  double factor = 1;
};

constexpr std::array kTimeUnits = {Unit{"s", 0},   Unit{"ms", -3},     Unit{"us", -6},    Unit{"µs", -6},
                                   Unit{"ns", -9}, Unit{"min", 0, 60}, Unit{"h", 0, 3600}};
constexpr std::array kByteUnits = {
    Unit{"B", 0},   Unit{"kB", 3},          Unit{"KB", 3},          Unit{"MB", 6},          Unit{"GB", 9},
    Unit{"TB", 12}, Unit{"KiB", 0, 0x1p10}, Unit{"MiB", 0, 0x1p20}, Unit{"GiB", 0, 0x1p30}, Unit{"TiB", 0, 0x1p40}};
constexpr std::array kBandwidthUnits = {Unit{"B/s", 0},           Unit{"kB/s", 3},          Unit{"KB/s", 3},
                                        Unit{"MB/s", 6},          Unit{"GB/s", 9},          Unit{"TB/s", 12},
                                        Unit{"KiB/s", 0, 0x1p10}, Unit{"MiB/s", 0, 0x1p20}, Unit{"GiB/s", 0, 0x1p30},
                                        Unit{"TiB/s", 0, 0x1p40}, Unit{"Mbit/s", 6, 0.125}, Unit{"Gbit/s", 9, 0.125}};
constexpr std::array kFlopUnits = {Unit{"FLOP/s", 0},   Unit{"MFLOP/s", 6},  Unit{"GFLOP/s", 9},
                                   Unit{"TFLOP/s", 12}, Unit{"PFLOP/s", 15}, Unit{"OP/s", 0},
                                   Unit{"GOP/s", 9},    Unit{"TOP/s", 12},   Unit{"TOPS", 12}};

constexpr std::array kEnergyUnits = {Unit{"J", 0},  Unit{"uJ", -6}, Unit{"mJ", -3},
                                     Unit{"kJ", 3}, Unit{"MJ", 6},  Unit{"Wh", 0, 3600}};

// A number text times ten to a power, rounded once.
double Scaled(std::string_view number, int exponent) {
  const size_t e = number.find_first_of("eE");
  int own = 0;
  if (e != std::string_view::npos) {
    const char* first = number.data() + e + 1 + (number[e + 1] == '+' ? 1 : 0);
    std::from_chars(first, number.data() + number.size(), own);
  }
  const std::string shifted = fmt::format("{}e{}", number.substr(0, e), own + exponent);
  double value = 0;
  const auto [end, code] = std::from_chars(shifted.data(), shifted.data() + shifted.size(), value);
  return code == std::errc() ? value : std::numeric_limits<double>::infinity();
}

// A number with a unit; what stands in `units` and is at least 0, or an Error that gives an example.
double ParseQuantity(std::string_view text, std::span<const Unit> units, std::string_view what,
                     std::string_view example) {
  const auto fail = [&](const std::string& why = {}) {
    return Error("'{}' is not {}{}: write a number and a unit, like {}", text, what, why, example);
  };
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || !std::isfinite(number)) throw fail();
  if (number < 0) throw fail(" (it is below zero)");
  const std::string_view digits = text.substr(0, static_cast<size_t>(end - text.data()));
  std::string_view unit = text.substr(digits.size());
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const Unit& known : units) {
    if (known.name != unit) continue;
    const double value = Scaled(digits, known.exponent) * known.factor;
    if (!std::isfinite(value)) throw fail();
    return value + 0.0;  // of -0 too: 0 has one fingerprint
  }
  if (unit.empty()) throw fail();
  std::vector<std::string_view> names;
  for (const Unit& known : units) names.push_back(known.name);
  throw fail(fmt::format(" (there is no unit '{}', but {})", unit, fmt::join(names, ", ")));
}

// Three significant digits, also where the last ones are zeros, so that columns of numbers line up.
std::string ThreeDigits(double value) {
  const double magnitude = std::abs(value);
  if (magnitude == 0) return "0";
  if (magnitude < 9.995) return fmt::format("{:.{}f}", value, magnitude < 0.9995 ? 3 : 2);
  return fmt::format("{:.{}f}", value, magnitude < 99.95 ? 1 : 0);
}

// Whole, and from a billion on as a power of ten: nobody counts digits.
std::string LargeNumber(double value) {
  return std::abs(value) < 1e9 ? fmt::format("{:.0f}", value) : fmt::format("{:.2e}", value);
}

}  // namespace

std::string ToString(Seconds time) {
  const double t = time.value;
  const double magnitude = std::abs(t);
  if (t == 0) return "0 s";
  if (!std::isfinite(t)) return fmt::format("{}", t);
  if (magnitude < 0.9995e-6) return ThreeDigits(t * 1e9) + " ns";
  if (magnitude < 0.9995e-3) return ThreeDigits(t * 1e6) + " us";
  if (magnitude < 0.9995) return ThreeDigits(t * 1e3) + " ms";
  if (magnitude < 999.5) return ThreeDigits(t) + " s";
  return fmt::format("{} s", LargeNumber(t));
}

std::string ToString(Bytes bytes) {
  static constexpr std::array kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes.value);
  size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", unit == 0 ? fmt::format("{:.0f}", value) : ThreeDigits(value), kNames[unit]);
}

std::string ToBudget(Bytes bytes) {
  constexpr int64_t kKi = 1024, kMi = 1024 * kKi;
  const int64_t value = bytes.value;
  if (value < 10 * kKi) return fmt::format("{}B", value);
  if (value < 10 * kMi) return fmt::format("{}KiB", (value + kKi - 1) / kKi);
  return fmt::format("{}MiB", (value + kMi - 1) / kMi);
}

std::string WithPrefix(double value, std::string_view unit) {
  static constexpr std::array kNames = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  while (std::abs(value) >= 999.5 && prefix + 1 < kNames.size()) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{} {}{}", std::abs(value) < 999.5 ? ThreeDigits(value) : LargeNumber(value), kNames[prefix],
                     unit);
}

std::string Count(int64_t count) {
  std::string digits = std::to_string(count);
  const auto first = static_cast<std::ptrdiff_t>(count < 0 ? 1 : 0);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(static_cast<size_t>(at), 1, ',');
  }
  return digits;
}

std::string Counted(int64_t count, std::string_view one) {
  return fmt::format("{} {}{}", Count(count), one, count == 1 ? "" : "s");
}

Seconds ParseSeconds(std::string_view text) {
  return {ParseQuantity(text, kTimeUnits, "a time", "20us, 1.5ms or 10s")};
}

Bytes ParseBytes(std::string_view text) {
  const double bytes = ParseQuantity(text, kByteUnits, "an amount of memory", "512MiB or 16GiB");
  if (bytes > 0x1p62) throw Error("'{}' is more memory than can be counted: write at most 4194304TiB", text);
  return {static_cast<int64_t>(bytes)};
}

double ParseBytesPerSecond(std::string_view text) {
  return ParseQuantity(text, kBandwidthUnits, "a bandwidth", "12GB/s or 100Gbit/s");
}

double ParseFlopsPerSecond(std::string_view text) {
  return ParseQuantity(text, kFlopUnits, "a compute rate", "8.2TFLOP/s or 10TOP/s");
}

double ParseJoules(std::string_view text) { return ParseQuantity(text, kEnergyUnits, "an energy", "2J or 350mJ"); }

double ParseShare(std::string_view text) {
  const bool percent = text.ends_with('%');
  std::string_view number = percent ? text.substr(0, text.size() - 1) : text;
  while (number.ends_with(' ')) number.remove_suffix(1);
  double value = 0;
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (code != std::errc() || end != number.data() + number.size() || !(value >= 0) || !std::isfinite(value)) {
    throw Error("'{}' is no share: write 5% or 0.05", text);
  }
  return (percent ? value / 100 : value) + 0.0;
}

}  // namespace berth
