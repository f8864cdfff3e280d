// The recurrent placer of Mirhoseini et al. 2017: a sequence-to-sequence network writes a device for each group of ops
// and learns from the step time of the whole placement. No code was published; docs/decisions/0005-learning.md says
// what is a choice of ours. The adjacency of a group is a column for each other group, so a policy is for
// graphs with as many groups.
#include <algorithm>

#include "base/error.h"
#include "base/parameters.h"
#include "learn/device_mask.h"
#include "learn/hsdag_features.h"
#include "learn/method_parameters.h"
#include "learn/node_task.h"
#include "learn/rnn_network.h"

namespace berth {
namespace {

// What the backward pass remembers of one episode grows with their square: 130 MB at hidden=128. It takes eight at
// once.
constexpr int64_t kMostGroups = 512;

struct RnnOptions {
  RnnShape shape{};  // features and devices are the problem's
  std::string colocation = "paper";
  bool costs = true;
};

struct RnnTask : NodeTask {
  RnnTask(const Problem& of, const RnnOptions& options) : NodeTask(of, options.colocation) {
    const auto groups = static_cast<int64_t>(coarse.size());
    // Type, output shapes and adjacency are the published features.
    const FeatureTable table = MakeHsdagFeatures(of, coarse,
                                                 {.in_degree = false,
                                                  .out_degree = false,
                                                  .fractal = false,
                                                  .position = 0,
                                                  .costs = options.costs,
                                                  .fixed = true,
                                                  .normalised = true});
    at::Tensor own = torch::tensor(table.value).reshape({groups, static_cast<int64_t>(table.columns)});
    at::Tensor adjacent = torch::zeros({groups, groups});
    for (const auto& [a, b] : coarse.neighbours) adjacent[a][b] = adjacent[b][a] = 1;
    const std::vector<int64_t> read(coarse.topological.begin(), coarse.topological.end());
    const at::Tensor order = torch::tensor(read, torch::kInt64);
    features = torch::cat({own.index_select(0, order), adjacent.index_select(0, order).index_select(1, order)}, 1);
    mask = DeviceMask(coarse, coarse.topological);
  }

  int64_t num_groups() const { return features.size(0); }

  at::Tensor features;  // groups x columns, in the order in which they are read
  at::Tensor mask;      // groups x devices, in this order
};

class RnnPolicy : public Policy {
 public:
  RnnPolicy(const Problem& problem, const RnnOptions& options, const Random& random) : options_(options) {
    options_.shape.features = RnnTask(problem, options).features.size(1);
    options_.shape.devices = static_cast<int64_t>(problem.num_devices());
    network_ = register_module("network", std::make_shared<RnnNetwork>(options_.shape, random));
  }

  std::unique_ptr<Task> Prepare(const Problem& problem) const override {
    auto task = std::make_unique<RnnTask>(problem, options_);
    if (static_cast<int64_t>(problem.num_devices()) != options_.shape.devices ||
        task->features.size(1) != options_.shape.features) {
      throw Error(
          "rnn: its policy is for {} features and {}, graph {} has {} and {}: train on graphs with as many groups, or "
          "use placeto",
          options_.shape.features, Counted(options_.shape.devices, "device"), problem.graph().name(),
          task->features.size(1), problem.num_devices());
    }
    return task;
  }

  int64_t evaluations(const Task&) const override { return 1; }
  int64_t recalled_at_once() const override { return 8; }
  double recalled_numbers(const Task& task, int64_t episodes) const override {
    return network_->kept_numbers(episodes, static_cast<const RnnTask&>(task).num_groups());
  }
  int64_t replayed_decisions(const Task& task) const override { return static_cast<const RnnTask&>(task).num_groups(); }

  std::vector<std::unique_ptr<Episode>> Play(const Task& of, Search& search, std::span<Random> randoms,
                                             const PlayOptions& options) const override {
    const torch::NoGradGuard no_gradient;
    const auto& task = static_cast<const RnnTask&>(of);
    const auto count = static_cast<int64_t>(randoms.size());
    const size_t devices = task.problem.num_devices();
    std::vector<std::unique_ptr<Episode>> episodes(randoms.size());
    for (auto& episode : episodes) episode = std::make_unique<Episode>();
    const RnnNetwork::Memory memory = network_->Read(task.features);
    RnnNetwork::State state = network_->Begin(memory, count);
    for (int64_t group = 0; group < task.num_groups() && !options.stopped(); ++group) {
      const at::Tensor log_prob = network_->Next(memory, state, task.mask[group]).contiguous();
      state.previous = torch::empty({count}, torch::kInt64);
      for (size_t i = 0; i < randoms.size(); ++i) {
        const std::span row(log_prob.const_data_ptr<float>() + i * devices, devices);
        const size_t device = Decide(row, options.greedy, randoms[i]);
        state.previous.data_ptr<int64_t>()[i] = static_cast<int64_t>(device);
        episodes[i]->device.push_back(static_cast<int64_t>(device));
        episodes[i]->log_prob.push_back(row[device]);
        episodes[i]->step_of.push_back(0);
      }
    }
    std::vector<double> costs;
    if (episodes.empty() || std::ssize(episodes[0]->device) == task.num_groups()) {
      costs = task.CostsOf(task.coarse.topological, episodes, search, options);
    }
    std::vector<std::unique_ptr<Episode>> played;
    for (size_t i = 0; i < episodes.size(); ++i) {
      if (i < costs.size()) episodes[i]->cost.push_back(costs[i]);
      played.push_back(std::move(episodes[i]));
    }
    return played;
  }

