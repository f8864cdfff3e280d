#include "placement/wrappers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/parameters.h"
#include "base/random.h"
#include "base/stopwatch.h"
#include "base/units.h"
#include "placement/wrapper.h"

namespace berth {
namespace {

class RepeatedEvaluator : public Wrapper {
 public:
  RepeatedEvaluator(std::shared_ptr<const Evaluator> of, int64_t runs, int64_t keep)
      : Wrapper(fmt::format("repeat(runs={},keep={},of={})", runs, keep, of->name()), of), runs_(runs), keep_(keep) {
    if (keep < 1 || keep > runs) throw Error("repeat: keep is {}; of {} runs it can be 1 to {}", keep, runs, runs);
  }

  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    auto& work = static_cast<WrapperWorkspace&>(workspace);
    Score score;
    double time = 0, value = 0;
    double least = std::numeric_limits<double>::infinity(), most = -least;
    const int64_t number = work.evaluation;
    for (int64_t run = 0; run < runs_; ++run) {
      // Each run has a number of its own, as if there were no others.
      work.evaluation = number * runs_ + run;
      score = AskInner(plan, work, starts);
      if (score.failed() || !std::isfinite(score.value())) break;
      if (run < runs_ - keep_) continue;
      time += score.time;
      value += score.value();
      least = std::min(least, score.time);
      most = std::max(most, score.time);
    }
    work.evaluation = number;
    if (score.failed() || !std::isfinite(score.value()) || keep_ == 1) return score;
    score.runs = static_cast<int32_t>(keep_);
    if (most == least) return score;  // sums of equal numbers are rounded
    score.time = time / static_cast<double>(keep_);
    if (score.objective) score.objective = value / static_cast<double>(keep_);
    score.spread = most - least;
    return score;
  }

  Timeline Trace(const PlanView& plan) const override {
    Timeline timeline = Wrapper::Trace(plan);
    timeline.score = ScorePlan(plan, *NewWorkspace(), {});
    return timeline;
  }

 private:
  int64_t runs_, keep_;
};

struct CachedWorkspace : WrapperWorkspace {
  using WrapperWorkspace::WrapperWorkspace;
  std::unordered_map<std::string, Score> known;
  std::unordered_map<std::string, std::string> failures;  // of those that failed
  std::string key;
};

class CachedEvaluator : public Wrapper {
 public:
  explicit CachedEvaluator(std::shared_ptr<const Evaluator> of)
      : Wrapper(fmt::format("cached(of={})", of->name()), of) {
    // Threads have a cache each, and the same plan must have one score.
    facts_.exclusive = facts_.exclusive || !facts_.deterministic;
    facts_.remembers = true;
  }

  std::unique_ptr<Workspace> NewWorkspace() const override {
    return std::make_unique<CachedWorkspace>(inner_->NewWorkspace());
  }

  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    auto& work = static_cast<CachedWorkspace&>(workspace);
    if (!starts.empty()) return AskInner(plan, work, starts);
    WriteKey(plan, work.key);
    const auto [at, is_new] = work.known.try_emplace(work.key);
    if (is_new) {
      at->second = AskInner(plan, work, {});
      if (at->second.failed()) work.failures[work.key] = work.failure;
    } else if (at->second.failed()) {
      work.failure = work.failures.at(work.key);
    }
    return at->second;
  }

 private:
  template <typename T>
  static void Append(std::span<const T> values, std::string& key) {
    const size_t count = values.size();
    key.append(reinterpret_cast<const char*>(&count), sizeof count);
    key.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }

  static void WriteKey(const PlanView& plan, std::string& key) {
    key.clear();
    Append(plan.device, key);
    Append(plan.priority, key);
    if (plan.sequence == nullptr) return;
    Append(std::span<const OpId>(plan.sequence->ops), key);
    for (const auto& [tensor, to] : plan.sequence->transfers) {
      Append(std::span<const TensorId>(&tensor, 1), key);
      Append(std::span<const DeviceId>(&to, 1), key);
    }
  }
};

