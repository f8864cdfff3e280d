// What learned placers are made of: a Policy that plays episodes on a Problem and can say how likely it was to do so.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "learn/libtorch.h"
#include "learn/parcel.h"
#include "placement/problem.h"
#include "placement/search.h"
#include "placement/units.h"

namespace berth {

// A sequence of steps; each step makes decisions (a group's device, an op's device) and ends with a complete placement.
// Policies derive their own, with what Recall and the method's critic need.
struct Episode {
  virtual ~Episode() = default;
  // The cost of the placement that it began with, in time units; NaN where there was none, or nobody asked.
  double start_cost = std::numeric_limits<double>::quiet_NaN();
  // Per step, in time units: of the placement after it. NaN where no score was asked for, infinity where it failed.
  std::vector<double> cost{};
  std::vector<int32_t> step_of{};  // per decision, ascending
  std::vector<float> log_prob{};   // per decision, when it was made
  // In time units: of placements that were scored beside the steps, which no rule weighs. NaN as above.
  std::vector<double> beside{};
  // The first decisions, the device of each node; empty where a policy decides, or remembers, anything else.
  std::vector<int64_t> device{};
  // The decisions after these: of each node of `device`, in the same order, its level of priority, from 0 on; larger
  // runs first. Empty where the policy leaves the order to the evaluator.
  std::vector<int64_t> priority{};

  double decisions_per_step() const {
    return cost.empty() ? 0 : static_cast<double>(step_of.size()) / static_cast<double>(cost.size());
  }

  // Names what other ranks need of it: all that rules, memories and the method's critic learn from; and all that Recall
  // needs, where the policy recalls several episodes at once, which then may be those of several ranks.
  virtual void Pack(Parcel& parcel);
};

// Per decision of an episode, differentiable by the policy's parameters; entropies in nats. Policies whose method has a
// critic derive their own, with the distributions that it needs.
struct Likelihood {
  virtual ~Likelihood() = default;
  at::Tensor log_prob, entropy;
  at::Tensor entropy_weight{};  // of each decision, how much its entropy counts in the loss; undefined: as the others
  // What the backward pass still refers to.
  std::vector<std::shared_ptr<const void>> kept{};
};

// A Problem with all that a policy derives from it once: features, adjacency, groups. Tasks stay where they are.
struct Task {
  explicit Task(const Problem& of);
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  // Policies decide about each group by itself. Where constraints join several of them (separate, forbid-transfer),
  // what is scored is a near placement that keeps these (Units::Legalise), or, where none was found, always the same
  // one; elsewhere the placement stays as it is.
  bool has_rules() const { return units.has_rules(); }
  void KeepRules(std::span<DeviceId> placement) const;

  const Problem& problem;
  const Units units;  // of ops that must share a device
  // Per device the smallest one that it may be swapped with (InterchangeableDevices); empty where nobody asked.
  std::vector<DeviceId> class_of{};

 private:
  std::vector<DeviceId> otherwise_{};  // keeps the rules; none without them
};

// An episode and the task that it was played on.
struct Played {
  const Task& task;
  const Episode& episode;
};

// Makes torch use one thread inside each operation that this thread calls. Graphs are small: a thread per worker is
// faster than threads within an operation, and sums do not depend on the number of threads then.
void UseOneThread();

// One decision: the likeliest (of equals the first), or drawn; or the one that a number from [0, 1) stands for.
size_t Decide(std::span<const float> log_probability, bool greedy, Random& random);
size_t DecideBy(std::span<const float> log_probability, double uniform);

class Critic;
class Memory;

struct PlayOptions {
  bool greedy = false;        // the likeliest decision instead of a drawn one
  int64_t evaluations = 0;    // asks for so many scores at most per episode, which then is shorter; 0: a whole episode
  double memory_penalty = 2;  // of costs (ScoringOptions)
  std::string_view cause{};   // of plans that the search keeps
  int64_t way = 0;            // in which of the policy's ways to play (Policy::ways)
  double share = 0;           // of the round's planned updates, those before this one (Rounds)
  int64_t round = 0;          // how often training has begun anew
  int64_t update = 0;         // how many updates were before this one
  int64_t threads = 1;        // that this play may use; nothing depends on their number
  const Critic* critic = nullptr;  // of the task, as it was before this update; null: none, or nothing may be learned
  const Memory* memory = nullptr;  // what was drawn on the task before this update; null: nobody remembers
  bool distinct = false;           // what the memory has shall not be drawn once more
  // The best plan on the task before this update; null where there is none.
  const Plan* best = nullptr;
  Score best_score{};
  // Asked between steps, from any thread: once true, episodes end where they are, perhaps before their first step or in
  // the middle of one. Such episodes must not be recalled.
  std::function<bool()> stop{};

