#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/in_parallel.h"
#include "moves/list_scheduler.h"
#include "placement/bound.h"
#include "placement/bound_work.h"
#include "placement/search.h"
#include "plan/improvement.h"
#include "plan/named_planner.h"
#include "plan/planners.h"
#include "plan/seeds.h"

namespace berth {
namespace {

// What is soon done, from the best of the rules: of tiny problems all plans, cuts in two, and searches on whole layers,
// few moves that are worth much each.
constexpr const char* kQuick[] = {"exhaustive(space=order,limit=1e18,steps=300000)", "one_cut",
                                  "on(group=layers,planner=local_search(order=rank))",
                                  "on(group=layers,planner=local_search)"};
// Rounds of searches, each from the best of the round before: cooler than from anywhere, so as not to lose it.
constexpr size_t kRounds = 2;
using Rounds = std::array<std::vector<const char*>, kRounds>;
const Rounds kFine = {{{"local_search(order=rank)", "multilevel", "annealing(order=rank,hot=0.001)"},
                       {"annealing(order=search,hot=0.001)", "annealing(order=rank,hot=0.0003)"}}};
// The same where ops differ in which device is the fastest, and each device is that of its share: then the best plans
// waste no work, and the order of the ops is all that is left. Devices must wait for ops that come soon, so that it is
// one of sequences; hot, since wherever it begins the order is wrong.
const Rounds kOrders = {{{"annealing(order=sequence,moves=order,start=fastest,hot=0.05,cold=0.0001)",
                          "annealing(order=search,work=30,hot=0.005)"},
                         {"annealing(order=sequence,moves=order,start=fastest,hot=0.02,cold=0.0001)",
                          "annealing(order=sequence,moves=order,hot=0.005,cold=0.0001)"}}};
constexpr double kShare = 1.1;  // of the least that the busiest device computes
// Shares of what is left of the budget.
constexpr double kForRules = 0.4, kForQuick = 0.1;
// The most of it that is kept for ordering the best placement at the end.
constexpr double kMostForOrder = 0.1;
// A rule needs one score to have any plan. A search needs one of what it begins with and one to set up its moves,
// before it can try the first.
constexpr double kScoresOfRule = 1, kScoresOfSearch = 3;
// With so many scores every rule comes to its own end: `human` tries some sixty layouts.
constexpr double kScoresOfRules = 100;
constexpr std::array<double, kRounds> kForFine = {0.6, 1};

// Whether each op on its fastest device is nearly as much work as there must be.
bool FastestShareTheWork(const Problem& problem) {
  const Units units(problem);
  std::vector<double> load(problem.num_devices());
  for (size_t unit = 0; unit < units.size(); ++unit) {
    const DeviceId device = units.fastest(unit);
    load[Index(device)] += units.time(unit, device);
  }
  if (load.size() < 2 || units.contradiction()) return false;
  const std::vector<double> nothing(load.size(), 0);
  return std::ranges::max(load) <= kShare * LeastWork(problem, nothing, 1);
}

// Runs all simple rules and schedules; then searches that begin from the best of these, each with an equal share of the
// budget; then searches from the best of those. Several run at a time, on as many threads as the request allows: with a
// budget of evaluations the plan is the same on any number of them. At the end the best placement is ordered anew.
// Seconds are kept for that, and for the causes, which take about as long as a score; where a score takes seconds, who
// has no time for those that it needs does not begin.
// It ends as soon as a plan takes no longer than the lower bound says that any must.
// Never worse than the best of the rules that the budget reaches, and the best single device is the first of these.
class AutoPlanner : public NamedPlanner {
 public:
  AutoPlanner(const Params& params, const PlannerCatalog& catalog) : NamedPlanner(params), rules_(MakeRules(catalog)) {
    const auto add = [&](const char* name, std::vector<std::unique_ptr<Planner>>& members) {
      // Some are not in every build, nor in every program's catalog.
      if (catalog.Find(Spec::Parse(name).name) != nullptr) members.push_back(catalog.MakePlanner(name));
    };
    for (const char* name : kQuick) add(name, quick_);
    for (size_t round = 0; round < kRounds; ++round) {
      for (const char* name : kFine[round]) add(name, fine_[round]);
      for (const char* name : kOrders[round]) add(name, orders_[round]);
    }
  }

  PlannerFacts facts() const override { return {.space = PlannerFacts::Space::kSequence}; }

  PlanResult MakePlan(const PlanRequest& request) override {
    Run run(request);
    run.Rules(rules_);
    run.EndAtBound();
    run.Stage(quick_, kForQuick, kScoresOfSearch);
    const EvaluatorFacts& facts = request.evaluator.facts();
    const bool ordered = facts.Is<ParallelFacts>() && facts.uses_priorities && FastestShareTheWork(request.problem());
    for (size_t round = 0; round < kRounds; ++round) {
      run.EndAtBound();
      run.Stage(ordered ? orders_[round] : fine_[round], kForFine[round], kScoresOfSearch);
    }
    run.OrderBest();
    return run.Finish();
  }

