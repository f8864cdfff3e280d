// Folding of reductions, of what sorts and counts, and of products.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "import/einsum.h"
#include "import/onnx_fold.h"
#include "import/onnx_index.h"

namespace berth {
namespace {

using Number = long double;

// The elements of `dims`, by the position that each has in what is left when the axes that are `gone` become one.
template <typename Visit>
void ForEachReduced(const Dims& dims, const std::vector<bool>& gone, const Visit& visit) {
  ForEachIndex(dims, [&](size_t position, const Place& index) {
    size_t kept = 0;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      if (!gone[axis]) kept = kept * static_cast<size_t>(dims[axis]) + static_cast<size_t>(index[axis]);
    }
    visit(kept, position, index);
  });
}

struct Accumulate {
  Number start;
  Number (*add)(Number sum, Number x);
  Number (*end)(Number sum, Number count);
};

Number AsItIs(Number sum, Number) { return sum; }

const std::map<std::string_view, Accumulate>& Accumulates() {
  constexpr Number kInfinity = std::numeric_limits<Number>::infinity();
  static constexpr auto add = [](Number sum, Number x) { return sum + x; };
  static constexpr auto add_square = [](Number sum, Number x) { return sum + x * x; };
  static const std::map<std::string_view, Accumulate> table = {
      {"ReduceSum", {0, add, AsItIs}},
      {"ReduceMean", {0, add, [](Number sum, Number count) { return sum / count; }}},
      {"ReduceProd", {1, [](Number sum, Number x) { return sum * x; }, AsItIs}},
      {"ReduceMax", {-kInfinity, [](Number sum, Number x) { return std::max(sum, x); }, AsItIs}},
      {"ReduceMin", {kInfinity, [](Number sum, Number x) { return std::min(sum, x); }, AsItIs}},
      {"ReduceL1", {0, [](Number sum, Number x) { return sum + std::fabs(x); }, AsItIs}},
      {"ReduceL2", {0, add_square, [](Number sum, Number) { return std::sqrt(sum); }}},
      {"ReduceSumSquare", {0, add_square, AsItIs}},
      {"ReduceLogSum", {0, add, [](Number sum, Number) { return std::log(sum); }}},
      {"ReduceLogSumExp",
       {0, [](Number sum, Number x) { return sum + std::exp(x); }, [](Number sum, Number) { return std::log(sum); }}},
  };
  return table;
}

bool Reduce(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content* input = node.InputContent(0);
  bool known = true;
  const std::vector<int64_t> axes = Axes(node, 1, known);
  if (input == nullptr || !known) return false;
  const Dims& dims = node.inputs[0]->dims;
  if (axes.empty() && node.attributes.Int("noop_with_empty_axes", 0) != 0) {
    outputs[0].content = *input;
    return true;
  }
  std::vector<bool> gone(dims.size(), axes.empty());
  for (const int64_t axis : axes) gone[Axis(node, axis, dims.size())] = true;
  const Accumulate& how = Accumulates().at(node.type);
  Content content(static_cast<size_t>(CheckedElements(outputs[0].dims, node.where)), how.start);
  std::vector<size_t> count(content.size(), 0);
  ForEachReduced(dims, gone, [&](size_t kept, size_t position, const Place&) {
    content[kept] = how.add(content[kept], (*input)[position]);
    ++count[kept];
  });
  for (size_t k = 0; k < content.size(); ++k)
    content[k] = AsType(how.end(content[k], static_cast<Number>(count[k])), outputs[0].type);
  outputs[0].content = std::move(content);
  return true;
}

template <bool kLargest>
bool ArgReduce(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content* input = node.InputContent(0);
  if (input == nullptr || input->empty()) return false;
  const Dims& dims = node.inputs[0]->dims;
  const size_t axis = Axis(node, node.attributes.Int("axis", 0), dims.size());
  const bool last = node.attributes.Int("select_last_index", 0) != 0;
  std::vector<bool> gone(dims.size(), false);
  gone[axis] = true;
  Content best(static_cast<size_t>(CheckedElements(outputs[0].dims, node.where))), where(best.size());
  ForEachReduced(dims, gone, [&](size_t kept, size_t position, const Place& index) {
    const Number x = (*input)[position];
    const bool better = kLargest ? x > best[kept] : x < best[kept];
    if (index[axis] > 0 && !better && !(last && x == best[kept])) return;
    best[kept] = x;
    where[kept] = static_cast<Number>(index[axis]);
  });
  outputs[0].content = std::move(where);
  return true;
}

template <bool kProduct>
bool Cumulate(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content *input = node.InputContent(0), *axis_content = node.InputContent(1);
  if (input == nullptr || axis_content == nullptr || axis_content->size() != 1) return false;
  const Dims& dims = node.inputs[0]->dims;
  const size_t axis = Axis(node, ToInt(axis_content->front()), dims.size());
  const bool exclusive = node.attributes.Int("exclusive", 0) != 0, reverse = node.attributes.Int("reverse", 0) != 0;
  size_t stride = 1;
  for (size_t k = axis + 1; k < dims.size(); ++k) stride *= static_cast<size_t>(dims[k]);
  Content content(input->size());
  const auto length = static_cast<size_t>(dims[axis]);
  ForEachIndex(dims, [&](size_t position, const Place& index) {
    if (index[axis] != 0) return;
    Number sum = kProduct ? 1 : 0;
    for (size_t k = 0; k < length; ++k) {
      const size_t at = position + (reverse ? length - 1 - k : k) * stride;
      const Number next = kProduct ? sum * (*input)[at] : sum + (*input)[at];
      content[at] = AsType(exclusive ? sum : next, outputs[0].type);
      sum = next;
    }
  });
  outputs[0].content = std::move(content);
  return true;
}

// --- Slices of a Unique: along its axis, or single elements ------------------------------------------------

// Elements behind the axis; one where all elements count alone.
size_t InnerElements(const OnnxNode& node) {
  if (!node.attributes.Has("axis")) return 1;
  const Dims& dims = node.inputs[0]->dims;
  const size_t axis = Axis(node, node.attributes.Int("axis", 0), dims.size());
  return static_cast<size_t>(
      CheckedElements({dims.begin() + static_cast<ptrdiff_t>(axis) + 1, dims.end()}, node.where));
}

std::vector<Content> SlicesOf(const OnnxNode& node) {
  const Content& input = *node.InputContent(0);
  const Dims& dims = node.inputs[0]->dims;
  const size_t inner = InnerElements(node);
  const size_t length = node.attributes.Has("axis")
                            ? static_cast<size_t>(dims[Axis(node, node.attributes.Int("axis", 0), dims.size())])
                            : input.size();
  std::vector<Content> slices(length);
  for (size_t at = 0; at < input.size(); ++at) slices[at / inner % length].push_back(input[at]);
  return slices;
}

// --- What sorts and counts ---------------------------------------------------------------------------------

bool NonZero(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content* input = node.InputContent(0);
  if (input == nullptr) return false;
  const Dims& dims = node.inputs[0]->dims;
  std::vector<Place> found;
  ForEachIndex(dims, [&](size_t position, const Place& index) {
    if ((*input)[position] != 0) found.push_back(index);
  });
  Content content;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    for (const Place& index : found) content.push_back(static_cast<Number>(index[axis]));
  }
  outputs[0].content = std::move(content);
  return true;
}

