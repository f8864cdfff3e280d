#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/parameters.h"
#include "moves/clusters.h"
#include "moves/list_scheduler.h"
#include "placement/partial_schedule.h"
#include "placement/search.h"
#include "plan/causes.h"
#include "plan/favourites.h"
#include "plan/named_planner.h"
#include "plan/planners.h"

namespace berth {
namespace {

enum class Grouped : uint8_t { kAuto, kAlways, kNever };
enum class FavouritesBy : uint8_t { kNothing, kProgram, kHeaviest };

struct ListOptions {
  Urgency urgency;
  bool insertion = false;
  FavouritesBy favourites = FavouritesBy::kNothing;  // of Urgency::kEarliest
  size_t most_edges = 0;                             // of the linear program for these
};

// List scheduling (list_scheduler.h): once with each unit on its own, and where ops must share devices, or where that
// is asked for, with clusters of units that are costly to part. Evaluates each schedule as it stands, and its
// placement under the first-come rule and under the ranks as priorities, and keeps the best. When that does not fit
// into memory it schedules once more, minding memory. Favourite children (favourites.h) come from the linear program,
// or by the heaviest tensors where the graph is too large for that or it has not ended in half of the time; then the
// note says so.
class ListPlanner : public NamedPlanner {
 public:
  ListPlanner(const Params& params, const ListOptions& options)
      : NamedPlanner(params),
        options_(options),
        contention_(params.Text("contention")),
        order_(params.Text("order")),
        grouped_(params.Text("clusters") == "always"  ? Grouped::kAlways
                 : params.Text("clusters") == "never" ? Grouped::kNever
                                                      : Grouped::kAuto) {}

  PlannerFacts facts() const override {
    const auto space = order_ == "first_come" ? PlannerFacts::Space::kPlacement
                       : order_ == "priority" ? PlannerFacts::Space::kPriorities
                                              : PlannerFacts::Space::kSequence;
    return {.space = space, .deterministic_without_seed = true};
  }

  std::optional<std::string> Refuses(const Problem& problem, const Evaluator& evaluator) const override {
    if (options_.favourites == FavouritesBy::kProgram && !kHasFavouriteProgram) {
      return "it needs HiGHS, which is not in this build: build it without BERTH_WITHOUT=highsbox, or take "
             "sct(favourites=heaviest)";
    }
    return NamedPlanner::Refuses(problem, evaluator);
  }

  PlanResult MakePlan(const PlanRequest& request) override {
    Search search(request);
    const Units units(request.problem());
    std::string note;
    ListScheduler scheduler(units, options_.urgency, FindFavourites(search, request, units, note));
    EvaluateRuns(search, units, scheduler, nullptr);
    if (grouped_ == Grouped::kAlways || (grouped_ == Grouped::kAuto && units.size() < request.problem().num_ops())) {
      for (const double ratio : kTieRatios) {
        if (search.Done()) break;
        const std::optional<Clusters> clusters = TieUnits(units, ratio);
        if (clusters) EvaluateRuns(search, units, scheduler, &*clusters);
      }
    }
    PlanResult result = search.Finish(false, std::move(note));
    GiveCauses(request, result, "finishes first there");
    return result;
  }

 private:
  std::vector<OpId> FindFavourites(Search& search, const PlanRequest& request, const Units& units,
                                   std::string& note) const {
    if (options_.favourites == FavouritesBy::kNothing) return {};
    if (options_.favourites == FavouritesBy::kProgram) {
      const size_t edges = FavouriteEdges(units).size();
      if (edges > options_.most_edges) {
        note = fmt::format(
            "favourite children by the heaviest tensors: the linear program of {} edges is too large, at most {}",
            edges, options_.most_edges);
      } else {
        const double most = request.budget.seconds / 2;
        auto found = FavouritesByProgram(units, [&] { return search.Interrupted() || search.seconds() > most; });
        if (found) return std::move(found->child);
        note = "favourite children by the heaviest tensors: the linear program ";
        if (search.Interrupted() || search.seconds() > most) {
          search.CutShort(SearchEnd::kClock);
          note += "was stopped, or did not end in half of the time";
        } else {
          note += "was not solved";
        }
      }
    }
    return HeaviestFavourites(units).child;
  }

  void EvaluateRuns(Search& search, const Units& units, ListScheduler& scheduler, const Clusters* clusters) const {
    EvaluateRun(search, units, scheduler, clusters, false);
    if (!search.best_score().fits() && search.problem().has_memory_limits()) {
      EvaluateRun(search, units, scheduler, clusters, true);
    }
  }

