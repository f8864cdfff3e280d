#include "base/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

namespace berth {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Letters to insert, remove, replace or swap with their neighbour, whatever their case (optimal string alignment), in
// three rows. O(|a| |b|).
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> two_above(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  const auto same = [&](size_t i, size_t j) { return Lower(a[i]) == Lower(b[j]); };
  for (size_t i = 0; i < a.size(); ++i) {
    std::swap(two_above, above);
    std::swap(above, row);
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({above[j] + (same(i, j) ? 0 : 1), above[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && same(i, j - 1) && same(i - 1, j)) row[j + 1] = std::min(row[j + 1], two_above[j - 1] + 1);
    }
  }
  return row.back();
}

// Mistakes that a name of so many letters may have. Of three letters two wrong ones leave nothing to go by.
size_t MistakesAllowed(size_t letters) {
  if (letters < 2) return 0;
  return letters < 4 ? 1 : std::max<size_t>(2, letters / 3);
}

}  // namespace

std::string Error::OneLine(const std::string& what) {
  std::string line;
  line.reserve(what.size());
  for (const char c : what) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (byte < ' ' || byte == 0x7F) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  if (line.size() <= kLongest) return line;
  // The beginning says where, the end how to mend it. Neither is cut within a character of UTF-8.
  const auto within = [&](size_t at) { return (static_cast<unsigned char>(line[at]) & 0xC0) == 0x80; };
  size_t first = kLongest * 3 / 4, last = line.size() - kLongest / 5;
  for (int k = 0; k < 3 && within(first); ++k) --first;
  for (int k = 0; k < 3 && within(last); ++k) ++last;
  return fmt::format("{} [{} bytes] {}", line.substr(0, first), last - first, line.substr(last));
}

void CheckFailed(const char* file, int line, const char* condition, const std::string& text) {
  std::fprintf(stderr, "%s:%d: check failed: %s%s%s\n", file, line, condition, text.empty() ? "" : ": ", text.c_str());
  std::abort();
}

std::string_view Closest(std::string_view wrong, const std::vector<std::string>& known) {
  std::string_view best;
  size_t best_distance = MistakesAllowed(wrong.size()) + 1;
  constexpr size_t kLongest = 100;
  if (wrong.size() > kLongest) return best;
  for (const std::string& name : known) {
    if (name.size() > kLongest) continue;
    if (const size_t distance = EditDistance(wrong, name); distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace berth
