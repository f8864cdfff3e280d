// One layer of a network that treats each row by itself, for graphs of many nodes: on several threads, and without the
// copies that a layer made of torch's own functions keeps.
#pragma once

#include <cstdint>
#include <vector>

#include "learn/libtorch.h"
#include "learn/row_blocks.h"

namespace berth {

enum class Activation { kNone, kSigmoid, kRelu };

// activation(weight [x_1, x_2, ...] + bias) of each row: the x are rows x width_i, weight is outputs x (sum of the
// widths). Up to kWholeRows rows the bytes are those of torch's functions; from there on rows are taken in blocks, and
// gradients of weight and bias are sums over these. The same bytes on any number of threads. For the backward pass the
// x and the result are kept. O(rows outputs (sum of the widths)).
at::Tensor RowLayer(const std::vector<at::Tensor>& x, const at::Tensor& weight, const at::Tensor& bias,
                    Activation activation, int64_t threads);

}  // namespace berth
