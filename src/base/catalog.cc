#include "base/catalog.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/units.h"

namespace berth {
namespace {

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Calls visit(position) for each character outside quotes and parentheses; says why when these do not balance, or
// nothing.
template <typename Visit>
std::string_view ForEachOutside(std::string_view text, const Visit& visit) {
  std::string open;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '[') open += c;
    if (c == ')' || c == ']') {
      if (c == ')' && !open.empty() && open.back() == '[') break;
      if (open.empty() || (c == ']' && open.back() == '(')) {
        return c == ')' ? "one closing parenthesis too many" : "one closing bracket too many";
      }
      open.pop_back();
    }
    if (open.empty()) visit(i);
  }
  if (quoted) return "a closing quotation mark is missing";
  if (open.empty()) return {};
  return open.back() == '(' ? "a closing parenthesis is missing" : "a closing bracket is missing";
}

std::string_view Imbalance(std::string_view text) {
  return ForEachOutside(text, [](size_t) {});
}

std::string Unquote(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return std::string(text);
}

std::string TypeName(const Parameter& parameter) {
  switch (parameter.type) {
    case ParameterType::kInt:
      return "a whole number";
    case ParameterType::kReal:
      return "a number";
    case ParameterType::kTime:
      return "a time (a number of seconds, or one with its unit, like 20us)";
    case ParameterType::kBool:
      return "true or false";
    case ParameterType::kText:
      return "text";
    case ParameterType::kChoice:
      return fmt::format("one of {}", fmt::join(parameter.choices, ", "));
    case ParameterType::kSpec:
      return "a name with parameters";
    case ParameterType::kSpecs:
      return "names with parameters";
  }
  return "";
}

template <typename Number>
bool ParseNumber(std::string_view text, Number& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size();
}

// Of a parameter's value, which was checked, or its default.
template <typename Number>
Number As(std::string_view text, std::string_view name) {
  Number number = 0;
  BERTH_CHECK(ParseNumber(text, number), "default of {}", name);
  return number;
}

// The seconds of "0.1" or "20us"; nothing where `text` is no time.
std::optional<double> SecondsOf(std::string_view text) {
  double seconds = 0;
  if (ParseNumber(text, seconds)) return std::isfinite(seconds) ? std::optional(seconds) : std::nullopt;
  try {
    return ParseSeconds(text).value;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Whether `text` is a value of the parameter.
bool Fits(const Parameter& parameter, std::string_view text) {
  const auto within = [&](double value) { return value >= parameter.least && value <= parameter.most; };
  switch (parameter.type) {
    case ParameterType::kInt: {
      int64_t value = 0;
      return ParseNumber(text, value) && within(static_cast<double>(value));
    }
    case ParameterType::kReal: {
      double value = 0;
      return ParseNumber(text, value) && std::isfinite(value) && within(value);
    }
    case ParameterType::kTime: {
      const std::optional<double> seconds = SecondsOf(text);
      return seconds && within(*seconds);
    }
    case ParameterType::kBool:
      return text == "true" || text == "false";
    case ParameterType::kChoice:
      return std::ranges::count(parameter.choices, text) > 0;
    case ParameterType::kText:
    case ParameterType::kSpec:
    case ParameterType::kSpecs:
      return true;
  }
  return false;
}

std::string Assignment(std::string_view name, std::string_view text, bool may_quote) {
  const bool quote = may_quote && text.find_first_of(",()[]=\" \t") != std::string_view::npos;
  return quote ? fmt::format("{}=\"{}\"", name, text) : fmt::format("{}={}", name, text);
}

std::string Joined(const std::string& name,
                   const std::vector<std::pair<std::string, std::vector<std::string>>>& shown) {
  std::vector<std::string> parts;
  for (const auto& [parameter, texts] : shown) parts.insert(parts.end(), texts.begin(), texts.end());
  return parts.empty() ? name : fmt::format("{}({})", name, fmt::join(parts, ","));
}

std::string Range(const Parameter& parameter) {
  if (parameter.least > -1e300 && parameter.most < 1e300)
    return fmt::format(" from {} to {}", parameter.least, parameter.most);
  if (parameter.least > -1e300) return fmt::format(" of at least {}", parameter.least);
  if (parameter.most < 1e300) return fmt::format(" of at most {}", parameter.most);
  return "";
}

}  // namespace

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> parts;
  size_t start = 0;
  const std::string_view imbalance = ForEachOutside(text, [&](size_t i) {
    if (text[i] != ',') return;
    parts.emplace_back(Trim(text.substr(start, i - start)));
    start = i + 1;
  });
  if (!imbalance.empty()) throw Error("'{}': {}", text, imbalance);
  const std::string_view last = Trim(text.substr(start));
  if (!last.empty() || !parts.empty()) parts.emplace_back(last);
  return parts;
}

