// Text for people: aligned tables, and numbers as one reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "cluster/cluster.h"

namespace berth {

// How many cells wide a page is: a setting of the whole program, made before the first page. Without one there is no
// limit.
inline constexpr size_t kAnyWidth = SIZE_MAX;
void SetPageWidth(size_t cells);
size_t PageWidth();

// Rows of cells under titles, aligned by what a terminal shows, not by bytes.
class Table {
 public:
  enum class Align : uint8_t { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    int rank = 0;  // where the page is too narrow for all columns, the highest rank is left out first; 0 stays
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as columns; fewer leave the rest empty.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }

  // A line of titles, a rule, and a line per row, each indented by two spaces; no trailing spaces. On a narrow page
  // columns are left out, which a last line names, and then texts are broken into several lines.
  std::string ToString() const;

 private:
  // The width of each column on a page of so many cells; 0 of one that is left out.
  std::vector<size_t> Widths(size_t page) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Terminal cells that a UTF-8 text takes: 2 for wide East Asian characters, 0 for combining marks.
size_t DisplayWidth(std::string_view text);

// Names come from files: control characters and broken UTF-8, which could steer a terminal, become '?'.
std::string Printable(std::string_view text);

// Printable, and at most `width` cells: the middle makes way for an ellipsis, because names differ at their ends.
std::string Shorten(std::string_view text, size_t width);

// Printable, for names and for messages that quote them, which may be of any length: words are shortened to 200 cells,
// the whole to 4000.
std::string Legible(std::string_view text);
std::string LegibleName(const Cluster& cluster, DeviceId device);

std::string Percent(double share);  // 0.0723 -> "7.2 %"
std::string Factor(double factor);  // 1.417 -> "1.42x"

// "a", "a and b", "a, b and c".
std::string JoinAnd(const std::vector<std::string>& parts);

// Breaks at spaces, and on a page with a width inside of words that are longer than a line; every line starts with
// `indent`, the text ends with a line break. Without a width it is the page's, and at most what one likes to read.
std::string Wrap(std::string_view text, std::string_view indent = "  ");
std::string Wrap(std::string_view text, std::string_view indent, size_t width);

// One line, broken only where the page is too narrow.
std::string Line(std::string_view text);
// "  - text", wrapped as by Wrap, under the text. `indent` is what stands before the dash.
std::string Item(std::string_view text, std::string_view indent = "  ");
// "  title        text": one line, broken only where the page is too narrow, under the text.
std::string Field(std::string_view title, std::string_view text);

}  // namespace berth
