// What an importer has to say of a graph: one line per kind, with its first examples.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

class NoteList {
 public:
  // `kind` is the start of the line: "costed by their bytes, no formula is known".
  void Add(const std::string& kind, std::string_view example);
  void Append(std::vector<std::string>& lines) const;

 private:
  static constexpr size_t kShown = 8;
  struct Kind {
    std::vector<std::string> first{};
    std::set<std::string, std::less<>> seen{};
  };
  std::vector<std::string> order_;
  std::map<std::string, Kind, std::less<>> kinds_;
};

}  // namespace berth
