// GDP (Zhou et al. 2019): one pass of a network over the whole graph gives the odds of every node's device, and PPO
// trains it. A second head may give the odds of each node's priority, as in its successor GO (Zhou et al. 2020).
// The papers' text and code were not at hand: this is a reconstruction from what is known, and
// docs/decisions/0005-learning.md says what is certain, what is recalled, and what is a choice of ours.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/parameters.h"
#include "learn/device_mask.h"
#include "learn/gdp_answer.h"
#include "learn/gdp_neighbours.h"
#include "learn/gdp_network.h"
#include "learn/gdp_reply.h"
#include "learn/gdp_task.h"
#include "learn/memory.h"
#include "learn/method_parameters.h"

namespace berth {
namespace {

struct GdpOptions {
  GdpShape shape{};  // features and devices are the problem's; levels of priority, 0: none
  GdpTaskOptions task;
  bool symmetric = true;     // devices that may be swapped are named as is likeliest
  double near = 0;           // such a share of the placements is drawn near the best ones
  double temperature = 1;    // how much flatter than the odds the flattest draws are at first
  bool gates_alone = false;  // training changes the layers of superposition and nothing else
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

std::span<const float> ValuesOf(const at::Tensor& contiguous) {
  return {contiguous.const_data_ptr<float>(), static_cast<size_t>(contiguous.numel())};
}

// Row by row, each row with one temperature.
class Rows {
 public:
  Rows(const at::Tensor& log_probability, double temperature)
      : values_(ValuesOf(log_probability)),
        temperature_(temperature),
        flat_(static_cast<size_t>(log_probability.size(1))) {}

  std::span<const float> operator[](size_t row) {
    const std::span<const float> as_it_is = values_.subspan(row * flat_.size(), flat_.size());
    if (temperature_ <= 1) return as_it_is;
    Flatten(as_it_is, temperature_, flat_);
    return flat_;
  }

 private:
  std::span<const float> values_;
  double temperature_;
  std::vector<float> flat_;
};

class GdpPolicy : public Policy {
 public:
  GdpPolicy(const Problem& problem, const GdpOptions& options, const Random& random) : options_(options) {
    options_.shape.features = static_cast<int64_t>(NumGdpFeatures(options.task.features, problem.num_devices()));
    options_.shape.placer.outputs = static_cast<int64_t>(problem.num_devices()) + options.shape.levels;
    network_ = register_module("network", std::make_shared<GdpNetwork>(options_.shape, random));
  }

  std::unique_ptr<Task> Prepare(const Problem& problem) const override {
    if (static_cast<int64_t>(problem.num_devices()) != devices()) {
      throw Error(
          "gdp: its policy is for {}, the cluster of graph {} has {}: train one for as many devices, or use placeto",
          Counted(devices(), "device"), problem.graph().name(), problem.num_devices());
    }
    return std::make_unique<GdpTask>(problem, options_.task);
  }

  int64_t evaluations(const Task&) const override { return 1; }
  int64_t greedy_evaluations(const Task& task) const override {
    return static_cast<const GdpTask&>(task).coupled() ? int64_t{GdpAnswers::kMost} : 1;
  }
  // One pass over the graph serves them all; each adds what it drew, and what the loss makes of it.
  int64_t recalled_at_once() const override { return 1024; }
  double recalled_numbers(const Task& task, int64_t episodes) const override {
    constexpr double kPerMessage = 6, kPerDecision = 8;
    const GdpShape& shape = options_.shape;
    const auto width = static_cast<double>(shape.placer.width);
    const double layers =
        kPerMessage * static_cast<double>(shape.sage_layers) + static_cast<double>(shape.placer.layers);
    const double of_node = static_cast<double>(kGdpTypeColumns + shape.features) + width * (1 + layers) +
                           4 * static_cast<double>(shape.placer.outputs) + kPerDecision * static_cast<double>(episodes);
    return of_node * static_cast<double>(static_cast<const GdpTask&>(task).order.size());
  }
  int64_t replayed_decisions(const Task& task) const override {
    return std::ssize(static_cast<const GdpTask&>(task).order);
  }
  int64_t priority_levels() const override { return options_.shape.levels; }
  bool redraws() const override { return true; }

