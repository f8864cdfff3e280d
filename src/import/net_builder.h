// Networks written as programs: values with shapes, ops from the table of op types.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "import/op_table.h"

namespace berth {

// Of a graph that a formula makes.
inline constexpr size_t kMostFormulaOps = 4'000'000;

// Builds a Graph of 32-bit floating-point ops whose work comes from FindOpRule. Op types are ONNX's; a type that is not
// in the table is a mistake of the caller.
class NetBuilder {
 public:
  // What flows: a tensor, an input or a weight, with its shape.
  struct Value {
    enum class Kind : uint8_t { kTensor, kInput, kParameter };
    Kind kind;
    size_t position;  // in the GraphBuilder
    Dims dims;
    int64_t Dim(int axis) const {
      return dims[axis < 0 ? dims.size() - static_cast<size_t>(-axis) : static_cast<size_t>(axis)];
    }
  };

  explicit NetBuilder(std::string name) : builder_(std::move(name)) {}

  // What is made from here on is named "<scope>/...", until the Scope ends; scopes nest.
  class Scope {
   public:
    Scope(NetBuilder& net, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    NetBuilder& net_;
    size_t length_;
  };

  Value Input(std::string name, Dims dims);
  Value Weight(std::string_view name, Dims dims);

  // One op with one result; `name` defaults to the type.
  Value Op(std::string_view type, const std::vector<Value>& inputs, Dims result, const Attributes& attributes = {},
           std::string_view name = {});
  // One op with several results.
  std::vector<Value> Ops(std::string_view type, const std::vector<Value>& inputs, const std::vector<Dims>& results);

  // Shorthands. Element-wise ops broadcast as NumPy does.
  Value Unary(std::string_view type, const Value& x) { return Op(type, {x}, x.dims); }
  Value Binary(std::string_view type, const Value& a, const Value& b);
  // a x b over the last two axes, leading axes broadcast.
  Value MatMul(const Value& a, const Value& b);
  Value Transpose(const Value& x, const std::vector<size_t>& order);
  Value Concat(const std::vector<Value>& parts, int axis);
  Value Reshape(const Value& x, Dims dims) { return Op("Reshape", {x}, std::move(dims)); }
  // Two-dimensional x: one Gemm, with bias. More axes: MatMul and Add, as exporters write it.
  Value Linear(const Value& x, int64_t features, std::string_view name, bool bias = true);
  // Weights made once, for layers that share them over steps.
  struct LinearWeights {
    Value weight, bias;
  };
  LinearWeights MakeLinear(int64_t inputs, int64_t features, std::string_view name);
  Value Gemm(const Value& x, const LinearWeights& weights);
  // Rows of a table, by indices of the given shape.
  Value Embed(const Value& table, const Value& indices);

  void Output(const Value& tensor);
  Graph Build() { return builder_.Build(); }

 private:
  std::string Named(std::string_view name);
  std::vector<Value> Add(std::string_view type, const std::vector<Value>& inputs, const std::vector<Dims>& results,
                         const Attributes& attributes, std::string_view name);

  GraphBuilder builder_;
  std::string scope_;
};

}  // namespace berth
