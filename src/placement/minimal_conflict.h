// The smallest part of a contradiction.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace berth {

// A minimal subset of 0 .. count - 1 that is `impossible`, given that all of it is and that supersets of what is
// impossible are: O(k log(count / k)) questions for one of k members (Junker 2004, QuickXplain). Nothing when
// `impossible` answers so: the questions became too many.
std::optional<std::vector<size_t>> MinimalConflict(
    size_t count, const std::function<std::optional<bool>(std::span<const size_t>)>& impossible);

}  // namespace berth
