#include "base/json_object.h"

#include <charconv>

#include "base/error.h"

namespace berth {
namespace {

using nlohmann::json;

std::string_view KindOf(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::boolean:
      return "true or false";
    case json::value_t::string:
      return "a text";
    case json::value_t::array:
      return "a list";
    case json::value_t::object:
      return "an object";
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
      return "an integer";
    default:
      return "a number";
  }
}

}  // namespace

JsonObject::JsonObject(const json& json, std::string path, std::string place)
    : json_(json), path_(std::move(path)), place_(std::move(place)) {
  if (!json_.is_object()) throw Mistake("", fmt::format("expected an object, not {}", KindOf(json_)));
}

Error JsonObject::Mistake(std::string_view key, std::string_view what) const {
  std::string where = place_;
  if (!key.empty()) where += fmt::format("{}{}", where.empty() ? "" : ".", key);
  return Error("{}: {}{}{}", path_, where, where.empty() ? "" : ": ", what);
}

bool JsonObject::Has(std::string_view key) const { return json_.contains(key); }

const json& JsonObject::Get(std::string_view key, std::string_view expected) {
  const auto found = json_.find(key);
  if (found == json_.end()) throw Mistake(key, fmt::format("is missing; expected {}", expected));
  asked_.emplace(key);
  return *found;
}

std::string JsonObject::Text(std::string_view key) {
  const json& value = Get(key, "a text");
  if (!value.is_string()) throw Mistake(key, fmt::format("expected a text, not {}", KindOf(value)));
  return value.get<std::string>();
}

double JsonObject::Number(std::string_view key) {
  const json& value = Get(key, "a number");
  if (!value.is_number()) throw Mistake(key, fmt::format("expected a number, not {}", KindOf(value)));
  return value.get<double>();
}

double JsonObject::Number(std::string_view key, double least, double most) {
  const double value = Number(key);
  if (!(value >= least && value <= most)) {
    throw Mistake(key, fmt::format("is {}; expected a number from {} to {}", value, least, most));
  }
  return value;
}

int64_t JsonObject::Int(std::string_view key, int64_t least, int64_t most) {
  const std::string expected = fmt::format("expected an integer from {} to {}", least, most);
  const json& value = Get(key, expected.substr(9));
  // Above the largest signed number the parser answers unsigned ones, which would wrap.
  const bool fits = value.is_number_unsigned() ? value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)
                                               : value.is_number_integer();
  if (!fits || value.get<int64_t>() < least || value.get<int64_t>() > most) throw Mistake(key, expected);
  return value.get<int64_t>();
}

uint64_t JsonObject::Word(std::string_view key) {
  const json& value = Get(key, "an integer from 0");
  if (!value.is_number_unsigned()) throw Mistake(key, "expected an integer from 0");
  return value.get<uint64_t>();
}

bool JsonObject::Bool(std::string_view key) {
  const json& value = Get(key, "true or false");
  if (!value.is_boolean()) throw Mistake(key, fmt::format("expected true or false, not {}", KindOf(value)));
  return value.get<bool>();
}

const json& JsonObject::List(std::string_view key) {
  const json& value = Get(key, "a list");
  if (!value.is_array()) throw Mistake(key, fmt::format("expected a list, not {}", KindOf(value)));
  return value;
}

JsonObject JsonObject::Object(std::string_view key) {
  const json& value = Get(key, "an object");
  return {value, path_, place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key)};
}

uint64_t JsonObject::Fingerprint(std::string_view key) {
  const std::string text = Text(key);
  uint64_t word = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), word, 16);
  if (text.size() != 16 || code != std::errc() || end != text.data() + text.size()) {
    throw Mistake(key, "expected sixteen hexadecimal digits");
  }
  return word;
}

void JsonObject::Finish() const {
  for (const auto& [key, value] : json_.items()) {
    if (!asked_.contains(key)) throw Mistake(key, "unknown key; remove it");
  }
}

}  // namespace berth
