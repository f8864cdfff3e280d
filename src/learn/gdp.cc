// GDP (Zhou et al. 2019): one pass of a network over the whole graph gives the odds of every node's device, and PPO
// trains it. The paper's text and code were not at hand: this is a reconstruction from what is known, and
// docs/decisions/0005-learning.md says what is certain, what is recalled, and what is a choice of ours.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/parameters.h"
#include "learn/device_mask.h"
#include "learn/gdp_neighbours.h"
#include "learn/gdp_network.h"
#include "learn/gdp_task.h"
#include "learn/memory.h"
#include "learn/method_parameters.h"

namespace berth {
namespace {

struct GdpOptions {
  GdpShape shape{};  // features and devices are the problem's
  GdpTaskOptions task;
  bool symmetric = true;   // devices that may be swapped are named as is likeliest
  double near = 0;         // such a share of the placements is drawn near the best ones
  double temperature = 1;  // how much flatter than the odds the flattest draws are at first
};

// How often a placement is drawn that was drawn before, and how much flatter the odds become each time.
constexpr int kMostDraws = 64;
constexpr double kFlatter = 1.1;

// What is masked stays so.
void Flatten(std::span<const float> log_probability, double temperature, std::span<float> flat) {
  const auto masked = [&](size_t d) { return log_probability[d] <= kMaskedLogProbability; };
  double sum = 0;
  for (size_t d = 0; d < flat.size(); ++d) {
    if (!masked(d)) sum += std::exp(static_cast<double>(log_probability[d]) / temperature);
  }
  for (size_t d = 0; d < flat.size(); ++d) {
    flat[d] = masked(d) ? kMaskedLogProbability
                        : static_cast<float>(static_cast<double>(log_probability[d]) / temperature - std::log(sum));
  }
}

class GdpPolicy : public Policy {
 public:
  GdpPolicy(const Problem& problem, const GdpOptions& options, const Random& random) : options_(options) {
    options_.shape.features = static_cast<int64_t>(NumGdpFeatures(options.task.features, problem.num_devices()));
    options_.shape.placer.outputs = static_cast<int64_t>(problem.num_devices());
    network_ = register_module("network", std::make_shared<GdpNetwork>(options_.shape, random));
  }

  std::unique_ptr<Task> Prepare(const Problem& problem) const override {
    if (static_cast<int64_t>(problem.num_devices()) != options_.shape.placer.outputs) {
      throw Error(
          "gdp: its policy is for {}, the cluster of graph {} has {}: train one for as many devices, or use placeto",
          Counted(options_.shape.placer.outputs, "device"), problem.graph().name(), problem.num_devices());
    }
    return std::make_unique<GdpTask>(problem, options_.task);
  }

  int64_t evaluations(const Task&) const override { return 1; }
  int64_t greedy_evaluations(const Task&) const override { return options_.task.coupled ? 3 : 1; }
  // One pass over the graph serves them all.
  int64_t recalled_at_once() const override { return 1024; }
  int64_t replayed_decisions(const Task& task) const override {
    return std::ssize(static_cast<const GdpTask&>(task).order);
  }
  bool redraws() const override { return true; }

