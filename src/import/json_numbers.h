// Numbers of the lists that data sets are made of, checked as JsonObject checks its keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace berth {

// Where a value stands: "graph.json", "nodes[3].out_bytes".
struct JsonPlace {
  const std::string& path;
  std::string place;
  JsonPlace operator[](size_t position) const;
};

// Each throws Error with the place when the value is something else, or outside least .. most.
double NumberOf(const nlohmann::json& value, const JsonPlace& place, double least, double most);
int64_t IntOf(const nlohmann::json& value, const JsonPlace& place, int64_t least, int64_t most);
// A list of exactly `size` values.
void ExpectList(const nlohmann::json& value, const JsonPlace& place, size_t size);
std::vector<double> NumbersOf(const nlohmann::json& value, const JsonPlace& place, size_t size, double least,
                              double most);

}  // namespace berth
