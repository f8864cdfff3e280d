// Catalogs as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "base/catalog.h"
#include "report/json.h"

namespace berth {

template <typename C>
std::vector<EntryInfo> InfoOf(const C& catalog) {
  std::vector<EntryInfo> infos;
  for (const auto& entry : catalog.entries()) infos.push_back(entry.info);
  return infos;
}

// An entry is a name with its parameters, a sentence, and a line per parameter.
std::string ListText(const std::vector<EntryInfo>& entries);
Json ListJson(const std::vector<EntryInfo>& entries);

}  // namespace berth
