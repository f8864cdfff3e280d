// How what takes long is told to end.
#pragma once

#include <functional>

namespace berth {

// True when it should end: the time is over, or a person interrupted it. Asked often, perhaps from several threads; an
// empty one never says so.
using StopCheck = std::function<bool()>;

}  // namespace berth
