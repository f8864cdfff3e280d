#include <algorithm>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/in_parallel.h"
#include "base/parameters.h"
#include "placement/search.h"
#include "plan/improvement.h"
#include "plan/named_planner.h"
#include "plan/planners.h"
#include "plan/seeds.h"

namespace berth {
namespace {

// How likely each unit is on each device, units apart from one another.
class Odds {
 public:
  explicit Odds(const Units& units) : units_(units), devices_(units.problem().num_devices()) {
    even_.resize(units.size() * devices_);
    for (size_t unit = 0; unit < units.size(); ++unit) {
      const auto able = static_cast<double>(units.num_devices(unit));
      for (const DeviceId device : units.problem().cluster().ids()) {
        even_[unit * devices_ + Index(device)] = units.can_run(unit, device) ? 1 / able : 0;
      }
    }
    odds_ = even_;
  }

  // False where rules between units left no placement.
  bool Draw(Random& random, std::span<DeviceId> device) const {
    for (size_t unit = 0; unit < units_.size(); ++unit) {
      double left = random.Uniform();
      DeviceId drawn = units_.fastest(unit);
      for (size_t d = 0; d < devices_; ++d) {
        const double odds = odds_[unit * devices_ + d];
        if (odds == 0) continue;
        drawn = MakeId<DeviceId>(d);
        if ((left -= odds) < 0) break;
      }
      units_.Put(device, unit, drawn);
    }
    return units_.Legalise(device);
  }

  // Goes by the share `step` to what these plans are likeliest under (the cross-entropy to them is the least), of which
  // `mix` stays even.
  void Fit(std::span<const std::vector<DeviceId>* const> plans, double step, double mix) {
    const double each = 1 / static_cast<double>(plans.size());
    for (double& odds : odds_) odds *= 1 - step;
    for (size_t unit = 0; unit < units_.size(); ++unit) {
      double* const odds = odds_.data() + unit * devices_;
      const double* const even = even_.data() + unit * devices_;
      for (size_t d = 0; d < devices_; ++d) odds[d] += step * mix * even[d];
      const size_t first = Index(units_.ops(unit).front());
      for (const auto* plan : plans) odds[Index((*plan)[first])] += step * (1 - mix) * each;
    }
  }

 private:
  const Units& units_;
  size_t devices_;
  std::vector<double> odds_, even_;  // unit x device
};

// The cross-entropy method (Rubinstein 1999) as in Post (Gao, Chen and Li 2018, algorithm 1, without its steps of
// proximal policy optimization, for which there is `tabular`): plans are drawn from odds, and these follow the best of
// a batch. The same plan on any number of threads.
class CrossEntropyPlanner : public NamedPlanner {
 public:
  CrossEntropyPlanner(const Params& params, const PlannerCatalog& catalog)
      : NamedPlanner(params),
        samples_(static_cast<size_t>(params.Int("samples"))),
        elite_(params.Real("elite")),
        step_(params.Real("step")),
        mix_(params.Real("mix")),
        keep_(params.Bool("keep")),
        batches_(params.Int("batches")),
        seeds_(params, catalog) {}

  PlannerFacts facts() const override { return {.space = seeds_.space()}; }

  PlanResult MakePlan(const PlanRequest& request) override {
    Search search(request);
    const Units units(request.problem());
    const std::vector<Plan> seeds = seeds_.Plans(search, units, request);
    Improvement improvement(search, request);
    int64_t batches = 0;
    if (request.problem().num_devices() > 1 && !search.Done()) batches = Follow(search, units, request, seeds);
    return improvement.Finish(fmt::format("{} batch{}, ", batches, batches == 1 ? "" : "es"),
                              "below what it began with");
  }

 private:
  struct Sample {
    std::vector<DeviceId> device;
    Score score;
  };

