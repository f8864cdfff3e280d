// The equation of an Einsum, which shapes, costs and constants ask (ONNX operator specification, Einsum).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

// "bij,bjk->bik". Axes that an ellipsis stands for have labels of their own, from kEllipsis on, aligned at the back.
struct EinsumEquation {
  static constexpr int kEllipsis = 256;
  std::vector<std::vector<int>> operands{};  // a label per axis
  std::vector<int> output{};
  std::map<int, int64_t> sizes{};  // by label; 1 gives way to others

  // The products of the sizes of all labels.
  double combinations() const;
  // Whether some label is added up.
  bool sums() const;
};

// Of operands with these dimensions (null: not given). None, with the reason in `problem`, when equation and operands
// do not go together.
std::optional<EinsumEquation> ParseEinsum(std::string_view equation,
                                          const std::vector<const std::vector<int64_t>*>& operands,
                                          std::string& problem);

}  // namespace berth
