// How long a thread takes, and how long of that another had its core.
#pragma once

#include <time.h>

#include <algorithm>

namespace berth {

// Of the calling thread, since it was made; the thread computes or spins all the while.
class ThreadClock {
 public:
  double seconds() const { return Now(CLOCK_MONOTONIC) - wall_; }
  double stolen() const { return std::max(0.0, seconds() - own_seconds()); }
  // In which the thread had its core.
  double own_seconds() const { return Now(CLOCK_THREAD_CPUTIME_ID) - own_; }

  static double Now(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

 private:
  double own_ = Now(CLOCK_THREAD_CPUTIME_ID);
  double wall_ = Now(CLOCK_MONOTONIC);
};

}  // namespace berth