  void EvaluateRun(Search& search, const Units& units, ListScheduler& scheduler, const Clusters* clusters,
                   bool mind_memory) const {
    if (search.Done()) return;
    const EvaluatorFacts& facts = search.evaluator().facts();
    const PartialSchedule schedule = scheduler.Run({.contention = ContentionFor(facts),
                                                    .io_host = facts.io_host(),
                                                    .insertion = options_.insertion,
                                                    .mind_memory = mind_memory,
                                                    .stop = [&] { return search.Interrupted(); }},
                                                   clusters);
    if (scheduler.stopped()) {
      const DeviceId device = units.size() > 0 ? units.fastest(0) : DeviceId{0};
      if (!search.has_best()) search.Evaluate({.device = units.AllOn(device)}, "before the time was over");
      return;
    }
    Plan plan;
    try {
      plan.device = scheduler.kept_apart() ? scheduler.device() : units.Legal(scheduler.device());
    } catch (const Error&) {
      // Of several schedules one that is allowed is an answer.
      if (!search.has_best()) throw;
      return;
    }
    const auto evaluate = [&] {
      if (!search.Done()) search.Evaluate(plan);
    };
    const bool ordered = facts.uses_priorities && facts.Is<ParallelFacts>();
    if (ordered && scheduler.kept_apart() && (order_ == "best" || order_ == "sequence")) {
      plan.sequence = schedule.InOrder();
      evaluate();
      plan.sequence.reset();
      if (order_ == "sequence") return;
    }
    if (order_ != "priority" || !ordered) evaluate();
    if (ordered && (order_ == "best" || order_ == "priority")) {
      plan.priority = scheduler.rank();
      evaluate();
    }
  }

  Contention ContentionFor(const EvaluatorFacts& facts) const {
    if (contention_ == "ports") return Contention::kPorts;
    return contention_ == "auto" && facts.Is<ParallelFacts>() ? facts.contention() : Contention::kNone;
  }

  ListOptions options_;
  std::string contention_;
  std::string order_;
  Grouped grouped_;
};

std::vector<Parameter> SharedParameters() {
  return {Choice("contention", {"auto", "none", "ports"},
                 "how transfers queue while scheduling; auto: as the evaluator says"),
          Choice("order", {"best", "first_come", "priority", "sequence"},
                 "order of ops in the plan: none (first_come), the ranks as priorities, the schedule's own sequence, "
                 "or the best of the three"),
          Choice("clusters", {"auto", "always", "never"},
                 "whether it schedules also with ops that are costly to part on one device; auto: where some "
                 "must share a device, as in training")};
}

}  // namespace

void RegisterHeft(PlannerCatalog& catalog) {
  std::vector<Parameter> parameters = {
      Choice("rank", {"upward", "optimistic", "critical"},
             "upward: HEFT; optimistic: PEFT, which looks ahead when it chooses a device; critical: CPOP, which "
             "keeps the longest path on one device"),
      Switch("insertion", "true", "ops may be inserted into idle gaps of a device")};
  for (Parameter& parameter : SharedParameters()) parameters.push_back(std::move(parameter));
  catalog.Add({.name = "heft",
               .sentence = "List scheduling: takes ops by their longest path to the end, and puts each on the device "
                           "where it finishes first.",
               .source = "Topcuoglu, Hariri and Wu 2002, section 4; rank=optimistic: Arabnejad and Barbosa 2014",
               .parameters = std::move(parameters)},
              [](const Params& params, const PlannerCatalog&) {
                const std::string& rank = params.Text("rank");
                const Urgency urgency = rank == "upward"     ? Urgency::kUpward
                                        : rank == "critical" ? Urgency::kCritical
                                                             : Urgency::kOptimistic;
                return std::make_unique<ListPlanner>(
                    params, ListOptions{.urgency = urgency, .insertion = params.Bool("insertion")});
              });
  catalog.Add({.name = "etf",
               .sentence = "List scheduling: of all ops that are ready, takes the one that can start first anywhere.",
               .source = "Hwang et al. 1989; memory as in Baechi's m-ETF (Jeon et al. 2020)",
               .parameters = SharedParameters()},
              [](const Params& params, const PlannerCatalog&) {
                return std::make_unique<ListPlanner>(params, ListOptions{.urgency = Urgency::kEarliest});
              });
  std::vector<Parameter> with_favourites = {
      {.name = "favourites",
       .type = ParameterType::kChoice,
       .default_value = "program",
       .sentence = "how an op's favourite child is found: program, by the linear program, which needs HiGHS; heaviest, "
                   "by the tensors that take longest to send",
       .choices = {"program", "heaviest"}},
      Whole("edges", fmt::format("{}", kMostProgramEdges),
            "most edges of the linear program; of more, favourite children are found by the heaviest tensors", 0)};
  for (Parameter& parameter : SharedParameters()) with_favourites.push_back(std::move(parameter));
  catalog.Add(
      {.name = "sct",
       .sentence = "As etf, but a device waits for the favourite child of its last op, unless another op could be run "
                   "anywhere.",
       .source = "Hanen and Munier 1995; memory as in Baechi's m-SCT (Jeon et al. 2020)",
       .parameters = std::move(with_favourites)},
      [](const Params& params, const PlannerCatalog&) {
        const bool program = params.Text("favourites") == "program";
        return std::make_unique<ListPlanner>(
            params, ListOptions{.urgency = Urgency::kEarliest,
                                .favourites = program ? FavouritesBy::kProgram : FavouritesBy::kHeaviest,
                                .most_edges = static_cast<size_t>(params.Int("edges"))});
      });
}

}  // namespace berth
