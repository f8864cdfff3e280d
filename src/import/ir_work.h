// What the layers of a net in OpenVINO's terms (ir_net.h) compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "import/ir_net.h"

namespace berth {

// The layer's type in ONNX's terms, for the table of op types; empty when there is none. Bit i of `describing`: input i
// says how, it is not data.
struct IrOpName {
  std::string_view ir;
  std::string_view onnx;
  uint32_t describing = 0;
};
const IrOpName* FindIrOp(std::string_view ir_type);

struct IrWeight {
  int64_t bytes;
  std::string name;
};

// Of one net, its layers by number. Both arguments must outlive it.
class IrWork {
 public:
  // Throws Error naming `path` for a tensor that is too large to be one.
  IrWork(const IrNet& net, const std::string& path);

  int64_t BytesOf(const IrPort& port) const;
  // Whether a layer is a constant, or all its inputs are. A weight is stored as the constants that it is made of, so
  // compressed ones count compressed.
  bool is_constant(size_t layer) const { return constant_[layer]; }
  int64_t stored_bytes(size_t layer) const { return stored_bytes_[layer]; }
  // Whether what comes in at `input` is a weight. A constant that says how (a shape, axes) is part of the layer.
  bool ReadsWeight(size_t layer, size_t input) const;
  // The weights in the layer's bodies, and in the bodies of the layers there.
  std::vector<IrWeight> BodyWeights(size_t layer) const;
  // Of a layer that has a body, what the body does: of a loop in all its rounds, of branches the larger one. Adds types
  // without a formula to `unknown`, each once.
  OpWork Of(size_t layer, std::vector<std::string>& unknown) const;

 private:
  const IrPort& PortOf(const IrLayer::Source& source) const { return net_.layers[source.layer].outputs[source.output]; }
  void FindConstants();
  bool Describes(size_t layer, size_t input) const;
  std::vector<Dims> InputDims(const IrLayer& layer) const;
  void CountLayer(const IrLayer& layer, const OpRule& rule, OpWork& work) const;
  OpWork OfFormula(size_t layer, std::vector<std::string>& unknown) const;
  OpWork OfBodies(size_t layer, std::vector<std::string>& unknown) const;
  OpWork OfAll(std::vector<std::string>& unknown) const;

  const IrNet& net_;
  const std::string& path_;
  std::vector<bool> constant_;
  std::vector<int64_t> stored_bytes_;             // of a constant layer
  std::map<size_t, std::vector<IrWork>> bodies_;  // by layer
};

}  // namespace berth
