// The hierarchical placer of Mirhoseini et al. 2018: one network puts the ops into groups, another one writes a device
// for each group, and both learn from the step time of the whole placement. docs/decisions/0005-learning.md says what
// is from the paper, what from the released code, and what is a choice of ours.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/parameters.h"
#include "learn/hdp_features.h"
#include "learn/hdp_network.h"
#include "learn/method_parameters.h"
#include "learn/node_task.h"

namespace berth {
namespace {

std::string_view NameOf(HdpFeatures features) {
  return features == HdpFeatures::kCode ? "code" : features == HdpFeatures::kSlip ? "slip" : "extended";
}

struct HdpOptions {
  HdpShape shape{};   // features, groups and devices are the problem's
  std::string nodes;  // rule of MakeCoarseGraph
  HdpFeatures features = HdpFeatures::kExtended;
  int64_t groups = 0;     // 0: as in the code
  int64_t groupings = 0;  // drawn by a worker in an update, among which its placements are divided; 0: one for each
  bool ordered = true;    // groups are read in the order of their ops, and only those that have any get a device
  bool symmetric = true;  // of devices that may be swapped, the first is written first
  double grouper_entropy = 1;  // weight of the grouper's entropy beside the placer's
  double noise = 0;            // of the placer's logits, as a share of their size, in the first updates
  int64_t noise_until = 0, sample_until = 0;
};

// As in the released code.
int64_t NumGroups(const HdpOptions& options, const Problem& problem) {
  return options.groups > 0 ? options.groups : std::min<int64_t>(256, 20 * static_cast<int64_t>(problem.num_devices()));
}

struct HdpTask : NodeTask {
  HdpTask(const Problem& of, const HdpOptions& options)
      : NodeTask(of, options.nodes),
        input(MakeHdpInput(of, coarse, options.features)),
        ops(torch::tensor(input.ops.value)
                .reshape({static_cast<int64_t>(input.order.size()), static_cast<int64_t>(input.ops.columns)})),
        order(input.order) {
    std::vector<uint8_t> grouped(coarse.size(), 0);
    for (const int32_t node : order) grouped[static_cast<size_t>(node)] = 1;
    for (size_t node = 0; node < coarse.size(); ++node) {
      if (grouped[node] == 0) order.push_back(static_cast<int32_t>(node));
    }
  }

  HdpInput input;
  at::Tensor ops;              // what the grouper reads
  std::vector<int32_t> order;  // all nodes, those that are grouped first
};

struct HdpEpisode : Episode {
  std::vector<int64_t> group{};    // by position among those that are grouped
  std::vector<int64_t> written{};  // the same as the placer reads them
  int64_t used = 0;                // groups that get a device, the first ones
  std::vector<int64_t> device{};   // by group as the placer reads them
  at::Tensor read{};               // groups x columns: what the placer read of them
  at::Tensor noise{};              // groups x devices; undefined without
  std::vector<int64_t> device_of_node{};

  void Pack(Parcel& parcel) override {
    Episode::Pack(parcel);
    parcel(group);
    parcel(written);
    parcel(used);
    parcel(device);
    parcel(read);
    parcel(noise);
  }
};

// Which devices may be written next: of those that may be swapped, none before the smaller ones; after `most` groups
// only the first.
class Names {
 public:
  Names(const std::vector<DeviceId>& class_of, size_t devices, int64_t most)
      : class_of_(class_of), used_(devices, 0), left_(most) {}

  void Use(int64_t device) {
    used_[static_cast<size_t>(device)] = 1;
    --left_;
  }
  // To be added to logits.
  void Mask(float* row) const {
    for (size_t d = 0; d < used_.size(); ++d) {
      bool may = left_ > 0 || d == 0;
      for (size_t e = 0; e < d && left_ > 0 && !class_of_.empty(); ++e)
        may = may && (used_[e] != 0 || class_of_[e] != class_of_[d]);
      row[d] = may ? 0 : -std::numeric_limits<float>::infinity();
    }
  }