// Equal elements stay in their order.
bool TopK(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content* input = node.InputContent(0);
  if (input == nullptr) return false;
  const Dims& dims = node.inputs[0]->dims;
  const size_t axis = Axis(node, node.attributes.Int("axis", -1), dims.size());
  const bool largest = node.attributes.Int("largest", 1) != 0;
  size_t stride = 1;
  for (size_t k = axis + 1; k < dims.size(); ++k) stride *= static_cast<size_t>(dims[k]);
  const auto length = static_cast<size_t>(dims[axis]);
  const auto wanted = static_cast<size_t>(std::clamp<int64_t>(outputs[0].dims[axis], 0, dims[axis]));
  Content values(static_cast<size_t>(CheckedElements(outputs[0].dims, node.where))), places(values.size());
  std::vector<size_t> order(length);
  ForEachIndex(dims, [&](size_t position, Place index) {
    if (index[axis] != 0) return;
    std::iota(order.begin(), order.end(), size_t{0});
    const auto at = [&](size_t k) { return (*input)[position + k * stride]; };
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return largest ? at(a) > at(b) : at(a) < at(b); });
    for (size_t k = 0; k < wanted; ++k) {
      index[axis] = static_cast<int64_t>(k);
      const size_t to = PositionAt(index, outputs[0].dims);
      values[to] = at(order[k]);
      places[to] = static_cast<Number>(order[k]);
    }
  });
  outputs[0].content = std::move(values);
  if (outputs.size() > 1) outputs[1].content = std::move(places);
  return true;
}

bool Unique(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const std::optional<DistinctSlices> distinct = FindDistinct(node);
  if (!distinct) return false;
  Content values, firsts, inverse(distinct->which.begin(), distinct->which.end()), counts(distinct->first.size(), 0);
  const std::vector<Content> rows = SlicesOf(node);
  for (const size_t k : distinct->first) firsts.push_back(static_cast<Number>(k));
  for (const size_t k : distinct->which) counts[k] += 1;
  // Element e of slice k stands in front of, or behind, the axis that tells the slices apart.
  const size_t inner = InnerElements(node), outer = rows.empty() || inner == 0 ? 0 : rows.front().size() / inner;
  for (size_t o = 0; o < outer; ++o) {
    for (const size_t k : distinct->first) {
      const auto from = rows[k].begin() + static_cast<ptrdiff_t>(o * inner);
      values.insert(values.end(), from, from + static_cast<ptrdiff_t>(inner));
    }
  }
  Content* const all[] = {&values, &firsts, &inverse, &counts};
  for (size_t k = 0; k < outputs.size() && k < std::size(all); ++k) outputs[k].content = std::move(*all[k]);
  return true;
}

