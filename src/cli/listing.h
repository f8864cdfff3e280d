// Catalogs as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "base/catalog.h"
#include "report/json.h"

namespace berth {

// An entry is a name with its parameters, a sentence, and a line per parameter; in JSON they are a list.
std::string ListText(const std::vector<EntryInfo>& entries);
Json ListJson(const std::vector<EntryInfo>& entries);

}  // namespace berth
