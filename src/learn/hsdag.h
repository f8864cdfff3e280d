// HSDAG (Duan et al. 2024): a policy that groups a graph by learned scores of its edges and places the groups.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>

#include "learn/critic.h"
#include "learn/hsdag_features.h"
#include "learn/hsdag_network.h"
#include "learn/policy.h"

namespace berth {

struct HsdagOptions {
  HsdagShape shape{};  // features and devices are the problem's
  FeatureBlocks features{};
  std::string colocation = "paper";  // none, paper, code (section 2.1)
  int64_t steps = 20;                // placements per episode: the buffer x of equation 14
  bool state_update = true;          // a step adds each group's embedding to its nodes' features (section 2.6)
  // Ours: such a share of an episode's placements is drawn near the best one so far, by moves that the critic's judge
  // has chosen, to which the policy's odds are one of a move's features. They teach the critic alone.
  double near = 0;
  // Ours: each worker plays once freely and once held to each device, with a feature column per device that says so.
  bool held = false;
};

// What differs between the paper and the released code is an option; hsdag_planner.cc gathers them into modes.
class HsdagPolicy : public Policy {
 public:
  HsdagPolicy(const Problem& problem, const HsdagOptions& options, Random random);

  std::unique_ptr<Task> Prepare(const Problem& problem) const override;
  int64_t evaluations(const Task&) const override { return options_.steps; }
  int64_t evaluations_in(const Task&, int64_t way) const override { return steps() + (way == 0 ? near() : 0); }
  int64_t ways() const override { return options_.held ? 1 + options_.shape.devices : 1; }
  std::vector<std::unique_ptr<Episode>> Play(const Task& task, Search& search, std::span<Random> randoms,
                                             const PlayOptions& options) const override;
  std::vector<std::unique_ptr<Likelihood>> Recall(std::span<const Played> episodes, int64_t) const override;
  double recalled_numbers(const Task& task, int64_t episodes) const override;
  std::unique_ptr<Episode> NewEpisode() const override;
  std::string shape() const override;

 private:
  // Of an episode, and those beside them, which the free one of an update has for all of them.
  int64_t steps() const { return options_.steps - near() / ways(); }
  int64_t near() const {
    return ways() *
           std::min<int64_t>(std::llround(options_.near * static_cast<double>(options_.steps)), options_.steps - 1);
  }
  // Without a state and without dropout all steps of an episode see the same distribution.
  bool stationary() const { return !options_.state_update && options_.shape.dropout == 0; }

  HsdagOptions options_;
  std::vector<std::string> columns_;
  std::vector<std::string> devices_;
  std::shared_ptr<HsdagNetwork> network_;
};

// A LinearCritic of the nodes of a task that an HsdagPolicy has prepared. `costs`: it begins with the problem's costs.
// Episodes that are held to a device are rewarded for each decision on it by `hold`, a share of the reference cost that
// cools to a thousandth as a constant factor: they come from the device alone and leave it only where that pays, where
// free ones come from chance and may be caught where many ops would have to move together.
std::unique_ptr<Critic> MakeHsdagCritic(const Task& task, bool costs, double hold);

}  // namespace berth
