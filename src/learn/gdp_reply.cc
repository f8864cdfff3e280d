#include "learn/gdp_reply.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <ranges>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "learn/scoring.h"

namespace berth {
namespace {

// In which order the answers are scored where memory is tracked. The first kFirst: of ops, co-location groups and
// layers, and of those with busy devices the ones that keep layers together.
constexpr std::array<size_t, GdpAnswers::kMost> kInOrder = {0, 1, 2, 4, 6, GdpAnswers::kMemoryShared, 3, 5, 7, 9};
static_assert(kInOrder.back() == GdpAnswers::kMost - 1);
constexpr size_t kFirst = 6;
// With so many evaluations left and nothing that fits, what lacks memory counts, too.
constexpr size_t kLate = 2;

}  // namespace

GdpReply::GdpReply(const GdpTask& task, const GdpAnswers& from, Search& search, const PlayOptions& options,
                   std::vector<std::unique_ptr<Episode>> answers)
    : task_(task),
      from_(from),
      search_(search),
      options_(options),
      answers_(std::move(answers)),
      rank_(answers_.size()) {
  BERTH_CHECK(!answers_.empty());
  std::iota(rank_.begin(), rank_.end(), 0);
}

double GdpReply::CostOf(const Score& score) const {
  return berth::CostOf(task_.problem, score, options_.memory_penalty);
}

bool GdpReply::ScoreUpTo(size_t end) {
  const auto these = std::span(answers_).subspan(scores_.size(), end - scores_.size());
  const std::vector<Score> some = task_.ScoresOf(task_.order, these, search_, options_);
  scores_.insert(scores_.end(), some.begin(), some.end());
  return scores_.size() == end;
}

std::unique_ptr<Episode> GdpReply::Best() {
  const EvaluatorFacts& facts = search_.evaluator().facts();
  if (answers_.size() == GdpAnswers::kMost && facts.tracks_memory && facts.deterministic) {
    std::vector<std::unique_ptr<Episode>> in_order;
    for (const size_t i : kInOrder) in_order.push_back(std::move(answers_[i]));
    answers_ = std::move(in_order);
    rank_.assign(kInOrder.begin(), kInOrder.end());
    if (ScoreUpTo(kFirst)) Relieve();
  }
  ScoreUpTo(answers_.size());
  if (scores_.empty()) return std::move(answers_[0]);
  size_t best = 0;
  const auto value = [&](size_t i) { return std::tuple(!scores_[i].fits(), CostOf(scores_[i]), rank_[i]); };
  for (size_t i = 1; i < scores_.size(); ++i) best = value(i) < value(best) ? i : best;
  answers_[best]->cost.push_back(CostOf(scores_[best]));
  return std::move(answers_[best]);
}

void GdpReply::Relieve() {
  std::vector<uint8_t> done(answers_.size(), 0);
  while (left() > 0 && !options_.stopped()) {
    const std::optional<size_t> start = NextToRelieve(done);
    if (!start) return;
    const auto equals = [&](const std::vector<int64_t>& device) {
      return [&](size_t i) { return answers_[i]->device == device; };
    };
    // Answers may be alike; priorities are alike in all.
    const auto scored = std::views::iota(size_t{0}, scores_.size());
    for (const size_t i : scored | std::views::filter(equals(answers_[*start]->device))) done[i] = 1;
    std::vector<int64_t> relieved = Relieved(*answers_[*start]);
    if (relieved.empty() || std::ranges::any_of(scored, equals(relieved))) continue;
    answers_[scores_.size()]->device = std::move(relieved);
    if (!ScoreUpTo(scores_.size() + 1)) return;
  }
}

std::optional<size_t> GdpReply::NextToRelieve(std::span<const uint8_t> done) const {
  double bound = std::numeric_limits<double>::infinity();
  for (const Score& score : scores_) {
    if (score.fits()) bound = std::min(bound, score.value());
  }
  const bool late = left() <= kLate && bound == std::numeric_limits<double>::infinity();
  std::optional<size_t> next;
  double least = bound;
  for (size_t i = 0; i < scores_.size(); ++i) {
    if (scores_[i].outcome != Outcome::kTooBig || done[i] != 0) continue;
    const double value = late ? CostOf(scores_[i]) : scores_[i].value();
    if (value < least) next = i, least = value;
  }
  return next;
}

std::vector<int64_t> GdpReply::Relieved(const Episode& episode) const {
  std::vector<DeviceId> placement(task_.problem.num_ops());
  task_.Place(task_.order, episode.device, placement);
  std::vector<double> priority;
  if (!episode.priority.empty()) priority = task_.Priorities(task_.order, episode.priority);
  const Timeline run = search_.evaluator().Trace({.device = placement, .priority = priority});
  if (run.memory.empty()) return {};
  return from_.Relieve(episode.device, placement, run.memory);
}

}  // namespace berth
