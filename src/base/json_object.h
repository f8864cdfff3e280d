// Reads the objects of Berth's own JSON files strictly: a missing, mistyped or unread key is an Error that names the
// file and the place.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"

namespace berth {

// One object of a file; `place` says where in it, like "ops[3]", and may be empty for the top. Refers to what it was
// made of.
class JsonObject {
 public:
  JsonObject(const nlohmann::json& json, std::string path, std::string place = {});

  bool Has(std::string_view key) const;
  // Each throws Error when the key is not there or holds something else.
  std::string Text(std::string_view key);
  double Number(std::string_view key);
  double Number(std::string_view key, double least, double most);
  int64_t Int(std::string_view key, int64_t least, int64_t most);
  uint64_t Word(std::string_view key);  // any non-negative integer
  bool Bool(std::string_view key);
  const nlohmann::json& List(std::string_view key);
  JsonObject Object(std::string_view key);
  // Sixteen hexadecimal digits, as Hasher::Text writes them.
  uint64_t Fingerprint(std::string_view key);

  // Throws Error for a key that nobody asked for.
  void Finish() const;

  // "plan.json: ops[3].device: " + what.
  Error Mistake(std::string_view key, std::string_view what) const;

 private:
  const nlohmann::json& Get(std::string_view key, std::string_view expected);

  const nlohmann::json& json_;
  std::string path_, place_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace berth
