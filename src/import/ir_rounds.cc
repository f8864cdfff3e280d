#include "import/ir_rounds.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <vector>

namespace berth {
namespace {

constexpr int64_t kMostRounds = 100'000;
constexpr size_t kMostSteps = 20'000'000;  // in all rounds
constexpr int kMostDeep = 100;             // ops from the condition back to a Parameter

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
      : body_(body),
        counters_(counters),
        read_(read),
        value_(body.layers.size()),
        slot_(body.layers.size()),
        state_(body.layers.size()) {}

  std::optional<int64_t> Rounds(size_t condition) {
    if (!Need(condition, 0)) return std::nullopt;
    // What counts from round to round may depend on more; the list grows.
    for (size_t i = 0; i < counted_.size(); ++i) {
      const std::optional<size_t> next = counters_.at(counted_[i]).next;
      if (next && !Need(*next, 0)) return std::nullopt;
    }
    const auto most = static_cast<int64_t>(kMostSteps / (steps_.size() + counted_.size() + 1));
    std::vector<int64_t> next(counted_.size());
    for (int64_t round = 1; round <= std::min(kMostRounds, most); ++round) {
      for (const Step& step : steps_) {
        if (!step.binary->apply(value_[step.a], value_[step.b], value_[step.result])) return std::nullopt;
        if (value_[step.result] < step.least || value_[step.result] > step.most) return std::nullopt;
      }
      if (value_[slot_[condition]] == 0) return round;
      for (size_t i = 0; i < counted_.size(); ++i) {
        const IrCounter& counter = counters_.at(counted_[i]);
        next[i] = counter.next ? value_[slot_[*counter.next]] : value_[counted_[i]] + counter.step;
      }
      if (std::ranges::equal(next, counted_, {}, {}, [this](size_t parameter) { return value_[parameter]; }))
        return std::nullopt;  // it never ends
      for (size_t i = 0; i < counted_.size(); ++i) value_[counted_[i]] = next[i];
    }
    return std::nullopt;
  }

 private:
  enum class State : uint8_t { kNew, kOpen, kKnown };
  struct Step {
    const Binary* binary;
    size_t a, b, result;  // layers
    int64_t least, most;  // of the result's type
  };

  static bool IsOneInteger(const IrPort& port) {
    constexpr std::array<std::string_view, 4> kTypes = {"bool", "boolean", "i32", "i64"};
    return Elements(port.dims) == 1 && port.certainty == Certainty::kKnown && std::ranges::count(kTypes, port.type) > 0;
  }
  static bool IsTruth(const IrPort& port) { return port.type.starts_with("bool"); }

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
    slot_[i] = i;
    if (PassesOn(layer.type)) {
      if (layer.inputs.empty()) return false;
      const auto [source, output] = layer.inputs.front();
      if (!Need(source, depth + 1)) return false;
      // No number is changed on its way.
      const IrPort& from = body_.layers[source].outputs[output];
      if (layer.type != "Result" && from.type != layer.outputs.front().type &&
          (layer.outputs.front().type != "i64" || IsTruth(from))) {
        return false;
      }
      slot_[i] = slot_[source];
      return true;
    }
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
    const bool narrow = layer.outputs.front().type != "i64";
    steps_.push_back({.binary = &*binary,
                      .a = slot_[a],
                      .b = slot_[b],
                      .result = i,
                      .least = narrow ? INT32_MIN : INT64_MIN,
                      .most = narrow ? INT32_MAX : INT64_MAX});
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
  std::vector<size_t> slot_;     // by layer: the one that makes the value, which others hand on
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
