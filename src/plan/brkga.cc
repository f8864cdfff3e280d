#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "base/in_parallel.h"
#include "base/parameters.h"
#include "moves/moves.h"
#include "moves/structure.h"
#include "placement/search.h"
#include "plan/improvement.h"
#include "plan/named_planner.h"
#include "plan/planners.h"
#include "plan/seeds.h"

namespace berth {
namespace {

// What a chromosome means: how much each unit wants each device, unit by unit; then, with order=search, how urgent each
// op is. Keys are drawn from [0, 1]; moves may bring priorities outside.
class Decoder {
 public:
  Decoder(const Units& units, bool orders)
      : units_(units),
        devices_(units.problem().num_devices()),
        first_priority_(units.size() * devices_),
        length_(first_priority_ + (orders ? units.problem().num_ops() : 0)) {
    for (size_t unit = 0; unit < units.size(); ++unit) {
      for (const DeviceId device : units.problem().cluster().ids()) can_run_.push_back(units.can_run(unit, device));
    }
  }

  size_t length() const { return length_; }
  bool orders() const { return length_ > first_priority_; }
  size_t first_key(size_t unit) const { return unit * devices_; }
  size_t devices() const { return devices_; }
  size_t priority_key(OpId op) const { return first_priority_ + Index(op); }

  // Each unit on the device that it wants most, of those that can run it; the nearest placement where rules between
  // units forbid that. False where none was found.
  bool Decode(std::span<const float> keys, std::span<DeviceId> device, std::span<double> priority) const {
    for (size_t unit = 0; unit < units_.size(); ++unit) {
      const size_t first = first_key(unit);
      size_t wanted = devices_;
      for (size_t d = 0; d < devices_; ++d) {
        if (can_run_[first + d] && (wanted == devices_ || keys[first + d] > keys[first + wanted])) wanted = d;
      }
      units_.Put(device, unit, MakeId<DeviceId>(wanted));
    }
    std::ranges::copy(keys.subspan(first_priority_), priority.begin());
    return units_.Legalise(device);
  }

  // Moves units to other devices; their keys follow.
  void Move(std::span<const std::pair<OpId, DeviceId>> moves, std::span<float> keys, std::span<DeviceId> device) const {
    for (const auto& [op, to] : moves) {
      device[Index(op)] = to;
      const size_t unit = units_.unit_of(op);
      if (units_.ops(unit).front() == op) Want(to, keys.subspan(first_key(unit), devices_));
    }
  }

  // Random keys that decode to this plan, its order in even steps.
  void Encode(const Plan& plan, Random& random, std::span<float> keys) const {
    for (float& key : keys) key = static_cast<float>(random.Uniform());
    for (size_t unit = 0; unit < units_.size(); ++unit) {
      Want(plan.device[Index(units_.ops(unit).front())], keys.subspan(first_key(unit), devices_));
    }
    if (!orders() || plan.priority.empty()) return;
    std::vector<size_t> by_priority(plan.priority.size());
    std::iota(by_priority.begin(), by_priority.end(), size_t{0});
    std::ranges::stable_sort(by_priority, {}, [&](size_t v) { return plan.priority[v]; });
    for (size_t k = 0; k < by_priority.size(); ++k) {
      keys[first_priority_ + by_priority[k]] =
          static_cast<float>((static_cast<double>(k) + 0.5) / static_cast<double>(by_priority.size()));
    }
  }

 private:
  static void Want(DeviceId device, std::span<float> wants) {
    std::swap(wants[Index(device)], *std::ranges::max_element(wants));
  }

