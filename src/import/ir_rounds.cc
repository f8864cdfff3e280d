#include "import/ir_rounds.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <vector>

namespace berth {
namespace {

constexpr int64_t kMostRounds = 100'000;
constexpr int kMostDeep = 100;  // ops from the condition back to a Parameter

struct Binary {
  std::string_view type;
  // False where the result is no 64-bit integer.
  bool (*apply)(int64_t a, int64_t b, int64_t& result);
};

template <typename Compare>
bool Truth(int64_t a, int64_t b, int64_t& result) {
  result = Compare()(a, b) ? 1 : 0;
  return true;
}

constexpr auto kBinary = std::to_array<Binary>({
    {"Add", [](int64_t a, int64_t b, int64_t& result) { return !__builtin_add_overflow(a, b, &result); }},
    {"Subtract", [](int64_t a, int64_t b, int64_t& result) { return !__builtin_sub_overflow(a, b, &result); }},
    {"Multiply", [](int64_t a, int64_t b, int64_t& result) { return !__builtin_mul_overflow(a, b, &result); }},
    {"Less", Truth<std::less<>>},
    {"LessEqual", Truth<std::less_equal<>>},
    {"Greater", Truth<std::greater<>>},
    {"GreaterEqual", Truth<std::greater_equal<>>},
    {"Equal", Truth<std::equal_to<>>},
    {"NotEqual", Truth<std::not_equal_to<>>},
    {"LogicalAnd", Truth<std::logical_and<>>},
    {"LogicalOr", Truth<std::logical_or<>>},
    {"Minimum", [](int64_t a, int64_t b, int64_t& result) { return result = std::min(a, b), true; }},
    {"Maximum", [](int64_t a, int64_t b, int64_t& result) { return result = std::max(a, b), true; }},
});

bool PassesOn(std::string_view type) {
  return type == "Result" || type == "Convert" || type == "Identity" || type == "Reshape" || type == "Squeeze" ||
         type == "Unsqueeze";
}

// The layers that the condition depends on, in an order in which each comes after what it reads.
class Program {
 public:
  Program(const IrNet& body, const std::map<size_t, IrCounter>& counters, const ReadInteger& read)
      : body_(body), counters_(counters), read_(read), value_(body.layers.size()), state_(body.layers.size()) {}

  std::optional<int64_t> Rounds(size_t condition) {
    if (!Need(condition, 0)) return std::nullopt;
    // What counts from round to round may depend on more; the list grows.
    for (size_t i = 0; i < counted_.size(); ++i) {
      const std::optional<size_t> next = counters_.at(counted_[i]).next;
      if (next && !Need(*next, 0)) return std::nullopt;
    }
    for (int64_t round = 1; round <= kMostRounds; ++round) {
      for (const Step& step : steps_) {
        if (!step.binary->apply(value_[step.a], value_[step.b], value_[step.result])) return std::nullopt;
      }
      if (value_[Slot(condition)] == 0) return round;
      std::vector<int64_t> next;
      for (const size_t parameter : counted_) {
        const IrCounter& counter = counters_.at(parameter);
        next.push_back(counter.next ? value_[Slot(*counter.next)] : value_[parameter] + counter.step);
      }
      for (size_t i = 0; i < counted_.size(); ++i) value_[counted_[i]] = next[i];
    }
    return std::nullopt;
  }

 private:
  enum class State : uint8_t { kNew, kOpen, kKnown };
  struct Step {
    const Binary* binary;
    size_t a, b, result;  // layers
  };

  // The layer that makes the value, past those that hand it on.
  size_t Slot(size_t layer) const {
    while (PassesOn(body_.layers[layer].type)) layer = body_.layers[layer].inputs.front().layer;
    return layer;
  }

  static bool IsOneInteger(const IrPort& port) {
    return Elements(port.dims) == 1 && port.certainty == Certainty::kKnown &&
           (port.type.starts_with("bool") || port.type.starts_with("i") || port.type.starts_with("u"));
  }

  bool Need(size_t layer, int depth) {
    if (state_[layer] != State::kNew) return state_[layer] == State::kKnown;
    state_[layer] = State::kOpen;
    if (depth > kMostDeep || !Know(body_.layers[layer], layer, depth)) return false;
    state_[layer] = State::kKnown;
    return true;
  }

  // Sets the value, or adds the step that makes it.
  bool Know(const IrLayer& layer, size_t i, int depth) {
    if (layer.type != "Result" && (layer.outputs.size() != 1 || !IsOneInteger(layer.outputs.front()))) return false;
    if (PassesOn(layer.type)) return !layer.inputs.empty() && Need(layer.inputs.front().layer, depth + 1);
    if (layer.type == "Const") return SetFirst(i, read_(layer));
    if (layer.type == "Parameter") {
      const auto counter = counters_.find(i);
      if (counter == counters_.end()) return false;
      counted_.push_back(i);
      return SetFirst(i, counter->second.first);
    }
    const auto binary = std::ranges::find(kBinary, std::string_view(layer.type), &Binary::type);
    if (binary == kBinary.end() || layer.inputs.size() != 2) return false;
    const size_t a = layer.inputs[0].layer, b = layer.inputs[1].layer;
    if (!Need(a, depth + 1) || !Need(b, depth + 1)) return false;
    steps_.push_back({.binary = &*binary, .a = Slot(a), .b = Slot(b), .result = i});
    return true;
  }

  bool SetFirst(size_t layer, std::optional<int64_t> value) {
    if (value) value_[layer] = *value;
    return value.has_value();
  }

  const IrNet& body_;
  const std::map<size_t, IrCounter>& counters_;
  const ReadInteger& read_;
  std::vector<int64_t> value_;   // by layer
  std::vector<State> state_;     // by layer
  std::vector<size_t> counted_;  // Parameters
  std::vector<Step> steps_;
};

}  // namespace

std::optional<int64_t> RoundsUntilFalse(const IrNet& body, size_t condition,
                                        const std::map<size_t, IrCounter>& counters, const ReadInteger& read) {
  return Program(body, counters, read).Rounds(condition);
}

}  // namespace berth
