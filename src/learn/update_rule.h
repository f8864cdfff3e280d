// From the costs of an episode to the weight of each of its steps, and from these to a loss.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "learn/libtorch.h"
#include "learn/policy.h"

namespace berth {

// What a cost is worth. A cost that failed is worth what `failed` says.
enum class Reward : uint8_t {
  kInverse,     // 1 / seconds (HSDAG, section 3.1)
  kNegative,    // -seconds (Placeto)
  kSquareRoot,  // -sqrt(seconds) (Mirhoseini et al. 2017, section 3.1)
  // -sqrt(cost / reference), at least -10, which is what a placement that fails is worth: GDP's, as an independent
  // reproduction has it, the same for graphs of any size.
  kRelativeRoot,
  kSlower,  // sqrt(seconds): what is slower becomes likelier, as HSDAG's released recurrent baseline has it
  kLog,     // -ln(cost / reference): the same for graphs of any size
};

// What a step's decisions are credited with.
enum class Credit : uint8_t {
  kOwn,       // gamma^i r_i, i = 1 for an episode's first step (HSDAG, equation 14)
  kBuffer,    // the sum of gamma^(steps - 1 - i) r_i, the same for all steps (HSDAG's released code)
  kToGo,      // the intermediate rewards r_i - r_(i-1) to go, discounted; r_last - r_before where gamma is 1 (Placeto,
              // section 3)
  kTerminal,  // r_last for all steps: the reward at the end only
  kBestFuture,   // the best of r_i.. minus r_before (Placeto's released code: best future point)
  kIncremental,  // r_i - r_(i-1), and nothing of what comes later
};

enum class Baseline : uint8_t {
  kNone,
  kBatch,   // the mean over the update's episodes and steps of one task
  kMoving,  // an exponential mean over updates, 0.9 old and 0.1 new, per task
  // Per task and step, the mean of the last `window` episodes, this one among them (Placeto, section 3); of all of an
  // update where it has more.
  kWindow,
  // The best of the update's episodes and steps of one task, a quarter of them, by how much they are better than the
  // next one, or, where they are no better, than the best one that is worse; all others weigh nothing (Petersen et al.
  // 2021, section 3.3, risk-seeking policy gradient, epsilon 0.25): for who wants the best placement and not the best
  // mean.
  kElite,
};

struct RuleOptions {
  Reward reward = Reward::kLog;
  Credit credit = Credit::kOwn;
  Baseline baseline = Baseline::kBatch;
  int64_t window = 10;
  double gamma = 1;
  bool normalise = false;  // divide by the standard deviation over the update's steps of one task
  double clip_ratio = 0;   // PPO's epsilon (Schulman et al. 2017, equation 7), with a ratio per decision; 0: REINFORCE
  int64_t epochs = 1;      // gradient steps per update on the same episodes
  // Seconds that a failed placement is taken to last under kInverse (HSDAG's released code). Otherwise it is worth ten
  // times the worst cost of its update: a reward of another magnitude would be all that Adam hears of for long.
  double failed_cost = 1e10;
  // Seconds that it is taken to last under the other rewards (kRelativeRoot has a floor instead), as in the code of
  // Mirhoseini et al. 2018; 0: as above. `first_baseline`, where it is a number, is what kMoving begins with instead of
  // the first mean; and after so many updates (0: never) episodes with a failure weigh nothing and count for no
  // baseline.
  double failed_seconds = 0;
  double first_baseline = std::numeric_limits<double>::quiet_NaN();
  int64_t failures_until = 0;
};

// Holds the baselines. Episodes are given in a fixed order, so that results repeat.
class UpdateRule {
 public:
  explicit UpdateRule(RuleOptions options) : options_(options) {}
  const RuleOptions& options() const { return options_; }

  // A weight per step for each episode of one task, in order; `reference` is the task's own cost for kLog and
  // kRelativeRoot, in time units; `update` counts the updates before this one. A step without a cost has a weight where
  // the credit is that of later steps alone (kTerminal), else NaN; an episode without a start counts its reward as 0.
  std::vector<std::vector<double>> Weigh(int64_t task, std::span<const Episode* const> episodes, double reference,
                                         double seconds_per_unit, int64_t update = 0);

  // Minimise it: -sum of weight * log-probability (or PPO's clipped surrogate) - entropy_weight * sum of entropies.
  at::Tensor Loss(const Likelihood& now, const Episode& episode, std::span<const double> weight,
                  double entropy_weight) const;

  // What rewards that divide by a cost, or take its logarithm, count for a smaller one: a graph of views takes no time
  // on one device, and some on two. NaN where `reference` is.
  static double LeastCost(double reference) { return 1e-9 * reference; }

  // All baselines as JSON, and back; for checkpoints, which `path` names. Load throws Error for what Save has not
  // written.
  std::string Save() const;
  void Load(const std::string& text, const std::string& path);

 private:
  std::vector<double> Rewards(const Episode& episode, double worst, double reference, double seconds_per_unit) const;
  std::vector<double> Credits(const Episode& episode, std::span<const double> reward, double start) const;

  RuleOptions options_;
  std::map<int64_t, double> moving_;                           // by task
  std::map<int64_t, std::vector<std::deque<double>>> window_;  // by task, by step
};

}  // namespace berth
