// Work on the rows of tensors, block by block on several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "learn/libtorch.h"

namespace berth {

// Up to so many rows are worth no second thread for one layer, and are taken as one block.
inline constexpr int64_t kWholeRows = 4096;

// The rows of block `block`, of `size` rows each but the last.
at::Tensor RowsOf(const at::Tensor& x, int64_t block, int64_t size);
inline int64_t NumBlocks(int64_t rows, int64_t size) { return (rows + size - 1) / size; }

// Calls run(part, block) for all blocks: a part's one after another, the parts side by side on so many threads. Which
// blocks a part has does not depend on their number. Gradients are recorded there where they are here.
void EachBlock(int64_t blocks, int64_t threads, const std::function<void(size_t, int64_t)>& run);

// Sums of tensors over blocks: each part's by itself, then in the order of the parts, so that their bytes are the same
// on any number of threads.
class BlockSums {
 public:
  explicit BlockSums(int64_t blocks);

  // Those of one block; undefined where a block adds nothing. To be called by run(part, block) of EachBlock.
  void Add(size_t part, std::span<const at::Tensor> tensors);
  // So many tensors, each undefined where no block added anything.
  std::vector<at::Tensor> Whole(size_t tensors) const;

 private:
  std::vector<std::vector<at::Tensor>> by_part_;
};

}  // namespace berth