  bool stopped() const { return stop && stop(); }
};

// Stateless but for its parameters: all that a call needs is given to it, so that threads may share one. Nothing in it
// draws from torch's global generator.
class Policy : public torch::nn::Module {
 public:
  // Throws Error when this policy was made for other problems (a device count, a feature set).
  virtual std::unique_ptr<Task> Prepare(const Problem& problem) const = 0;

  // For how many placements a whole episode asks for a score, and a greedy one that only wants its last.
  virtual int64_t evaluations(const Task& task) const = 0;
  virtual int64_t greedy_evaluations(const Task&) const { return 1; }
  // The same in one of its ways to play; so many on average over them.
  virtual int64_t evaluations_in(const Task& task, int64_t) const { return evaluations(task); }

  // In how many ways it plays. Each worker plays in all of them, and the best of their likeliest placements is the
  // policy's answer.
  virtual int64_t ways() const { return 1; }

  // How many devices an episode says, where Episode::device and Episode::priority are all that Recall needs, so that it
  // can be learned from again; 0: it cannot. How many levels of priority there are for each; 0: none are said. And
  // whether PlayOptions::distinct is minded.
  virtual int64_t replayed_decisions(const Task&) const { return 0; }
  virtual int64_t priority_levels() const { return 0; }
  virtual bool redraws() const { return false; }

  // Plays one episode per generator, side by side, without gradients; the same generators give the same episodes.
  virtual std::vector<std::unique_ptr<Episode>> Play(const Task& task, Search& search, std::span<Random> randoms,
                                                     const PlayOptions& options) const = 0;

  // The likelihood of decisions that this policy, perhaps with other parameters, has made; one for each episode. They
  // may be of several tasks. So many threads may be used, for the backward pass too; nothing depends on their number.
  virtual std::vector<std::unique_ptr<Likelihood>> Recall(std::span<const Played> episodes, int64_t threads) const = 0;
  // How many episodes Recall is given at once, at most: more are faster where the network takes them as one batch, and
  // need the memory of all of them.
  virtual int64_t recalled_at_once() const { return 1; }
  // About how many numbers a gradient step on so many episodes of a task, recalled at once, keeps: what each layer
  // remembers for the backward pass, most of them floats. An estimate (docs/decisions/0005-learning.md says how good).
  virtual double recalled_numbers(const Task& task, int64_t episodes) const = 0;
  // Of the kind that Play gives, to be filled by Episode::Pack, where that of such an episode is its own.
  virtual std::unique_ptr<Episode> NewEpisode() const { return std::make_unique<Episode>(); }

  // Whether training changes the parameter of this name; what it does not change stays as it is, as when a policy that
  // was trained before is trained on in a part of it.
  virtual bool learns(std::string_view) const { return true; }

  // Of everything that must agree between a checkpoint and a policy: feature columns, devices, sizes. One line.
  virtual std::string shape() const = 0;
};

// Log-probabilities of decisions that are each drawn by itself.
struct OddsTable {
  at::Tensor device;      // decisions x devices
  at::Tensor priority{};  // decisions x levels of priority; undefined where the policy draws none
};

// Policy::Recall where each decision is drawn from a table, which is asked for once for episodes of one task that
// follow one another.
std::vector<std::unique_ptr<Likelihood>> RecallTable(std::span<const Played> episodes,
                                                     const std::function<OddsTable(const Task&)>& table_of);

}  // namespace berth
