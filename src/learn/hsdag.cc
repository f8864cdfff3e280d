#include "learn/hsdag.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "learn/coarse_graph.h"
#include "learn/linear_critic.h"
#include "learn/nets.h"
#include "learn/scoring.h"

namespace berth {
namespace {

struct HsdagTask : Task {
  HsdagTask(const Problem& of, const HsdagOptions& options)
      : Task(of), coarse(MakeCoarseGraph(of, options.colocation)), placer(of, coarse) {
    if (options.near == 0) return;
    GroupingCatalog groupings("grouping");
    RegisterGroupings(groupings);
    const Grouping grouping = groupings.Make("layers", of, {});
    layers.resize(grouping.num_groups());
    for (size_t v = 0; v < coarse.size(); ++v) {
      const OpId first = coarse.grouping.ops_of(MakeId<GroupId>(v)).front();
      layers[Index(grouping.group_of(first))].push_back(static_cast<int32_t>(v));
    }
    std::erase_if(layers, [](const std::vector<int32_t>& layer) { return layer.empty(); });
  }

  CoarseGraph coarse;
  NodePlacer placer;
  std::vector<std::vector<int32_t>> layers;  // the nodes of each, where some placements are drawn near others
  std::unique_ptr<LevelGraph> level;
  std::vector<at::Tensor> features;  // by way to play
};

// One step: what the network saw, and what was decided.
struct Step {
  at::Tensor features;
  Random dropout{0};
  std::vector<Clusters> parsed{};
  std::vector<int32_t> group_of_node{};
  std::vector<int64_t> device{};  // by group
};

struct HsdagEpisode : Episode {
  int64_t way = 0;
  std::vector<Step> steps;
  // Per step, the device of each node: as decided, and as placed, which is another where constraints join nodes.
  std::vector<std::vector<int32_t>> decided, placed;
  std::vector<std::vector<int32_t>> near;  // per placement beside the steps, the device of each node as placed
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
    for (size_t i = 0; i < episode.beside.size(); ++i) {
      if (std::isfinite(episode.beside[i])) model_.Learn(episode.near[i], episode.beside[i]);
    }
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

  std::vector<at::Tensor> State() override { return model_.State(); }

 private:
  LinearCritic model_;
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

// By node and device, what a policy thinks.
struct Odds {
  at::Tensor log_probabilities;  // groups x devices, contiguous
  std::span<const int32_t> group_of_node;

