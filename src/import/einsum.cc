#include "import/einsum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace berth {
namespace {

// One term's labels, with the axes of its ellipsis; none when it is no term.
std::optional<std::vector<int>> Labels(std::string_view term, size_t ellipsis_axes) {
  std::vector<int> labels;
  bool has_ellipsis = false;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (c == ' ') continue;
    if (term.substr(i, 3) == "...") {
      if (has_ellipsis) return std::nullopt;
      has_ellipsis = true;
      for (size_t k = ellipsis_axes; k > 0; --k) labels.push_back(EinsumEquation::kEllipsis + static_cast<int>(k));
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      labels.push_back(c);
    } else {
      return std::nullopt;
    }
  }
  return labels;
}

size_t CountLetters(std::string_view term) {
  return static_cast<size_t>(std::ranges::count_if(term, [](unsigned char c) { return std::isalpha(c) != 0; }));
}

std::vector<std::string_view> Terms(std::string_view list) {
  std::vector<std::string_view> terms;
  for (;;) {
    const size_t comma = list.find(',');
    terms.push_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return terms;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

double EinsumEquation::combinations() const {
  double product = 1;
  for (const auto& [label, size] : sizes) product *= static_cast<double>(size);
  return product;
}

bool EinsumEquation::sums() const {
  return std::ranges::any_of(sizes, [&](const auto& entry) { return std::ranges::count(output, entry.first) == 0; });
}

std::optional<EinsumEquation> ParseEinsum(std::string_view equation,
                                          const std::vector<const std::vector<int64_t>*>& operands,
                                          std::string& problem) {
  const auto fail = [&](std::string what) {
    problem = std::move(what);
    return std::nullopt;
  };
  const size_t arrow = equation.find("->");
  const std::vector<std::string_view> terms = Terms(equation.substr(0, arrow));
  if (terms.size() != operands.size()) return fail(fmt::format("'{}' is not for {} inputs", equation, operands.size()));
  EinsumEquation result;
  size_t most_ellipsis = 0;
  for (size_t k = 0; k < terms.size(); ++k) {
    if (operands[k] == nullptr) return fail(fmt::format("its input {} is missing", k));
    const std::vector<int64_t>& dims = *operands[k];
    const size_t letters = CountLetters(terms[k]);
    const bool has_ellipsis = terms[k].find("...") != std::string_view::npos;
    const size_t ellipsis = has_ellipsis && dims.size() > letters ? dims.size() - letters : 0;
    most_ellipsis = std::max(most_ellipsis, ellipsis);
    std::optional<std::vector<int>> labels = Labels(terms[k], ellipsis);
    if (!labels || labels->size() != dims.size()) {
      return fail(fmt::format("'{}' is not for an input with {} dimensions", terms[k], dims.size()));
    }
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      int64_t& size = result.sizes.emplace((*labels)[axis], 1).first->second;
      if (size != 1 && dims[axis] != 1 && size != dims[axis]) {
        return fail(fmt::format("sizes {} and {} of one label of '{}' do not go together", size, dims[axis], equation));
      }
      if (dims[axis] != 1) size = dims[axis];
    }
    result.operands.push_back(std::move(*labels));
  }
  if (arrow != std::string_view::npos) {
    std::optional<std::vector<int>> labels = Labels(equation.substr(arrow + 2), most_ellipsis);
    if (!labels) return fail(fmt::format("'{}' is no equation", equation));
    result.output = std::move(*labels);
    for (const int label : result.output) {
      if (!result.sizes.contains(label)) return fail(fmt::format("'{}' makes up a label in its result", equation));
    }
    return result;
  }
  // Without an arrow: the ellipsis, then the labels that occur once, in the alphabet's order.
  for (size_t k = most_ellipsis; k > 0; --k) result.output.push_back(EinsumEquation::kEllipsis + static_cast<int>(k));
  for (const auto& [label, size] : result.sizes) {
    size_t times = 0;
    for (const std::vector<int>& labels : result.operands) {
      times += static_cast<size_t>(std::ranges::count(labels, label));
    }
    if (label < EinsumEquation::kEllipsis && times == 1) result.output.push_back(label);
  }
  return result;
}

}  // namespace berth
