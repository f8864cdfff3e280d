// The nodes of an ONNX model's main graph, for who divides it among devices.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace berth {

struct OnnxNodes {
  // `graph` is what ReadOnnx made of the model.
  OnnxNodes(const onnx::GraphProto& model, const Graph& graph);

  // By position in the file.
  std::vector<std::vector<std::string>> reads;    // names, those that the bodies of control flow capture too
  std::vector<bool> constant;                     // depends on nothing but constants
  std::unordered_map<std::string, size_t> maker;  // the node's position, by tensor
  std::vector<size_t> order;                      // positions of those that an output needs, topologically

  // By number: those of `order` that are not constant, in that order.
  std::vector<size_t> position;
  std::vector<std::vector<int32_t>> predecessors;  // ascending
  std::vector<OpId> op;                            // to which it belongs
  size_t ops_within_others = 0;                    // ops that are in the body of a node that belongs to another op

 private:
  void Order(const onnx::GraphProto& model);
  void FindConstants(const onnx::GraphProto& model);
  void Number();
  void FindOps(const onnx::GraphProto& model, const Graph& graph);
};

}  // namespace berth
