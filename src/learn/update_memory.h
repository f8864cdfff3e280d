// Whether there is memory enough for what training does, before it begins.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/units.h"
#include "learn/method.h"
#include "learn/policy.h"

namespace berth {

struct UpdateConditions {
  int64_t threads = 1, ranks = 1;  // of each rank, and how many share an update
  std::optional<Bytes> left = {};  // that may still be taken; none: nobody knows
};

// About how much memory an update on these tasks holds while it learns, by an estimate (Policy::recalled_numbers): of
// the largest of them, where it learns from plays on several at once.
Bytes UpdateMemory(const Method& method, const Policy& policy, std::span<const Task* const> tasks,
                   const UpdateConditions& conditions);

// Why an update on these tasks would hold more memory than is left, by that estimate: which graph, how much, and
// what takes less. Empty where it would not, where nobody knows, and for what learns nothing.
std::optional<std::string> WhyTooLarge(const Method& method, const Policy& policy, std::span<const Task* const> tasks,
                                       const UpdateConditions& conditions);

}  // namespace berth
