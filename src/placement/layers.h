// The layers of a network, found in its graph: what repeats over the steps of a recurrent network, blocks one after
// another in any other.
#pragma once

#include <cstdint>
#include <vector>

#include "placement/grouping.h"
#include "placement/problem.h"

namespace berth {

// What a layer is to the network. All but kBlock come from weights that several ops use.
enum class LayerKind : uint8_t {
  kRecurrent,  // its steps follow one another, and it has a fair share of the work: an LSTM's layer
  kHelper,     // its steps follow one another too, with little work of their own: attention
  kBefore,     // its steps are independent, and recurrent layers consume them: an embedding
  kAfter,      // its steps are independent, and consume recurrent layers: the projection to a vocabulary
  kBlock,      // of a network without such weights: ops that stand together
};

struct Layer {
  LayerKind kind = LayerKind::kBlock;
  // Layers of one stack can work at the same time, each a step behind the one before; a stack follows the one before
  // it (an encoder, then its decoder). 0 for all that are not recurrent.
  int32_t stack = 0;
};

// Every op is in a layer. Ops that must share a device are in one. Layers are numbered by their first op of the forward
// pass.
struct Layers {
  std::vector<int32_t> layer_of;  // by op
  std::vector<Layer> layers;
  bool recurrent = false;  // whether any layer is kRecurrent; else all are blocks
};

// Recurrent layers: products that use one weight are steps of one layer (exporters name steps as they like, weights
// they cannot split); all other ops join the layer with which they exchange most bytes, nearest first. Otherwise
// blocks: runs of ops whose names begin alike ("layer3/...", "/encoder/layer.3/..."), or where names do not tell,
// pieces of the order of ops between places where few bytes cross. O(edges log edges + edges x shared weights).
Layers FindLayers(const Problem& problem);

// The ops that must share a device as one, in the order of the forward pass: where a planner may cut. O(size log size).
struct ForwardOrder {
  std::vector<OpId> ops;             // of each such group the first op of the forward pass, ascending
  std::vector<int64_t> crossing;     // by position: bytes of the tensors between the groups before it and the others
  std::vector<int32_t> position_of;  // by op: that of its group
};
ForwardOrder MakeForwardOrder(const Problem& problem);

}  // namespace berth
