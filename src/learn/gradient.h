// Weighed episodes become a gradient, and a gradient a step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/stop_check.h"
#include "learn/libtorch.h"
#include "learn/player.h"
#include "learn/policy.h"

namespace berth {

// The loss of one episode of a play.
using EpisodeLoss = std::function<at::Tensor(const Play& play, size_t episode, const Likelihood& likelihood)>;

struct Gradient {
  std::vector<at::Tensor> by_parameter{};  // in the policy's order; zero of what does not learn (Policy::learns)
  double loss = 0;                         // the sum over all episodes
  double entropy = 0;                      // per decision, in nats: the mean over plays of the mean over episodes
  double norm = 0;                         // over all parameters

  bool finite() const;
};

// How many plays with so many episodes each a thread recalls together: several where the policy recalls more episodes
// at once than one has.
int64_t PlaysTogether(const Policy& policy, int64_t episodes);

// The gradient of the loss over the first `episodes` weighed ones of each play. Sums run in the order of plays and
// episodes, on any number of threads and ranks; each rank has the whole. Empty when `stop` said so on one of them.
std::optional<Gradient> GradientOf(const Policy& policy, const std::vector<LearnCase>& cases,
                                   std::span<const Play> plays, size_t episodes, const EpisodeLoss& loss,
                                   int64_t threads, Ranks& ranks, const StopCheck& stop);

// One step of Adam down the gradient, which is shortened to `clip_norm` where that is positive.
void Follow(const Gradient& gradient, const Policy& policy, torch::optim::Adam& adam, double learning_rate,
            double clip_norm);

}  // namespace berth
