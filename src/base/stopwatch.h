// How long something takes.
#pragma once

#include <chrono>

namespace berth {

class Stopwatch {
 public:
  // Since it was made.
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  // Since it was made or this was last asked.
  double Lap() {
    const double before = last_;
    last_ = seconds();
    return last_ - before;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double last_ = 0;
};

}  // namespace berth