  int64_t Follow(Search& search, const Units& units, const PlanRequest& request, const std::vector<Plan>& seeds) const {
    const std::vector<double>& priority = seeds.front().priority;
    const int64_t threads = ThreadsFor(search.evaluator(), request.threads);
    const Random random = search.random().Fork(0);
    // A batch is held in memory, of which a large graph's must not take more than a gigabyte.
    constexpr size_t kMostBytes = size_t{1} << 30;
    const size_t of_one = std::max<size_t>(units.problem().num_ops() * sizeof(DeviceId), 1);
    const size_t batch_size = std::min(samples_, std::max<size_t>(kMostBytes / of_one, 4));
    const size_t elite =
        std::clamp<size_t>(static_cast<size_t>(elite_ * static_cast<double>(batch_size)), 1, batch_size);
    Odds odds(units);
    std::vector<Sample> best;  // the elite of before
    const auto evaluate = [&](std::vector<Sample>& samples) {
      std::vector<PlanView> plans;
      for (const Sample& sample : samples) plans.push_back({.device = sample.device, .priority = priority});
      std::vector<Score> scores(plans.size());
      const size_t done = search.EvaluateAll(plans, scores, kFoundBySearch);
      for (size_t i = 0; i < done; ++i) samples[i].score = scores[i];
      return done == samples.size();
    };
    const auto fit = [&](std::vector<Sample>& samples, size_t count, double step) {
      std::ranges::stable_sort(samples, [](const Sample& a, const Sample& b) { return Better(a.score, b.score); });
      samples.resize(count);
      std::vector<const std::vector<DeviceId>*> plans;
      for (const Sample& sample : samples) plans.push_back(&sample.device);
      odds.Fit(plans, step, mix_);
    };
    if (!seeds_.drawn()) {
      // The best alone: rules that name equal devices otherwise have nothing in common.
      for (const Plan& seed : seeds) best.push_back({.device = seed.device, .score = {}});
      if (!evaluate(best)) return 0;
      fit(best, 1, 1);
    }
    int64_t batch = 0;
    while (!search.Done() && !(request.budget.endless() && batch >= batches_)) {
      std::vector<Sample> samples(batch_size);
      std::vector<uint8_t> legal(batch_size, 1);
      InParallel(static_cast<int64_t>(batch_size), threads, [&](size_t i) {
        if (search.Interrupted()) return;
        Random own = random.Fork(static_cast<uint64_t>(batch), i);
        samples[i].device.resize(units.problem().num_ops());
        legal[i] = odds.Draw(own, samples[i].device) ? 1 : 0;
      });
      if (search.Interrupted()) break;
      for (size_t i = 0; i < batch_size; ++i) {
        if (legal[i] == 0) samples[i].device = search.best().device;
      }
      if (!evaluate(samples)) break;
      if (keep_) std::ranges::move(best, std::back_inserter(samples));
      fit(samples, elite, step_);
      best = std::move(samples);
      ++batch;
    }
    return batch;
  }

  size_t samples_;
  double elite_, step_, mix_;
  bool keep_;
  int64_t batches_;
  Seeds seeds_;
};

}  // namespace

void RegisterCrossEntropy(PlannerCatalog& catalog) {
  std::vector<Parameter> parameters = {
      Whole("samples", "100", "plans in a batch", 1, 1e6),
      Real("elite", "0.1", "share of a batch that the odds follow", 0, 1),
      Real("step", "1", "how far they go there; 1: all the way, as published", 0, 1),
      Real("mix", "0.01", "share of the odds that stays even", 0, 1),
      Switch("keep", "true", "the best of the batches before stay with those of this one"),
      Whole("batches", "200", "batches, where the budget sets no limit", 1, 1e12)};
  for (Parameter& parameter : Seeds::Parameters(SearchOrder::kRank, "rank")) parameters.push_back(std::move(parameter));
  catalog.Add(
      {.name = "cross_entropy",
       .sentence = "The cross-entropy method: draws plans from odds per op, which follow the best of each batch.",
       .source = "Post (Gao, Chen and Li 2018), algorithm 1; Rubinstein 1999",
       .parameters = std::move(parameters)},
      [](const Params& params, const PlannerCatalog& all) {
        return std::make_unique<CrossEntropyPlanner>(params, all);
      });
}

}  // namespace berth