  std::vector<std::unique_ptr<Episode>> Play(const Task& of, Search& search, std::span<Random> randoms,
                                             const PlayOptions& options) const override {
    const torch::NoGradGuard no_gradient;
    const auto& task = static_cast<const GdpTask&>(of);
    const at::Tensor log_probability =
        MaskedLogSoftmax(network_->Forward(task.input, options.threads), task.mask).contiguous();
    std::vector<std::unique_ptr<Episode>> episodes;
    const Coupling none;
    const bool couples = options_.task.coupled && options.round % 2 == 0;
    const Coupling& coupling = couples && options.share < 0.5    ? task.layers
                               : couples && options.share < 0.75 ? task.colocated
                                                                 : none;
    if (options.greedy) return Answer(task, log_probability, search, options);
    const std::span<const float> all(log_probability.const_data_ptr<float>(),
                                     static_cast<size_t>(log_probability.numel()));
    std::set<uint64_t> own;
    const Memory* const memory = options.memory;
    const auto seen = [&](const std::vector<int64_t>& device) {
      if (memory == nullptr || !options.distinct) return false;
      return memory->Has(device) || own.contains(memory->Key(device));
    };
    std::optional<Neighbours> neighbours;
    size_t near = 0;
    if (task.moves != nullptr && memory != nullptr && !memory->parents().empty()) {
      neighbours.emplace(task, *memory);
      near = static_cast<size_t>(options_.near * static_cast<double>(randoms.size()));
    }
    for (Random& random : randoms) {
      auto episode = std::make_unique<Episode>();
      if (episodes.size() < near) episode->device = neighbours->Draw(random, seen);
      double temperature = TemperatureOf(options, episodes.size(), randoms.size());
      for (int i = 0; i < kMostDraws && episode->device.empty(); ++i, temperature *= kFlatter) {
        Draw(task, log_probability, coupling, temperature, random, *episode);
        if (i + 1 < kMostDraws && seen(episode->device)) episode->device.clear();
      }
      if (options_.symmetric) NameLikeliest(task.class_of, all, episode->device);
      Remember(all, *episode);
      if (memory != nullptr) own.insert(memory->Key(episode->device));
      episodes.push_back(std::move(episode));
    }
    const std::vector<double> costs = task.CostsOf(task.order, episodes, search, options);
    for (size_t i = 0; i < costs.size(); ++i) episodes[i]->cost.push_back(costs[i]);
    return episodes;
  }

  std::vector<std::unique_ptr<Likelihood>> Recall(std::span<const Played> episodes, int64_t threads) const override {
    return RecallTable(episodes, [&](const Task& of) {
      const auto& task = static_cast<const GdpTask&>(of);
      return MaskedLogSoftmax(network_->Forward(task.input, threads), task.mask);
    });
  }

  std::string shape() const override {
    const GdpShape& shape = options_.shape;
    const SegmentShape& placer = shape.placer;
    return fmt::format(
        "gdp with {} features, {} devices, hidden={}, sage={}, layers={}, heads={}, inner={}, segment={}, refine={}, "
        "order={}, colocation={}{}{}",
        shape.features, placer.outputs, placer.width, shape.sage_layers, placer.layers, placer.heads, placer.inner,
        placer.segment, shape.refinements, options_.task.order, options_.task.colocation,
        placer.gated ? ", superposition" : "", options_.symmetric ? ", symmetric" : "");
  }

 private:
  // The best of the likeliest placement and the likeliest ones whose co-location groups, or whole layers, stay
  // together: on a graph that it has not seen the odds of a layer's ops say together what one op's leave open.
  std::vector<std::unique_ptr<Episode>> Answer(const GdpTask& task, const at::Tensor& log_probability, Search& search,
                                               const PlayOptions& options) const {
    const Coupling none;
    std::vector<const Coupling*> couplings{&none};
    if (options_.task.coupled) couplings = {&none, &task.colocated, &task.layers};
    if (options.evaluations > 0) couplings.resize(std::min(couplings.size(), static_cast<size_t>(options.evaluations)));
    std::vector<std::unique_ptr<Episode>> episodes;
    for (const Coupling* coupling : couplings) {
      episodes.push_back(std::make_unique<Episode>());
      DecideTogether(task, log_probability, *coupling, *episodes.back());
    }
    const std::vector<double> costs = task.CostsOf(task.order, episodes, search, options);
    const auto best = static_cast<size_t>(std::ranges::min_element(costs) - costs.begin());
    std::vector<std::unique_ptr<Episode>> answer;
    answer.push_back(std::move(episodes[costs.empty() ? 0 : best]));
    if (!costs.empty()) answer[0]->cost.push_back(costs[best]);
    return answer;
  }

