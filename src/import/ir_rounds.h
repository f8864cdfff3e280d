// How many rounds a loop of OpenVINO's IR runs, where nothing decides but whole numbers that it counts itself: how
// TensorFlow writes `for` loops and recurrent layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "import/ir_net.h"

namespace berth {

// A Parameter of a loop's body, from round to round.
struct IrCounter {
  std::optional<int64_t> first{};  // in the first round; none where it is no constant
  std::optional<size_t> next{};  // the Result of the body whose value it has in the next round; without, it adds `step`
  int64_t step = 0;
};

// The content of a constant of one whole number, where it can be told.
using ReadInteger = std::function<std::optional<int64_t>(const IrLayer& constant)>;

// Runs those layers of `body` on which its Result `condition` depends, until it is false: the rounds until then, that
// one included. None where they need anything but single integers, or after a hundred thousand rounds. O(layers x
// rounds).
std::optional<int64_t> RoundsUntilFalse(const IrNet& body, size_t condition,
                                        const std::map<size_t, IrCounter>& counters, const ReadInteger& read);

}  // namespace berth
