// From a forward graph, the graph of one training step.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace berth {

enum class Optimizer : uint8_t { kSgd, kMomentum, kAdam };
inline constexpr std::array<std::string_view, 3> kOptimizerNames = {"sgd", "momentum", "adam"};

struct TrainingGraph {
  Graph graph;
  // Ops that runtimes keep together: each forward op with its gradient (TensorFlow's colocate_gradients_with_ops;
  // PyTorch's autograd runs a backward on its forward's device), sums of gradients with what they flow into, an update
  // with the first op that uses the parameter.
  std::vector<std::vector<OpId>> colocate;
};

// Ops that are added, all marked backward:
//  loss          from the graph's outputs, the seeds of the gradients
//  grad/<op>     one per differentiable op on a path from a weight to the loss. It consumes the gradients of the op's
//                outputs and the activations that its derivative needs (which therefore stay in memory until it has
//                run), uses the op's parameters where its derivative does (a sum's or a look-up's does not), and
//                produces a gradient per weight and per input tensor that a weight is behind. Weights are parameters of
//                more than 8 bytes; in a graph that has none every op is taken to have some.
//  sum/<tensor>  adds the gradients of a tensor or parameter that several ops use (TensorFlow's AddN)
//  update/<weight>  applies the gradient; the optimiser's state (momentum: one, adam: two values per weight) is a
//                parameter of it.
//
// Factors of work. A matrix product or convolution has two products of the forward's size in its backward, one for the
// input and one for the weight (Kaplan et al. 2020, section 2.1: the backward costs about twice the forward), and one
// where only one of these is wanted. Normalisations count twice the forward (the input's gradient needs two
// reductions), all others once. A backward moves what it consumes and produces.
TrainingGraph MakeTrainingGraph(const Graph& forward, Optimizer optimizer);

}  // namespace berth