struct DeadlineWorkspace : WrapperWorkspace {
  DeadlineWorkspace(std::unique_ptr<Workspace> wrapped, double seconds) : WrapperWorkspace(std::move(wrapped)) {
    inner->stop = [this, seconds] { return watch.seconds() >= seconds || (stop && stop()); };
  }
  Stopwatch watch;
};

class DeadlineEvaluator : public Wrapper {
 public:
  DeadlineEvaluator(std::shared_ptr<const Evaluator> of, double seconds)
      : Wrapper(fmt::format("deadline(seconds={},of={})", seconds, of->name()), of), seconds_(seconds) {
    if (!of->facts().stops) {
      throw Error("deadline: {} cannot be stopped while it works; leave the deadline out", of->name());
    }
    facts_.deterministic = false;  // a slower machine gives other plans up
  }

  std::unique_ptr<Workspace> NewWorkspace() const override {
    return std::make_unique<DeadlineWorkspace>(inner_->NewWorkspace(), seconds_);
  }

  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    auto& work = static_cast<DeadlineWorkspace&>(workspace);
    work.watch = Stopwatch();
    const Score score = AskInner(plan, work, starts);
    if (score.failed() && work.watch.seconds() >= seconds_ && !(work.stop && work.stop())) {
      work.failure = fmt::format("it had no score after {}", ToString(Seconds{seconds_}));
    }
    return score;
  }

 private:
  double seconds_;
};

struct CheckedWorkspace : WrapperWorkspace {
  CheckedWorkspace(std::unique_ptr<Workspace> wrapped, std::unique_ptr<Workspace> of_other)
      : WrapperWorkspace(std::move(wrapped)), other(std::move(of_other)) {
    other->stop = [this] { return stop && stop(); };
  }
  const std::unique_ptr<Workspace> other;
};

class CheckedEvaluator : public Wrapper {
 public:
  CheckedEvaluator(std::shared_ptr<const Evaluator> a, std::shared_ptr<const Evaluator> b, double tolerance)
      : Wrapper(fmt::format("checked(a={},b={},tolerance={})", a->name(), b->name(), tolerance), a),
        other_(std::move(b)),
        tolerance_(tolerance) {
    const EvaluatorFacts& other = other_->facts();
    facts_.deterministic = facts_.deterministic && other.deterministic;
    facts_.exclusive = facts_.exclusive || other.exclusive;
    facts_.stops = facts_.stops && other.stops;
  }

  std::unique_ptr<Workspace> NewWorkspace() const override {
    return std::make_unique<CheckedWorkspace>(inner_->NewWorkspace(), other_->NewWorkspace());
  }

  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    auto& work = static_cast<CheckedWorkspace&>(workspace);
    const Score score = AskInner(plan, work, starts);
    if (score.failed()) return score;
    work.other->evaluation = work.evaluation;
    const Score other = other_->ScorePlan(plan, *work.other);
    if (other.failed()) {
      work.failure = work.other->failure;
      return other;
    }
    const bool equal = score.value() == other.value();  // also where both are infinite
    const double apart = std::abs(score.value() - other.value());
    if (score.fits() == other.fits() &&
        (equal || apart <= tolerance_ * std::max(std::abs(score.value()), std::abs(other.value())))) {
      return score;
    }
    const auto said = [](const Score& s) { return fmt::format("{}{}", s.value(), s.fits() ? "" : " (does not fit)"); };
    work.failure = fmt::format("{} says {}, and {} says {}", inner_->name(), said(score), other_->name(), said(other));
    return Score::Failed();
  }

 private:
  std::shared_ptr<const Evaluator> other_;
  double tolerance_;
};

// Times as a machine would give them that is never quite the same: each is multiplied by exp(share * z), z normal.
class NoisyEvaluator : public Wrapper {
 public:
  NoisyEvaluator(std::shared_ptr<const Evaluator> of, double share, uint64_t seed)
      : Wrapper(fmt::format("noisy(share={},seed={},of={})", share, seed, of->name()), of),
        share_(share),
        random_(seed) {
    // What is proven of the model is not proven of its noise; its memory has none.
    facts_.model = MeasuredFacts{.memory_rule = MemoryRule(of->facts())};
    facts_.deterministic = facts_.remembers = false;
  }

  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    Score score = AskInner(plan, static_cast<WrapperWorkspace&>(workspace), starts);
    if (score.failed() || !std::isfinite(score.value())) return score;
    Random random = random_.Fork(static_cast<uint64_t>(workspace.evaluation));
    const double factor = std::exp(share_ * random.Normal());
    score.time *= factor;
    if (score.objective) *score.objective *= factor;
    return score;
  }

 private:
  double share_;
  Random random_;
};