  std::vector<std::unique_ptr<Episode>> Play(const Task& of, Search& search, std::span<Random> randoms,
                                             const PlayOptions& options) const override {
    const torch::NoGradGuard no_gradient;
    const auto& task = static_cast<const GdpTask&>(of);
    const OddsTable odds = Odds(task, options.threads);
    std::vector<std::unique_ptr<Episode>> episodes;
    const Coupling none;
    const bool couples = task.coupled() && options.round % 2 == 0;
    const Coupling& coupling = couples && options.share < 0.5    ? task.layers
                               : couples && options.share < 0.75 ? task.colocated
                                                                 : none;
    if (options.greedy) return Answer(task, odds, search, options);
    std::set<uint64_t> own;
    const Memory* const memory = options.memory;
    const auto seen = [&](std::span<const int64_t> device, std::span<const int64_t> priority) {
      if (memory == nullptr || !options.distinct) return false;
      return memory->Has(device, priority) || own.contains(memory->Key(device, priority));
    };
    std::optional<Neighbours> neighbours;
    size_t near = 0;
    if (task.moves() && memory != nullptr && !memory->parents().empty()) {
      neighbours.emplace(task, *memory, options_.shape.levels);
      near = static_cast<size_t>(options_.near * static_cast<double>(randoms.size()));
    }
    const auto score = [&](std::span<const std::unique_ptr<Episode>> drawn) {
      const std::vector<double> costs = task.CostsOf(task.order, drawn, search, options);
      for (size_t i = 0; i < costs.size(); ++i) drawn[i]->cost.push_back(costs[i]);
    };
    // Where nothing is known yet, half of the batch, at most, are the policy's answers, each once, after the list
    // schedule's placement where it reads that.
    std::vector<std::unique_ptr<Episode>> answers;
    if (memory != nullptr && memory->empty() && options.round == 0) {
      answers = Answers(GdpAnswers(task, ValuesOf(odds.device)), odds, randoms.size() / 2);
      if (!task.scheduled.empty()) {
        auto& first = *answers.emplace(answers.begin(), std::make_unique<Episode>());
        first->device = task.scheduled;
        if (odds.priority.defined()) first->priority = LikeliestLevels(odds.priority);
      }
    }
    // By the schedule where one is read: its devices' names are among the features, and mean the same on every graph.
    const std::vector<float> as_scheduled = NamesOf(task.scheduled, static_cast<size_t>(devices()));
    const std::span<const float> names = as_scheduled.empty() ? ValuesOf(odds.device) : as_scheduled;
    size_t scored = 0;
    for (Random& random : randoms) {
      auto episode = std::make_unique<Episode>();
      if (const size_t i = episodes.size(); i < answers.size() && !seen(answers[i]->device, answers[i]->priority)) {
        episode->device = answers[i]->device;
        episode->priority = answers[i]->priority;
      }
      if (episodes.size() < near) {
        Neighbours::Drawn drawn = neighbours->Draw(random, seen);
        episode->device = std::move(drawn.device);
        episode->priority = std::move(drawn.priority);
      }
      double temperature = TemperatureOf(options, episodes.size(), randoms.size());
      for (int i = 0; i < kMostDraws && episode->device.empty(); ++i, temperature *= kFlatter) {
        Draw(odds, coupling, temperature, random, *episode);
        if (i + 1 < kMostDraws && seen(episode->device, episode->priority)) episode->device.clear();
      }
      if (options_.symmetric) NameLikeliest(task.class_of, names, episode->device);
      Remember(odds, *episode);
      if (memory != nullptr) own.insert(memory->Key(episode->device, episode->priority));
      episodes.push_back(std::move(episode));
      if (episodes.size() > near || !neighbours->climbs()) continue;
      score(std::span(episodes).last(1));
      ++scored;
      if (!episodes.back()->cost.empty()) neighbours->Learn(*episodes.back(), episodes.back()->cost[0]);
    }
    score(std::span(episodes).subspan(scored));
    return episodes;
  }

  std::vector<std::unique_ptr<Likelihood>> Recall(std::span<const Played> episodes, int64_t threads) const override {
    return RecallTable(episodes, [&](const Task& of) { return Odds(static_cast<const GdpTask&>(of), threads); });
  }

  // The layers of superposition: the gates, and what normalises the gated inputs.
  bool learns(std::string_view parameter) const override {
    return !options_.gates_alone || parameter.find("gate") != std::string_view::npos;
  }

