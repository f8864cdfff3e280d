// What a policy has drawn on one task: every placement once, and the best ones, to be learned from again (Liang et al.
// 2018, memory augmented policy optimization; Oh et al. 2018, self-imitation learning).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "learn/policy.h"

namespace berth {

struct MemoryOptions {
  int64_t kept = 0;       // best placements that each update imitates; 0: none
  double imitation = 1;   // what these weigh together, as a share of an update's episodes with a weight of 1
  bool distinct = false;  // a placement that was drawn before is drawn again

  bool any() const { return kept > 0 || distinct; }
};

// Of episodes that end with their one score and say a device per decision (Episode::device).
class Memory {
 public:
  struct Kept {
    double cost;
    std::vector<int64_t> device;
  };

  // `class_of` as in Task: placements that differ in the names of such devices are one.
  Memory(int64_t most, int64_t decisions, std::vector<DeviceId> class_of)
      : most_(most), decisions_(decisions), class_of_(std::move(class_of)) {}

  void Add(const Episode& episode);
  // What was best is forgotten, or, in the `last` round, the best of all rounds stands for it.
  void BeginRound(bool last);
  bool Has(std::span<const int64_t> device) const { return drawn_.contains(Key(device)); }
  // The hash that Has looks for, by which an update's own placements are told apart, too.
  uint64_t Key(std::span<const int64_t> device) const;

  // The best first, of equals the first drawn; devices that may be swapped have the names by which each is most like
  // the best one.
  std::span<const Kept> best() const { return best_; }

  // For checkpoints. Load throws Error for what Save has not written, of as many decisions and devices.
  nlohmann::json Save() const;
  void Load(const nlohmann::json& json, const std::string& path, size_t devices);

 private:
  int64_t most_, decisions_;  // per episode
  std::vector<DeviceId> class_of_;
  void Keep(std::vector<Kept>& best, Kept added) const;

  std::vector<Kept> best_{}, of_all_rounds_{};
  std::set<uint64_t> drawn_{};
};

}  // namespace berth