  std::vector<std::unique_ptr<Likelihood>> Recall(std::span<const Played> episodes, int64_t) const override {
    std::vector<std::unique_ptr<Likelihood>> likelihoods;
    for (size_t first = 0, end = 0; first < episodes.size(); first = end) {
      // All of one task.
      std::vector<at::Tensor> placements;
      for (; end < episodes.size() && &episodes[end].task == &episodes[first].task; ++end) {
        placements.push_back(torch::tensor(episodes[end].episode.device, torch::kInt64));
      }
      const auto& task = static_cast<const RnnTask&>(episodes[first].task);
      const at::Tensor device = torch::stack(placements);
      const at::Tensor all = network_->All(network_->Read(task.features), device, task.mask);
      const at::Tensor log_prob = all.gather(2, device.unsqueeze(2)).squeeze(2);
      const at::Tensor entropy = -(torch::exp(all) * all).sum(2);
      for (int64_t i = 0; i < std::ssize(placements); ++i) {
        auto likelihood = std::make_unique<Likelihood>();
        likelihood->log_prob = log_prob[i];
        likelihood->entropy = entropy[i];
        likelihoods.push_back(std::move(likelihood));
      }
    }
    return likelihoods;
  }

  std::string shape() const override {
    const RnnShape& shape = options_.shape;
    return fmt::format(
        "rnn with {} features, {} devices, hidden={}, groups by colocation={}, tanh_constant={}, temperature={}{}{}",
        shape.features, shape.devices, shape.hidden, options_.colocation, shape.tanh_constant, shape.temperature,
        shape.bidirectional ? ", bidirectional" : "", options_.costs ? ", costs" : "");
  }

 private:
  RnnOptions options_;
  std::shared_ptr<RnnNetwork> network_;
};

std::optional<std::string> RnnRefuses(const Problem& problem, const RnnOptions& options) {
  const auto groups = static_cast<int64_t>(MakeCoarseGraph(problem, options.colocation).size());
  if (groups <= kMostGroups) return std::nullopt;
  return fmt::format("it can place {} groups and not {}: put ops together, as in on(group=merge,planner=rnn)",
                     kMostGroups, groups);
}

void CompleteRnn(const Params&, const Params& params, Method& method) {
  const RnnOptions options{.shape = {.hidden = params.Int("hidden"),
                                     .bidirectional = params.Bool("bidirectional"),
                                     .tanh_constant = params.Real("tanh_constant"),
                                     .temperature = params.Real("temperature")},
                           .colocation = params.Text("colocation"),
                           .costs = params.Bool("costs")};
  if (options.shape.bidirectional && options.shape.hidden % 2 != 0) {
    throw Error("rnn: hidden={} cannot be halved between two directions; make it even", options.shape.hidden);
  }
  method.make_policy = [options](const Problem& problem, const Random& random) {
    return std::make_shared<RnnPolicy>(problem, options, random);
  };
  method.refuses = [options](const Problem& problem) { return RnnRefuses(problem, options); };
}

}  // namespace

void RegisterRnn(MethodCatalog& catalog) {
  AddMethod(
      catalog,
      {.name = "rnn",
       .sentence = "Learns to write a device for each group of ops, one after another, with a recurrent network that "
                   "has read them all.",
       .source = "Mirhoseini et al. 2017",
       .parameters = {Choice("colocation", {"paper", "code", "none"},
                             "co-location rule by which ops become groups; HSDAG's two, or only the problem's own"),
                      Whole("hidden", "128", "width of the network", 2, 4096),
                      Switch("bidirectional", "false", "the encoder reads the groups both ways"),
                      Switch("costs", "false", "features: op and transfer times"),
                      Real("tanh_constant", "5", "logits lie between minus this and this; 0: no limit", 0, 1e6),
                      Real("temperature", "10", "divides the logits before", 1e-3, 1e6)},
       .modes = {{"best",
                  {{"bidirectional", "true"},
                   {"costs", "true"},
                   {"tanh_constant", "0"},
                   {"temperature", "1"},
                   {"normalise", "true"},
                   {"workers", "2"},
                   {"rollouts", "8"},
                   {"ppo", "0.2"},
                   {"epochs", "3"},
                   {"learning_rate_end", "0.0003"},
                   {"entropy", "0.02"},
                   {"entropy_end", "0.001"},
                   {"clip", "1"}}},
                 // Adam's rate, the clipping, the temperature and the constant as the same group published them a year
                 // later (Mirhoseini et al. 2018).
                 {"paper",
                  {{"reward", "square_root"},
                   {"baseline", "moving"},
                   {"rollouts", "4"},
                   {"learning_rate", "0.1"},
                   {"learning_rate_end", "0.1"},
                   {"clip", "1"}}},
                 // What HSDAG ran as its recurrent baseline, with the sign of its loss as released; reward=square_root
                 // puts it right.
                 {"hsdag",
                  {{"colocation", "code"},
                   {"tanh_constant", "0"},
                   {"temperature", "1"},
                   {"reward", "slower"},
                   {"baseline", "none"},
                   {"learning_rate", "0.01"},
                   {"learning_rate_end", "0.01"}}}},
       .make = CompleteRnn});
}

}  // namespace berth