// --- Products ----------------------------------------------------------------------------------------------

bool Contract(const OnnxNode& node, OnnxValue& output, const EinsumEquation& equation) {
  constexpr double kMostProducts = 1e6;
  if (equation.combinations() > kMostProducts) return false;
  Dims all;  // the axes are the labels, in their order
  std::map<int, size_t> axis_of;
  for (const auto& [label, size] : equation.sizes) {
    axis_of[label] = all.size();
    all.push_back(size);
  }
  const auto place = [&](const std::vector<int>& labels, const Dims& dims, const Place& index) {
    size_t position = 0;
    for (size_t k = 0; k < labels.size(); ++k) {
      const int64_t at = dims[k] == 1 ? 0 : index[axis_of.at(labels[k])];
      position = position * static_cast<size_t>(dims[k]) + static_cast<size_t>(at);
    }
    return position;
  };
  Content content(static_cast<size_t>(CheckedElements(output.dims, node.where)), 0);
  std::vector<const Content*> operands;
  for (size_t k = 0; k < equation.operands.size(); ++k) {
    operands.push_back(node.InputContent(k));
    if (operands.back() == nullptr) return false;
  }
  ForEachIndex(all, [&](size_t, const Place& index) {
    Number product = 1;
    for (size_t k = 0; k < operands.size(); ++k)
      product *= (*operands[k])[place(equation.operands[k], node.inputs[k]->dims, index)];
    content[place(equation.output, output.dims, index)] += product;
  });
  for (Number& x : content) x = AsType(x, output.type);
  output.content = std::move(content);
  return true;
}

bool Einsum(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  std::vector<const Dims*> operands;
  for (const OnnxValue* input : node.inputs) operands.push_back(input != nullptr ? &input->dims : nullptr);
  std::string problem;
  const auto equation = ParseEinsum(node.attributes.Text("equation", ""), operands, problem);
  return equation && Contract(node, outputs[0], *equation);
}

bool MatMul(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  if (node.Input(0) == nullptr || node.Input(1) == nullptr) return false;
  const bool row = node.inputs[0]->dims.size() == 1, column = node.inputs[1]->dims.size() == 1;
  const std::string text =
      std::string(row ? "k," : "...ik,") + (column ? "k" : "...kj") + "->..." + (row ? "" : "i") + (column ? "" : "j");
  std::string problem;
  const auto equation = ParseEinsum(text, {&node.inputs[0]->dims, &node.inputs[1]->dims}, problem);
  return equation && Contract(node, outputs[0], *equation);
}

constexpr FoldRuleEntry kReductionFoldRules[] = {
    {"ReduceL1", Reduce},        {"ReduceL2", Reduce},        {"ReduceLogSum", Reduce},    {"ReduceLogSumExp", Reduce},
    {"ReduceMax", Reduce},       {"ReduceMean", Reduce},      {"ReduceMin", Reduce},       {"ReduceProd", Reduce},
    {"ReduceSum", Reduce},       {"ReduceSumSquare", Reduce}, {"ArgMax", ArgReduce<true>}, {"ArgMin", ArgReduce<false>},
    {"CumProd", Cumulate<true>}, {"CumSum", Cumulate<false>}, {"NonZero", NonZero},        {"TopK", TopK},
    {"Unique", Unique},          {"Einsum", Einsum},          {"MatMul", MatMul},
};

}  // namespace

std::optional<DistinctSlices> FindDistinct(const OnnxNode& node) {
  if (node.InputContent(0) == nullptr) return std::nullopt;
  const std::vector<Content> slices = SlicesOf(node);
  std::map<Content, size_t> first;
  for (size_t k = 0; k < slices.size(); ++k) first.emplace(slices[k], k);
  DistinctSlices distinct;
  for (const auto& [slice, k] : first) distinct.first.push_back(k);
  if (node.attributes.Int("sorted", 1) == 0) std::ranges::sort(distinct.first);
  std::vector<size_t> rank(slices.size());
  for (size_t n = 0; n < distinct.first.size(); ++n) rank[distinct.first[n]] = n;
  for (const Content& slice : slices) distinct.which.push_back(rank[first.at(slice)]);
  return distinct;
}

std::span<const FoldRuleEntry> ReductionFoldRules() { return kReductionFoldRules; }

}  // namespace berth
