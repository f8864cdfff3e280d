// An ONNX model divided into models of their own, which run one after another.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "import/import.h"

namespace berth {

// A model of its own.
struct OnnxPart {
  std::string model;                 // the file's content
  std::vector<std::string> inputs;   // tensors that it takes: the whole model's inputs, or what earlier parts give
  std::vector<std::string> outputs;  // tensors that it gives: the whole model's outputs, or what later parts take
};

// What is fed or got from outside.
struct OnnxPort {
  std::string name;
  std::string type;            // "float32"; empty where it is not known
  std::vector<int64_t> shape;  // empty where it is not known
};

// Nodes are those that compute: numbered topologically, without those whose results nobody uses, and without those that
// depend on constants alone, of which every part that uses one has a copy. A node belongs to the op of the graph that
// makes its tensors. One that the graph folds away, such as arithmetic on shapes, follows its first consumer; one that
// asks for a shape follows what it asks, so that the shape is sent and not the tensor.
class OnnxSplit {
 public:
  // `graph` is what ReadOnnx made of the same content with the same options; the parts have its sizes. Throws Error
  // that names `path`.
  OnnxSplit(std::string_view content, std::string path, const ImportOptions& options, const Graph& graph);
  ~OnnxSplit();

  // By node, ascending.
  const std::vector<std::vector<int32_t>>& predecessors() const;
  // By node.
  const std::vector<OpId>& op() const;
  // Ops that can only be where another one is: all but one of those in a body of control flow.
  size_t ops_within_others() const;

  std::vector<OnnxPort> inputs() const;
  std::vector<OnnxPort> outputs() const;

  // `nodes`: by part, each node in one; the parts can run in this order. `weights` is the name that the file beside the
  // parts will have that CopyWeights() writes. Weights that are within the model are within the parts that use them.
  // Throws Error for a tensor that cannot be handed from part to part, and for weights that are missing.
  std::vector<OnnxPart> Divide(std::span<const std::vector<int32_t>> nodes, const std::string& weights);
  // After Divide(): whether the model keeps weights in files of their own, which CopyWeights() writes, each once; it
  // writes no file where there are none. Throws Error.
  bool has_stored_weights() const;
  void CopyWeights(const std::string& path) const;

 private:
  class Divider;
  std::unique_ptr<Divider> divider_;
};

}  // namespace berth