  // The likeliest device of each op, or of each group, whose odds are the product of its ops' odds; where an op cannot
  // run there, its own likeliest.
  void DecideTogether(const GdpTask& task, const at::Tensor& log_probability, const Coupling& coupling,
                      Episode& episode) const {
    const size_t nodes = task.order.size(), devices = task.problem.num_devices();
    const std::span<const float> all(log_probability.const_data_ptr<float>(), nodes * devices);
    const auto group_of = [&](size_t node) { return coupling.empty() ? node : coupling[node]; };
    const std::span<const float> mask(task.mask.const_data_ptr<float>(), nodes * devices);
    const auto likeliest = [&](const auto& odds, size_t row) {
      const auto of_row = std::span(odds).subspan(row * devices, devices);
      return static_cast<size_t>(std::ranges::max_element(of_row) - of_row.begin());
    };
    std::vector<double> sum((coupling.empty() ? nodes : *std::ranges::max_element(coupling) + 1) * devices);
    for (size_t i = 0; i < nodes * devices; ++i) {
      // An op that cannot run there goes to its own likeliest, with the odds of that.
      const size_t row = i / devices, at = mask[i] == 0 ? i : row * devices + likeliest(all, row);
      sum[group_of(row) * devices + i % devices] += static_cast<double>(all[at]);
    }
    for (size_t i = 0; i < nodes; ++i) {
      const size_t device = likeliest(sum, group_of(i));
      episode.device.push_back(static_cast<int64_t>(mask[i * devices + device] == 0 ? device : likeliest(all, i)));
    }
    Remember(all, episode);
  }

  // What the odds were of an episode's devices, all of them decided in one step.
  static void Remember(std::span<const float> log_probability, Episode& episode) {
    const size_t nodes = episode.device.size(), devices = log_probability.size() / nodes;
    episode.step_of.assign(nodes, 0);
    for (size_t i = 0; i < nodes; ++i) {
      episode.log_prob.push_back(log_probability[i * devices + static_cast<size_t>(episode.device[i])]);
    }
  }

  void Draw(const GdpTask& task, const at::Tensor& log_probability, const Coupling& coupling, double temperature,
            Random& random, Episode& episode) const {
    const size_t nodes = task.order.size(), devices = task.problem.num_devices();
    const std::span<const float> all(log_probability.const_data_ptr<float>(), nodes * devices);
    std::vector<float> flat(devices);
    std::vector<double> shared(coupling.empty() ? 0 : *std::ranges::max_element(coupling) + 1);
    for (double& number : shared) number = random.Uniform();
    for (size_t i = 0; i < nodes; ++i) {
      std::span row = all.subspan(i * devices, devices);
      if (temperature > 1) {
        Flatten(row, temperature, flat);
        row = flat;
      }
      episode.device.push_back(
          static_cast<int64_t>(shared.empty() ? Decide(row, false, random) : DecideBy(row, shared[coupling[i]])));
    }
  }

  // The later of a batch's `count` placements, the flatter: the first from the odds as they are, the last from the
  // flattest, so that a policy which is sure of wrong devices does not fill the whole batch with them. Those near the
  // best come first and leave the flatter ones to the odds.
  double TemperatureOf(const PlayOptions& options, size_t index, size_t count) const {
    const double flatness = count > 1 ? static_cast<double>(index) / static_cast<double>(count - 1) : 1;
    return std::pow(options_.temperature, flatness * std::max(1 - options.share, 0.0));
  }

