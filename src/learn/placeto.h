// Placeto's decision process (Addanki et al. 2019, section 3): an episode begins with a complete placement and visits
// each node once; a step sets the device of one node.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "learn/placeto_network.h"
#include "learn/policy.h"
#include "placement/grouping.h"

namespace berth {

struct PlacetoOptions {
  enum class Order : uint8_t { kTopological, kShuffled };  // one fixed shuffle per graph
  enum class Start : uint8_t {
    kFixed,    // one random placement per graph, always the same
    kVarying,  // a random placement per episode
    kFirst,    // everything on the first device that can run it
  };
  Order order = Order::kTopological;
  Start start = Start::kFixed;
  bool every_step = true;     // asks for a score before the first and after every step; else at the end only
  bool start_times = false;   // feature column of simulated start times, else 0
  bool cost_columns = false;  // a column of op times per device, else one of their mean
  bool relative = false;      // times and bytes as logarithms on one scale, else shares of the largest of their column
  bool shared = false;        // one score for every device by the same network, else an output per device
  int64_t rounds = 8;
  bool three_sets = true;
  bool mean = false;
};

// The nodes: units of ops that the problem's colocate constraints join, in topological order (where groups form cycles,
// in the nearest to one).
class PlacetoTask : public Task {
 public:
  // The columns of a feature row, in this order; d = 4 + costs + m, or 6 + costs where `shared`. Times, bytes and start
  // times are divided by the largest of their column (all cost columns by the largest of all), where that is positive;
  // where `relative`, times and the mean time of sending the output are ln(1 + t / the mean of all nodes' mean times).
  //   costs        the node's time: the mean over the devices that can run it, or one per device (0 where it cannot)
  //   output       bytes of all tensors that its ops make
  //   done         1 once it was placed in this episode
  //   current      1 for the node that is placed now
  //   start        simulated start time minus that of the current node, or 0
  //   device x m   1 for its device; where `shared`: 1 on the device that is scored, and the node's time there
  PlacetoTask(const Problem& problem, const PlacetoOptions& options, const Random& random);

  int64_t num_nodes() const { return static_cast<int64_t>(node_ops.size()); }
  int64_t num_devices() const { return static_cast<int64_t>(problem.num_devices()); }
  // Rows of features that one state needs: one, or one per device.
  int64_t views() const { return shared_ ? num_devices() : 1; }
  static int64_t Columns(const PlacetoOptions& options, int64_t devices);
  int64_t columns() const { return static_cast<int64_t>(columns_); }

  // Writes a state's rows, views() x num_nodes x columns. `starts` is per node, or empty.
  void WriteFeatures(std::span<const DeviceId> device, int64_t step, std::span<const double> starts, float* to) const;

  std::vector<std::span<const OpId>> node_ops;  // per node
  std::vector<int32_t> order;                   // the node of each step
  std::vector<DeviceId> first_start;            // per node, for Start::kFixed and kFirst
  std::unique_ptr<PlacetoGraph> graph;
  at::Tensor forbidden;  // bool, nodes x devices: cannot run

 private:
  void Sort(const Quotient& quotient);
  void Measure(const Quotient& quotient, const PlacetoOptions& options);

  bool shared_;
  size_t columns_, costs_;
  Grouping grouping_;
  std::vector<int32_t> step_of_;  // per node
  std::vector<float> fixed_;      // nodes x (costs and output)
  std::vector<float> time_;       // nodes x devices, as in the features
};

struct PlacetoEpisode : Episode {
  std::vector<DeviceId> start{};   // per node
  std::vector<DeviceId> action{};  // per step
  std::vector<double> starts{};    // steps x nodes, where the features have start times
};

class PlacetoPolicy : public Policy {
 public:
  PlacetoPolicy(const Problem& problem, const PlacetoOptions& options, const Random& random);

  std::unique_ptr<Task> Prepare(const Problem& problem) const override;
  int64_t evaluations(const Task& task) const override;
  // Start times are known of what was simulated only.
  int64_t greedy_evaluations(const Task& task) const override { return options_.start_times ? evaluations(task) : 1; }
  // A greedy episode that may not ask often enough asks at its end; another one stops early.
  std::vector<std::unique_ptr<Episode>> Play(const Task& task, Search& search, std::span<Random> randoms,
                                             const PlayOptions& options) const override;
  // The entropies are the paper's, -sum p ln(p + 0.001).
  std::vector<std::unique_ptr<Likelihood>> Recall(std::span<const Played> episodes, int64_t) const override;
  double recalled_numbers(const Task& task, int64_t episodes) const override;
  std::string shape() const override;

  const PlacetoNetwork& network() const { return *network_; }

 private:
  std::unique_ptr<Likelihood> RecallOne(const PlacetoTask& task, const PlacetoEpisode& episode) const;

  PlacetoOptions options_;
  Random random_;
  std::shared_ptr<PlacetoNetwork> network_;
};

}  // namespace berth
