#include "placement/evaluator.h"

#include <utility>

#include "base/error.h"

namespace berth {
namespace {

// Scores every move in full.
class FullSession : public Session {
 public:
  FullSession(const Evaluator& evaluator, const PlanView& start, Workspace& workspace)
      : evaluator_(evaluator),
        workspace_(workspace),
        device_(start.device.begin(), start.device.end()),
        priority_(start.priority.begin(), start.priority.end()),
        score_(Rescore()) {}

  Score TryChange(const PlanChange& change) override {
    tried_.assign(change.moves.begin(), change.moves.end());
    tried_priorities_.assign(change.priorities.begin(), change.priorities.end());
    undo_.clear();
    undo_priorities_.clear();
    for (const auto& [op, device] : tried_) undo_.emplace_back(op, std::exchange(device_[Index(op)], device));
    for (const auto& [op, priority] : tried_priorities_) {
      undo_priorities_.emplace_back(op, std::exchange(priority_[Index(op)], priority));
    }
    tried_score_ = Rescore();
    // Backwards, since an op may be changed twice.
    for (auto move = undo_.rbegin(); move != undo_.rend(); ++move) device_[Index(move->first)] = move->second;
    for (auto undo = undo_priorities_.rbegin(); undo != undo_priorities_.rend(); ++undo) {
      priority_[Index(undo->first)] = undo->second;
    }
    can_commit_ = true;
    return tried_score_;
  }

  void Commit() override {
    BERTH_CHECK(can_commit_, "Commit follows a Try");
    for (const auto& [op, device] : tried_) device_[Index(op)] = device;
    for (const auto& [op, priority] : tried_priorities_) priority_[Index(op)] = priority;
    score_ = tried_score_;
    can_commit_ = false;
  }

  const Score& score() const override { return score_; }
  std::span<const DeviceId> device() const override { return device_; }

 private:
  Score Rescore() { return evaluator_.ScorePlan({.device = device_, .priority = priority_}, workspace_); }

  const Evaluator& evaluator_;
  Workspace& workspace_;
  std::vector<DeviceId> device_;
  std::vector<double> priority_;
  Score score_;
  std::vector<std::pair<OpId, DeviceId>> tried_, undo_;
  std::vector<std::pair<OpId, double>> tried_priorities_, undo_priorities_;
  Score tried_score_;
  bool can_commit_ = false;
};

}  // namespace

std::string_view MemoryRule(const EvaluatorFacts& facts) {
  if (!facts.tracks_memory) return "none";
  if (facts.Is<ParallelFacts>() || facts.Is<SerialFacts>()) return "berth";
  if (facts.Is<PipelineFacts>() || facts.Is<PiecesFacts>()) return "msr";
  if (const auto* measured = facts.As<MeasuredFacts>()) return measured->memory_rule;
  return facts.Is<PlacetoFacts>() ? "placeto" : "measured";
}

std::string_view DescribeMemoryRule(const EvaluatorFacts& facts) {
  const std::string_view rule = MemoryRule(facts);
  if (rule == "berth") return "weights for the whole run, tensors until their last use";
  if (rule == "msr") return "all that is placed on a device, for the whole run, as in the MSR data set";
  if (rule == "placeto") return "outputs until their last consumer has run, as in Placeto's simulator";
  return rule == "measured" ? "as measured" : "not counted";
}

std::unique_ptr<Session> Evaluator::NewSession(const PlanView& start, Workspace& workspace) const {
  return std::make_unique<FullSession>(*this, start, workspace);
}

}  // namespace berth