  const Units& units_;
  size_t devices_, first_priority_, length_;
  std::vector<bool> can_run_;  // by key
};

// Which keys a child has from one parent together.
class Inheritance {
 public:
  // `parts`: with `whole`, parts of the network (structure.h) go whole.
  Inheritance(const Units& units, const Structure& structure, const Decoder& decoder, bool whole)
      : decoder_(decoder), whole_(whole) {
    if (!whole) return;
    size_t partitions = 0;
    for (size_t i = 0; i < structure.num_parts(); ++i) {
      partitions = std::max(partitions, structure.partition_of(i) + 1);
    }
    // Beside them, each unit on its own.
    label_.resize(partitions + 1);
    for (auto& label : label_) {
      label.resize(units.problem().num_ops());
      for (const OpId op : units.problem().graph().ops()) label[Index(op)] = static_cast<uint32_t>(units.unit_of(op));
    }
    for (size_t i = 0; i < structure.num_parts(); ++i) {
      for (const OpId op : structure.part(i)) {
        label_[structure.partition_of(i)][Index(op)] = static_cast<uint32_t>(units.size() + i);
      }
    }
    labels_ = units.size() + structure.num_parts();
    for (size_t unit = 0; unit < units.size(); ++unit) first_op_.push_back(units.ops(unit).front());
  }

  // Parameterised uniform crossover (Spears and DeJong 1991): from the elite parent with probability `bias`.
  void Cross(std::span<const float> elite, std::span<const float> other, double bias, Random& random,
             std::span<float> child) const {
    if (!whole_) {
      for (size_t k = 0; k < child.size(); ++k) child[k] = random.Chance(bias) ? elite[k] : other[k];
      return;
    }
    const std::vector<uint32_t>& label = label_[random.Below(label_.size())];
    std::vector<uint8_t> from_elite(labels_);
    for (uint8_t& coin : from_elite) coin = random.Chance(bias) ? 1 : 0;
    const auto parent = [&](size_t v) { return from_elite[label[v]] != 0 ? elite : other; };
    for (size_t unit = 0; unit < first_op_.size(); ++unit) {
      const std::span<const float> from = parent(Index(first_op_[unit]));
      for (size_t k = 0; k < decoder_.devices(); ++k) {
        child[decoder_.first_key(unit) + k] = from[decoder_.first_key(unit) + k];
      }
    }
    if (!decoder_.orders()) return;
    for (size_t v = 0; v < label.size(); ++v) {
      const size_t key = decoder_.priority_key(MakeId<OpId>(v));
      child[key] = parent(v)[key];
    }
  }

 private:
  const Decoder& decoder_;
  bool whole_;
  std::vector<std::vector<uint32_t>> label_;  // by partition, by op
  size_t labels_ = 0;
  std::vector<OpId> first_op_;  // by unit
};

struct Rates {
  size_t population;
  double elite, mutants, bias, moves;
};

// The generations of one search.
class Evolution {
 public:
  Evolution(Search& search, const Units& units, const std::vector<Plan>& seeds, bool orders, bool whole,
            const Rates& rates, int64_t threads)
      : search_(search),
        seeds_(seeds),
        rates_(rates),
        threads_(static_cast<size_t>(threads)),
        random_(search.random().Fork(0)),
        decoder_(units, orders),
        structure_(units),
        inheritance_(units, structure_, decoder_, whole),
        movers_(threads_, MoveMaker(units, structure_)) {
    const size_t num_ops = units.problem().num_ops();
    size_ = Size(num_ops);
    const auto share = [&](double of) { return static_cast<size_t>(of * static_cast<double>(size_)); };
    elite_ = std::clamp<size_t>(share(rates.elite), 1, size_ - 2);
    mutants_ = std::min(share(rates.mutants), size_ - elite_ - 1);
    // Priorities that are not searched are the same in all.
    const Individual blank = {.keys = std::vector<float>(decoder_.length()),
                              .device = std::vector<DeviceId>(num_ops),
                              .priority = orders ? std::vector<double>(num_ops) : seeds.front().priority,
                              .score = {}};
    now_.assign(size_, blank);
    before_.assign(size_, blank);
  }

