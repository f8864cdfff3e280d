#include "base/hash.h"

#include <fmt/format.h>

namespace berth {

std::string Hasher::Text() const { return fmt::format("{:016x}", state_); }

}  // namespace berth