 private:
  class Run {
   public:
    explicit Run(const PlanRequest& request) : request_(request), search_(request) {}

    // How members of a stage share its seconds: in equal parts, or each takes what it needs to come to its end, in
    // their order. A rule that is cut short has no plan worth its time; the one that tries most plans has half of what
    // is left at most, since each of these may be a run of seconds.
    enum class Seconds : uint8_t { kEqual, kAsNeeded };

    // All rules, which end by themselves. Where equal shares of the evaluations would cut some short, they run one
    // after another, and what one leaves of its share is the others'; the one that tries most plans is the last.
    void Rules(const std::vector<std::unique_ptr<Planner>>& rules) {
      const double each =
          kForRules * static_cast<double>(search_.evaluations_left()) / static_cast<double>(rules.size());
      if (each >= kScoresOfRules) return Stage(rules, kForRules, kScoresOfRule, Seconds::kAsNeeded);
      std::vector<Planner*> able;
      for (const auto& rule : rules) {
        if (!rule->Refuses(request_.problem(), request_.evaluator)) able.push_back(rule.get());
      }
      std::ranges::stable_partition(able, [](const Planner* rule) { return rule->name() != kLongest; });
      const double end = EndOf(kForRules);
      for (size_t i = 0; i < able.size() && !search_.Done(); ++i) {
        const auto share = search_.evaluations_left() / static_cast<int64_t>(able.size() - i);
        Play({able[i]}, std::max<int64_t>(share, 1), end, kScoresOfRule, Seconds::kAsNeeded);
      }
    }

    // Members that do not refuse, with equal shares of `share` of what is left of the evaluations, and of the seconds
    // where `seconds` says so. None begins without the time for `least` scores.
    void Stage(const std::vector<std::unique_ptr<Planner>>& members, double share, double least,
               Seconds seconds = Seconds::kEqual) {
      if (search_.Done() || optimal_) return;
      std::vector<Planner*> able;
      for (const auto& member : members) {
        if (!member->Refuses(request_.problem(), request_.evaluator)) able.push_back(member.get());
      }
      int64_t each = std::numeric_limits<int64_t>::max();
      if (request_.budget.evaluations < each) {
        const auto left = static_cast<double>(search_.evaluations_left());
        // With less than one for each the first have it; some are kept for the order at the end.
        const auto most = static_cast<size_t>(std::max(1.0, share < 1 ? left * share : left - kForOrder));
        if (able.size() > most) {
          able.resize(most);
          search_.CutShort(SearchEnd::kEvaluations);
        }
        each = static_cast<int64_t>(most / std::max<size_t>(1, able.size()));
      }
      if (able.empty()) return;
      Play(able, each, EndOf(share), least, seconds);
    }

    // Nothing is left to search for where the best plan takes no longer than any must. The bound is computed once,
    // where that takes a small part of what is left of the seconds.
    void EndAtBound() {
      if (!search_.has_best() || search_.Done() || optimal_ || !request_.evaluator.facts().deterministic) return;
      const auto devices = static_cast<double>(request_.problem().num_devices());
      const double takes = kSecondsOfBound * static_cast<double>(request_.problem().num_ops()) *
                           std::max(1.0, devices * devices / kFewPairs);
      if (!bound_ && takes > kMostForBound * search_.seconds_left()) return;
      if (!bound_) bound_ = LowerBound(request_.evaluator).value();
      const Score& best = search_.best_score();
      if (!best.fits() || best.value() > *bound_ * (1 + kRounding)) return;
      search_.Prove(std::min(best.value(), *bound_));
      optimal_ = true;
    }

    // The best placement once more, in the order of a schedule for just this placement.
    void OrderBest() {
      const EvaluatorFacts& facts = request_.evaluator.facts();
      if (!search_.has_best() || search_.Done() || optimal_ || !facts.Is<ParallelFacts>() || !facts.uses_priorities)
        return;
      if (search_.seconds_left() < schedule_seconds_ + search_.seconds_per_evaluation())
        return search_.CutShort(SearchEnd::kClock);
      const Units units(request_.problem());
      ListScheduler scheduler(units, Urgency::kUpward);
      Plan plan{.device = search_.best().device};
      const PartialSchedule schedule = scheduler.Order(
          {.contention = facts.contention(), .io_host = facts.io_host(), .stop = [&] { return search_.Interrupted(); }},
          plan.device);
      if (scheduler.stopped()) return search_.CutShort(SearchEnd::kClock);
      const PlanRequest request = search_.Remaining(++stream_);
      Search orders(request);
      plan.priority = scheduler.rank();
      orders.Evaluate(plan);
      plan.priority.clear();
      plan.sequence = schedule.InOrder();
      if (!orders.Done()) orders.Evaluate(plan);
      search_.Adopt(orders.Found(), request.budget, "the same devices in a list schedule's order");
    }

    PlanResult Finish() {
      if (!search_.has_best()) throw Error("{}", failure_);
      PlanResult result = search_.Finish(optimal_);
      GiveCauses(request_, result, kFoundBySearch);
      return result;
    }

