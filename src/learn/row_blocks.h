// Work on the rows of tensors, block by block on several threads.
#pragma once

#include <cstdint>
#include <functional>

#include "learn/libtorch.h"

namespace berth {

// Sums over blocks are made of at most so many parts, on any number of threads, so that their bytes are the same.
inline constexpr int64_t kMostParts = 16;

// The rows of block `block`, of `size` rows each but the last.
at::Tensor RowsOf(const at::Tensor& x, int64_t block, int64_t size);

// Calls run(part, block) for all blocks: a part's one after another, the parts, of which there are at most kMostParts,
// side by side on so many threads. Gradients are recorded there where they are here.
void EachBlock(int64_t blocks, int64_t threads, const std::function<void(size_t, int64_t)>& run);

}  // namespace berth
