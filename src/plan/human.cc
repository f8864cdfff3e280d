#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "moves/rank.h"
#include "placement/layers.h"
#include "placement/search.h"
#include "plan/causes.h"
#include "plan/contiguous.h"
#include "plan/named_planner.h"
#include "plan/planners.h"

namespace berth {
namespace {

// How an expert may lay out a recurrent network.
struct Layout {
  enum class Stacks : uint8_t {
    kBegin,     // each stack's layers from the first device on
    kBalanced,  // each stack where the most loaded device has least to do
    kOneRow,    // all layers of all stacks in one row over the devices
  };
  enum class Home : uint8_t {
    kNear,   // with the layer with which it exchanges most
    kLast,   // on the last device
    kAlone,  // on the last device, which has no recurrent layers
  };
  Stacks stacks;
  Home after;   // the projection, the loss
  Home helper;  // attention
};

// Devices by layer, after the rule "each recurrent layer on its own device".
class RecurrentLayout {
 public:
  RecurrentLayout(const Problem& problem, const Layers& layers, std::vector<DeviceId> devices)
      : layers_(layers), devices_(std::move(devices)), work_(layers.layers.size(), 0) {
    for (const OpId op : problem.graph().ops()) {
      // What the first device may not run must not hide the rest of its layer.
      const double time = problem.can_run(op, devices_.front()) ? problem.op_time(op, devices_.front())
                                                                : std::ranges::min(problem.op_times(op));
      work_[static_cast<size_t>(layers.layer_of[Index(op)])] += time;
    }
    const size_t count = layers.layers.size();
    exchanged_.assign(count * count, 0);
    for (const TensorId tensor : problem.graph().tensors()) {
      const auto from = static_cast<size_t>(layers.layer_of[Index(problem.graph().producer(tensor))]);
      for (const OpId op : problem.graph().consumers(tensor)) {
        const auto to = static_cast<size_t>(layers.layer_of[Index(op)]);
        exchanged_[from * count + to] += static_cast<double>(problem.graph().tensor_bytes(tensor));
        exchanged_[to * count + from] += static_cast<double>(problem.graph().tensor_bytes(tensor));
      }
    }
  }

  std::vector<DeviceId> Place(const Layout& layout) {
    place_.assign(layers_.layers.size(), kNowhere);
    load_.assign(devices_.size(), 0);
    const bool alone = layout.after == Layout::Home::kAlone && devices_.size() > 1;
    PlaceStacks(layout.stacks, devices_.size() - (alone ? 1 : 0));
    PlaceKind(LayerKind::kBefore, Layout::Home::kNear);
    PlaceKind(LayerKind::kHelper, layout.helper);
    PlaceKind(LayerKind::kAfter, layout.after);
    std::vector<DeviceId> device;
    for (const int32_t layer : layers_.layer_of) device.push_back(devices_[place_[static_cast<size_t>(layer)]]);
    return device;
  }

 private:
  static constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

  void Put(size_t layer, size_t place) {
    place_[layer] = place;
    load_[place] += work_[layer];
  }

  void PlaceStacks(Layout::Stacks how, size_t places) {
    std::vector<std::vector<size_t>> stacks;
    for (size_t layer = 0; layer < layers_.layers.size(); ++layer) {
      if (layers_.layers[layer].kind != LayerKind::kRecurrent) continue;
      const auto stack = how == Layout::Stacks::kOneRow ? 0 : static_cast<size_t>(layers_.layers[layer].stack);
      if (stack >= stacks.size()) stacks.resize(stack + 1);
      stacks[stack].push_back(layer);
    }
    for (const std::vector<size_t>& stack : stacks) {
      // Two or more per device, as evenly as can be; or one each, where there is room from `first` on.
      size_t first = 0;
      if (how == Layout::Stacks::kBalanced && stack.size() < places) {
        double least = std::numeric_limits<double>::infinity();
        for (size_t begin = 0; begin + stack.size() <= places; ++begin) {
          double most = 0;
          for (size_t i = 0; i < stack.size(); ++i) most = std::max(most, load_[begin + i] + work_[stack[i]]);
          if (most >= least) continue;
          least = most;
          first = begin;
        }
      }
      for (size_t i = 0; i < stack.size(); ++i) {
        Put(stack[i], stack.size() < places ? first + i : i * places / stack.size());
      }
    }
  }

  void PlaceKind(LayerKind kind, Layout::Home home) {
    for (size_t layer = 0; layer < layers_.layers.size(); ++layer) {
      if (layers_.layers[layer].kind != kind) continue;
      if (home != Layout::Home::kNear) {
        Put(layer, devices_.size() - 1);
        continue;
      }
      std::vector<double> bytes(devices_.size(), 0);
      for (size_t other = 0; other < place_.size(); ++other) {
        if (place_[other] != kNowhere) bytes[place_[other]] += exchanged_[layer * place_.size() + other];
      }
      Put(layer, static_cast<size_t>(std::ranges::max_element(bytes) - bytes.begin()));
    }
  }

