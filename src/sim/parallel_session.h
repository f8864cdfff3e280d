// Moves under the evaluator `parallel`, scored from the last moment before they make a difference.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "placement/evaluator.h"
#include "sim/parallel_run.h"

namespace berth {

// Until the first tensor that a moved op consumes is there, nothing has asked where that op is: a run with it elsewhere
// is the same up to then. So the run of what is committed is saved now and then, and a try begins where it was saved
// last before that moment. The states are saved on the way, by tries, as far as these are still the committed run;
// beyond, only after a Commit, since the next is likely to follow then. Those that are missing are saved when a try
// comes by.
//
// Memory: a saved state holds what is under way: ops that some inputs of have come, ready ops, waiting transfers,
// tensors that are needed. That is at most 4 bytes per op, 32 per edge and, where memory is tracked, 4 + 4 x devices
// per tensor; mostly a few per cent of it. There are at most 2 x kCheckpoints.
template <typename Ready, typename Transfers, bool kMemory>
class ParallelSession : public Session {
 public:
  ParallelSession(const FlatProblem& flat, const PlanView& start, Ready ParallelWorkspace::* ready,
                  Transfers ParallelWorkspace::* transfers)
      : flat_(flat),
        ready_(work_.*ready),
        transfers_(work_.*transfers),
        tables_(flat, start.device),
        device_(start.device.begin(), start.device.end()),
        priority_(start.priority.begin(), start.priority.end()),
        step_(std::max(kLeastStep, flat.num_ops() / kCheckpoints + 1)) {
    score_ = Simulate();
    end_round_.swap(tried_end_round_);
  }

  Score TryChange(const PlanChange& change) override {
    TakeBack();
    first_round_ = kNotEnded;
    for (const auto& [op, device] : change.moves) {
      const auto v = static_cast<int32_t>(op);
      const int32_t from = tables_.device(v), to = static_cast<int32_t>(device);
      if (from == to) continue;
      first_round_ = std::min(first_round_, FirstRoundThatAsksFor(v));
      tables_.Move(v, to);
      moved_.emplace_back(v, from);
    }
    for (const auto& [op, priority] : change.priorities) {
      double& current = priority_[Index(op)];
      if (current == priority) continue;
      first_round_ = std::min(first_round_, FirstRoundThatMinds(static_cast<int32_t>(op)));
      prioritised_.emplace_back(op, std::exchange(current, priority));
    }
    save_all_ = std::exchange(committed_, false);
    can_commit_ = true;
    tried_score_ = moved_.empty() && prioritised_.empty() ? score_ : Simulate();
    return tried_score_;
  }

  void Commit() override {
    BERTH_CHECK(can_commit_, "Commit follows a Try");
    can_commit_ = false;
    committed_ = true;
    if (moved_.empty() && prioritised_.empty()) return;
    for (const auto& [op, from] : moved_) device_[static_cast<size_t>(op)] = static_cast<DeviceId>(tables_.device(op));
    moved_.clear();
    prioritised_.clear();
    score_ = tried_score_;
    end_round_.swap(tried_end_round_);
    for (size_t k = 0; k < checkpoints_.size(); ++k) {
      if (checkpoints_[k].round >= first_round_) std::swap(checkpoints_[k], tried_checkpoints_[k]);
    }
  }

  const Score& score() const override { return score_; }
  std::span<const DeviceId> device() const override { return device_; }

 private:
  static constexpr int32_t kCheckpoints = 32;
  static constexpr int32_t kLeastStep = 16;  // in ops: a saved state has its price too
  static constexpr uint32_t kNotEnded = std::numeric_limits<uint32_t>::max();

  struct Checkpoint {
    uint32_t round = kNotEnded;  // kNotEnded: there is none
    Snapshot state;
  };

  // Notes when ops end, and saves states.
  struct Watcher {
    static constexpr bool kWatches = true;

    void OpEnded(int32_t op, uint32_t round) {
      session->tried_end_round_[static_cast<size_t>(op)] = round;
      session->frontier_.ended.push_back(op);
    }
    template <typename AnyRun>
    void Started(const AnyRun& run) {
      if (run.ended() < next) [[likely]]
        return;
      const int32_t k = run.ended() / session->step_;
      next = (k + 1) * session->step_;
      if (run.round() < session->first_round_) {
        session->SaveCheckpoint(run, session->checkpoints_[static_cast<size_t>(k)]);
      } else if (session->save_all_) {
        session->SaveCheckpoint(run, session->tried_checkpoints_[static_cast<size_t>(k)]);
      } else {
        next = std::numeric_limits<int32_t>::max();
      }
    }

