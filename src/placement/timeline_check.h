// What checkers of timelines have in common.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "placement/evaluator.h"

namespace berth {

// A timeline, what it must follow from, and the faults that a checker found in it: the first twenty.
class TimelineCheck {
 protected:
  // All outlive it.
  TimelineCheck(const Evaluator& evaluator, const PlanView& plan, const Timeline& timeline)
      : problem_(evaluator.problem()),
        graph_(problem_.graph()),
        facts_(evaluator.facts()),
        plan_(plan),
        timeline_(timeline) {}

  template <typename... Args>
  void Fault(fmt::format_string<Args...> format, Args&&... args) {
    constexpr size_t kMost = 20;
    if (faults_.size() < kMost) faults_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  DeviceId device(OpId op) const { return plan_.device[Index(op)]; }

  const Problem& problem_;
  const Graph& graph_;
  const EvaluatorFacts& facts_;
  const PlanView& plan_;
  const Timeline& timeline_;
  std::vector<std::string> faults_{};
};

}  // namespace berth