  const Layers& layers_;
  const std::vector<DeviceId> devices_;
  std::vector<double> work_;       // by layer
  std::vector<double> exchanged_;  // layer x layer: bytes
  std::vector<size_t> place_;      // by layer, into devices_
  std::vector<double> load_;       // by place
};

// What the papers call the human expert (Wu et al. 2016, section 6; Mirhoseini et al. 2017, section 4.2; Zhou et al.
// 2019, section 4): each layer of a recurrent network on its own device, two per device where there are more of them,
// the embedding with the first layers, attention and projection near them or with the last; any other network in
// contiguous parts of equal work. Weights, gradients and updates are with the forward ops that they belong to. Tries
// its few layouts, about fifty evaluations, and keeps the best: never worse than contiguous parts, nor than one
// device alone. Layers are found by shared weights, then by names (placement/layers.h).
class HumanPlanner : public NamedPlanner {
 public:
  using NamedPlanner::NamedPlanner;

  PlannerFacts facts() const override {
    return {.space = PlannerFacts::Space::kPriorities, .deterministic_without_seed = true, .simple = true};
  }

  PlanResult MakePlan(const PlanRequest& request) override {
    Search search(request);
    const Problem& problem = request.problem();
    const Units units(problem);
    const Layers layers = FindLayers(problem);
    std::string best, forbidden;
    // In the order in which ops become ready, and by the way that each has to go.
    std::vector<double> rank;
    if (request.evaluator.facts().uses_priorities) rank = UpwardRank(problem);
    const auto evaluate = [&](std::vector<DeviceId> device, const std::string& layout) {
      Plan plan;
      try {
        plan.device = units.Legal(std::move(device));
      } catch (const Error& error) {
        forbidden = error.what();  // another layout may be allowed
        return;
      }
      for (const bool ranked : {false, true}) {
        if (search.Done() || (ranked && rank.empty())) return;
        const Score before = search.best_score();
        const bool first = !search.has_best();
        if (ranked) plan.priority = rank;
        const Score score = search.Evaluate(plan.view(), layout);
        if (first || Better(score, before)) best = layout;
      }
    };
    const std::vector<DeviceId> by_speed = DevicesBySpeed(problem);
    const std::vector<DeviceId> equal = FastestDevices(problem);
    if (layers.recurrent) {
      RecurrentLayout recurrent(problem, layers, equal);
      for (const Layout& layout : Layouts(layers)) evaluate(recurrent.Place(layout), "layer by layer");
    }
    Contiguous contiguous(problem, layers);
    for (size_t count = equal.size(); count > 1; count /= 2) {
      const std::span<const DeviceId> devices(equal.data(), count);
      for (const Cuts cuts : {Cuts::kAnywhere, Cuts::kLeastCrossing, Cuts::kLayers}) {
        evaluate(contiguous.EqualWork(devices, cuts), "contiguous parts of equal work");
      }
    }
    if (by_speed.size() > equal.size()) {
      for (const Cuts cuts : {Cuts::kAnywhere, Cuts::kLeastCrossing, Cuts::kLayers}) {
        evaluate(contiguous.EqualWork(by_speed, cuts), "contiguous parts of equal work");
      }
    }
    const std::vector<DeviceId> class_of = InterchangeableDevices(request.evaluator);
    for (const DeviceId device : problem.cluster().ids()) {
      if (class_of[Index(device)] == device) evaluate(std::vector(problem.num_ops(), device), "all on one device");
    }
    if (!search.has_best()) throw Error("{}", forbidden);
    PlanResult result = search.Finish(false, best);
    GiveCauses(request, result, best);
    return result;
  }

 private:
  static std::vector<Layout> Layouts(const Layers& layers) {
    const auto has = [&](LayerKind kind) {
      return std::ranges::any_of(layers.layers, [&](const Layer& layer) { return layer.kind == kind; });
    };
    int32_t last_stack = 0;
    for (const Layer& layer : layers.layers) last_stack = std::max(last_stack, layer.stack);
    std::vector<Layout> layouts;
    using enum Layout::Stacks;
    using enum Layout::Home;
    for (const Layout::Stacks stacks : {kBegin, kBalanced, kOneRow}) {
      if (stacks == kOneRow && last_stack == 0) continue;
      for (const Layout::Home after : {kLast, kNear, kAlone}) {
        if (after != kLast && !has(LayerKind::kAfter)) continue;
        for (const Layout::Home helper : {kNear, kLast}) {
          if (helper == kLast && !has(LayerKind::kHelper)) continue;
          layouts.push_back({.stacks = stacks, .after = after, .helper = helper});
        }
      }
    }
    return layouts;
  }
};

}  // namespace

void RegisterHuman(PlannerCatalog& catalog) {
  catalog.Add({.name = "human",
               .sentence = "The expert's rule: each recurrent layer on its own device, any other network in contiguous "
                           "parts of equal work.",
               .source = "Wu et al. 2016 (GNMT), section 6; the human expert of Mirhoseini et al. 2017 and of GDP",
               .parameters = {}},
              [](const Params& params, const PlannerCatalog&) { return std::make_unique<HumanPlanner>(params); });
}

}  // namespace berth