  GdpOptions options_;
  std::shared_ptr<GdpNetwork> network_;
};

void CompleteGdp(const Params&, const Params& params, Method& method) {
  const GdpOptions options{
      .shape = {.sage_layers = params.Int("sage"),
                .refinements = params.Int("refine"),
                .placer = {.width = params.Int("hidden"),
                           .heads = params.Int("heads"),
                           .inner = params.Int("inner"),
                           .layers = params.Int("layers"),
                           .segment = params.Int("segment"),
                           .gated = params.Bool("superposition")}},
      .task = {.colocation = params.Text("colocation"),
               .order = params.Text("order"),
               .features = params.Text("features") == "recalled" ? GdpFeatures::kRecalled : GdpFeatures::kExtended,
               .coupled = params.Bool("coupled"),
               .moves = params.Real("near") > 0},
      .symmetric = params.Bool("symmetric"),
      .near = params.Real("near"),
      .temperature = params.Real("temperature")};
  const SegmentShape& placer = options.shape.placer;
  if (placer.width % placer.heads != 0) {
    throw Error("gdp: hidden={} cannot be divided among heads={}; make it a multiple", placer.width, placer.heads);
  }
  if (placer.gated && placer.layers == 0) {
    throw Error("gdp: superposition=true changes what the layers of attention read, and layers=0 has none");
  }
  constexpr int64_t kParents = 200;
  if (options.near > 0) method.memory.parents = kParents;
  method.make_policy = [options](const Problem& problem, const Random& random) {
    return std::make_shared<GdpPolicy>(problem, options, random);
  };
}

}  // namespace

void RegisterGdp(MethodCatalog& catalog) {
  AddMethod(
      catalog,
      {.name = "gdp",
       .sentence = "Reads the whole graph with a graph network and segmented attention, and learns the odds of every "
                   "op's device at once; a reconstruction, since no code was published.",
       .source = "Zhou et al. 2019",
       .parameters =
           {Choice("features", {"extended", "recalled"},
                   "what it reads of each op beside its type: sizes, times, levels and degrees, which mean the same on "
                   "every graph; or what is recalled of the paper, shapes and the neighbours' numbers"),
            Choice("order", {"topological", "depth_first", "shuffled"}, "in which attention reads the ops"),
            Choice("colocation", {"none", "paper", "code"},
                   "co-location rule by which ops become groups first; none: only the problem's own constraints"),
            Whole("hidden", "64", "width of the network", 1, 4096),
            Whole("sage", "3", "layers of messages between neighbours", 0, 16),
            Whole("layers", "2", "layers of attention; 0: none, the odds follow from the messages", 0, 16),
            Whole("heads", "4", "heads of attention, among which `hidden` is divided", 1, 64),
            Whole("inner", "256", "width of the layers behind each attention", 1, 16384),
            Whole("segment", "256", "ops that attend to each other and to as many before them", 1, 65536),
            Switch("superposition", "false",
                   "the layers' inputs are multiplied by gates made from the whole graph, for training on many graphs"),
            Whole("refine", "0", "further passes of the network that see the odds of the pass before", 0, 16),
            Switch("symmetric", "true",
                   "devices that may be swapped get the names that are likeliest, so that all ways to name them teach "
                   "the same"),
            Switch(
                "coupled", "true",
                "in the first half of training, or of every second round of it, the ops of a layer are drawn with one "
                "random number, then those of a co-location group, in the last quarter each op by itself; and the "
                "policy answers with the best of three, the likeliest placements of ops, of these groups and of "
                "layers"),
            Real("near", "0",
                 "share of the placements that are not drawn from the odds but made of the best ones so far, by moves "
                 "and by crossing two; where there are few nodes, a model of costs that it learns chooses among 16",
                 0, 1),
            Real("temperature", "1",
                 "the later in a batch a placement is drawn, the flatter are its odds, the last by this factor; at the "
                 "end of a round all are drawn from odds as they are: for a policy that was trained on other graphs, "
                 "and is too sure of what it has not seen",
                 1, 1e3)},
       .modes = {{"best",
                  {{"near", "0.85"},
                   {"baseline", "elite"},
                   {"normalise", "true"},
                   {"rollouts", "16"},
                   {"ppo", "0.2"},
                   {"epochs", "4"},
                   {"memory", "1"},
                   {"imitation", "3"},
                   {"distinct", "true"},
                   {"restart_every", "45"},
                   {"entropy", "0.01"},
                   {"entropy_end", "0.0005"},
                   {"clip", "1"}}},
                 // What is recalled of the papers, and where nothing is, the constants of the re-implementations.
                 {"paper",
                  {{"features", "recalled"},
                   {"symmetric", "false"},
                   {"coupled", "false"},
                   {"reward", "square_root"},
                   {"baseline", "moving"},
                   {"rollouts", "16"},
                   {"ppo", "0.2"},
                   {"epochs", "4"},
                   {"learning_rate", "0.0001"},
                   {"learning_rate_end", "0.0001"},
                   {"entropy", "0.01"},
                   {"entropy_end", "0.01"},
                   {"clip", "0.5"}}}},
       .make = CompleteGdp});
}

}  // namespace berth
