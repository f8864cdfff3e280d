#include "learn/hsdag.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "learn/linear_critic.h"
#include "learn/nets.h"
#include "learn/node_task.h"
#include "learn/scoring.h"
#include "moves/judged_moves.h"

namespace berth {
namespace {

constexpr size_t kOpinions = 2;  // of the policy, about a move

struct HsdagTask : NodeTask {
  HsdagTask(const Problem& of, const HsdagOptions& options) : NodeTask(of, options.colocation) {
    if (options.near > 0) moves = std::make_unique<const MoveSpace>(of, coarse.grouping);
  }

  std::unique_ptr<const MoveSpace> moves;  // where some placements are drawn near others
  std::unique_ptr<LevelGraph> level;
  std::vector<at::Tensor> features;  // by way to play
};

// One step: what the network saw, and what was decided.
struct Step {
  at::Tensor features;
  Random dropout{0};
  std::vector<ParsedClusters> parsed{};
  std::vector<int32_t> group_of_node{};
  std::vector<int64_t> device{};  // by group
};

struct HsdagEpisode : Episode {
  int64_t way = 0;
  std::vector<Step> steps;
  // Per step, the device of each node: as decided, and as placed, which is another where constraints join nodes.
  std::vector<std::vector<int32_t>> decided, placed;
  // Of placements beside the steps: what a judged move did to the score; and, where each node is on one device, which,
  // with what that cost.
  struct Tried {
    std::vector<double> features;
    double change;
  };
  std::vector<Tried> tried;
  std::vector<std::pair<std::vector<int32_t>, double>> near;

  // What the critic learns from; the steps stay where they were taken.
  void Pack(Parcel& parcel) override {
    Episode::Pack(parcel);
    parcel(decided);
    parcel(placed);
    int64_t count = std::ssize(tried);
    parcel(count);
    tried.resize(static_cast<size_t>(count));
    for (Tried& each : tried) {
      parcel(each.features);
      parcel(each.change);
    }
    parcel(near);
  }
};

// The distributions behind the decisions, once for each different state that the episode went through.
struct HsdagLikelihood : Likelihood {
  struct State {
    at::Tensor probability;                 // groups x devices
    std::vector<int32_t> decision_of_node;  // which is its group
  };
  std::vector<State> states{};
};

class HsdagCritic : public Critic {
 public:
  HsdagCritic(const HsdagTask& task, bool costs, double hold) : model_(task.problem, task.coarse, costs), hold_(hold) {}

  const MoveJudge& judge() const { return judge_; }

  std::vector<double> Foresee(const Episode& of) const override {
    std::vector<double> cost;
    // Of what was decided, since Loss has the expectation over decisions.
    for (const auto& decided : static_cast<const HsdagEpisode&>(of).decided) cost.push_back(model_.Predict(decided));
    return cost;
  }

  void Learn(const Episode& of) override {
    const auto& episode = static_cast<const HsdagEpisode&>(of);
    for (size_t i = 0; i < episode.cost.size(); ++i) {
      if (std::isfinite(episode.cost[i])) model_.Learn(episode.placed[i], episode.cost[i]);
    }
    for (const auto& [device_of_node, cost] : episode.near) model_.Learn(device_of_node, cost);
    for (const HsdagEpisode::Tried& tried : episode.tried) judge_.Learn(tried.features, tried.change);
  }

  // A control variate: the model's expectation has an exact gradient, and the rule adds what it left unexplained.
  at::Tensor Loss(const Episode& of, const Likelihood& by, const LossWeights& weights) const override {
    const int64_t way = static_cast<const HsdagEpisode&>(of).way;
    const auto& likelihood = static_cast<const HsdagLikelihood&>(by);
    const double hold = hold_ * std::pow(1e-3, weights.share);
    at::Tensor loss = torch::zeros({});
    const auto states = static_cast<double>(likelihood.states.size());
    for (const HsdagLikelihood::State& state : likelihood.states) {
      const at::Tensor p = state.probability;
      const at::Tensor entropy = -(p * torch::log(p.clamp_min(1e-12))).sum();
      loss = loss + model_.Expected(p, state.decision_of_node) / (weights.reference * states) -
             entropy * (weights.entropy / states);
      if (way > 0) loss = loss - p.select(1, way - 1).sum() * (hold / states);
    }
    return loss;
  }

