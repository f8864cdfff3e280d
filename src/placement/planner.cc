#include "placement/planner.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/units.h"

namespace berth {

Budget Budget::Parse(std::string_view text) {
  Budget budget;
  constexpr std::string_view kEvals = "evals";
  for (const std::string& part : SplitList(text)) {
    if (part.ends_with(kEvals)) {
      const std::string_view number = std::string_view(part).substr(0, part.size() - kEvals.size());
      int64_t value = 0;
      const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), value);
      if (code == std::errc() && end == number.data() + number.size() && value > 0) {
        budget.evaluations = value;
        continue;
      }
    } else {
      try {
        if (const double seconds = ParseSeconds(part).value; seconds > 0) {
          budget.seconds = seconds;
          continue;
        }
      } catch (const Error&) {
        // said below, with an example that fits a budget
      }
    }
    throw Error("'{}' is not a budget: write 200evals, 10s, or both as 200evals,10s", text);
  }
  return budget;
}

std::string Budget::ToString() const {
  std::vector<std::string> parts;
  if (evaluations < std::numeric_limits<int64_t>::max()) parts.push_back(fmt::format("{}evals", evaluations));
  if (std::isfinite(seconds)) parts.push_back(fmt::format("{}s", seconds));
  return fmt::format("{}", fmt::join(parts, ","));
}

SearchEnd HowItEnded(const Budget& budget, const PlanResult& result) {
  if (result.optimal) return SearchEnd::kItself;
  if (result.evaluations >= budget.evaluations) return SearchEnd::kEvaluations;
  if (budget.cancelled != nullptr && budget.cancelled->load()) return SearchEnd::kInterrupted;
  return result.wall_seconds >= budget.seconds ? SearchEnd::kClock : SearchEnd::kItself;
}

bool Better(const Score& a, const Score& b) {
  if (a.feasible != b.feasible) return a.feasible;
  if (a.excess_bytes != b.excess_bytes) return a.excess_bytes < b.excess_bytes;
  return a.value() < b.value();
}

Search::Search(const PlanRequest& request)
    : request_(request), random_(request.random), workspace_(request.evaluator.NewWorkspace()) {}

bool Search::Done() const { return evaluations_ > 0 && (evaluations_ >= request_.budget.evaluations || Interrupted()); }

bool Search::Interrupted() const {
  if (request_.budget.cancelled != nullptr && request_.budget.cancelled->load(std::memory_order_relaxed)) return true;
  return std::isfinite(request_.budget.seconds) && seconds() >= request_.budget.seconds;
}

void Search::Count() {
  ++evaluations_;
  if (!request_.progress || !has_best_) return;
  // Ten lines a second are as many as anyone reads; but each improvement is told.
  const bool better = !told_ || Better(best_score_, *told_);
  if (const double now = seconds(); better || now - last_progress_ > 0.1) {
    told_ = best_score_;
    last_progress_ = now;
    request_.progress({.evaluations = evaluations_, .seconds = now, .best = best_score_});
  }
}

void Search::Keep(const PlanView& plan, const Score& score, std::string_view cause) {
  best_.device.assign(plan.device.begin(), plan.device.end());
  best_.priority.assign(plan.priority.begin(), plan.priority.end());
  best_.sequence.reset();
  if (plan.sequence != nullptr) best_.sequence = *plan.sequence;
  best_.SetCause(std::string(cause));
  best_score_ = score;
  has_best_ = true;
}

Score Search::Evaluate(const PlanView& plan, std::string_view cause) {
  const Score score = request_.evaluator.ScorePlan(plan, *workspace_);
  if (!has_best_ || Better(score, best_score_)) Keep(plan, score, cause);
  Count();
  return score;
}

Score Search::Evaluate(const Plan& plan) {
  const Score score = request_.evaluator.ScorePlan(plan.view(), *workspace_);
  if (!has_best_ || Better(score, best_score_)) {
    best_ = plan;
    best_score_ = score;
    has_best_ = true;
  }
  Count();
  return score;
}

Score Search::Try(Session& session, OpId op, DeviceId device) {
  Count();
  return session.Try(op, device);
}

Score Search::Try(Session& session, std::span<const std::pair<OpId, DeviceId>> moves) {
  Count();
  return session.Try(moves);
}

void Search::Offer(const Session& session, std::string_view cause, std::span<const double> priority) {
  if (!has_best_ || Better(session.score(), best_score_))
    Keep({.device = session.device(), .priority = priority}, session.score(), cause);
}

PlanRequest Search::Remaining(uint64_t stream) const {
  return Remaining(stream, request_.budget.evaluations, request_.budget.seconds);
}

PlanRequest Search::Remaining(uint64_t stream, int64_t evaluations, double seconds_allowed) const {
  PlanRequest rest = request_;
  rest.budget.evaluations = std::max<int64_t>(1, std::min(evaluations, evaluations_left()));
  rest.budget.seconds = std::max(0.0, std::min(seconds_allowed, request_.budget.seconds - seconds()));
  rest.random = request_.random.Fork(stream);
  if (request_.progress) {
    // What the other planner tells goes on from what is known here.
    rest.progress = [tell = request_.progress, before = evaluations_, watch = watch_,
                     best = has_best_ ? std::optional(best_score_) : std::nullopt](const Progress& part) {
      tell({.evaluations = before + part.evaluations,
            .seconds = watch.seconds(),
            .best = best && !Better(part.best, *best) ? *best : part.best});
    };
  }
  return rest;
}

void Search::Adopt(const PlanResult& result) {
  evaluations_ += result.evaluations;
  if (result.plan.device.empty() && problem().num_ops() > 0) return;
  if (!has_best_ || Better(result.score, best_score_)) {
    best_ = result.plan;
    best_score_ = result.score;
    has_best_ = true;
  }
  // Whole batches arrive this way, so that none is left out.
  if (request_.progress) {
    request_.progress({.evaluations = evaluations_, .seconds = seconds(), .best = best_score_});
  }
}

PlanResult Search::Finish(bool optimal, std::string note) {
  BERTH_CHECK(has_best_, "a planner ended without evaluating any plan");
  return {.plan = std::move(best_),
          .score = best_score_,
          .evaluations = evaluations_,
          .wall_seconds = seconds(),
          .optimal = optimal,
          .note = std::move(note)};
}

}  // namespace berth
