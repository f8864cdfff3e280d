#include "cli/memory_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "cli/console.h"

namespace berth {

Bytes MemoryHeld() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  if (!(file >> all >> resident)) return Bytes{0};
  return Bytes{resident * ::sysconf(_SC_PAGESIZE)};
}

MemoryWatch::MemoryWatch(std::optional<Bytes> limit) : limit_(limit) {
  if (!limit_) return;
  thread_ = std::jthread([this](const std::stop_token& over) {
    for (; !over.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(10))) {
      const Bytes held = MemoryHeld();
      if (held.value <= limit_->value) continue;
      reached_ = held;
      InterruptSearches();
      return;
    }
  });
}

std::optional<Bytes> MemoryWatch::Reached() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  return reached_.value > 0 ? std::optional(reached_) : std::nullopt;
}

std::string MemoryWatch::Sentence() {
  const std::optional<Bytes> reached = Reached();
  if (!reached) return {};
  return fmt::format(
      "The search ended at --memory-limit {}: Berth held {}. What reading the model and the search's first plan need "
      "counts too.",
      ToString(*limit_), ToString(*reached));
}

}  // namespace berth