 private:
  const std::vector<DeviceId>& class_of_;
  std::vector<uint8_t> used_;
  int64_t left_;
};

// Renumbers groups by their first members; returns how many there are.
int64_t NumberByFirst(std::span<int64_t> group, size_t groups) {
  std::vector<int64_t> number(groups, -1);
  int64_t count = 0;
  for (int64_t& each : group) {
    int64_t& own = number[static_cast<size_t>(each)];
    if (own < 0) own = count++;
    each = own;
  }
  return count;
}

class HdpPolicy : public Policy {
 public:
  HdpPolicy(const Problem& problem, const HdpOptions& options, const Random& random) : options_(options) {
    options_.groups = options_.shape.groups = NumGroups(options, problem);
    const HdpTask task(problem, options_);
    options_.shape.features = task.ops.size(1);
    options_.shape.placer.features = PlacerColumns(task);
    types_ = task.input.types;
    options_.shape.placer.devices = static_cast<int64_t>(problem.num_devices());
    network_ = register_module("network", std::make_shared<HdpNetwork>(options_.shape, random));
  }

  std::unique_ptr<Task> Prepare(const Problem& problem) const override {
    const HdpShape& shape = options_.shape;
    auto task = std::make_unique<HdpTask>(problem, options_);
    if (static_cast<int64_t>(problem.num_devices()) != shape.placer.devices || task->ops.size(1) != shape.features ||
        PlacerColumns(*task) != shape.placer.features) {
      throw Error(
          "hdp: its policy is for {} and {} columns per group, graph {} has {} and {}: train one for as many devices, "
          "with features=extended where op types differ",
          Counted(shape.placer.devices, "device"), shape.placer.features, problem.graph().name(), problem.num_devices(),
          PlacerColumns(*task));
    }
    if (task->input.types != types_) {
      throw Error(
          "hdp: with features={} its policy reads op types by their number, and those of graph {} are others, or come in "
          "another order: train one with features=extended",
          NameOf(options_.features), problem.graph().name());
    }
    return task;
  }

  int64_t evaluations(const Task&) const override { return 1; }
  // What the backward pass remembers of one placement grows with the square of its groups.
  int64_t recalled_at_once() const override {
    const HdpShape& shape = options_.shape;
    const int64_t numbers = shape.groups * shape.groups * shape.placer.hidden;
    return std::clamp<int64_t>(16'000'000 / std::max<int64_t>(numbers, 1), 1, 64);
  }

  double recalled_numbers(const Task& task, int64_t episodes) const override {
    constexpr double kPerGroup = 10, kPerDecision = 8;
    const HdpShape& shape = options_.shape;
    const double of_op = 2 * static_cast<double>(shape.features + shape.grouper_hidden) +
                         kPerGroup * static_cast<double>(shape.groups) + kPerDecision * static_cast<double>(episodes);
    return of_op * static_cast<double>(static_cast<const HdpTask&>(task).ops.size(0)) +
           network_->placer().kept_numbers(episodes, shape.groups);
  }

  std::unique_ptr<Episode> NewEpisode() const override { return std::make_unique<HdpEpisode>(); }

  std::vector<std::unique_ptr<Episode>> Play(const Task& of, Search& search, std::span<Random> randoms,
                                             const PlayOptions& options) const override {
    const torch::NoGradGuard no_gradient;
    const auto& task = static_cast<const HdpTask&>(of);
    std::vector<std::unique_ptr<HdpEpisode>> episodes = DrawGroups(task, randoms, options);
    const bool written = Write(task, randoms, options, episodes);
    std::vector<std::unique_ptr<Episode>> played;
    std::vector<NodeTask::Decided> decided;
    for (auto& episode : episodes) {
      episode->step_of.assign(episode->log_prob.size(), 0);
      if (written) {
        episode->device_of_node.assign(task.order.size(), 0);
        for (size_t i = 0; i < episode->group.size(); ++i) {
          episode->device_of_node[i] = episode->device[static_cast<size_t>(episode->written[i])];
        }
        decided.push_back({.device = episode->device_of_node});
      }
      played.push_back(std::move(episode));
    }
    const std::vector<double> costs = task.CostsOf(task.order, decided, search, options);
    for (size_t i = 0; i < costs.size(); ++i) played[i]->cost.push_back(costs[i]);
    return played;
  }

