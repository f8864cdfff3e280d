#include "learn/row_blocks.h"

#include <algorithm>

#include "base/in_parallel.h"
#include "learn/policy.h"

namespace berth {
namespace {

int64_t NumParts(int64_t blocks) {
  constexpr int64_t kMost = 16;
  return std::min(blocks, kMost);
}

}  // namespace

at::Tensor RowsOf(const at::Tensor& x, int64_t block, int64_t size) {
  return x.slice(0, block * size, std::min((block + 1) * size, x.size(0)));
}

void EachBlock(int64_t blocks, int64_t threads, const std::function<void(size_t, int64_t)>& run) {
  const int64_t parts = NumParts(blocks);
  const bool gradients = at::GradMode::is_enabled();
  InParallel(parts, threads, [&](size_t part) {
    UseOneThread();
    const at::AutoGradMode mode(gradients);
    const auto number = static_cast<int64_t>(part);
    for (int64_t b = number * blocks / parts; b < (number + 1) * blocks / parts; ++b) run(part, b);
  });
}

BlockSums::BlockSums(int64_t blocks) : by_part_(static_cast<size_t>(NumParts(blocks))) {}

void BlockSums::Add(size_t part, std::span<const at::Tensor> tensors) {
  const torch::NoGradGuard no_gradient;
  std::vector<at::Tensor>& sums = by_part_[part];
  sums.resize(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) continue;
    if (sums[i].defined()) {
      sums[i].add_(tensors[i]);
    } else {
      sums[i] = tensors[i].clone();
    }
  }
}

std::vector<at::Tensor> BlockSums::Whole(size_t tensors) const {
  std::vector<at::Tensor> whole(tensors);
  for (const std::vector<at::Tensor>& sums : by_part_) {
    for (size_t i = 0; i < sums.size(); ++i) {
      if (sums[i].defined()) whole[i] = whole[i].defined() ? whole[i] + sums[i] : sums[i];
    }
  }
  return whole;
}

}  // namespace berth
