#include "placement/fusion_patterns.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace berth {
namespace {

class Finder {
 public:
  explicit Finder(const FusionView& view) : view_(view), taken_(view.graph().num_ops(), 0) {}

  std::vector<FusionPattern> Find() {
    for (const OpId op : view_.graph().ops()) {
      for (const auto pattern : {&Finder::Swish, &Finder::Gelu, &Finder::Mvn, &Finder::Rms, &Finder::Attention}) {
        Keep((this->*pattern)(op));
      }
    }
    return std::move(found_);
  }

 private:
  using Match = std::optional<FusionPattern>;

  void Keep(Match match) {
    if (!match) return;
    std::vector<OpId>& ops = match->ops;
    std::ranges::sort(ops);
    ops.erase(std::ranges::unique(ops).begin(), ops.end());
    const auto free = [&](OpId op) { return taken_[Index(op)] == 0; };
    const auto stays = [&](OpId op) { return op == ops.back() || view_.IsReadOnlyBy(op, ops); };
    if (!std::ranges::all_of(ops, free) || !std::ranges::all_of(ops, stays)) return;
    for (const OpId op : ops) taken_[Index(op)] = 1;
    found_.push_back(std::move(*match));
  }

  bool IsOneOf(OpId op, std::initializer_list<std::string_view> types) const {
    return std::ranges::find(types, view_.type(op)) != types.end();
  }
  // The producer of an op that has just one, and no other operand that depends on an input.
  std::optional<OpId> Only(OpId op) const {
    if (view_.num_operands(op) != 1 || view_.producers(op).size() != 1) return std::nullopt;
    return view_.producers(op).front();
  }
  // The producer of one of these types that nobody else reads.
  std::optional<OpId> Above(OpId op, std::initializer_list<std::string_view> types) const {
    for (const OpId producer : view_.producers(op)) {
      if (IsOneOf(producer, types) && view_.HasOneConsumer(producer)) return producer;
    }
    return std::nullopt;
  }
  std::optional<OpId> Above(std::optional<OpId> op, std::initializer_list<std::string_view> types) const {
    return op ? Above(*op, types) : std::nullopt;
  }
  // A number times `of`, for one reader.
  bool IsMultipleOf(OpId op, OpId of) const {
    return IsOneOf(op, {"Mul", "Div"}) && view_.HasOneConsumer(op) && Only(op) == of;
  }

  // x * sigmoid(x), or x * sigmoid(number * x).
  Match Swish(OpId op) const {
    if (!view_.Is(op, "Mul") || view_.num_operands(op) != 2) return std::nullopt;
    const auto sigmoid = Above(op, {"Sigmoid"});
    if (!sigmoid || view_.producers(op).size() != 2) return std::nullopt;
    const OpId x = view_.producers(op)[view_.producers(op).front() == *sigmoid ? 1 : 0];
    const auto inside = Only(*sigmoid);
    if (!inside) return std::nullopt;
    if (*inside == x) return FusionPattern{.ops = {*sigmoid, op}, .activates = x};
    if (!IsMultipleOf(*inside, x)) return std::nullopt;
    return FusionPattern{.ops = {*inside, *sigmoid, op}, .activates = x};
  }

  // number * x * (1 + f(x)) in any order, f being erf of a multiple of x, or tanh of a polynomial in it.
  Match Gelu(OpId op) const {
    if (!IsOneOf(op, {"Erf", "Tanh"}) || view_.producers(op).size() != 1) return std::nullopt;
    std::vector<OpId> ops = {op};
    const auto x = Polynomial(ops);
    const auto add = view_.OnlyConsumer(op);
    if (!x || !add || !view_.Is(*add, "Add") || Only(*add) != op) return std::nullopt;
    ops.push_back(*add);
    bool has_x = false, has_number = false;
    for (OpId at = *add; !has_x || !has_number;) {
      const auto next = view_.OnlyConsumer(at);
      if (!next || !view_.Is(*next, "Mul")) return std::nullopt;
      if (Only(*next) == at) {
        has_number = true;
      } else {
        if (view_.producers(*next).size() != 2 || has_x) return std::nullopt;
        const OpId other = view_.producers(*next)[view_.producers(*next).front() == at ? 1 : 0];
        if (other != *x) {
          if (!IsMultipleOf(other, *x)) return std::nullopt;
          ops.push_back(other);
          has_number = true;
        }
        has_x = true;
      }
      ops.push_back(*next);
      at = *next;
    }
    return FusionPattern{.ops = std::move(ops), .activates = x};
  }
  // Adds what lies between ops[0] and the one op that it is a function of, and gives that.
  std::optional<OpId> Polynomial(std::vector<OpId>& ops) const {
    constexpr size_t kMost = 8;
    std::set<OpId> sources(view_.producers(ops[0]).begin(), view_.producers(ops[0]).end());
    // The last source reads the others, if any does.
    for (auto at = sources.rbegin(); at != sources.rend() && ops.size() < kMost;) {
      const OpId op = *at;
      const bool inside = IsOneOf(op, {"Mul", "Div", "Add", "Pow"}) && view_.IsReadOnlyBy(op, ops) &&
                          view_.graph().graph_inputs_of(op).empty() && !view_.producers(op).empty();
      if (!inside) {
        ++at;
        continue;
      }
      ops.push_back(op);
      sources.erase(op);
      sources.insert(view_.producers(op).begin(), view_.producers(op).end());
      at = sources.rbegin();
    }
    return sources.size() == 1 ? std::optional(*sources.begin()) : std::nullopt;
  }

