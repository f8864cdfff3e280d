// Parameters of catalog entries in one line each.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/catalog.h"

namespace berth {

inline Parameter NumberParameter(ParameterType type, std::string name, std::string value, std::string sentence,
                                 double least, double most) {
  return {.name = std::move(name),
          .type = type,
          .default_value = std::move(value),
          .sentence = std::move(sentence),
          .least = least,
          .most = most};
}

inline Parameter Whole(std::string name, std::string value, std::string sentence, double least = 1, double most = 1e9) {
  return NumberParameter(ParameterType::kInt, std::move(name), std::move(value), std::move(sentence), least, most);
}

inline Parameter Real(std::string name, std::string value, std::string sentence, double least = 0,
                      double most = 1e300) {
  return NumberParameter(ParameterType::kReal, std::move(name), std::move(value), std::move(sentence), least, most);
}

// In seconds: "0.1", "20us", "1.5 ms". The default is a plain number.
inline Parameter Time(std::string name, std::string value, std::string sentence, double least = 0, double most = 1e9) {
  return NumberParameter(ParameterType::kTime, std::move(name), std::move(value), std::move(sentence), least, most);
}

inline Parameter Switch(std::string name, std::string value, std::string sentence) {
  return {.name = std::move(name),
          .type = ParameterType::kBool,
          .default_value = std::move(value),
          .sentence = std::move(sentence)};
}

// The first choice is the default.
inline Parameter Choice(std::string name, std::vector<std::string> choices, std::string sentence) {
  std::string first = choices.front();
  return {.name = std::move(name),
          .type = ParameterType::kChoice,
          .default_value = std::move(first),
          .sentence = std::move(sentence),
          .choices = std::move(choices)};
}

}  // namespace berth
