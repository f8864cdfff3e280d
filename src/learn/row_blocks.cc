#include "learn/row_blocks.h"

#include <algorithm>

#include "base/in_parallel.h"
#include "learn/policy.h"

namespace berth {

at::Tensor RowsOf(const at::Tensor& x, int64_t block, int64_t size) {
  return x.slice(0, block * size, std::min((block + 1) * size, x.size(0)));
}

void EachBlock(int64_t blocks, int64_t threads, const std::function<void(size_t, int64_t)>& run) {
  const int64_t parts = std::min(blocks, kMostParts);
  const bool gradients = at::GradMode::is_enabled();
  InParallel(parts, threads, [&](size_t part) {
    UseOneThread();
    const at::AutoGradMode mode(gradients);
    const auto number = static_cast<int64_t>(part);
    for (int64_t b = number * blocks / parts; b < (number + 1) * blocks / parts; ++b) run(part, b);
  });
}

}  // namespace berth
