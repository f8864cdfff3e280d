// What training changes, as one thing: to be undone, and to be saved.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learn/critic.h"
#include "learn/libtorch.h"
#include "learn/memory.h"
#include "learn/policy.h"
#include "learn/update_rule.h"
#include "placement/search.h"

namespace berth {

struct LearnerState {
  std::shared_ptr<Policy> policy;
  std::unique_ptr<torch::optim::Adam> adam;  // of the policy's parameters
  UpdateRule rule;                           // its baselines
  std::vector<double> reference;             // per case, in time units: the first cost that was seen; NaN until then
  // Per case, the number of its search's next evaluation, by which noise is drawn, after the last whole update.
  std::vector<int64_t> next_evaluation;
  std::vector<std::unique_ptr<Critic>> critics{};  // per case; empty without
  std::vector<Memory> memories{};                  // per case; empty without
  int64_t updates = 0, evaluations = 0, failures = 0;
};

// Remembers a state while an update changes it.
class Undo {
 public:
  // All but the critics, which learn last.
  explicit Undo(LearnerState& state);
  // Before they learn: what they hold is large, and most updates that are stopped are stopped sooner.
  void KeepCritics();
  // As it was.
  void Restore();

 private:
  LearnerState& state_;
  UpdateRule rule_;
  std::vector<double> reference_;
  int64_t updates_, evaluations_, failures_;
  std::vector<at::Tensor> parameters_;
  std::vector<torch::optim::AdamParamState> adam_;  // none before the first step
  std::vector<std::vector<at::Tensor>> critics_{};  // none before they learn
};

// Which training a checkpoint belongs to; only the same one can be resumed.
struct CheckpointOrigin {
  std::string method{};  // canonical
  int64_t planned_updates = 0;
};

// Everything that training needs to go on as if it had not been interrupted: the state, and what each case's search has
// found. The file is written beside and renamed.
void SaveState(const std::string& path, const LearnerState& state, const CheckpointOrigin& origin,
               const std::vector<const Search*>& searches);
// The bytes of such a file.
std::string ReadCheckpoint(const std::string& path);
// The policy alone, of any training of such a policy. Throws Error where the bytes are none, or their policy is another
// one; `path` is where they were read.
void LoadPolicy(const std::string& bytes, const std::string& path, Policy& policy);
// The whole state, and into the searches what they had found. Throws Error also where it is of another training.
void LoadState(const std::string& bytes, const std::string& path, LearnerState& state, const CheckpointOrigin& origin,
               const std::vector<Search*>& searches);

}  // namespace berth