  std::vector<std::unique_ptr<Likelihood>> Recall(std::span<const Played> episodes, int64_t) const override {
    std::vector<std::unique_ptr<Likelihood>> likelihoods;
    for (size_t first = 0, end = 0; first < episodes.size(); first = end) {
      // All of one task.
      const auto& task = static_cast<const HdpTask&>(episodes[first].task);
      std::vector<at::Tensor> read, device, group, noise, mask;
      for (; end < episodes.size() && &episodes[end].task == &task; ++end) {
        const auto& episode = static_cast<const HdpEpisode&>(episodes[end].episode);
        read.push_back(episode.read);
        device.push_back(torch::tensor(episode.device, torch::kInt64));
        group.push_back(torch::tensor(episode.group, torch::kInt64));
        mask.push_back(MaskOf(task, episode));
        if (episode.noise.defined()) noise.push_back(episode.noise);
      }
      const at::Tensor grouping = network_->Group(task.ops), drawn = torch::stack(device);
      const at::Tensor undecided = -(torch::exp(grouping) * grouping).sum(1);
      const RnnNetwork& placer = network_->placer();
      const at::Tensor placing = placer.All(placer.Read(torch::stack(read)), drawn, torch::stack(mask),
                                            noise.empty() ? at::Tensor() : torch::stack(noise) * options_.noise);
      const at::Tensor log_prob = placing.gather(2, drawn.unsqueeze(2)).squeeze(2);
      const at::Tensor entropy = -(torch::exp(placing) * placing).sum(2);
      for (int64_t i = 0; i < std::ssize(group); ++i) {
        auto likelihood = std::make_unique<Likelihood>();
        likelihood->log_prob =
            torch::cat({grouping.gather(1, group[static_cast<size_t>(i)].unsqueeze(1)).squeeze(1), log_prob[i]});
        likelihood->entropy = torch::cat({undecided, entropy[i]});
        likelihood->entropy_weight =
            torch::cat({torch::full_like(undecided, options_.grouper_entropy), torch::ones_like(entropy[i])}).detach();
        likelihoods.push_back(std::move(likelihood));
      }
    }
    return likelihoods;
  }

  std::string shape() const override {
    const HdpShape& shape = options_.shape;
    const RnnShape& placer = shape.placer;
    Hasher types;
    for (const std::string& name : types_) types.Add(name);
    return fmt::format(
        "hdp with {} and {} features, {} devices, {} groups, hidden={}, grouper_hidden={}, nodes={}, tanh_constant={}, "
        "temperature={}, features={}{}{}{}{}{}{}",
        shape.features, placer.features, placer.devices, shape.groups, placer.hidden, shape.grouper_hidden,
        options_.nodes, placer.tanh_constant, placer.temperature, NameOf(options_.features),
        types_.empty() ? "" : fmt::format(" ({})", types.Text().substr(0, 8)), options_.ordered ? ", ordered" : "",
        placer.bidirectional ? ", bidirectional" : "", placer.aligned ? ", aligned" : "",
        placer.embedded ? ", embedded" : "", options_.symmetric ? ", symmetric" : "");
  }

 private:
  int64_t PlacerColumns(const HdpTask& task) const {
    return static_cast<int64_t>(NumGroupColumns(task.input, static_cast<size_t>(options_.groups)));
  }

