#include "base/in_parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace berth {

void InParallel(int64_t count, int64_t threads, const std::function<void(size_t)>& run) {
  std::vector<std::exception_ptr> failed(static_cast<size_t>(count));
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    for (int64_t i = next++; i < count; i = next++) {
      try {
        run(static_cast<size_t>(i));
      } catch (...) {
        failed[static_cast<size_t>(i)] = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> helpers;
  for (int64_t t = 1; t < std::min(threads, count); ++t) helpers.emplace_back(work);
  work();
  helpers.clear();
  for (const std::exception_ptr& error : failed) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace berth