  std::vector<at::Tensor> State() override {
    std::vector<at::Tensor> state = model_.State();
    const std::span<double> judge = judge_.state();
    state.push_back(torch::from_blob(judge.data(), {static_cast<int64_t>(judge.size())}, torch::kFloat64));
    return state;
  }

 private:
  LinearCritic model_;
  MoveJudge judge_ = JudgedMoves::NewJudge(kOpinions);
  double hold_;
};

std::vector<std::pair<int32_t, int32_t>> Edges(const CoarseGraph& graph, bool directed) {
  if (!directed) return graph.neighbours;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (size_t v = 0; v < graph.size(); ++v) {
    for (const int32_t child : graph.children[v]) edges.emplace_back(static_cast<int32_t>(v), child);
  }
  return edges;
}

// -infinity where a group must not go: some node of it cannot run there, and some other device could run them all.
at::Tensor Mask(const CoarseGraph& graph, const HsdagOutput& out) {
  const auto groups = out.logits.size(0), devices = out.logits.size(1);
  at::Tensor mask = torch::zeros({groups, devices});
  auto at = mask.accessor<float, 2>();
  for (size_t v = 0; v < graph.size(); ++v) {
    for (int64_t d = 0; d < devices; ++d) {
      if (!graph.can_run(v, DeviceId{static_cast<int32_t>(d)})) {
        at[out.group_of_node[v]][d] = -std::numeric_limits<float>::infinity();
      }
    }
  }
  for (int64_t g = 0; g < groups; ++g) {
    bool any = false;
    for (int64_t d = 0; d < devices; ++d) any = any || at[g][d] == 0;
    for (int64_t d = 0; d < devices && !any; ++d) at[g][d] = 0;
  }
  return mask;
}

at::Tensor LogProbabilities(const CoarseGraph& graph, const HsdagOutput& out) {
  return MaskedLogSoftmax(out.logits, Mask(graph, out));
}

std::vector<int64_t> Draw(const at::Tensor& log_probabilities, Random& random, bool greedy) {
  const at::Tensor values = log_probabilities.contiguous();
  const auto devices = static_cast<size_t>(values.size(1));
  std::vector<int64_t> drawn;
  for (int64_t g = 0; g < values.size(0); ++g) {
    const std::span row(values.const_data_ptr<float>() + g * values.size(1), devices);
    drawn.push_back(static_cast<int64_t>(Decide(row, greedy, random)));
  }
  return drawn;
}

// What the policy thinks of a move: how much likelier the new devices of its ops are to it than the old ones, in the
// mean and all together.
JudgedMoves::Opinion OpinionOf(const HsdagTask& task, const at::Tensor& log_probabilities,
                               std::span<const int32_t> group_of_node, std::span<const DeviceId> from) {
  const auto devices = static_cast<size_t>(log_probabilities.size(1));
  const std::span<const float> all(log_probabilities.const_data_ptr<float>(),
                                   static_cast<size_t>(log_probabilities.numel()));
  return [=, &task](std::span<const std::pair<OpId, DeviceId>> moves, std::span<double> opinion) {
    constexpr double kUnlikely = -14;  // and what is forbidden
    double sum = 0;
    for (const auto& [op, to] : moves) {
      const size_t row = static_cast<size_t>(group_of_node[Index(task.coarse.grouping.group_of(op))]) * devices;
      sum += std::max<double>(all[row + Index(to)], kUnlikely) -
             std::max<double>(all[row + Index(from[Index(op)])], kUnlikely);
    }
    const double mean = sum / static_cast<double>(std::max<size_t>(moves.size(), 1));
    opinion[0] = mean / (1 + std::abs(mean));
    opinion[1] = sum / (1 + std::abs(sum));
  };
}

// Scores so many placements beside the episode's steps: an annealing from the best so far, which sometimes is shaken
// first, with moves that a judge has chosen. Without a critic to ask, or costs to look at, nothing chooses.
void ScoreNear(const HsdagTask& task, const at::Tensor& log_probabilities, std::span<const int32_t> group_of_node,
               bool reads_costs, int64_t count, Search& search, const PlayOptions& play, Random& random,
               HsdagEpisode& episode) {
  if (count <= 0) return;
  constexpr double kHot = 0.002, kCold = 2e-6;  // shares of the cost
  constexpr double kShaken = 0.25;              // of the walks
  const double temperature = kHot * std::pow(kCold / kHot, play.share);
  std::vector<DeviceId> placement = play.best->device, trial = placement;
  std::vector<double> starts(task.problem.num_ops());
  std::vector<int32_t> device_of_node(task.coarse.size());
  const auto score = [&] {
    const double cost =
        CostOf(task.problem, search.Evaluate({.device = trial}, play.cause, starts), play.memory_penalty);
    episode.beside.push_back(cost);
    task.coarse.ReadBack(trial, device_of_node);
    const bool whole = std::ranges::all_of(task.problem.graph().ops(), [&](OpId op) {
      return static_cast<int32_t>(trial[Index(op)]) == device_of_node[Index(task.coarse.grouping.group_of(op))];
    });
    if (whole && std::isfinite(cost)) episode.near.emplace_back(device_of_node, cost);
    return cost;
  };
  std::optional<MoveJudge> judge;
  const bool judges = play.critic != nullptr && reads_costs;
  if (judges) judge = static_cast<const HsdagCritic*>(play.critic)->judge();
  // The opinion looks at `placement` as it changes; it keeps its size, hence its memory.
  JudgedMoves moves(*task.moves, std::move(judge), kOpinions,
                    OpinionOf(task, log_probabilities, group_of_node, placement));
  if (random.Chance(kShaken)) {
    moves.Shake(trial, random);
    placement = trial;
  }
  double here = score();  // where nothing was shaken, for the starts of the ops
  // A machine may fail at what it has run before: then there is no schedule to go by, nor a cost to compare with.
  if (!std::isfinite(here) || here <= 0) return;
  moves.Know(placement, starts);
  for (int64_t i = 1; i < count && !play.stopped(); ++i) {
    const auto move = moves.Propose(random);
    if (move.empty()) return;
    trial = placement;
    for (const auto& [op, to] : move) trial[Index(op)] = to;
    const double cost = score();
    const double change = (cost - here) / here;
    moves.Learn(change);
    if (judges) {
      episode.tried.push_back({.features = {moves.features().begin(), moves.features().end()}, .change = change});
    }
    if (change > 0 && !random.Chance(std::exp(-change / temperature))) continue;
    placement = trial;
    here = cost;
    moves.Know(placement, starts);
  }
}

}  // namespace

HsdagPolicy::HsdagPolicy(const Problem& problem, const HsdagOptions& options, Random random) : options_(options) {
  const FeatureTable table =
      MakeHsdagFeatures(problem, MakeCoarseGraph(problem, options.colocation), options.features, false);
  if (table.columns == 0) throw Error("hsdag: all features are switched off; leave at least one on");
  columns_ = table.names;
  for (const DeviceId device : problem.cluster().ids()) devices_.push_back(problem.cluster().device(device).kind);
  options_.shape.devices = static_cast<int64_t>(problem.num_devices());
  options_.shape.features = static_cast<int64_t>(table.columns) + ways() - 1;
  network_ = register_module("network", std::make_shared<HsdagNetwork>(options_.shape, random));
}

std::unique_ptr<Task> HsdagPolicy::Prepare(const Problem& problem) const {
  if (static_cast<int64_t>(problem.num_devices()) != options_.shape.devices) {
    throw Error("hsdag: the policy is for {}, the cluster has {}", Counted(options_.shape.devices, "device"),
                problem.num_devices());
  }
  auto task = std::make_unique<HsdagTask>(problem, options_);
  const FeatureTable table = MakeHsdagFeatures(problem, task->coarse, options_.features);
  if (table.names != columns_) {
    const auto first = std::ranges::mismatch(table.names, columns_);
    const bool lacks = first.in2 != columns_.end();
    throw Error("hsdag: graph {} {} the feature {}, {} the one that the policy was made for{}", problem.graph().name(),
                lacks ? "lacks" : "has", lacks ? *first.in2 : *first.in1, lacks ? "unlike" : "which is not in",
                options_.features.fixed ? "" : ": train with columns=fixed");
  }
  const auto nodes = static_cast<int64_t>(task->coarse.size());
  const at::Tensor features = torch::tensor(table.value).reshape({nodes, static_cast<int64_t>(table.columns)});
  for (int64_t way = 0; way < ways(); ++way) {
    at::Tensor held = torch::zeros({nodes, ways() - 1});
    if (way > 0) held.select(1, way - 1).fill_(1);
    task->features.push_back(torch::cat({features, held}, 1));
  }
  task->level = std::make_unique<LevelGraph>(nodes, Edges(task->coarse, options_.shape.directed), options_.shape);
  return task;
}

std::vector<std::unique_ptr<Episode>> HsdagPolicy::Play(const Task& base, Search& search, std::span<Random> randoms,
                                                        const PlayOptions& play) const {
  const torch::NoGradGuard no_gradient;
  const auto& task = static_cast<const HsdagTask&>(base);
  int64_t steps = play.evaluations > 0 ? std::min(play.evaluations, this->steps()) : this->steps();
  if (play.greedy && stationary()) steps = 1;
  // What the free episode has beside its steps, as far as its share of the evaluations goes.
  int64_t near = play.greedy || play.best == nullptr || play.way > 0 ? 0 : this->near();
  if (play.evaluations > 0) near = std::min(near, play.evaluations - steps);
  std::vector<DeviceId> placement(task.problem.num_ops());
  std::vector<std::unique_ptr<Episode>> episodes;
  for (Random& random : randoms) {
    auto episode = std::make_unique<HsdagEpisode>();
    episode->way = play.way;
    at::Tensor features = task.features[static_cast<size_t>(play.way)];
    HsdagOutput out;
    at::Tensor log_probabilities;
    for (int64_t i = 0; i < steps && !play.stopped(); ++i) {
      Step step{.features = features, .dropout = random.Fork(static_cast<uint64_t>(i), 1)};
      if (i == 0 || !stationary()) {
        Random masks = step.dropout;
        // The published policy keeps its dropout while it samples; its likeliest placement is without.
        out = network_->Forward(*task.level, features, play.greedy ? nullptr : &masks, nullptr);
        log_probabilities = LogProbabilities(task.coarse, out);
      }
      step.parsed = out.parsed;
      step.group_of_node = out.group_of_node;
      step.device = Draw(log_probabilities, random, play.greedy);

      std::vector<int32_t> device_of_node(task.coarse.size());
      for (size_t v = 0; v < task.coarse.size(); ++v) {
        device_of_node[v] = static_cast<int32_t>(step.device[static_cast<size_t>(out.group_of_node[v])]);
      }
      task.placer.Place(device_of_node, placement);
      episode->decided.push_back(device_of_node);
      if (task.has_rules()) {
        task.KeepRules(placement);
        task.coarse.ReadBack(placement, device_of_node);
      }
      episode->placed.push_back(std::move(device_of_node));
      const Score score = search.Evaluate({.device = placement}, play.cause);
      episode->cost.push_back(CostOf(task.problem, score, play.memory_penalty));
      const auto rows = log_probabilities.accessor<float, 2>();
      for (size_t g = 0; g < step.device.size(); ++g) {
        episode->step_of.push_back(static_cast<int32_t>(i));
        episode->log_prob.push_back(rows[static_cast<int64_t>(g)][step.device[g]]);
      }
      if (options_.state_update) {
        const std::vector<int64_t> of(out.group_of_node.begin(), out.group_of_node.end());
        features = features + out.embedding.index_select(0, torch::tensor(of, torch::kInt64));
      }
      episode->steps.push_back(std::move(step));
    }
    if (!episode->steps.empty()) {
      ScoreNear(task, log_probabilities.contiguous(), out.group_of_node, options_.features.costs, near, search, play,
                random, *episode);
    }
    episodes.push_back(std::move(episode));
  }
  return episodes;
}

std::vector<std::unique_ptr<Likelihood>> HsdagPolicy::Recall(std::span<const Played> episodes, int64_t) const {
  std::vector<std::unique_ptr<Likelihood>> likelihoods;
  for (const Played& played : episodes) {
    const auto& task = static_cast<const HsdagTask&>(played.task);
    const auto& episode = static_cast<const HsdagEpisode&>(played.episode);
    auto likelihood = std::make_unique<HsdagLikelihood>();
    std::vector<at::Tensor> log_prob, entropy;
    at::Tensor all, each;
    for (size_t i = 0; i < episode.steps.size(); ++i) {
      const Step& step = episode.steps[i];
      if (i == 0 || !stationary()) {
        Random masks = step.dropout;
        const HsdagOutput out = network_->Forward(*task.level, step.features, &masks, &step.parsed);
        all = LogProbabilities(task.coarse, out);
        const at::Tensor p = torch::exp(all);
        each = -(p * all).sum(1);
        likelihood->states.push_back({.probability = p, .decision_of_node = step.group_of_node});
        likelihood->kept.insert(likelihood->kept.end(), out.kept.begin(), out.kept.end());
      }
      log_prob.push_back(all.gather(1, torch::tensor(step.device, torch::kInt64).unsqueeze(1)).squeeze(1));
      entropy.push_back(each);
    }
    likelihood->log_prob = torch::cat(log_prob);
    likelihood->entropy = torch::cat(entropy);
    likelihoods.push_back(std::move(likelihood));
  }
  return likelihoods;
}

// Each step with a state of its own is a pass of the network; parsing leaves about half of the nodes to each further
// level.
double HsdagPolicy::recalled_numbers(const Task& of, int64_t episodes) const {
  constexpr double kPerEdge = 5;
  const auto& task = static_cast<const HsdagTask&>(of);
  const HsdagShape& shape = options_.shape;
  const auto hidden = static_cast<double>(shape.hidden);
  const double of_node =
      static_cast<double>(shape.features) + hidden * (22 + 4 * static_cast<double>(shape.gnn_layers + 1));
  const double of_level = of_node * static_cast<double>(task.coarse.size()) +
                          kPerEdge * hidden * static_cast<double>(task.level->scored_from.size(0));
  const double levels = shape.levels == 0 || shape.levels == 1 ? 1 : 2;
  const double passes = stationary() ? 1 : static_cast<double>(options_.steps);
  return static_cast<double>(episodes) * passes * levels * of_level;
}

std::unique_ptr<Episode> HsdagPolicy::NewEpisode() const { return std::make_unique<HsdagEpisode>(); }

std::unique_ptr<Critic> MakeHsdagCritic(const Task& task, bool costs, double hold) {
  return std::make_unique<HsdagCritic>(static_cast<const HsdagTask&>(task), costs, hold);
}

std::string HsdagPolicy::shape() const {
  Hasher names;
  for (const std::string& name : columns_) names.Add(name);
  const HsdagShape& shape = options_.shape;
  const auto word = [](bool is, const char* text) { return is ? fmt::format(", {}", text) : ""; };
  return fmt::format(
      "hsdag on {}, {} feature columns ({}{}), nodes by colocation={}, encoder={}, hidden={}, layers={}, "
      "levels={}{}{}{}{}",
      fmt::join(devices_, "+"), columns_.size(), names.Text().substr(0, 8),
      word(options_.features.normalised, "normalised"), options_.colocation,
      shape.encoder == Encoder::kGat   ? "gat"
      : shape.encoder == Encoder::kGin ? "gin"
                                       : "gcn",
      shape.hidden, shape.gnn_layers, shape.levels, word(shape.directed, "directed"),
      word(!shape.symmetric, "a score per direction"), word(options_.state_update, "state"),
      word(options_.held, "held to devices"));
}

}  // namespace berth
