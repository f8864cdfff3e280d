// Work that is divided among threads.
#pragma once

#include <cstdint>
#include <functional>

namespace berth {

// Calls run(i) for i = 0 .. count - 1 on so many threads, this one among them. All are called whatever some of them
// throw; the first exception, by i, is thrown again.
void InParallel(int64_t count, int64_t threads, const std::function<void(size_t)>& run);

}  // namespace berth