  // Both are false where the budget ended on the way. The first generation: the seeds, and random ones.
  bool Begin() {
    return Renew(0, [&](size_t i, size_t, Random& random) {
      if (i < seeds_.size()) {
        decoder_.Encode(seeds_[i], random, now_[i].keys);
        Decode(now_[i]);
      } else {
        Draw(now_[i], random);
      }
    });
  }
  bool Next() {
    ++generation_;
    std::swap(now_, before_);
    std::copy_n(before_.begin(), elite_, now_.begin());
    return Renew(elite_, [&](size_t i, size_t thread, Random& random) {
      if (i >= size_ - mutants_) return Draw(now_[i], random);
      const Individual& best = before_[random.Below(elite_)];
      const Individual& other = before_[elite_ + random.Below(size_ - elite_)];
      inheritance_.Cross(best.keys, other.keys, rates_.bias, random, now_[i].keys);
      Decode(now_[i]);
      while (now_[i].legal && random.Chance(rates_.moves / (1 + rates_.moves))) {
        Change(now_[i], movers_[thread], random);
      }
    });
  }

 private:
  struct Individual {
    std::vector<float> keys;
    std::vector<DeviceId> device;
    std::vector<double> priority;
    Score score;
    bool legal = true;
  };
  static constexpr double kUrgency = 0.3;  // of the moves: those of an op's place in the order

  // As many as there are meant to be, or as fit in 2 GB.
  size_t Size(size_t num_ops) const {
    const size_t bytes = decoder_.length() * sizeof(float) + num_ops * (sizeof(DeviceId) + sizeof(double));
    return std::min(rates_.population, std::max<size_t>(4, (size_t{1} << 30) / std::max<size_t>(bytes, 1)));
  }

  // The individuals from `kept` on are made, each from random numbers of its own, and scored; all are ranked.
  template <typename Make>
  bool Renew(size_t kept, const Make& make) {
    InParallel(static_cast<int64_t>(threads_), static_cast<int64_t>(threads_), [&](size_t thread) {
      for (size_t i = kept + thread; i < size_ && !search_.Interrupted(); i += threads_) {
        Random random = random_.Fork(generation_, i);
        make(i, thread, random);
      }
    });
    if (search_.Interrupted()) return false;
    std::vector<PlanView> plans;
    for (size_t i = kept; i < size_; ++i) {
      if (!now_[i].legal) now_[i].device = search_.best().device;
      plans.push_back({.device = now_[i].device, .priority = now_[i].priority});
    }
    std::vector<Score> scores(plans.size());
    if (search_.EvaluateAll(plans, scores, kFoundBySearch) < plans.size()) return false;
    for (size_t i = kept; i < size_; ++i) now_[i].score = scores[i - kept];
    std::ranges::stable_sort(now_, [](const Individual& a, const Individual& b) { return Better(a.score, b.score); });
    return true;
  }

  void Draw(Individual& each, Random& random) const {
    for (float& key : each.keys) key = static_cast<float>(random.Uniform());
    Decode(each);
  }

  void Decode(Individual& each) const {
    each.legal =
        decoder_.Decode(each.keys, each.device, decoder_.orders() ? std::span(each.priority) : std::span<double>{});
  }

  void Change(Individual& each, MoveMaker& mover, Random& random) const {
    if (!decoder_.orders() || !random.Chance(kUrgency)) {
      decoder_.Move(mover.Draw(shapes_.Draw(random), each.device, random), each.keys, each.device);
      return;
    }
    // By a share of all that there is, drawn evenly over the orders of magnitude.
    const size_t op = random.Below(each.priority.size());
    float& key = each.keys[decoder_.priority_key(MakeId<OpId>(op))];
    key += static_cast<float>(std::exp(random.Uniform(std::log(1e-3), 0)) * (random.Chance(0.5) ? 1 : -1));
    each.priority[op] = key;
  }

