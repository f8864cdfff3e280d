// Which devices some variables may take when pairs of them exclude one another: the one place that decides whether
// placement constraints can be kept. docs/constraints.md says what the constraints are.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/units.h"

namespace berth {

// Variables are units of ops that share a device. Deciding is NP-complete in general (it is graph colouring), yet
// immediate for what people write: chains of forced choices are followed, independent parts are decided apart, and more
// variables that must all differ than there are devices are seen as such.
class RuleNetwork {
 public:
  // At first every variable may take every device.
  RuleNetwork(size_t variables, size_t devices);

  void Forbid(size_t variable, DeviceId device) { allowed_[variable * devices_ + Index(device)] = 0; }
  // Never the same device.
  void Separate(size_t a, size_t b);
  // Never `a` on `on` while `b` is on `there`.
  void ForbidPair(size_t a, DeviceId on, size_t b, DeviceId there);
  // Follows from all rules; between the rules and the questions below.
  void Prepare();

  size_t size() const { return rules_.size(); }
  bool allowed(size_t variable, DeviceId device) const { return allowed_[variable * devices_ + Index(device)] != 0; }

  // A rule as one of its two variables sees it.
  struct Rule {
    size_t other;
    // On `mine` it forbids the other one `theirs`; both are kAny where they must differ, whatever they are.
    DeviceId mine, theirs;
    auto operator<=>(const Rule&) const = default;
  };
  static constexpr DeviceId kAny{-1};
  std::span<const Rule> rules(size_t variable) const { return rules_[variable]; }

  // Whether `variable` may take `device` when each other one is on place(other); nowhere is DeviceId{-2}.
  static constexpr DeviceId kNowhere{-2};
  template <typename Place>
  bool Fits(size_t variable, DeviceId device, const Place& place) const {
    if (!allowed(variable, device)) return false;
    for (const Rule& rule : rules_[variable]) {
      if (rule.mine == kAny ? place(rule.other) == device : rule.mine == device && place(rule.other) == rule.theirs)
        return false;
    }
    return true;
  }

  enum class Answer : uint8_t { kYes, kNo, kUnknown };
  // Finds a device for every variable that keeps all rules. Each takes, of those that are left when its turn comes, the
  // one that costs least (of equals the first). Unknown when the search was given up: only for hard colourings of many
  // variables. `device` is written on kYes only.
  Answer Solve(std::span<DeviceId> device, const std::function<double(size_t, DeviceId)>& cost) const;

 private:
  class Solver;

  size_t devices_;
  std::vector<uint8_t> allowed_;            // variables x devices
  std::vector<std::vector<Rule>> rules_;    // by variable
  std::vector<std::vector<size_t>> parts_;  // variables that rules join, each ascending; those without rules alone
};

}  // namespace berth