    ParallelSession* session;
    int32_t next;  // how many ops have ended when it is time to save
  };

  void TakeBack() {
    // Backwards, since an op may be changed twice.
    for (auto move = moved_.rbegin(); move != moved_.rend(); ++move) tables_.Move(move->first, move->second);
    moved_.clear();
    for (auto old = prioritised_.rbegin(); old != prioritised_.rend(); ++old)
      priority_[Index(old->first)] = old->second;
    prioritised_.clear();
  }

  // What an op without inputs does is asked for at once, in round 0; an op whose producers never end, never.
  uint32_t FirstRoundThatAsksFor(int32_t op) const {
    const std::span<const int32_t> inputs = flat_.inputs_of(op);
    if (inputs.empty()) return 0;
    uint32_t round = kNotEnded;
    for (const int32_t t : inputs) {
      const int32_t producer = flat_.producer(t);
      round = std::min(round, producer < 0 ? 0 : end_round_[static_cast<size_t>(producer)]);
    }
    return round;
  }

  // A priority matters when its op is ready, which is not before its last producer has ended.
  uint32_t FirstRoundThatMinds(int32_t op) const {
    uint32_t round = 0;
    for (const int32_t t : flat_.inputs_of(op)) {
      const int32_t producer = flat_.producer(t);
      if (producer >= 0) round = std::max(round, end_round_[static_cast<size_t>(producer)]);
    }
    return round;
  }

  // The score of tables_, which differ from what is committed in nothing that happens before first_round_.
  Score Simulate() {
    const auto last = std::find_if(checkpoints_.rbegin(), checkpoints_.rend(),
                                   [&](const Checkpoint& checkpoint) { return checkpoint.round < first_round_; });
    for (Checkpoint& checkpoint : tried_checkpoints_) checkpoint.round = kNotEnded;
    Watcher watcher{.session = this, .next = step_};
    const Snapshot* from = nullptr;
    tried_end_round_.assign(static_cast<size_t>(flat_.num_ops()), kNotEnded);
    if (last != checkpoints_.rend()) {
      from = &last->state;
      watcher.next = static_cast<int32_t>(last.base() - checkpoints_.begin()) * step_;
      const uint32_t round = last->round;
      std::ranges::transform(end_round_, tried_end_round_.begin(),
                             [round](uint32_t ended) { return ended <= round ? ended : kNotEnded; });
    }
    return Run<Ready, Transfers, kMemory, Watcher>(flat_, work_, ready_, transfers_, {}, nullptr, watcher)
        .Simulate({.device = device_, .priority = priority_}, tables_, from, frontier_);
  }

  template <typename AnyRun>
  void SaveCheckpoint(const AnyRun& run, Checkpoint& checkpoint) {
    checkpoint.round = run.round();
    checkpoint.state.Clear();
    run.Save(frontier_, checkpoint.state);
  }

  const FlatProblem& flat_;
  ParallelWorkspace work_;
  Frontier frontier_;
  Ready& ready_;
  Transfers& transfers_;
  PlanTables tables_;                                 // with what was tried
  std::vector<std::pair<int32_t, int32_t>> moved_;    // what was tried: ops and where they were, in order
  std::vector<std::pair<OpId, double>> prioritised_;  // what was tried: ops and their priorities before, in order
  std::vector<DeviceId> device_;                      // as committed
  std::vector<double> priority_;                      // with what was tried
  int32_t step_;                                      // between two checkpoints, in ops that have ended
  // Number k is of the first round after k * step_ ops. Those of what was tried begin where it makes a difference.
  std::array<Checkpoint, kCheckpoints + 1> checkpoints_, tried_checkpoints_;
  std::vector<uint32_t> end_round_, tried_end_round_;  // by op
  uint32_t first_round_ = kNotEnded;                   // of what was tried
  Score score_, tried_score_;
  bool can_commit_ = false;
  bool committed_ = false;  // since the last Try
  bool save_all_ = false;
};

}  // namespace berth