  // (x - mean(x)) / sqrt(mean((x - mean(x))^2) + number)
  Match Mvn(OpId op) const {
    if (!view_.Is(op, "Div") || view_.producers(op).size() != 2) return std::nullopt;
    const auto root = Above(op, {"Sqrt"});
    const auto add = Above(root, {"Add"});
    const auto variance = Above(add, {"ReduceMean"});
    const auto square = Above(variance, {"Pow", "Mul"});
    const auto deviation = square ? Only(*square) : std::nullopt;
    if (!deviation || !view_.Is(*deviation, "Sub")) return std::nullopt;
    const auto mean = Above(*deviation, {"ReduceMean"});
    if (!mean || std::ranges::count(view_.producers(op), *deviation) == 0) return std::nullopt;
    return FusionPattern{.ops = {*mean, *deviation, *square, *variance, *add, *root, op}};
  }

  // x * (1 / sqrt(mean(x^2) + number)), and the scale behind it.
  Match Rms(OpId op) const {
    if (!view_.Is(op, "Mul") || view_.producers(op).size() != 2) return std::nullopt;
    const auto inverse = Above(op, {"Div", "Reciprocal"});
    const auto root = Above(inverse, {"Sqrt"});
    const auto add = Above(root, {"Add"});
    const auto mean = Above(add, {"ReduceMean"});
    const auto square = Above(mean, {"Pow", "Mul"});
    if (!square) return std::nullopt;
    FusionPattern match{.ops = {*square, *mean, *add, *root, *inverse, op}};
    const auto scale = view_.OnlyConsumer(op);
    if (scale && view_.Is(*scale, "Mul") && Only(*scale) == op) match.ops.push_back(*scale);
    return match;
  }

  // softmax(q * k) * v
  Match Attention(OpId op) const {
    if (!view_.Is(op, "Softmax") || !Only(op)) return std::nullopt;
    FusionPattern match{.ops = {op}};
    auto product = view_.OnlyConsumer(op);
    for (; product && IsOneOf(*product, {"Cast", "Dropout"}); product = view_.OnlyConsumer(*product)) {
      match.ops.push_back(*product);
    }
    if (!product || !IsProductOfTwo(*product)) return std::nullopt;
    const auto scores = Climb(*Only(op), match.ops, kMostBetween);
    if (!scores) return std::nullopt;
    match.ops.push_back(*product);
    for (const OpId factor_of : {*scores, *product}) {
      for (OpId factor : view_.producers(factor_of)) {
        if (std::ranges::find(match.ops, factor) != match.ops.end()) continue;
        if (const auto below = Only(factor); below && IsMultipleOf(factor, *below)) {
          match.ops.push_back(factor);
          factor = *below;
        }
        if (view_.Is(factor, "Transpose") && view_.HasOneConsumer(factor)) match.ops.push_back(factor);
      }
    }
    const auto after = view_.OnlyConsumer(*product);
    if (after && view_.Is(*after, "Transpose")) match.ops.push_back(*after);
    return match;
  }
  static constexpr int kMostBetween = 5;
  bool IsProductOfTwo(OpId op) const { return view_.Is(op, "MatMul") && view_.producers(op).size() == 2; }
  // The product of two above `op`, through what scales and masks its result; adds what was passed.
  std::optional<OpId> Climb(OpId op, std::vector<OpId>& ops, int steps) const {
    if (!view_.HasOneConsumer(op)) return std::nullopt;
    if (IsProductOfTwo(op)) {
      ops.push_back(op);
      return op;
    }
    if (steps == 0 || !IsOneOf(op, {"Add", "Sub", "Mul", "Div", "Tanh", "Where", "Clip", "Cast"})) return std::nullopt;
    for (const OpId producer : view_.producers(op)) {
      if (const auto product = Climb(producer, ops, steps - 1)) {
        ops.push_back(op);
        return product;
      }
    }
    return std::nullopt;
  }

  const FusionView& view_;
  std::vector<uint8_t> taken_;
  std::vector<FusionPattern> found_;
};

}  // namespace

std::vector<FusionPattern> FindFusionPatterns(const FusionView& view) { return Finder(view).Find(); }

}  // namespace berth
