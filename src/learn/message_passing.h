// Rounds of messages along sparse rows as one operation: narrow layers on small graphs stay in the processor's cache,
// where torch would write each intermediate value to memory, or spend its time on calls.
#pragma once

#include <cstdint>
#include <vector>

#include "learn/libtorch.h"
#include "learn/nets.h"

namespace berth {

// Channels at most. (The published networks have 7 to 13.)
inline constexpr int64_t kMostChannels = 64;

// x_(r+1)[v] = x[v] + g(sum of f(x_r[u]) over the columns u of row v), or x[v] where row v is empty; x_0 = x.
// x is (batch, rows, width), float or double. f and g are two affine layers each, with ReLU after both: `layers` holds
// their weights (width x width, as torch::linear takes them) and biases, f first. The backward pass keeps x alone and
// works the rest out again, so memory does not grow with the rounds. `rows` must outlive it.
// O(batch * rounds * (entries * width + rows * width^2)).
at::Tensor PassMessages(const at::Tensor& x, const std::vector<at::Tensor>& layers, const SparseRows& rows,
                        int64_t rounds);

}  // namespace berth
