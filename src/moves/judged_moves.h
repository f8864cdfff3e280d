// Moves of which a judge has chosen the most promising.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "moves/move_features.h"
#include "moves/move_judge.h"
#include "moves/moves.h"
#include "moves/structure.h"
#include "placement/grouping.h"
#include "placement/units.h"

namespace berth {

// What moves: units of a problem, and coarser ones where ops that a grouping joins move as one. Immutable; one serves
// many threads.
class MoveSpace {
 public:
  // `problem` outlives it.
  MoveSpace(const Problem& problem, const Grouping& grouping);

  const Problem& problem() const { return problem_; }
  size_t num_levels() const { return levels_.size(); }
  const Units& units(size_t level) const { return levels_[level]->units; }
  const Structure& structure(size_t level) const { return levels_[level]->structure; }

 private:
  struct Level {
    explicit Level(const Problem& problem) : units(problem), structure(units) {}
    Units units;
    Structure structure;
  };

  const Problem& problem_;
  std::unique_ptr<const Problem> grouped_;  // of the coarser level
  std::vector<std::unique_ptr<const Level>> levels_;
};

// Draws a few moves from a plan at a time, of all shapes and levels, and proposes the one that the judge guesses best.
// Shapes and levels that have helped lately are drawn more often. Not thread-safe: it has scratch memory.
class JudgedMoves {
 public:
  // What a method knows of a move beside its schedule, each from -1 to 1; as many numbers as it said at first.
  using Opinion = std::function<void(std::span<const std::pair<OpId, DeviceId>>, std::span<double>)>;
  static constexpr size_t kCandidates = 4;

  // `space` outlives it. Without a judge each candidate is as good as any other.
  JudgedMoves(const MoveSpace& space, std::optional<MoveJudge> judge, size_t opinions = 0, Opinion opinion = {});

  // A judge for moves with so many opinions.
  static MoveJudge NewJudge(size_t opinions) { return MoveJudge(MoveFeatures::kCount + opinions); }

  // The plan that moves start from, as MoveFeatures::Know.
  void Know(std::span<const DeviceId> device, std::span<const double> starts);
  // Empty where no draw led to a move. The span stays valid until the next call.
  std::span<const std::pair<OpId, DeviceId>> Propose(Random& random);
  // Two to five moves of any shape, none of them judged: out of a placement that no single move improves.
  void Shake(std::span<DeviceId> placement, Random& random);
  // What became of the last proposal: the change of the score, relative to the score before.
  void Learn(double change);
  // Of the last proposal, what the judge went by.
  std::span<const double> features() const { return features_; }

 private:
  struct Maker {
    MoveMaker moves;
    ShapeChooser shapes{};
    double weight = 4;  // as in ShapeChooser
  };
  struct Drawn {
    size_t level;
    MoveShape shape;
  };
  std::span<const std::pair<OpId, DeviceId>> Draw(Random& random, Drawn& drawn);

  std::optional<MoveJudge> judge_;
  Opinion opinion_;
  MoveFeatures schedule_;
  std::vector<Maker> makers_;  // by level
  std::vector<DeviceId> device_;
  MoveMaker::Moves proposed_;
  Drawn proposed_by_{};
  std::vector<double> features_, candidate_;
};

}  // namespace berth
