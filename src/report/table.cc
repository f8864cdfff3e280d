#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"

namespace berth {
namespace {

size_t page_width = kAnyWidth;

struct Range {
  char32_t first, last;
};

// The blocks of Unicode 15 that terminals show over two cells; single characters elsewhere do not occur in names.
constexpr Range kWide[] = {{0x1100, 0x115F},  {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xA960, 0xA97F},
                           {0xAC00, 0xD7A3},  {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                           {0xFFE0, 0xFFE6},  {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF},
                           {0x20000, 0x3FFFD}};
constexpr Range kNoWidth[] = {{0x0300, 0x036F}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};

template <size_t n>
bool In(const Range (&ranges)[n], char32_t character) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [&](const Range& range) { return character >= range.first && character <= range.last; });
}

size_t WidthOf(char32_t character) {
  if (character == kBrokenCharacter) return 1;
  return In(kNoWidth, character) ? 0 : In(kWide, character) ? 2 : 1;
}

// C0, DEL, C1, line separators, and marks that reverse the writing direction.
bool SteersTerminals(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

void AppendCell(std::string& line, std::string_view cell, size_t width, Table::Align align) {
  const std::string padding(width - std::min(width, DisplayWidth(cell)), ' ');
  if (align == Table::Align::kRight) line += padding;
  line += cell;
  if (align == Table::Align::kLeft) line += padding;
}

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1);
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  for (size_t at = 0; at < text.size();) width += WidthOf(NextCharacter(text, at));
  return width;
}

std::string Printable(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t character = NextCharacter(text, at);
    if (character == kBrokenCharacter || SteersTerminals(character)) {
      result += '?';
    } else {
      result += text.substr(start, at - start);
    }
  }
  return result;
}

std::string Shorten(std::string_view text, size_t width) {
  std::string whole = Printable(text);
  const size_t whole_width = DisplayWidth(whole);
  if (whole_width <= width) return whole;
  // The longest start and the longest end that fit beside the ellipsis, the end one cell the longer.
  const size_t head_width = (width - 1) / 2, tail_width = width - 1 - head_width;
  const auto step = [&](size_t& at) { return WidthOf(NextCharacter(whole, at)); };
  size_t head = 0, before = 0;  // `before` cells stand before a position
  for (size_t at = 0; at < whole.size(); head = at) {
    before += step(at);
    if (before > head_width) break;
  }
  size_t tail = 0;
  for (before = 0; whole_width - before > tail_width;) before += step(tail);
  return whole.substr(0, head) + "…" + whole.substr(tail);
}

std::string Legible(std::string_view text) {
  constexpr size_t kWord = 200, kWhole = 4000;
  std::string result;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (at > 0) result += ' ';
    result += Shorten(text.substr(at, end - at), kWord);
    at = end + 1;
  }
  return Shorten(result, kWhole);
}

std::string LegibleName(const Cluster& cluster, DeviceId device) { return Legible(cluster.device(device).name); }

void SetPageWidth(size_t cells) { page_width = cells; }
size_t PageWidth() { return page_width; }

std::vector<size_t> Table::Widths(size_t page) const {
  constexpr size_t kIndent = 2, kBetween = 2;
  constexpr size_t kLeastText = 14;  // in narrower columns nobody likes to read
  std::vector<size_t> widths, least;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t width = DisplayWidth(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, c < row.size() ? DisplayWidth(row[c]) : 0);
    widths.push_back(width);
    least.push_back(columns_[c].align == Align::kLeft ? std::min(width, kLeastText) : width);
  }
  const auto sum = [&](const std::vector<size_t>& of) {
    size_t cells = kIndent;
    for (size_t c = 0; c < columns_.size(); ++c) cells += widths[c] > 0 ? of[c] + kBetween : 0;
    return cells - std::min(cells, kBetween);
  };
  while (sum(least) > page) {
    size_t out = columns_.size();
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (widths[c] > 0 && columns_[c].rank > 0 && (out == columns_.size() || columns_[c].rank >= columns_[out].rank))
        out = c;
    }
    if (out == columns_.size()) break;
    widths[out] = 0;
  }
  // Then the widest text is made narrower, again and again.
  while (sum(widths) > page) {
    size_t longest = columns_.size();
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (widths[c] > least[c] && (longest == columns_.size() || widths[c] > widths[longest])) longest = c;
    }
    if (longest == columns_.size()) break;
    --widths[longest];
  }
  return widths;
}