   private:
    static constexpr double kForOrder = 2;
    static constexpr double kRounding = 1e-12;  // sums of the same times in another order
    // Per op, on up to so many pairs of devices; of the seconds that are left.
    static constexpr double kSecondsOfBound = 3e-6, kFewPairs = 64, kMostForBound = 0.05;
    static constexpr std::string_view kLongest = "human";
    static constexpr std::string_view kSchedule = "heft";      // which takes about as long as ordering a placement
    static constexpr int64_t kManyNumbers = int64_t{1} << 40;  // more than any member will use

    // What is left of the seconds when those for the end are taken away.
    double SecondsForSearch() const {
      const double left = search_.seconds_left();
      const double order = schedule_seconds_ <= kMostForOrder * left ? schedule_seconds_ : 0;
      return std::max(0.0, left - order - search_.seconds_per_evaluation());
    }

    // When what gets this share of these seconds is to end.
    double EndOf(double share) const { return search_.seconds() + share * SecondsForSearch(); }

    void Play(const std::vector<Planner*>& members, int64_t evaluations, double end, double least, Seconds seconds) {
      const size_t threads = Threads(members.size());
      const double left = SecondsForSearch();
      std::atomic<double> pace = search_.seconds_per_evaluation();  // of a score: the slowest of those who have ended
      std::vector<PlanRequest> requests;
      for (size_t i = 0; i < members.size(); ++i) {
        PlanRequest part = search_.Remaining(++stream_, evaluations, left);
        part.start = search_.has_best() ? &search_.best() : request_.start;
        part.first_evaluation = search_.Lend(std::min(evaluations, kManyNumbers)).first;
        part.confirms = false;
        part.causes = false;
        part.progress = nullptr;
        part.threads = threads > 1 ? 1 : request_.threads;
        requests.push_back(std::move(part));
      }
      std::vector<PlanResult> results(members.size());
      std::vector<uint8_t> has_result(members.size(), 0);
      std::vector<std::string> failure(members.size());
      InParallel(static_cast<int64_t>(members.size()), static_cast<int64_t>(threads), [&](size_t i) {
        // Of the time that is left, an equal share for each of the rounds that are left.
        const auto rounds = seconds == Seconds::kEqual
                                ? static_cast<double>((members.size() - i + threads - 1) / threads)
                            : members[i]->name() == kLongest ? 2
                                                             : 1;
        const double allowed = (end - search_.seconds()) / rounds;
        const bool has_plan = i > 0 || search_.has_best();
        if (has_plan && (allowed <= 0 || allowed < least * pace || search_.Interrupted())) return;
        requests[i].budget.seconds = std::min(requests[i].budget.seconds, std::max(0.0, allowed));
        try {
          results[i] = members[i]->MakePlan(requests[i]);
          has_result[i] = 1;
          pace = std::max(pace.load(), results[i].seconds_per_evaluation);
        } catch (const FailedSearch& error) {
          results[i] = error.asked;
          failure[i] = error.what();
        } catch (const Error& error) {
          // Groups and rules that keep ops apart may leave a member without any placement.
          failure[i] = error.what();
        }
      });
      for (size_t i = 0; i < members.size(); ++i) {
        if (has_result[i] != 0)
          Adopt(*members[i], results[i], requests[i].budget);
        else if (failure[i].empty())
          search_.CutShort(SearchEnd::kClock);  // it had no time to begin
        else
          search_.Adopt(results[i]);  // without a plan, but its scores count
        if (failure_.empty()) failure_ = failure[i];
      }
    }

    size_t Threads(size_t members) const {
      if (!request_.evaluator.facts().deterministic) return 1;
      return std::clamp<size_t>(static_cast<size_t>(ThreadsFor(request_.evaluator, request_.threads)), 1, members);
    }

    void Adopt(const Planner& member, const PlanResult& result, const Budget& given) {
      search_.Adopt(result, given, member.name());
      if (member.name() == kSchedule) schedule_seconds_ = result.wall_seconds;
      optimal_ = optimal_ || NoPlanIsBetter(member, result, request_.evaluator.facts());
    }

    const PlanRequest& request_;
    Search search_;
    uint64_t stream_ = 0;
    double schedule_seconds_ = 0;
    std::string failure_;
    std::optional<double> bound_;
    bool optimal_ = false;
  };

  std::vector<std::unique_ptr<Planner>> rules_, quick_;
  std::array<std::vector<std::unique_ptr<Planner>>, kRounds> fine_, orders_;
};

}  // namespace

void RegisterAuto(PlannerCatalog& catalog) {
  catalog.Add(
      {.name = "auto",
       .sentence = "The best of all: rules and schedules first, then searches that begin where these ended, on "
                   "all processors.",
       .source = "-",
       .parameters = {}},
      [](const Params& params, const PlannerCatalog& all) { return std::make_unique<AutoPlanner>(params, all); });
}

}  // namespace berth
