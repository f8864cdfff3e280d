// The placements by which GDP's policy answers, as they are scored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "learn/gdp_answer.h"
#include "learn/gdp_task.h"
#include "learn/policy.h"
#include "placement/search.h"

namespace berth {

class GdpReply {
 public:
  // `answers`: the Placements of `from`, as episodes, at least one. The others outlive this.
  GdpReply(const GdpTask& task, const GdpAnswers& from, Search& search, const PlayOptions& options,
           std::vector<std::unique_ptr<Episode>> answers);

  // Of the answers that fit into memory, or where none does, of all, the one that costs least, penalties for memory
  // included, and what it costs, where any was scored. An evaluation for each answer, unless the budget or
  // `options.stop` ends them before. Where all kMost are there and memory is tracked, six of them are scored first.
  // While some do not fit but take less time than all that fit, the evaluations that remain are not for the other
  // answers: these are made to fit (GdpAnswers::Relieve), the fastest first; the last two of these evaluations, if
  // nothing fits by then, are for what costs least.
  std::unique_ptr<Episode> Best();

 private:
  size_t left() const { return answers_.size() - scores_.size(); }
  double CostOf(const Score& score) const;
  // Whether all answers before `end` have a score now.
  bool ScoreUpTo(size_t end);
  void Relieve();
  // Of the answers that do not fit, take less time than all that fit, and are not `done`, the fastest; when few
  // evaluations are left and nothing fits, the one that costs least, penalties for memory included.
  std::optional<size_t> NextToRelieve(std::span<const uint8_t> done) const;
  // By what a run of the episode's plan holds; empty where no group can move.
  std::vector<int64_t> Relieved(const Episode& episode) const;

  const GdpTask& task_;
  const GdpAnswers& from_;
  Search& search_;
  const PlayOptions& options_;
  std::vector<std::unique_ptr<Episode>> answers_;
  std::vector<size_t> rank_;     // of the answers, where costs are equal
  std::vector<Score> scores_{};  // of the first of them
};

}  // namespace berth