  Search& search_;
  const std::vector<Plan>& seeds_;
  const Rates rates_;
  size_t threads_;
  Random random_;
  Decoder decoder_;
  Structure structure_;
  Inheritance inheritance_;
  std::vector<MoveMaker> movers_;  // by thread
  ShapeChooser shapes_;
  size_t size_ = 0, elite_ = 0, mutants_ = 0;
  uint64_t generation_ = 0;
  std::vector<Individual> now_, before_;  // the best first
};

// A biased random-key genetic algorithm (Goncalves and Resende 2011) over placement and order together, as in REGAL
// (Paliwal et al. 2020). Of each generation the best, the elite, live on; some are mutants, drawn anew; the others are
// children of a random elite and a random other parent, with more keys from the elite one. Plans that do not fit rank
// behind those that do, by what they lack. The same plan on any number of threads.
//
// As published it begins with random plans, keys are inherited one by one, and children are no more than that:
// brkga(start=random,inherit=keys,moves=0). Population and rates are within the ranges that Goncalves and Resende
// recommend (section 2.3); REGAL's chromosome also has priorities of transfers, which our plans have not.
class BrkgaPlanner : public NamedPlanner {
 public:
  BrkgaPlanner(const Params& params, const PlannerCatalog& catalog)
      : NamedPlanner(params),
        rates_{.population = static_cast<size_t>(params.Int("population")),
               .elite = params.Real("elite"),
               .mutants = params.Real("mutants"),
               .bias = params.Real("bias"),
               .moves = params.Real("moves")},
        whole_(params.Text("inherit") == "parts"),
        generations_(params.Int("generations")),
        seeds_(params, catalog) {}

  PlannerFacts facts() const override { return {.space = seeds_.space()}; }

  PlanResult MakePlan(const PlanRequest& request) override {
    Search search(request);
    const Units units(request.problem());
    const std::vector<Plan> seeds = seeds_.Plans(search, units, request);
    Improvement improvement(search, request);
    int64_t generations = 0;
    if (request.problem().num_devices() > 1 && request.problem().num_ops() > 0 && !search.Done()) {
      const bool orders = seeds_.searches_order() && !seeds.front().priority.empty();
      Evolution evolution(search, units, seeds, orders, whole_, rates_,
                          ThreadsFor(search.evaluator(), request.threads));
      for (bool whole = evolution.Begin(); whole; whole = evolution.Next()) {
        ++generations;
        if (search.Done() || (request.budget.endless() && generations > generations_)) break;
      }
    }
    return improvement.Finish(fmt::format("{} generation{}, ", generations, generations == 1 ? "" : "s"),
                              "below what it began with");
  }

 private:
  Rates rates_;
  bool whole_;
  int64_t generations_;
  Seeds seeds_;
};

}  // namespace

void RegisterBrkga(PlannerCatalog& catalog) {
  std::vector<Parameter> parameters = {
      Whole("population", "100", "plans in a generation", 4, 1e6),
      Real("elite", "0.25", "share of a generation that lives on", 0, 1),
      Real("mutants", "0.1", "share of a generation that is drawn anew", 0, 1),
      Real("bias", "0.8", "probability that a child has a key from its elite parent", 0, 1),
      Real("moves", "2", "moves of local_search that a child makes besides, on average; 0: none, as published", 0, 1e3),
      Whole("generations", "200", "generations, where the budget sets no limit", 1, 1e12),
      {.name = "inherit",
       .type = ParameterType::kChoice,
       .default_value = "parts",
       .sentence = "what a child has from one parent together: keys, nothing, as "
                   "published; parts, the keys of a layer or of ops joined by costly tensors",
       .choices = {"keys", "parts"}}};
  for (Parameter& parameter : Seeds::Parameters(SearchOrder::kSearch, "search"))
    parameters.push_back(std::move(parameter));
  catalog.Add(
      {.name = "brkga",
       .sentence = "A biased random-key genetic algorithm over devices and order together.",
       .source = "Goncalves and Resende 2011; for placement, REGAL (Paliwal et al. 2020)",
       .parameters = std::move(parameters)},
      [](const Params& params, const PlannerCatalog& all) { return std::make_unique<BrkgaPlanner>(params, all); });
}

}  // namespace berth
