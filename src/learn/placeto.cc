#include "learn/placeto.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "learn/scoring.h"
#include "placement/mean_transfer.h"

namespace berth {
namespace {

// Features of one call of the network. (What the backward pass must remember of all calls is some thirty times that of
// the whole episode, and goes with it: about 4 GB at the 2000 nodes that placeto_planner.cc allows.)
constexpr int64_t kChunkBytes = 64 << 20;

// Divides a column of `rows` x `width` by its largest value, where that is positive.
void Normalise(float* column, size_t rows, size_t width, float largest) {
  if (!(largest > 0)) return;
  for (size_t v = 0; v < rows; ++v) column[v * width] /= largest;
}

std::vector<DeviceId> DrawPlacement(const PlacetoTask& task, Random& random) {
  std::vector<DeviceId> device;
  const auto forbidden = task.forbidden.accessor<bool, 2>();
  for (int64_t v = 0; v < task.num_nodes(); ++v) {
    std::vector<DeviceId> able;
    for (const DeviceId d : task.problem.cluster().ids()) {
      if (!forbidden[v][static_cast<int64_t>(d)]) able.push_back(d);
    }
    device.push_back(able[random.Below(able.size())]);
  }
  return device;
}

// Forbidden: states x devices, or devices.
at::Tensor LogProbabilities(const at::Tensor& outputs, const at::Tensor& forbidden) {
  const at::Tensor logits = outputs.view({-1, forbidden.size(-1)});
  return torch::log_softmax(logits.masked_fill(forbidden, -std::numeric_limits<double>::infinity()), 1);
}

// One episode that is being played.
struct Rollout {
  Rollout(const PlacetoTask& task_, Search& search_, const PlayOptions& play_, bool start_times_,
          std::vector<DeviceId> start)
      : task(task_),
        search(search_),
        play(play_),
        start_times(start_times_),
        device(start),
        placement(task_.problem.num_ops()) {
    for (size_t v = 0; v < device.size(); ++v) Put(v);
    if (start_times) starts.resize(device.size()), op_starts.resize(placement.size());
    episode = std::make_unique<PlacetoEpisode>();
    episode->start = std::move(start);
  }

  void Put(size_t node) {
    for (const OpId op : task.node_ops[node]) placement[Index(op)] = device[node];
  }

  double Ask() {
    if (is_known) {
      search.Repeat(score);
      return CostOf(task.problem, score, play.memory_penalty);
    }
    if (task.has_rules()) {
      for (size_t v = 0; v < device.size(); ++v) Put(v);  // as decided, where rules had changed it
      task.KeepRules(placement);
    }
    score = search.Evaluate({.device = placement}, play.cause, op_starts);
    is_known = true;
    for (size_t v = 0; v < starts.size(); ++v) {
      starts[v] = std::numeric_limits<double>::infinity();
      for (const OpId op : task.node_ops[v]) starts[v] = std::min(starts[v], score.failed() ? 0 : op_starts[Index(op)]);
    }
    return CostOf(task.problem, score, play.memory_penalty);
  }

  void Step(int64_t step, DeviceId chosen, float log_prob, bool asks) {
    if (start_times) episode->starts.insert(episode->starts.end(), starts.begin(), starts.end());
    const auto node = static_cast<size_t>(task.order[static_cast<size_t>(step)]);
    if (device[node] != chosen) {
      device[node] = chosen;
      Put(node);
      is_known = false;
    }
    episode->action.push_back(chosen);
    episode->log_prob.push_back(log_prob);
    episode->step_of.push_back(static_cast<int32_t>(step));
    episode->cost.push_back(asks ? Ask() : std::numeric_limits<double>::quiet_NaN());
  }

