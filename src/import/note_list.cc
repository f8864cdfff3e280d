#include "import/note_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace berth {

void NoteList::Add(const std::string& kind, std::string_view example) {
  const auto [found, inserted] = kinds_.try_emplace(kind);
  if (inserted) order_.push_back(kind);
  Kind& entry = found->second;
  if (entry.seen.insert(std::string(example)).second && entry.first.size() < kShown) entry.first.emplace_back(example);
}

void NoteList::Append(std::vector<std::string>& lines) const {
  for (const std::string& kind : order_) {
    const Kind& entry = kinds_.at(kind);
    std::string line = fmt::format("{}: {}", kind, fmt::join(entry.first, ", "));
    if (entry.seen.size() > entry.first.size())
      line += fmt::format(" and {} more", entry.seen.size() - entry.first.size());
    lines.push_back(std::move(line));
  }
}

}  // namespace berth
