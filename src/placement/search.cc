#include "placement/search.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/in_parallel.h"
#include "base/system_limits.h"
#include "placement/set_up.h"

namespace berth {
namespace {

// Of one plan, scored several times.
Score Mean(const Score& a, const Score& b) {
  const double of_a = a.runs, of_b = b.runs;
  const auto mean = [&](double x, double y) { return (x * of_a + y * of_b) / (of_a + of_b); };
  Score score = Better(a, b) ? b : a;  // of what differs more than time, the worse
  score.time = mean(a.time, b.time);
  if (a.objective && b.objective) score.objective = mean(*a.objective, *b.objective);
  score.runs = a.runs + b.runs;
  score.spread = std::max({a.spread, b.spread, std::abs(a.time - b.time)});
  return score;
}

}  // namespace

int64_t ThreadsFor(const Evaluator& evaluator, int64_t wanted) {
  if (evaluator.facts().exclusive) return 1;
  static const auto usable = static_cast<int64_t>(UsableThreads());  // reads files
  return wanted > 0 ? wanted : usable;
}

bool Better(const Score& a, const Score& b) {
  if (a.outcome != b.outcome) return a.outcome < b.outcome;
  if (a.excess_bytes != b.excess_bytes) return a.excess_bytes < b.excess_bytes;
  return a.value() < b.value();
}

Search::Search(const PlanRequest& request, Workspace* workspace)
    : request_(request),
      random_(request.random),
      own_workspace_(workspace == nullptr ? request.evaluator.NewWorkspace() : nullptr),
      workspace_(workspace == nullptr ? own_workspace_.get() : workspace),
      pace_(std::isfinite(request.budget.seconds)),
      next_number_(request.first_evaluation),
      deterministic_(request.evaluator.facts().deterministic),
      confirms_(request.confirms && !deterministic_ && !request.evaluator.facts().remembers) {
  const Problem &mine = request.problem(), &scored = request.evaluator.problem();
  BERTH_CHECK(&mine.graph() == &scored.graph() && &mine.cluster() == &scored.cluster(),
              "the evaluator is bound to another problem");
  if (request.evaluator.facts().stops) workspace_->stop = [this] { return Interrupted(); };
}

Search::~Search() { workspace_->stop = nullptr; }

bool Search::Done() const {
  if (evaluations_ == 0) return false;
  if (evaluations_ >= request_.budget.evaluations || Interrupted()) return true;
  return std::isfinite(request_.budget.seconds) && seconds_left() < seconds_per_evaluation();
}

double Search::seconds_per_evaluation() const {
  const double own = pace_.seconds();
  return own > 0 ? own : adopted_pace_;
}

void Search::Pace::End(int64_t evaluations) {
  if (!counts_ || evaluations == 0) return;
  const double seconds = watch_.seconds();
  if (scores_ == 0) {
    first_ = seconds / static_cast<double>(evaluations);
    later_ = seconds - first_;
  } else {
    later_ += seconds;
  }
  scores_ += evaluations;
}

bool Search::Interrupted() const {
  if (request_.budget.cancelled != nullptr && request_.budget.cancelled->load(std::memory_order_relaxed)) return true;
  return std::isfinite(request_.budget.seconds) && seconds() >= request_.budget.seconds;
}

void Search::Tell() {
  if (!request_.progress || !has_best_) return;
  // Ten lines a second are as many as anyone reads; but each improvement is told.
  const bool better = !told_ || Better(best_score_, *told_);
  if (const double now = seconds(); better || now - last_progress_ > 0.1) {
    told_ = best_score_;
    last_progress_ = now;
    request_.progress({.evaluations = evaluations_, .seconds = now, .best = best_score_, .best_after = best_after_});
  }
}

void Search::Count(const Score& score) {
  ++evaluations_;
  if (!score.failed()) return;
  last_failure_ = workspace_->failure;
  // What the end of the search cut short is no fault of the plan.
  if (!workspace_->stop || !workspace_->stop()) ++failures_;
}

Score Search::Ask(const PlanView& plan, std::span<double> starts) {
  workspace_->evaluation = next_number_++;
  pace_.Begin();
  const Score score = request_.evaluator.ScorePlan(plan, *workspace_, starts);
  pace_.End(1);
  Count(score);
  return score;
}

bool Search::IsBest(Score& score, const PlanView& plan) {
  if (has_best_ && !Better(score, best_score_)) return false;
  if (!confirms_ || score.failed() || evaluations_left() <= 0) return true;
  if (const Score again = Ask(plan, {}); !again.failed()) score = Mean(score, again);
  return !has_best_ || Better(score, best_score_);
}

void Search::Keep(const PlanView& plan, const Score& score, std::string_view cause, int64_t after) {
  best_.device.assign(plan.device.begin(), plan.device.end());
  best_.priority.assign(plan.priority.begin(), plan.priority.end());
  best_.sequence.reset();
  if (plan.sequence != nullptr) best_.sequence = *plan.sequence;
  best_.SetCause(std::string(cause));
  best_score_ = score;
  best_after_ = after;
  has_best_ = true;
}

Score Search::Evaluate(const PlanView& plan, std::string_view cause, std::span<double> starts) {
  Score score = Ask(plan, starts);
  if (IsBest(score, plan)) Keep(plan, score, cause, evaluations_);
  Tell();
  return score;
}

Score Search::Evaluate(const Plan& plan) {
  Score score = Ask(plan.view(), {});
  if (IsBest(score, plan.view())) {
    best_ = plan;
    best_score_ = score;
    best_after_ = evaluations_;
    has_best_ = true;
  }
  Tell();
  return score;
}

size_t Search::EvaluateAll(std::span<const PlanView> plans, std::span<Score> scores, std::string_view cause,
                           const StopCheck& stop) {
  const Evaluator& evaluator = request_.evaluator;
  const bool first_ever = evaluations_ == 0;
  const auto allowed = static_cast<size_t>(std::max<int64_t>(evaluations_left(), first_ever ? 1 : 0));
  const size_t count = std::min(plans.size(), allowed);
  const size_t threads =
      std::clamp<size_t>(static_cast<size_t>(ThreadsFor(evaluator, request_.threads)), 1, std::max<size_t>(count, 1));
  while (helpers_.size() + 1 < threads) {
    helpers_.push_back(evaluator.NewWorkspace());
    helpers_.back()->stop = workspace_->stop;
  }
  std::vector<uint8_t> scored(count, 0);
  std::vector<std::string> failure(count);  // empty but for the few that fail
  const auto work = [&](size_t thread) {
    Workspace& workspace = thread == 0 ? *workspace_ : *helpers_[thread - 1];
    for (size_t i = thread; i < count; i += threads) {
      if ((i > 0 || !first_ever) && (Interrupted() || (stop && stop()))) return;
      workspace.evaluation = next_number_ + static_cast<int64_t>(i);
      scores[i] = evaluator.ScorePlan(plans[i], workspace);
      if (scores[i].failed()) failure[i] = workspace.failure;
      scored[i] = 1;
    }
  };
  pace_.Begin();
  InParallel(static_cast<int64_t>(threads), static_cast<int64_t>(threads), work);
  next_number_ += static_cast<int64_t>(count);
  const auto done = static_cast<size_t>(std::ranges::find(scored, 0) - scored.begin());
  pace_.End(static_cast<int64_t>(done));
  const int64_t before = evaluations_;
  for (size_t i = 0; i < done; ++i) {
    if (scores[i].failed()) workspace_->failure = std::move(failure[i]);
    Count(scores[i]);
  }
  // All are counted by then, so that a noisy best is asked for again only where the budget has room for that.
  for (size_t i = 0; i < done; ++i) {
    if (IsBest(scores[i], plans[i])) Keep(plans[i], scores[i], cause, before + static_cast<int64_t>(i) + 1);
    Tell();
  }
  return done;
}

void Search::Prove(double value) {
  if (!deterministic_ || (bound_ && bound_->value >= value)) return;
  const Evaluator& evaluator = request_.evaluator;
  bound_ = ProvenBound{.value = value,
                       .problem = request_.problem().fingerprint(),
                       .evaluator = evaluator.name(),
                       .objective = evaluator.facts().objective.name};
}

void Search::Repeat(const Score& score) {
  ++next_number_;
  ++evaluations_;
  if (score.failed()) ++failures_;
  Tell();
}

Lease Search::Lend(int64_t evaluations) {
  const Lease lease{.first = next_number_, .evaluations = evaluations};
  next_number_ += evaluations;
  return lease;
}

PlanRequest Search::Remaining(uint64_t stream) const {
  return Remaining(stream, request_.budget.evaluations, request_.budget.seconds);
}

PlanRequest Search::Remaining(uint64_t stream, int64_t evaluations, double seconds_allowed) const {
  PlanRequest rest = request_;
  rest.budget.evaluations = std::max<int64_t>(1, std::min(evaluations, evaluations_left()));
  rest.budget.seconds = std::max(0.0, std::min(seconds_allowed, request_.budget.seconds - seconds()));
  rest.random = request_.random.Fork(stream);
  rest.first_evaluation = next_number_;
  if (request_.progress) {
    // What the other planner tells goes on from what is known here.
    rest.progress = [tell = request_.progress, before = evaluations_, watch = watch_, best_after = best_after_,
                     best = has_best_ ? std::optional(best_score_) : std::nullopt](const Progress& part) {
      const bool better = !best || Better(part.best, *best);
      tell({.evaluations = before + part.evaluations,
            .seconds = watch.seconds(),
            .best = better ? part.best : *best,
            .best_after = better ? before + part.best_after : best_after});
    };
  }
  return rest;
}

void Search::Adopt(const PlanResult& result, const Budget& given, std::string member) {
  CutShort(HowItEnded(given, result));
  AdoptPlan(result, std::move(member));
}

void Search::AdoptFailure(const Error& error) {
  if (const auto* failed = dynamic_cast<const FailedSearch*>(&error)) AdoptPlan(failed->asked, {});
}

void Search::CutShort(SearchEnd by) {
  if (by == SearchEnd::kClock || (by == SearchEnd::kEvaluations && !cut_by_)) cut_by_ = by;
}

void Search::AdoptPlan(const PlanResult& result, std::string member) {
  const int64_t after = evaluations_ + (result.best_after > 0 ? result.best_after : result.evaluations);
  evaluations_ += result.evaluations;
  adopted_pace_ = std::max(adopted_pace_, result.seconds_per_evaluation);
  set_up_ += result.set_up;
  failures_ += result.failures;
  next_number_ = std::max({next_number_, request_.first_evaluation + evaluations_ + set_up_, result.next_number});
  if (!result.failure.empty()) last_failure_ = result.failure;
  if (result.bound && (!bound_ || result.bound->value > bound_->value) &&
      result.bound->problem == request_.problem().fingerprint()) {
    bound_ = result.bound;
  }
  if (result.plan.device.empty() && problem().num_ops() > 0) return;
  // What its worker scored only once.
  Score score = result.score;
  const bool leads = score.runs < 2 ? IsBest(score, result.plan.view()) : !has_best_ || Better(score, best_score_);
  if (leads) {
    best_ = result.plan;
    best_score_ = score;
    best_after_ = after;
    has_best_ = true;
  }
  if (!member.empty()) {
    contributions_.push_back({.planner = std::move(member),
                              .evaluations = result.evaluations,
                              .seconds = result.wall_seconds,
                              .score = score,
                              .led = leads});
  }
  // Whole batches arrive this way, so that none is left out.
  if (request_.progress) {
    request_.progress(
        {.evaluations = evaluations_, .seconds = seconds(), .best = best_score_, .best_after = best_after_});
  }
}

PlanResult Search::Found() const {
  // A plan that failed is no find.
  return {.plan = best_score_.failed() ? Plan{} : best_,
          .score = best_score_,
          .evaluations = evaluations_,
          .best_after = best_after_,
          .failures = failures_,
          .failure = last_failure_,
          .set_up = set_up_,
          .next_number = next_number_,
          .wall_seconds = seconds(),
          .seconds_per_evaluation = seconds_per_evaluation(),
          .cut_by = cut_by_,
          .bound = bound_,
          .contributions = contributions_};
}

PlanResult Search::Finish(bool optimal, std::string note) {
  BERTH_CHECK(has_best_, "a planner ended without evaluating any plan");
  optimal = optimal && deterministic_ && best_score_.fits();
  // The best placement is the best plan where an order of the ops changes nothing.
  if (optimal && !request_.evaluator.facts().uses_priorities) Prove(best_score_.value());
  Plan answer = std::move(best_);  // which Found would copy
  PlanResult result = Found();
  result.plan = std::move(answer);
  result.optimal = optimal;
  result.note = std::move(note);
  return result;
}

Walk::Walk(Search& search, const PlanView& start, std::string_view cause)
    : search_(search), cause_(cause), priority_(start.priority.begin(), start.priority.end()) {
  const Evaluator& evaluator = search.evaluator();
  search.workspace_->evaluation = search.next_number_++;
  session_ = evaluator.NewSession({.device = start.device, .priority = start.priority}, *search.workspace_);
  if (Charged(evaluator, 1) > 0) {
    search.Count(session_->score());
  } else {
    ++search.set_up_;
  }
}

Score Walk::TryChange(const PlanChange& change) {
  search_.workspace_->evaluation = search_.next_number_++;
  search_.pace_.Begin();
  tried_ = session_->TryChange(change);
  search_.pace_.End(1);
  tried_priorities_.assign(change.priorities.begin(), change.priorities.end());
  has_tried_ = true;
  search_.Count(tried_);
  search_.Tell();
  return tried_;
}

void Walk::Starts(std::span<double> starts) {
  search_.Ask({.device = session_->device(), .priority = priority_}, starts);
  search_.Tell();
}

void Walk::Take() {
  BERTH_CHECK(has_tried_, "nothing was tried since the last move was taken");
  session_->Commit();
  for (const auto& [op, priority] : tried_priorities_) priority_[Index(op)] = priority;
  has_tried_ = false;
  const PlanView plan{.device = session_->device(), .priority = priority_};
  if (Score score = tried_; search_.IsBest(score, plan)) {
    search_.Keep(plan, score, cause_, search_.evaluations_);
    search_.Tell();
  }
}

}  // namespace berth