Parameter Of(std::string name, std::string sentence) {
  return {.name = std::move(name),
          .type = ParameterType::kSpec,
          .default_value = "parallel",
          .sentence = std::move(sentence),
          .mode_decides = true};
}

std::shared_ptr<const Evaluator> Inner(const Params& params, const EvaluatorContext& context, const char* key) {
  return context.evaluators.Make(params.Text(key), context.problem, context.model);
}

}  // namespace

std::unique_ptr<const Evaluator> Repeated(std::shared_ptr<const Evaluator> of, int64_t runs, int64_t keep) {
  return std::make_unique<const RepeatedEvaluator>(std::move(of), runs, keep);
}

std::unique_ptr<const Evaluator> Cached(std::shared_ptr<const Evaluator> of) {
  return std::make_unique<const CachedEvaluator>(std::move(of));
}

void RegisterWrappers(EvaluatorCatalog& catalog) {
  catalog.Add({.name = "repeat",
               .sentence = "the mean of the last runs of another evaluator, each plan scored several times",
               .source = "-",
               .parameters = {Whole("runs", "10", "how often each plan is scored", 1, 1e6),
                              Whole("keep", "5", "how many of these, the last ones, are averaged", 1, 1e6),
                              Of("of", "the evaluator that is repeated")}},
              [](const Params& params, const EvaluatorContext& context) -> std::unique_ptr<Evaluator> {
                return std::make_unique<RepeatedEvaluator>(Inner(params, context, "of"), params.Int("runs"),
                                                           params.Int("keep"));
              });
  catalog.Add({.name = "cached",
               .sentence = "another evaluator, which is asked once for each plan: the same plan has the same score",
               .source = "-",
               .parameters = {Of("of", "the evaluator whose scores are kept")}},
              [](const Params& params, const EvaluatorContext& context) -> std::unique_ptr<Evaluator> {
                return std::make_unique<CachedEvaluator>(Inner(params, context, "of"));
              });
  catalog.Add({.name = "deadline",
               .sentence = "another evaluator; a plan fails whose score takes longer than so many seconds",
               .source = "-",
               .parameters = {Time("seconds", "10", "how long a score may take", 1e-6),
                              Of("of", "an evaluator that can be stopped while it works")}},
              [](const Params& params, const EvaluatorContext& context) -> std::unique_ptr<Evaluator> {
                return std::make_unique<DeadlineEvaluator>(Inner(params, context, "of"), params.Time("seconds"));
              });
  catalog.Add({.name = "checked",
               .sentence = "the scores of a; a plan fails for which b has another score",
               .source = "-",
               .parameters = {Of("a", "the evaluator whose scores count"), Of("b", "the one that must agree"),
                              Real("tolerance", "0", "by which share of the larger score they may differ", 0, 1)}},
              [](const Params& params, const EvaluatorContext& context) -> std::unique_ptr<Evaluator> {
                return std::make_unique<CheckedEvaluator>(Inner(params, context, "a"), Inner(params, context, "b"),
                                                          params.Real("tolerance"));
              });
  catalog.Add(
      {.name = "noisy",
       .sentence = "another evaluator, each of whose times is a little off, as measured times are: for trials",
       .source = "-",
       .parameters = {Real("share", "0.05", "how far they are off: the standard deviation of their logarithm", 0, 1),
                      Whole("seed", "1", "of the noise", 0), Of("of", "the evaluator that is disturbed")}},
      [](const Params& params, const EvaluatorContext& context) -> std::unique_ptr<Evaluator> {
        return std::make_unique<NoisyEvaluator>(Inner(params, context, "of"), params.Real("share"),
                                                static_cast<uint64_t>(params.Int("seed")));
      });
}

}  // namespace berth
