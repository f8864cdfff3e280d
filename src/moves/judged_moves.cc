#include "moves/judged_moves.h"

#include <algorithm>
#include <limits>

#include "moves/critical_path.h"

namespace berth {
namespace {

constexpr double kCriticalShare = 0.15;  // of the moves: one unit that the end waits for
constexpr int kMostDraws = 1000;         // where hardly anything may move

}  // namespace

MoveSpace::MoveSpace(const Problem& problem, const Grouping& grouping) : problem_(problem) {
  size_t dropped = 0;
  grouped_ = std::make_unique<const Problem>(Grouped(problem, grouping, dropped));
  levels_.push_back(std::make_unique<const Level>(problem));
  if (Units(*grouped_).size() < levels_.front()->units.size()) {
    levels_.push_back(std::make_unique<const Level>(*grouped_));
  }
}

JudgedMoves::JudgedMoves(const MoveSpace& space, std::optional<MoveJudge> judge, size_t opinions, Opinion opinion)
    : judge_(std::move(judge)),
      opinion_(std::move(opinion)),
      schedule_(space.problem()),
      features_(MoveFeatures::kCount + opinions),
      candidate_(MoveFeatures::kCount + opinions) {
  for (size_t level = 0; level < space.num_levels(); ++level) {
    makers_.push_back({.moves = MoveMaker(space.units(level), space.structure(level))});
  }
}

void JudgedMoves::Know(std::span<const DeviceId> device, std::span<const double> starts) {
  device_.assign(device.begin(), device.end());
  if (judge_) schedule_.Know(device, starts);
  const CriticalPath path = FindCriticalPath(schedule_.problem(), device, starts);
  for (Maker& maker : makers_) maker.moves.Know(path);
}

std::span<const std::pair<OpId, DeviceId>> JudgedMoves::Draw(Random& random, Drawn& drawn) {
  double sum = 0;
  for (const Maker& maker : makers_) sum += maker.weight;
  for (int i = 0; i < kMostDraws; ++i) {
    double left = random.Uniform() * sum;
    drawn.level = 0;
    while (drawn.level + 1 < makers_.size() && (left -= makers_[drawn.level].weight) >= 0) ++drawn.level;
    Maker& maker = makers_[drawn.level];
    drawn.shape = random.Chance(kCriticalShare) ? MoveShape::kCritical : maker.shapes.Draw(random);
    const auto moves = maker.moves.Draw(drawn.shape, device_, random);
    // Groups know the rules between groups, but the plan may divide a group: then its ops are asked one by one.
    if (!moves.empty() && (drawn.level == 0 || makers_.front().moves.KeepsApart(device_, moves))) return moves;
  }
  return {};
}

std::span<const std::pair<OpId, DeviceId>> JudgedMoves::Propose(Random& random) {
  proposed_.clear();
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < (judge_ ? kCandidates : 1); ++i) {
    Drawn drawn{};
    const auto moves = Draw(random, drawn);
    if (moves.empty()) break;
    double guess = 0;
    if (judge_) {
      std::ranges::copy(schedule_.Of(moves), candidate_.begin());
      if (opinion_) opinion_(moves, std::span(candidate_).subspan(MoveFeatures::kCount));
      guess = judge_->Guess(candidate_, random);
    }
    if (!(guess < least)) continue;
    least = guess;
    proposed_.assign(moves.begin(), moves.end());
    proposed_by_ = drawn;
    features_.swap(candidate_);
  }
  return proposed_;
}

void JudgedMoves::Shake(std::span<DeviceId> placement, Random& random) {
  for (size_t left = 2 + random.Below(4); left > 0; --left) {
    const auto shape = static_cast<MoveShape>(random.Below(kPlacementShapes));
    const auto moves = makers_[random.Below(makers_.size())].moves.Draw(shape, placement, random);
    if (!makers_.front().moves.KeepsApart(placement, moves)) continue;
    for (const auto& [op, to] : moves) placement[Index(op)] = to;
  }
}

void JudgedMoves::Learn(double change) {
  if (proposed_.empty()) return;
  const bool helped = change < 0;
  Maker& maker = makers_[proposed_by_.level];
  if (proposed_by_.shape != MoveShape::kCritical) maker.shapes.Report(proposed_by_.shape, helped);
  maker.weight = std::max(0.3, 0.98 * maker.weight + (helped ? 0.4 : 0));
  if (judge_) judge_->Learn(features_, change);
}

}  // namespace berth