  std::string shape() const override {
    const GdpShape& shape = options_.shape;
    const SegmentShape& placer = shape.placer;
    return fmt::format(
        "gdp with {} features, {} devices, hidden={}, sage={}, layers={}, heads={}, inner={}, segment={}, refine={}, "
        "order={}, colocation={}{}{}{}",
        shape.features, devices(), placer.width, shape.sage_layers, placer.layers, placer.heads, placer.inner,
        placer.segment, shape.refinements, options_.task.order, options_.task.colocation,
        placer.gated ? ", superposition" : "", options_.symmetric ? ", symmetric" : "",
        shape.levels > 0 ? fmt::format(", priorities={}", shape.levels) : "");
  }

 private:
  int64_t devices() const { return options_.shape.placer.outputs - options_.shape.levels; }

  // Of nodes in the task's order; contiguous.
  OddsTable Odds(const GdpTask& task, int64_t threads) const {
    const at::Tensor logits = network_->Forward(task.input, threads);
    OddsTable odds{.device = MaskedLogSoftmax(logits.narrow(1, 0, devices()), task.mask).contiguous()};
    if (const int64_t levels = options_.shape.levels; levels > 0) {
      odds.priority = torch::log_softmax(logits.narrow(1, devices(), levels), 1).contiguous();
    }
    return odds;
  }

  // The placements of GdpAnswers as episodes; what the odds were is not in them.
  static std::vector<std::unique_ptr<Episode>> Answers(const GdpAnswers& from, const OddsTable& odds, size_t most) {
    const std::vector<int64_t> levels =
        odds.priority.defined() ? LikeliestLevels(odds.priority) : std::vector<int64_t>();
    std::vector<std::unique_ptr<Episode>> answers;
    for (std::vector<int64_t>& device : from.Placements(most)) {
      auto& answer = answers.emplace_back(std::make_unique<Episode>());
      answer->device = std::move(device);
      answer->priority = levels;
    }
    return answers;
  }

  // The best of these, with what it costs.
  std::vector<std::unique_ptr<Episode>> Answer(const GdpTask& task, const OddsTable& odds, Search& search,
                                               const PlayOptions& options) const {
    const int64_t most = options.evaluations > 0 ? options.evaluations : greedy_evaluations(task);
    const GdpAnswers from(task, ValuesOf(odds.device));
    GdpReply reply(task, from, search, options, Answers(from, odds, static_cast<size_t>(most)));
    std::vector<std::unique_ptr<Episode>> answer;
    answer.push_back(reply.Best());
    Remember(odds, *answer[0]);
    return answer;
  }

  // Of each op its own.
  static std::vector<int64_t> LikeliestLevels(const at::Tensor& log_probability) {
    const auto levels = static_cast<size_t>(log_probability.size(1));
    std::vector<int64_t> likeliest;
    for (int64_t i = 0; i < log_probability.size(0); ++i) {
      const std::span<const float> row = ValuesOf(log_probability).subspan(static_cast<size_t>(i) * levels, levels);
      likeliest.push_back(std::ranges::max_element(row) - row.begin());
    }
    return likeliest;
  }

  // What the odds were of an episode's decisions, all of them made in one step.
  static void Remember(const OddsTable& odds, Episode& episode) {
    const auto remember = [&](const at::Tensor& log_probability, const std::vector<int64_t>& decisions) {
      Rows rows(log_probability, 1);
      for (size_t i = 0; i < decisions.size(); ++i) {
        episode.log_prob.push_back(rows[i][static_cast<size_t>(decisions[i])]);
      }
    };
    episode.step_of.assign(episode.device.size() + episode.priority.size(), 0);
    remember(odds.device, episode.device);
    if (odds.priority.defined()) remember(odds.priority, episode.priority);
  }