  std::vector<std::unique_ptr<HdpEpisode>> DrawGroups(const HdpTask& task, std::span<Random> randoms,
                                                      const PlayOptions& options) const {
    const auto groups = static_cast<size_t>(options_.groups);
    const at::Tensor log_prob = network_->Group(task.ops).contiguous();
    const size_t drawn = options_.groupings > 0 ? static_cast<size_t>(options_.groupings) : randoms.size();
    std::vector<std::unique_ptr<HdpEpisode>> episodes;
    for (size_t e = 0; e < randoms.size(); ++e) {
      auto& episode = episodes.emplace_back(std::make_unique<HdpEpisode>());
      if (e >= drawn) {
        const HdpEpisode& same = *episodes[e % drawn];
        episode->group = same.group;
        episode->written = same.written;
        episode->used = same.used;
        episode->log_prob = same.log_prob;
        episode->read = same.read;
        continue;
      }
      for (size_t i = 0; i < task.input.order.size(); ++i) {
        const std::span row(log_prob.const_data_ptr<float>() + i * groups, groups);
        const size_t group = Decide(row, options.greedy, randoms[e]);
        episode->group.push_back(static_cast<int64_t>(group));
        episode->log_prob.push_back(row[group]);
      }
      episode->written = episode->group;
      episode->used = options_.ordered ? NumberByFirst(episode->written, groups) : options_.groups;
      episode->read = torch::tensor(GroupFeatures(task.input, episode->written, groups))
                          .reshape({options_.groups, options_.shape.placer.features});
    }
    return episodes;
  }

  // A device for each group; false when it was stopped before the last.
  bool Write(const HdpTask& task, std::span<Random> randoms, const PlayOptions& options,
             std::span<const std::unique_ptr<HdpEpisode>> episodes) const {
    const auto count = static_cast<int64_t>(randoms.size()), devices = options_.shape.placer.devices;
    const bool greedy = options.greedy || (options_.sample_until > 0 && options.update >= options_.sample_until);
    const bool noisy = options_.noise > 0 && options.update < options_.noise_until && !options.greedy;
    std::vector<at::Tensor> read;
    std::vector<Names> names;
    for (size_t e = 0; e < episodes.size(); ++e) {
      read.push_back(episodes[e]->read);
      names.emplace_back(ClassesOf(task), static_cast<size_t>(devices), episodes[e]->used);
      if (!noisy) continue;
      episodes[e]->noise = torch::empty({options_.groups, devices});
      float* to = episodes[e]->noise.data_ptr<float>();
      for (int64_t i = 0; i < options_.groups * devices; ++i) to[i] = static_cast<float>(randoms[e].Normal());
    }
    const RnnNetwork& placer = network_->placer();
    const RnnNetwork::Memory memory = placer.Read(torch::stack(read));
    RnnNetwork::State state = placer.Begin(memory, count);
    at::Tensor mask = torch::zeros({count, devices});
    for (int64_t group = 0; group < options_.groups; ++group) {
      if (options.stopped()) return false;
      std::vector<at::Tensor> noise;
      for (size_t e = 0; e < episodes.size(); ++e) {
        names[e].Mask(mask.data_ptr<float>() + static_cast<int64_t>(e) * devices);
        if (noisy) noise.push_back(episodes[e]->noise[group] * options_.noise);
      }
      const at::Tensor log_prob =
          placer.Next(memory, state, mask, noisy ? torch::stack(noise) : at::Tensor()).contiguous();
      state.previous = torch::empty({count}, torch::kInt64);
      for (size_t e = 0; e < episodes.size(); ++e) {
        const std::span row(log_prob.const_data_ptr<float>() + static_cast<int64_t>(e) * devices,
                            static_cast<size_t>(devices));
        const size_t device = Decide(row, greedy, randoms[e]);
        state.previous.data_ptr<int64_t>()[e] = static_cast<int64_t>(device);
        names[e].Use(static_cast<int64_t>(device));
        episodes[e]->device.push_back(static_cast<int64_t>(device));
        episodes[e]->log_prob.push_back(row[device]);
      }
    }
    return true;
  }

  const std::vector<DeviceId>& ClassesOf(const HdpTask& task) const {
    static const std::vector<DeviceId> none;
    return options_.symmetric ? task.class_of : none;
  }