  double operator()(size_t node, size_t device) const {
    const auto row = static_cast<size_t>(group_of_node[node]) * static_cast<size_t>(log_probabilities.size(1));
    return std::exp(static_cast<double>(log_probabilities.const_data_ptr<float>()[row + device]));
  }
};

// An index, as likely as its weight says; none where all are 0.
std::optional<size_t> DrawByWeight(std::span<const double> weight, Random& random) {
  double sum = 0;
  for (const double each : weight) sum += each;
  if (!(sum > 0)) return {};
  double left = random.Uniform() * sum;
  std::optional<size_t> drawn;
  for (size_t i = 0; i < weight.size() && left >= 0; ++i) {
    if (weight[i] <= 0) continue;
    drawn = i;
    left -= weight[i];
  }
  return drawn;
}

// Moves a layer, or a node and some of its neighbours, to one other device; false where it came upon nothing to move.
// Every second node is one that the policy wants elsewhere, and goes where it wants it.
bool Move(const HsdagTask& task, const Odds& odds, Random& random, std::span<int32_t> device_of_node) {
  constexpr double kLayers = 0.15;  // the share of moves that take a whole layer
  constexpr int kMagnitudes = 6;    // a cluster has up to 2^(kMagnitudes - 1) nodes
  const CoarseGraph& graph = task.coarse;
  const size_t devices = graph.num_devices;
  const auto can_run = [&](size_t node, size_t device) {
    return graph.can_run(node, DeviceId{static_cast<int32_t>(device)});
  };
  if (random.Uniform() < kLayers) {
    const std::vector<int32_t>& layer = task.layers[random.Below(task.layers.size())];
    const size_t to = random.Below(devices);
    bool moves = false;
    for (const int32_t node : layer) {
      int32_t& device = device_of_node[static_cast<size_t>(node)];
      if (device == static_cast<int32_t>(to) || !can_run(static_cast<size_t>(node), to)) continue;
      device = static_cast<int32_t>(to);
      moves = true;
    }
    return moves;
  }
  size_t first = random.Below(graph.size());
  const bool by_odds = random.Uniform() < 0.5;
  std::vector<double> weight;
  if (by_odds) {
    for (size_t v = 0; v < graph.size(); ++v) weight.push_back(1 - odds(v, static_cast<size_t>(device_of_node[v])));
    first = DrawByWeight(weight, random).value_or(first);
  }
  weight.assign(devices, 0);
  for (size_t d = 0; d < devices; ++d) {
    const bool elsewhere = static_cast<size_t>(device_of_node[first]) != d;
    if (elsewhere && can_run(first, d)) weight[d] = by_odds ? std::max(odds(first, d), 1e-9) : 1;
  }
  const std::optional<size_t> to = DrawByWeight(weight, random);
  if (!to) return false;
  std::vector<size_t> moved = {first};
  const auto device = static_cast<int32_t>(*to);
  device_of_node[first] = device;
  const size_t most = random.Below(size_t{1} << random.Below(kMagnitudes)) + 1;
  for (size_t i = 1; i < most; ++i) {
    const size_t from = moved[random.Below(moved.size())];
    const auto& parents = graph.parents[from];
    const auto& children = graph.children[from];
    if (parents.empty() && children.empty()) break;
    const size_t edge = random.Below(parents.size() + children.size());
    const auto next = static_cast<size_t>(edge < parents.size() ? parents[edge] : children[edge - parents.size()]);
    if (device_of_node[next] == device || !can_run(next, *to)) continue;
    device_of_node[next] = device;
    moved.push_back(next);
  }
  return true;
}

// Scores so many placements beside the episode's steps, each a move away from the best so far.
void ScoreNear(const HsdagTask& task, const Odds& odds, int64_t count, Search& search, const PlayOptions& play,
               Random& random, HsdagEpisode& episode) {
  if (count <= 0) return;
  std::vector<int32_t> best(task.coarse.size());
  task.coarse.ReadBack(play.best->device, best);
  double best_cost = CostOf(task.problem, play.best_score, play.memory_penalty);
  std::set<std::vector<int32_t>> scored;
  std::vector<DeviceId> placement(task.problem.num_ops());
  for (int64_t i = 0; i < count && !play.stopped(); ++i) {
    std::vector<int32_t> moved = best;
    if (!Move(task, odds, random, moved) || !scored.insert(moved).second) continue;
    task.placer.Place(moved, placement);
    if (task.has_rules()) {
      task.KeepRules(placement);
      task.coarse.ReadBack(placement, moved);
    }
    const double cost = CostOf(task.problem, search.Evaluate({.device = placement}, play.cause), play.memory_penalty);
    episode.beside.push_back(cost);
    // Makespans have wide plateaus.
    if (cost <= best_cost) {
      best_cost = cost;
      best = moved;
    }
    episode.near.push_back(std::move(moved));
  }
}

}  // namespace

HsdagPolicy::HsdagPolicy(const Problem& problem, const HsdagOptions& options, Random random) : options_(options) {
  const FeatureTable table = MakeHsdagFeatures(problem, MakeCoarseGraph(problem, options.colocation), options.features);
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
    throw Error("hsdag: graph {} {} the feature {}, {} the one that the policy was made for: train with columns=fixed",
                problem.graph().name(), lacks ? "lacks" : "has", lacks ? *first.in2 : *first.in1,
                lacks ? "unlike" : "which is not in");
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
      ScoreNear(task, {log_probabilities.contiguous(), out.group_of_node}, near, search, play, random, *episode);
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