  static void Draw(const OddsTable& odds, const Coupling& coupling, double temperature, Random& random,
                   Episode& episode) {
    const auto nodes = static_cast<size_t>(odds.device.size(0));
    std::vector<double> shared(coupling.empty() ? 0 : *std::ranges::max_element(coupling) + 1);
    for (double& number : shared) number = random.Uniform();
    Rows devices(odds.device, temperature);
    for (size_t i = 0; i < nodes; ++i) {
      episode.device.push_back(static_cast<int64_t>(shared.empty() ? Decide(devices[i], false, random)
                                                                   : DecideBy(devices[i], shared[coupling[i]])));
    }
    if (!odds.priority.defined()) return;
    episode.priority.clear();
    Rows levels(odds.priority, temperature);
    for (size_t i = 0; i < nodes; ++i) {
      episode.priority.push_back(static_cast<int64_t>(Decide(levels[i], false, random)));
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

GdpFeatures FeaturesOf(const std::string& name) {
  if (name == "recalled") return GdpFeatures::kRecalled;
  return name == "scheduled" ? GdpFeatures::kScheduled : GdpFeatures::kExtended;
}

void CompleteGdp(const Params&, const Params& params, Method& method) {
  const GdpOptions options{.shape = {.sage_layers = params.Int("sage"),
                                     .refinements = params.Int("refine"),
                                     .placer = {.width = params.Int("hidden"),
                                                .heads = params.Int("heads"),
                                                .inner = params.Int("inner"),
                                                .layers = params.Int("layers"),
                                                .segment = params.Int("segment"),
                                                .gated = params.Bool("superposition")},
                                     .levels = params.Int("priorities")},
                           .task = {.colocation = params.Text("colocation"),
                                    .order = params.Text("order"),
                                    .features = FeaturesOf(params.Text("features")),
                                    .coupled = params.Bool("coupled"),
                                    .moves = params.Real("near") > 0},
                           .symmetric = params.Bool("symmetric"),
                           .near = params.Real("near"),
                           .temperature = params.Real("temperature"),
                           .gates_alone = params.Text("learns") == "superposition"};
  const SegmentShape& placer = options.shape.placer;
  if (placer.width % placer.heads != 0) {
    throw Error("gdp: hidden={} cannot be divided among heads={}; make it a multiple", placer.width, placer.heads);
  }
  if (placer.gated && placer.layers == 0) {
    throw Error("gdp: superposition=true changes what the layers of attention read, and layers=0 has none");
  }
  if (options.gates_alone && !placer.gated) {
    throw Error("gdp: learns=superposition changes the gates alone, and there are none without superposition=true");
  }
  if (options.shape.levels == 1) {
    throw Error("gdp: priorities=1 is one level for all ops, which orders nothing; give 2 or more, or 0 for none");
  }
  method.gives_priorities = options.shape.levels > 0;
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
           {Choice(
                "features", {"extended", "recalled", "scheduled"},
                "what it reads of each op beside its type: sizes, times, levels, degrees and which of several "
                "branches it is in, which mean the same on every graph; or what is recalled of the paper, shapes and "
                "the neighbours' numbers; or, with what `extended` reads, where and when HEFT's list schedule runs "
                "it: then that schedule's placement is the first that it tries in training, where it has a memory"),
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
            Choice("learns", {"all", "superposition"},
                   "which weights training changes: all, or, where a policy that was trained before is trained on, the "
                   "layers of superposition alone"),
            Whole("refine", "0", "further passes of the network that see the odds of the pass before", 0, 16),
            Whole(
                "priorities", "0",
                "levels of priority, of which a second head of the network gives each op one, as GO does (Zhou et al. "
                "2020): of the ops that are ready, a device runs the one with the highest first; 0: first come, first served",
                0, 256),
            Switch("symmetric", "true",
                   "devices that may be swapped get the names that are likeliest, so that all ways to name them teach "
                   "the same"),
            Switch(
                "coupled", "true",
                "in the first half of training, or of every second round of it, the ops of a layer are drawn with one "
                "random number, then those of a co-location group, in the last quarter each op by itself; and the "
                "policy answers with the best of ten, the likeliest placements of ops, of these groups and of "
                "layers, also with all devices busy, or on the way there, or the memory shared as well, and all on one "
                "device; where some of the first do not fit into memory but take less time than all that fit, groups "
                "leave the devices that are too full instead; "
                "training begins with the first of these ten, at most half of a batch"),
            Real("near", "0",
                 "share of the placements that are not drawn from the odds but made of the best ones so far, by moves "
                 "and by crossing two; where there are few nodes, a model of costs that it learns chooses among 16; "
                 "elsewhere, and with priorities, each is made of the best one so far, one after another",
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
                   {"reward", "relative_root"},
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
