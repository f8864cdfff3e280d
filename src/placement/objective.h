// What planners minimise: the time, or a sum of time and energy. What each means to a user: docs/objectives.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/catalog.h"

namespace berth {

class Evaluator;

// Score::value in terms of a run: per_second times its seconds plus per_joule times its joules.
struct Objective {
  enum class Unit : uint8_t { kSeconds, kJoules, kShare };  // kShare: 1 is as good as the best single device

  std::string name = "latency";  // canonical; an evaluator of steady states has "throughput" of its own
  Unit unit = Unit::kSeconds;
  double per_second = 1;
  double per_joule = 0;
  int64_t set_up = 0;  // scores that it took to find what a weighted one is relative to

  // The value is the score's time then, in the Problem's time unit: Score::objective stays empty.
  bool is_time() const { return unit == Unit::kSeconds; }
};

// The value of a run as a sum over what takes time, per time unit: what a device costs for as long as it computes, and
// what the whole run costs for as long as it takes. Of the time as objective: nothing, and 1.
struct ObjectiveRates {
  std::vector<double> computing;  // by device, at least 0: for joules, what it takes more than when it idles
  double whole = 1;
};
ObjectiveRates RatesOf(const Evaluator& evaluator);

// An objective as it was asked for, before it is known of which problem: weights of what is to be small.
struct ObjectiveRequest {
  std::string name;  // canonical
  double latency = 0, throughput = 0, energy = 0;
  bool weighted = false;
};

using ObjectiveCatalog = Catalog<ObjectiveRequest()>;
void RegisterObjectives(ObjectiveCatalog& catalog);

// The evaluator with this objective: the same scores and timelines, with Score::objective set unless it is the time.
// The time of an evaluator is a latency or, of one of steady states, the inverse of a throughput: asking for the other
// is an Error, and so is energy on devices whose watts are not known.
std::unique_ptr<const Evaluator> WithObjective(std::unique_ptr<const Evaluator> evaluator,
                                               const ObjectiveRequest& request);

}  // namespace berth