  // groups x devices.
  at::Tensor MaskOf(const HdpTask& task, const HdpEpisode& episode) const {
    const int64_t devices = options_.shape.placer.devices;
    at::Tensor mask = torch::zeros({options_.groups, devices});
    Names names(ClassesOf(task), static_cast<size_t>(devices), episode.used);
    for (size_t group = 0; group < episode.device.size(); ++group) {
      names.Mask(mask.data_ptr<float>() + static_cast<int64_t>(group) * devices);
      names.Use(episode.device[group]);
    }
    return mask;
  }

  HdpOptions options_;
  std::vector<std::string> types_;  // HdpInput::types of the graphs that it reads
  std::shared_ptr<HdpNetwork> network_;
};

void CompleteHdp(const Params&, const Params& params, Method& method) {
  const std::string features = params.Text("features");
  const HdpOptions options{.shape = {.grouper_hidden = params.Int("grouper_hidden"),
                                     .grouper_scale = params.Real("grouper_scale"),
                                     .placer = {.hidden = params.Int("hidden"),
                                                .bidirectional = params.Bool("bidirectional"),
                                                .tanh_constant = params.Real("tanh_constant"),
                                                .temperature = params.Real("temperature"),
                                                .embedded = params.Bool("embedded"),
                                                .gate_biases = params.Bool("embedded"),
                                                .aligned = params.Bool("aligned")}},
                           .nodes = params.Text("nodes") == "ops" ? "none" : params.Text("nodes"),
                           .features = features == "code"   ? HdpFeatures::kCode
                                       : features == "slip" ? HdpFeatures::kSlip
                                                            : HdpFeatures::kExtended,
                           .groups = params.Int("groups"),
                           .groupings = params.Int("groupings"),
                           .ordered = params.Bool("ordered"),
                           .symmetric = params.Bool("symmetric"),
                           .grouper_entropy = params.Real("grouper_entropy"),
                           .noise = params.Real("noise"),
                           .noise_until = params.Int("noise_until"),
                           .sample_until = params.Int("sample_until")};
  if (options.shape.placer.bidirectional && options.shape.placer.hidden % 2 != 0) {
    throw Error("hdp: hidden={} cannot be halved between two directions; make it even", options.shape.placer.hidden);
  }
  if (const double seconds = params.Time("failing_signal"); seconds > 0) {
    if (method.rule.reward != Reward::kSquareRoot) {
      throw Error("hdp: failing_signal is where a baseline of square roots begins; give reward=square_root as well");
    }
    method.rule.failed_seconds = seconds;
    method.rule.first_baseline = -std::sqrt(seconds);
    method.rule.failures_until = params.Int("failures_until");
    method.scoring.memory_penalty = std::numeric_limits<double>::infinity();
  }
  method.learner.decay = {
      .factor = params.Real("decay"), .every = params.Int("decay_every"), .after = params.Int("decay_after")};
  method.make_policy = [options](const Problem& problem, const Random& random) {
    return std::make_shared<HdpPolicy>(problem, options, random);
  };
}

}  // namespace

void RegisterHdp(MethodCatalog& catalog) {
  AddMethod(
      catalog,
      {.name = "hdp",
       .sentence = "Learns to group the ops with one network and to write a device for each group with another, a "
                   "recurrent one, both from the time of the whole placement.",
       .source = "Mirhoseini et al. 2018",
       .parameters =
           {Choice("nodes", {"layers", "paper", "code", "ops"},
                   "what is put into groups: whole layers, the groups of HSDAG's co-location rules, or ops"),
            Choice("features", {"extended", "code", "slip"},
                   "what is read of ops and groups: what means the same on every graph; types, shapes and neighbours "
                   "as in the released code; or these with its slip, by which shapes are added to counts of types"),
            Whole("groups", "16", "groups; 0: 20 for each device, 256 at most, as in the code", 0, 512),
            Whole("groupings", "0",
                  "groupings that a worker draws in an update, among which its placements are divided; 0: one for each",
                  0, 1024),
            Whole("grouper_hidden", "64", "width of the grouper", 1, 4096),
            Real("grouper_scale", "0.1",
                 "of the grouper's last weights at first, over Glorot's: below 1 all groups begin alike likely", 0,
                 1e6),
            Real("grouper_entropy", "0", "weight of the grouper's entropy beside that of the placer", 0, 1e6),
            Whole("hidden", "64", "width of the placer", 2, 4096),
            Switch("bidirectional", "true", "the encoder reads the groups both ways"),
            Switch("embedded", "true",
                   "an affine layer before the encoder, and a bias for each gate; false: none, and one bias for all "
                   "forget gates, as in the code"),
            Switch("aligned", "true", "the decoder is shown the group whose device it writes"),
            Switch("ordered", "true", "groups are read in the order of their ops, and those without any get no device"),
            Switch("symmetric", "true", "devices that may be swapped are written in their order at first"),
            Real("tanh_constant", "0", "logits lie between minus this and this; 0: no limit", 0, 1e6),
            Real("temperature", "1", "divides the logits before", 1e-3, 1e6),
            Real("noise", "0", "Gaussian noise on the logits, as a share of their root mean square", 0, 1e3),
            Whole("noise_until", "0", "updates until the noise ends", 0, 1e9),
            Whole("sample_until", "0",
                  "updates until devices are no longer drawn and the likeliest taken; 0: drawn to the end", 0, 1e9),
            Real("decay", "1", "factor on the learning rate, time after time", 0, 1),
            Whole("decay_every", "50", "updates from one time to the next", 1, 1e9),
            Whole("decay_after", "400", "updates before the first", 0, 1e9),
            Time("failing_signal", "0",
                 "seconds that placements without a score or memory are taken to last, and with which the moving "
                 "baseline begins; 0: ten times the worst of the update, and the first mean"),
            Whole("failures_until", "0", "updates after which failures are left out, for failing_signal; 0: never", 0,
                  1e9)},
       .modes = {{"best",
                  {{"normalise", "true"},
                   {"workers", "2"},
                   {"rollouts", "8"},
                   {"ppo", "0.2"},
                   {"epochs", "3"},
                   {"learning_rate", "0.003"},
                   {"learning_rate_end", "0.0003"},
                   {"entropy", "0.1"},
                   {"entropy_end", "0.001"},
                   {"clip", "1"}}},
                 // The hyperparameters that TensorFlow's hierarchical controller has by default.
                 {"code",
                  {{"features", "slip"},
                   {"hidden", "512"},
                   {"embedded", "false"},
                   {"aligned", "false"},
                   {"nodes", "ops"},
                   {"groups", "0"},
                   {"grouper_scale", "1"},
                   {"ordered", "false"},
                   {"symmetric", "false"},
                   {"tanh_constant", "1"},
                   {"temperature", "1"},
                   {"noise", "0.5"},
                   {"noise_until", "750"},
                   {"sample_until", "500"},
                   {"decay", "0.95"},
                   {"failing_signal", "100"},
                   {"failures_until", "1000"},
                   {"reward", "square_root"},
                   {"baseline", "moving"},
                   {"learning_rate", "0.1"},
                   {"learning_rate_end", "0.1"},
                   {"clip", "1"}}},
                 // What is quoted of the paper: the rate, the clipping, the constant, the temperature, and four
                 // placements of one grouping.
                 {"paper",
                  {{"features", "code"},
                   {"hidden", "512"},
                   {"embedded", "false"},
                   {"aligned", "false"},
                   {"nodes", "ops"},
                   {"groups", "0"},
                   {"grouper_scale", "1"},
                   {"ordered", "false"},
                   {"symmetric", "false"},
                   {"tanh_constant", "5"},
                   {"temperature", "10"},
                   {"groupings", "1"},
                   {"rollouts", "4"},
                   {"reward", "square_root"},
                   {"baseline", "moving"},
                   {"learning_rate", "0.1"},
                   {"learning_rate_end", "0.1"},
                   {"clip", "1"}}}},
       .make = CompleteHdp});
}

}  // namespace berth
