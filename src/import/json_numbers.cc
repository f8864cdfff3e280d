#include "import/json_numbers.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace berth {

using nlohmann::json;

JsonPlace JsonPlace::operator[](size_t position) const { return {path, fmt::format("{}[{}]", place, position)}; }

double NumberOf(const json& value, const JsonPlace& place, double least, double most) {
  if (!value.is_number()) throw Error("{}: {}: is {}; expected a number", place.path, place.place, value.type_name());
  const double number = value.get<double>();
  if (!(number >= least && number <= most)) {
    throw Error("{}: {}: is {}; expected a number from {} to {}", place.path, place.place, number, least, most);
  }
  return number;
}

int64_t IntOf(const json& value, const JsonPlace& place, int64_t least, int64_t most) {
  const bool fits = value.is_number_unsigned() ? value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)
                                               : value.is_number_integer();
  if (!fits || value.get<int64_t>() < least || value.get<int64_t>() > most) {
    throw Error("{}: {}: is {}; expected an integer from {} to {}", place.path, place.place,
                value.is_number() ? value.dump() : value.type_name(), least, most);
  }
  return value.get<int64_t>();
}

void ExpectList(const json& value, const JsonPlace& place, size_t size) {
  if (!value.is_array())
    throw Error("{}: {}: is {}; expected a list of {}", place.path, place.place, value.type_name(), size);
  if (value.size() != size) {
    throw Error("{}: {}: has {} entries; expected {}", place.path, place.place, value.size(), size);
  }
}

std::vector<double> NumbersOf(const json& value, const JsonPlace& place, size_t size, double least, double most) {
  ExpectList(value, place, size);
  std::vector<double> numbers;
  for (const json& item : value) numbers.push_back(NumberOf(item, place[numbers.size()], least, most));
  return numbers;
}

}  // namespace berth