  const PlacetoTask& task;
  Search& search;
  const PlayOptions& play;
  bool start_times;
  std::vector<DeviceId> device;     // per node
  std::vector<DeviceId> placement;  // per op
  std::vector<double> starts;       // per node
  std::vector<double> op_starts;
  bool is_known = false;  // what `placement` scores: `score`
  Score score;
  std::unique_ptr<PlacetoEpisode> episode;
};

}  // namespace

int64_t PlacetoTask::Columns(const PlacetoOptions& options, int64_t devices) {
  return (options.cost_columns ? devices : 1) + 4 + (options.shared ? 2 : devices);
}

PlacetoTask::PlacetoTask(const Problem& of, const PlacetoOptions& options, const Random& random)
    : Task(of),
      shared_(options.shared),
      columns_(static_cast<size_t>(Columns(options, static_cast<int64_t>(of.num_devices())))),
      costs_(options.cost_columns ? of.num_devices() : 1),
      grouping_(ColocatedOps(of)) {
  const Quotient quotient = MakeQuotient(of, grouping_);
  Sort(quotient);
  const size_t n = node_ops.size(), m = of.num_devices();
  forbidden = torch::zeros({num_nodes(), num_devices()}, torch::kBool);
  auto cannot = forbidden.accessor<bool, 2>();
  for (size_t v = 0; v < n; ++v) {
    const double* time = quotient.time.data() + Index(grouping_.group_of(node_ops[v].front())) * m;
    for (size_t d = 0; d < m; ++d) {
      cannot[static_cast<int64_t>(v)][static_cast<int64_t>(d)] = time[d] == kCannotRun;
    }
  }
  Measure(quotient, options);

  order.resize(n);
  std::iota(order.begin(), order.end(), 0);
  Random shuffling = random.Fork(1);
  if (options.order == PlacetoOptions::Order::kShuffled) shuffling.Shuffle(std::span(order));
  step_of_.resize(n);
  for (size_t t = 0; t < n; ++t) step_of_[static_cast<size_t>(order[t])] = static_cast<int32_t>(t);

  if (options.start == PlacetoOptions::Start::kFirst) {
    for (int64_t v = 0; v < num_nodes(); ++v) {
      int32_t device = 0;
      while (cannot[v][device]) ++device;
      first_start.push_back(DeviceId{device});
    }
  } else {
    Random drawing = random.Fork(2);
    first_start = DrawPlacement(*this, drawing);
  }
}

// The columns that do not change in an episode.
void PlacetoTask::Measure(const Quotient& quotient, const PlacetoOptions& options) {
  const size_t n = node_ops.size(), m = problem.num_devices(), width = costs_ + 1;
  const Graph& ops = problem.graph();
  const MeanTransfer sending(problem);
  fixed_.resize(n * width);
  time_.resize(n * m);
  double whole = 0;
  for (size_t v = 0; v < n; ++v) {
    const double* time = quotient.time.data() + Index(grouping_.group_of(node_ops[v].front())) * m;
    double sum = 0, able = 0;
    for (size_t d = 0; d < m; ++d) {
      if (time[d] == kCannotRun) continue;
      sum += time[d], ++able;
      time_[v * m + d] = static_cast<float>(time[d]);
    }
    float* row = fixed_.data() + v * width;
    if (options.cost_columns) std::copy_n(time_.data() + v * m, m, row);
    if (!options.cost_columns) row[0] = static_cast<float>(sum / able);
    whole += sum / able;
    for (const OpId op : node_ops[v]) {
      for (size_t t = ops.first_output(op); t < ops.end_output(op); ++t) {
        const auto tensor = MakeId<TensorId>(t);
        row[costs_] +=
            static_cast<float>(options.relative ? sending(tensor) : static_cast<double>(ops.tensor_bytes(tensor)));
      }
    }
  }
  if (options.relative) {
    const auto unit = static_cast<float>(whole > 0 ? whole / static_cast<double>(n) : 1);
    for (float& value : fixed_) value = std::log1p(value / unit);
    for (float& value : time_) value = std::log1p(value / unit);
    return;
  }
  const float largest_time = n == 0 ? 0 : std::ranges::max(time_);
  for (float& value : time_) value /= largest_time > 0 ? largest_time : 1;
  float largest_cost = 0, largest_output = 0;
  for (size_t v = 0; v < n; ++v) {
    for (size_t c = 0; c < costs_; ++c) largest_cost = std::max(largest_cost, fixed_[v * width + c]);
    largest_output = std::max(largest_output, fixed_[v * width + costs_]);
  }
  for (size_t c = 0; c < costs_; ++c) Normalise(fixed_.data() + c, n, width, largest_cost);
  Normalise(fixed_.data() + costs_, n, width, largest_output);
}

void PlacetoTask::Sort(const Quotient& quotient) {
  const std::vector<GroupId> sorted = TopologicalOrder(quotient);
  std::vector<int32_t> number(sorted.size());
  for (size_t v = 0; v < sorted.size(); ++v) {
    number[Index(sorted[v])] = static_cast<int32_t>(v);
    node_ops.push_back(grouping_.ops_of(sorted[v]));
  }
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (const Quotient::Edge& edge : quotient.edges)
    edges.emplace_back(number[Index(edge.from)], number[Index(edge.to)]);
  graph = std::make_unique<PlacetoGraph>(num_nodes(), edges);
}

void PlacetoTask::WriteFeatures(std::span<const DeviceId> device, int64_t step, std::span<const double> starts,
                                float* to) const {
  const size_t n = node_ops.size(), m = problem.num_devices();
  const auto current = static_cast<size_t>(order[static_cast<size_t>(step)]);
  const auto views_ = static_cast<size_t>(views());
  std::fill(to, to + views_ * n * columns_, 0.0f);
  for (size_t view = 0; view < views_; ++view, to += n * columns_) {
    float latest = 0;
    for (size_t v = 0; v < n; ++v) {
      float* row = to + v * columns_;
      std::copy_n(fixed_.data() + v * (costs_ + 1), costs_ + 1, row);
      row += costs_ + 1;
      row[0] = step_of_[v] < step ? 1 : 0;
      row[1] = v == current ? 1 : 0;
      if (!starts.empty()) row[2] = static_cast<float>(starts[v] - starts[current]);
      latest = std::max(latest, row[2]);
      if (shared_) {
        row[3] = Index(device[v]) == view ? 1 : 0;
        row[4] = time_[v * m + view];
      } else {
        row[3 + Index(device[v])] = 1;
      }
    }
    Normalise(to + costs_ + 3, n, columns_, latest);
  }
}

PlacetoPolicy::PlacetoPolicy(const Problem& problem, const PlacetoOptions& options, const Random& random)
    : options_(options), random_(random) {
  const auto devices = static_cast<int64_t>(problem.num_devices());
  const PlacetoShape shape{.columns = PlacetoTask::Columns(options, devices),
                           .outputs = options.shared ? 1 : devices,
                           .rounds = options.rounds,
                           .three_sets = options.three_sets,
                           .mean = options.mean};
  network_ = register_module("network", std::make_shared<PlacetoNetwork>(shape, random.Fork(1)));
}

std::string PlacetoPolicy::shape() const {
  return fmt::format("{}, scale={}{}", network_->shape().ToString(), options_.relative ? "relative" : "largest",
                     options_.start_times ? ", start_times" : "");
}

std::unique_ptr<Task> PlacetoPolicy::Prepare(const Problem& problem) const {
  const auto devices = static_cast<int64_t>(problem.num_devices());
  if (PlacetoTask::Columns(options_, devices) != network_->shape().columns ||
      (!options_.shared && devices != network_->shape().outputs)) {
    // A shared head has one output for each device; its columns of costs tell how many there are.
    const int64_t own =
        options_.shared ? network_->shape().columns - PlacetoTask::Columns(options_, 0) : network_->shape().outputs;
    throw Error("placeto: its policy is for {}, but this problem has {}: train on clusters of one size",
                Counted(own, "device"), devices);
  }
  return std::make_unique<PlacetoTask>(problem, options_, random_.Fork(2));
}

int64_t PlacetoPolicy::evaluations(const Task& task) const {
  return options_.every_step ? static_cast<const PlacetoTask&>(task).num_nodes() + 1 : 1;
}

std::vector<std::unique_ptr<Episode>> PlacetoPolicy::Play(const Task& of, Search& search, std::span<Random> randoms,
                                                          const PlayOptions& options) const {
  const torch::NoGradGuard no_gradient;
  const auto& task = static_cast<const PlacetoTask&>(of);
  const auto batch = static_cast<int64_t>(randoms.size());
  const int64_t n = task.num_nodes(), d = network_->shape().columns, views = task.views(), whole = evaluations(task);
  const int64_t asks = options.evaluations > 0 ? std::min(options.evaluations, whole) : whole;
  int64_t steps = n, first_asked = n - asks;  // the first step after which a score is asked for
  bool asks_start = options_.every_step && asks == whole;
  if (options_.every_step && !options.greedy && asks < whole) {
    asks_start = asks > 1;
    steps = std::max<int64_t>(asks - 1, 1);
    first_asked = 0;
  }

  std::vector<Rollout> rollouts;
  for (Random& random : randoms) {
    const bool draws = options_.start == PlacetoOptions::Start::kVarying && !options.greedy;
    rollouts.emplace_back(task, search, options, options_.start_times,
                          draws ? DrawPlacement(task, random) : task.first_start);
    if (asks_start) rollouts.back().episode->start_cost = rollouts.back().Ask();
  }
  at::Tensor features = torch::empty({batch * views, n, d});
  for (int64_t step = 0; step < steps && !options.stopped(); ++step) {
    const int64_t node = task.order[static_cast<size_t>(step)];
    for (int64_t r = 0; r < batch; ++r) {
      const Rollout& rollout = rollouts[static_cast<size_t>(r)];
      task.WriteFeatures(rollout.device, step, rollout.starts, features.data_ptr<float>() + r * views * n * d);
    }
    const at::Tensor logits =
        network_->forward(features, torch::full({batch * views}, node, torch::kInt64), *task.graph);
    const at::Tensor log_prob = LogProbabilities(logits, task.forbidden[node]).contiguous();
    for (int64_t r = 0; r < batch; ++r) {
      const std::span row(log_prob.data_ptr<float>() + r * log_prob.size(1), task.problem.num_devices());
      Rollout& rollout = rollouts[static_cast<size_t>(r)];
      // Where training has diverged nothing is likely, and the node stays.
      const size_t chosen = std::isnan(row[0]) ? Index(rollout.device[static_cast<size_t>(node)])
                                               : Decide(row, options.greedy, randoms[static_cast<size_t>(r)]);
      rollout.Step(step, MakeId<DeviceId>(chosen), row[chosen], step >= first_asked);
    }
  }
  std::vector<std::unique_ptr<Episode>> episodes;
  for (Rollout& rollout : rollouts) episodes.push_back(std::move(rollout.episode));
  return episodes;
}

// One after another: what the backward pass remembers of one is large already.
std::vector<std::unique_ptr<Likelihood>> PlacetoPolicy::Recall(std::span<const Played> episodes, int64_t) const {
  std::vector<std::unique_ptr<Likelihood>> likelihoods;
  for (const auto& [task, episode] : episodes) {
    likelihoods.push_back(
        RecallOne(static_cast<const PlacetoTask&>(task), static_cast<const PlacetoEpisode&>(episode)));
  }
  return likelihoods;
}

// A state per step, each with a row per node, and per device where one network scores all of them.
double PlacetoPolicy::recalled_numbers(const Task& of, int64_t episodes) const {
  constexpr double kPerColumn = 54;
  const auto& task = static_cast<const PlacetoTask&>(of);
  const auto nodes = static_cast<double>(task.num_nodes());
  return static_cast<double>(episodes) * nodes * nodes * static_cast<double>(task.views() * task.columns()) *
         kPerColumn;
}

std::unique_ptr<Likelihood> PlacetoPolicy::RecallOne(const PlacetoTask& task, const PlacetoEpisode& episode) const {
  const auto steps = static_cast<int64_t>(episode.action.size());
  const int64_t n = task.num_nodes(), d = network_->shape().columns, views = task.views();
  const int64_t at_once =
      std::clamp<int64_t>(kChunkBytes / (views * n * d * static_cast<int64_t>(sizeof(float))), 1, steps);
  std::vector<DeviceId> device = episode.start;
  std::vector<at::Tensor> log_probs, entropies;
  for (int64_t first = 0; first < steps; first += at_once) {
    const int64_t count = std::min(at_once, steps - first);
    at::Tensor features = torch::empty({count * views, n, d}), nodes = torch::empty({count}, torch::kInt64),
               actions = torch::empty({count}, torch::kInt64);
    for (int64_t i = 0; i < count; ++i) {
      const auto step = static_cast<size_t>(first + i);
      const auto starts = episode.starts.empty()
                              ? std::span<const double>()
                              : std::span(episode.starts).subspan(step * device.size(), device.size());
      task.WriteFeatures(device, first + i, starts, features.data_ptr<float>() + i * views * n * d);
      const auto node = static_cast<size_t>(task.order[step]);
      device[node] = episode.action[step];
      nodes.data_ptr<int64_t>()[i] = static_cast<int64_t>(node);
      actions.data_ptr<int64_t>()[i] = static_cast<int64_t>(episode.action[step]);
    }
    const at::Tensor log_prob =
        LogProbabilities(network_->forward(features, nodes.repeat_interleave(views), *task.graph),
                         task.forbidden.index_select(0, nodes));
    const at::Tensor probability = log_prob.exp();
    log_probs.push_back(log_prob.gather(1, actions.unsqueeze(1)).squeeze(1));
    entropies.push_back(-(probability * torch::log(probability + 1e-3)).sum(1));
  }
  auto likelihood = std::make_unique<Likelihood>();
  likelihood->log_prob = torch::cat(log_probs);
  likelihood->entropy = torch::cat(entropies);
  return likelihood;
}

}  // namespace berth