Spec Spec::Parse(std::string_view text) {
  Spec spec;
  const std::string_view whole = Trim(text);
  size_t end = 0;
  while (end < whole.size() && IsNameCharacter(whole[end])) ++end;
  spec.name = whole.substr(0, end);
  if (spec.name.empty()) throw Error("'{}': a name was expected, like heft or local_search(restarts=3)", text);
  std::string_view rest = Trim(whole.substr(end));
  if (rest.empty()) return spec;
  if (const std::string_view imbalance = Imbalance(whole); !imbalance.empty()) {
    throw Error("'{}': {}", text, imbalance);
  }
  // The last condition: the first parenthesis is closed by the last.
  if (rest.front() != '(' || rest.back() != ')' || !Imbalance(rest.substr(1, rest.size() - 2)).empty()) {
    throw Error("'{}': after the name '{}' only (key=value, ...) may follow", text, spec.name);
  }
  for (const std::string& part : SplitList(rest.substr(1, rest.size() - 2))) {
    if (part.empty()) throw Error("'{}': an empty parameter; write key=value between the commas", text);
    size_t equals = 0;
    while (equals < part.size() && IsNameCharacter(part[equals])) ++equals;
    const size_t key = equals;
    while (equals < part.size() && part[equals] == ' ') ++equals;
    if (key > 0 && equals < part.size() && part[equals] == '=') {
      spec.parameters.emplace_back(part.substr(0, key), Unquote(Trim(std::string_view(part).substr(equals + 1))));
    } else {
      spec.arguments.push_back(Unquote(part));
    }
  }
  return spec;
}

void Spec::Set(std::string_view parameter, std::string_view text) {
  std::erase_if(parameters, [&](const auto& given) { return given.first == parameter; });
  if (!text.empty()) parameters.emplace_back(parameter, text);
}

Params::Params(const Spec& spec, const std::vector<Parameter>& declared, std::string_view what) : name_(spec.name) {
  const auto there_are = [&] {
    if (declared.empty()) return std::string("it takes none");
    std::vector<std::string> names;
    for (const Parameter& parameter : declared) {
      names.push_back(parameter.type == ParameterType::kSpecs ? parameter.name + "..."
                                                              : parameter.name + "=" + parameter.default_value);
    }
    return fmt::format("there are: {}", fmt::join(names, ", "));
  };
  for (const Parameter& parameter : declared)
    values_[parameter.name] = {parameter.type, parameter.default_value, {}, false};
  for (const auto& [name, text] : spec.parameters) {
    const auto found = std::ranges::find(declared, name, &Parameter::name);
    if (found == declared.end() || found->type == ParameterType::kSpecs) {
      throw Error("{} {} has no parameter '{}'; {}", what, spec.name, name, there_are());
    }
    Value& value = values_.find(name)->second;
    if (value.given) throw Error("{} {}: parameter {} is given twice", what, spec.name, name);
    if (!Fits(*found, text)) {
      throw Error("{} {}: {}={} is not {}{}; {}: {}", what, spec.name, name, text, TypeName(*found), Range(*found),
                  name, found->sentence);
    }
    // So that a time has one name, whatever its unit.
    value.text = found->type == ParameterType::kTime ? fmt::format("{}", *SecondsOf(text)) : text;
    value.given = true;
  }
  if (!spec.arguments.empty()) {
    const auto rest = std::ranges::find(declared, ParameterType::kSpecs, &Parameter::type);
    if (rest == declared.end()) {
      throw Error("{} {}: '{}' has no key; write key=value, {}", what, spec.name, spec.arguments.front(), there_are());
    }
    Value& value = values_.find(rest->name)->second;
    value.specs = spec.arguments;
    value.given = true;
  }
  for (const Parameter& parameter : declared) {
    const Value& value = values_.find(parameter.name)->second;
    std::vector<std::string>& shown = shown_.emplace_back(parameter.name, std::vector<std::string>()).second;
    if (!value.given) continue;
    if (parameter.type == ParameterType::kSpecs) {
      shown = value.specs;
    } else if (value.text != parameter.default_value || parameter.mode_decides) {
      shown = {Assignment(parameter.name, value.text, parameter.type == ParameterType::kText)};
    }
  }
  canonical_ = Joined(spec.name, shown_);
}

std::string Params::CanonicalWith(std::string_view name, std::string_view text) const {
  BERTH_CHECK(Get(name, ParameterType::kText).type == ParameterType::kText, "parameter {} is no text", name);
  auto shown = shown_;
  std::ranges::find(shown, name, &Shown::first)->second = {Assignment(name, text, true)};
  return Joined(name_, shown);
}

const Params::Value& Params::Get(std::string_view name, ParameterType type) const {
  const auto found = values_.find(name);
  BERTH_CHECK(found != values_.end(), "parameter {} is read but not declared", name);
  const ParameterType declared = found->second.type;
  const bool texts =
      type == ParameterType::kText && (declared == ParameterType::kChoice || declared == ParameterType::kSpec);
  BERTH_CHECK(declared == type || texts, "parameter {} is read as another type than declared", name);
  return found->second;
}

int64_t Params::Int(std::string_view name) const { return As<int64_t>(Get(name, ParameterType::kInt).text, name); }

double Params::Real(std::string_view name) const { return As<double>(Get(name, ParameterType::kReal).text, name); }

double Params::Time(std::string_view name) const { return As<double>(Get(name, ParameterType::kTime).text, name); }

bool Params::Bool(std::string_view name) const { return Get(name, ParameterType::kBool).text == "true"; }

const std::string& Params::Text(std::string_view name) const { return Get(name, ParameterType::kText).text; }

std::vector<std::string> Params::Specs(std::string_view name) const { return Get(name, ParameterType::kSpecs).specs; }

bool Params::Given(std::string_view name) const {
  const auto found = values_.find(name);
  return found != values_.end() && found->second.given;
}

void ThrowUnknownName(std::string_view what, std::string_view name, const std::vector<std::string>& known) {
  const std::string_view near = Closest(name, known);
  throw Error("there is no {} '{}'; {}: {}", what, name,
              near.empty() ? "there are" : fmt::format("did you mean '{}'? There are", near), fmt::join(known, ", "));
}

}  // namespace berth
