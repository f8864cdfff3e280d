// Ends a search before it takes more memory than it may.
#pragma once

#include <optional>
#include <string>
#include <thread>

#include "base/units.h"

namespace berth {

// What this process holds in memory; 0 where the system does not say.
Bytes MemoryHeld();

// While it lives, and where there is a limit, looks a hundred times a second at what this process holds, and once that
// is above the limit sets the flag of CatchInterrupts: every search then ends with the best plan that it has.
class MemoryWatch {
 public:
  explicit MemoryWatch(std::optional<Bytes> limit);

  // What was held when the limit was reached; none where it was not. Once it is asked for, the watch is over.
  std::optional<Bytes> Reached();
  // A sentence about that; empty where the limit was not reached.
  std::string Sentence();

 private:
  std::optional<Bytes> limit_;
  Bytes reached_{0};
  std::jthread thread_;
};

}  // namespace berth
