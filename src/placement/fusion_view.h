// A graph as the rules of fusion look at it (placement/fusion.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace berth {

// What an op is to a kernel.
enum class FusionRole : uint8_t {
  kNone,
  kConv,          // takes a bias, scales, activations and one sum behind it
  kDeconv,        // takes a batch normalisation
  kProduct,       // a matrix product; with constant weights it takes a bias, scales and activations
  kInstanceNorm,  // takes scales and activations
  kActivation,    // of one tensor, such as Relu
  kArithmetic,    // Add, Sub, Mul, Div
  kBatchNorm,     // two of these with constants
  kLayerNorm,     // a kernel of its own, and two of these with constants
  kElementwise,   // others of any number of tensors, such as Exp and Where
};

class FusionView {
 public:
  explicit FusionView(const Graph& graph);

  const Graph& graph() const { return graph_; }
  // By ONNX's names, also of OpenVINO's own; what has another name counts by its class.
  FusionRole role(OpId op) const { return role_[Index(op)]; }
  // ONNX's name.
  std::string_view type(OpId op) const { return type_[graph_.op_type_index(op)]; }
  bool Is(OpId op, std::string_view type_name) const { return type(op) == type_name; }

  // The ops that feed it with what depends on inputs, and those that it feeds, each once, ascending.
  std::span<const OpId> producers(OpId op) const { return producers_[Index(op)]; }
  std::span<const OpId> consumers(OpId op) const { return consumers_[Index(op)]; }
  // Whether a result of the graph is among what it makes.
  bool is_result(OpId op) const { return is_result_[Index(op)] != 0; }
  // The only op that reads what it makes, if there is just one and nobody else needs it.
  std::optional<OpId> OnlyConsumer(OpId op) const;
  bool HasOneConsumer(OpId op) const { return OnlyConsumer(op).has_value(); }
  // Whether all that reads it is in `ops`.
  bool IsReadOnlyBy(OpId op, std::span<const OpId> ops) const;

  // How many tensors it combines that depend on inputs, those of the graph included.
  size_t num_operands(OpId op) const { return producers(op).size() + graph_.graph_inputs_of(op).size(); }
  bool has_constants(OpId op) const { return has_constants_[Index(op)] != 0; }
  // Whether its constants are single numbers, or at most one a channel: of the last axis, or of the second.
  bool ConstantsArePerChannel(OpId op, bool last_axis) const;
  // Made of constants alone: nothing of it runs.
  bool is_constant(OpId op) const;
  std::span<const int64_t> shape(OpId op) const;  // of what it makes first

 private:
  const Graph& graph_;
  std::vector<std::string_view> type_;  // by op type
  std::vector<FusionRole> role_;
  std::vector<std::vector<OpId>> producers_, consumers_;
  std::vector<uint8_t> is_result_, has_constants_;
};

// A constant of more bytes than one number has is an operand of its own.
inline constexpr int64_t kBytesOfOneNumber = 8;

}  // namespace berth