std::string Table::ToString() const {
  const std::vector<size_t> widths = Widths(PageWidth());
  std::string text;
  // A text that is wider than its column goes on below.
  const auto append_row = [&](auto&& cell_of) {
    std::vector<std::vector<std::string>> lines(columns_.size());
    size_t height = 1;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (widths[c] == 0) continue;
      const std::string cell = cell_of(c);
      lines[c] = DisplayWidth(cell) <= widths[c] ? std::vector{cell} : Lines(Wrap(cell, "", widths[c]));
      height = std::max(height, lines[c].size());
    }
    for (size_t i = 0; i < height; ++i) {
      std::string line;
      for (size_t c = 0; c < columns_.size(); ++c) {
        if (widths[c] == 0) continue;
        line += "  ";
        AppendCell(line, i < lines[c].size() ? lines[c][i] : "", widths[c], columns_[c].align);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + '\n';
    }
  };
  append_row([&](size_t c) { return columns_[c].title; });
  append_row([&](size_t c) {
    std::string rule;
    for (size_t i = 0; i < widths[c]; ++i) rule += "─";
    return rule;
  });
  for (const auto& row : rows_) append_row([&](size_t c) { return c < row.size() ? row[c] : std::string(); });
  std::vector<std::string> left_out;
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (widths[c] == 0 && !columns_[c].title.empty()) left_out.push_back(columns_[c].title);
  }
  if (!left_out.empty()) text += Wrap(fmt::format("(no room for: {})", fmt::join(left_out, ", ")));
  return text;
}

std::string Percent(double share) {
  const double percent = 100 * share;
  const bool round = percent == 0 || std::abs(percent) >= 9.95;
  return fmt::format("{:.{}f} %", percent, round ? 0 : 1);
}

std::string Factor(double factor) {
  return fmt::format("{:.{}f}x", factor, factor < 9.995 ? 2 : factor < 99.95 ? 1 : 0);
}

std::string JoinAnd(const std::vector<std::string>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

std::string Wrap(std::string_view text, std::string_view indent) {
  constexpr size_t kEasyToRead = 110;
  return Wrap(text, indent, std::min(kEasyToRead, PageWidth()));
}

std::string Wrap(std::string_view text, std::string_view indent, size_t width) {
  std::string result, line(indent);
  bool fresh = true;
  const auto end_line = [&] {
    result += line + '\n';
    line = indent;
    fresh = true;
  };
  // On a page without an end a long word (a path) stays whole.
  const size_t room = PageWidth() == kAnyWidth ? kAnyWidth : width - std::min(width - 1, DisplayWidth(indent));
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    // A number stays with what it counts.
    while (end > 0 && end < text.size() && text[end - 1] >= '0' && text[end - 1] <= '9') {
      end = std::min(text.find(' ', end + 1), text.size());
    }
    std::string_view word = text.substr(0, end);
    if (!fresh && DisplayWidth(line) + 1 + DisplayWidth(word) > width) end_line();
    while (DisplayWidth(word) > room) {
      size_t fits = 0;
      for (size_t at = 0; at < word.size();) {
        NextCharacter(word, at);
        if (DisplayWidth(word.substr(0, at)) > room) break;
        fits = at;
      }
      if (fits == 0) break;
      // Names are best broken between their parts.
      const size_t part = word.substr(0, fits).find_last_of("/,(=._");
      if (part != word.npos && part >= fits / 2) fits = part + 1;
      line += word.substr(0, fits);
      word.remove_prefix(fits);
      end_line();
    }
    if (!fresh) line += ' ';
    line += word;
    fresh = false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result + line + '\n';
}

std::string Line(std::string_view text) { return Wrap(text, "", PageWidth()); }

std::string Item(std::string_view text, std::string_view indent) {
  const std::string head = std::string(indent) + "- ";
  return head + Wrap(text, std::string(head.size(), ' ')).substr(head.size());
}

std::string Field(std::string_view title, std::string_view text) {
  const std::string head = fmt::format("  {:<11}  ", title);
  return head + Wrap(text, std::string(head.size(), ' '), PageWidth()).substr(head.size());
}

}  // namespace berth
