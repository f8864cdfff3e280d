// What a policy has drawn on one task: every placement once, and the best ones, to be learned from again (Liang et al.
// 2018, memory augmented policy optimization; Oh et al. 2018, self-imitation learning).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "learn/pair_model.h"
#include "learn/policy.h"

namespace berth {

struct MemoryOptions {
  int64_t kept = 0;       // best placements that each update imitates; 0: none
  double imitation = 1;   // what these weigh together, as a share of an update's episodes with a weight of 1
  bool distinct = false;  // a placement that was drawn before is drawn again
  // Best placements of all rounds, from which a policy may make others; fewer where a placement is long.
  int64_t parents = 0;

  bool any() const { return kept > 0 || distinct || parents > 0; }
};

// Of episodes that end with their one score and say a device per node, and perhaps a level of priority (Episode::device
// and Episode::priority).
class Memory {
 public:
  struct Kept {
    double cost;
    std::vector<int64_t> device, priority;
    uint64_t key;
  };

  // `decisions`: devices that an episode says; `levels` of priority, one for each of them; 0: none. `class_of` as in
  // Task: placements that differ in the names of such devices are one. `models`: with parents, few decisions and no
  // priorities, which it does not know, it learns what placements cost.
  Memory(const MemoryOptions& options, int64_t decisions, std::vector<DeviceId> class_of, bool models = false,
         int64_t levels = 0);

  void Add(const Episode& episode);
  // What was best is forgotten, or, in the `last` round, the best of all rounds stands for it.
  void BeginRound(bool last);
  // `device` and `priority` as in Episode.
  // Whether it was added; where nobody asks for distinct placements, that is not remembered.
  bool Has(std::span<const int64_t> device, std::span<const int64_t> priority = {}) const {
    return drawn_.contains(Key(device, priority));
  }
  // The hash that Has looks for, by which an update's own placements are told apart, too.
  uint64_t Key(std::span<const int64_t> device, std::span<const int64_t> priority = {}) const;

  // Nothing was added, as far as it is told to remember anything.
  bool empty() const { return drawn_.empty() && of_all_rounds_.empty(); }
  // The best first, of equals the first drawn; devices that may be swapped have the names by which each is most like
  // the best one.
  std::span<const Kept> best() const { return best_; }
  // The same of all rounds.
  std::span<const Kept> parents() const {
    return std::span(of_all_rounds_).first(std::min(of_all_rounds_.size(), static_cast<size_t>(options_.parents)));
  }
  // What the placements so far say of others; null where nothing is learned of that.
  const PairModel* model() const { return model_.get(); }

  // For checkpoints. Load throws Error for what Save has not written, of as many decisions, devices and levels.
  nlohmann::json Save() const;
  void Load(const nlohmann::json& json, const std::string& path, size_t devices);
  // What the model has learned, besides; a view of it, float64.
  std::vector<at::Tensor> State() const;

 private:
  int64_t kept_of_all_rounds() const { return std::max(options_.kept, options_.parents); }
  void Keep(std::vector<Kept>& best, int64_t most, const Kept& added) const;

  MemoryOptions options_;
  int64_t decisions_, levels_;  // devices per episode, and levels that each of them may have
  std::vector<DeviceId> class_of_;
  std::vector<Kept> best_{}, of_all_rounds_{};
  std::unique_ptr<PairModel> model_{};
  std::set<uint64_t> drawn_{};
};

}  // namespace berth
