#include "cli/listing.h"

#include "report/table.h"

namespace berth {
namespace {

constexpr std::string_view TypeName(ParameterType type) {
  switch (type) {
    case ParameterType::kInt:
      return "integer";
    case ParameterType::kReal:
      return "number";
    case ParameterType::kTime:
      return "time";
    case ParameterType::kBool:
      return "true or false";
    case ParameterType::kText:
      return "text";
    case ParameterType::kChoice:
      return "choice";
    case ParameterType::kSpec:
      return "name";
    case ParameterType::kSpecs:
      return "names";
  }
  return "";
}

}  // namespace

std::string ListText(const std::vector<EntryInfo>& entries) {
  std::string text;
  for (const EntryInfo& entry : entries) {
    text += entry.name + "\n" + Wrap(entry.sentence);
    if (!entry.source.empty() && entry.source != "-") text += Wrap("Source: " + entry.source);
    for (const Parameter& parameter : entry.parameters) {
      const std::string choices = parameter.type == ParameterType::kTime ? " (or with a unit, like 20us)"
                                  : parameter.choices.empty() ? ""
                                                              : fmt::format(" ({})", fmt::join(parameter.choices, "|"));
      const std::string value =
          parameter.type == ParameterType::kSpecs ? "..." : fmt::format("={}", parameter.default_value);
      text += Wrap(fmt::format("{}{}: {}{}", parameter.name, value, parameter.sentence, choices), "    ");
    }
  }
  return text;
}

Json ListJson(const std::vector<EntryInfo>& entries) {
  Json list = Json::array();
  for (const EntryInfo& entry : entries) {
    Json parameters = Json::array();
    for (const Parameter& parameter : entry.parameters) {
      Json json = {{"name", parameter.name},
                   {"type", TypeName(parameter.type)},
                   {"default", parameter.default_value},
                   {"sentence", parameter.sentence}};
      if (!parameter.choices.empty()) json["choices"] = parameter.choices;
      parameters.push_back(std::move(json));
    }
    list.push_back({{"name", entry.name},
                    {"sentence", entry.sentence},
                    {"source", entry.source},
                    {"parameters", std::move(parameters)}});
  }
  return list;
}

}  // namespace berth
