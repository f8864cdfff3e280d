// A policy without a network: a table of logits with a column per device, and a row per unit (an op, or ops that must
// share a device) or per op type. What REINFORCE finds with it is what a method with a network has to be better than.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/hash.h"
#include "base/parameters.h"
#include "learn/method_parameters.h"
#include "learn/nets.h"
#include "learn/scoring.h"

namespace berth {
namespace {

// Op types are hashed into so many rows.
constexpr uint64_t kTypeRows = 64;

struct TabularTask : Task {
  TabularTask(const Problem& of, bool by_type) : Task(of) {
    const Graph& graph = of.graph();
    const auto count = static_cast<int64_t>(units.size()), devices = static_cast<int64_t>(of.num_devices());
    row = torch::arange(count);
    mask = torch::zeros({count, devices});
    float* at = mask.data_ptr<float>();
    for (size_t unit = 0; unit < units.size(); ++unit) {
      if (by_type) {
        Hasher type;
        type.Add(graph.op_type(units.ops(unit).front()));
        row[static_cast<int64_t>(unit)] = static_cast<int64_t>(type.value() % kTypeRows);
      }
      for (const DeviceId device : of.cluster().ids()) {
        if (!units.can_run(unit, device))
          at[unit * of.num_devices() + Index(device)] = -std::numeric_limits<float>::infinity();
      }
    }
  }

  at::Tensor row;   // int64, by unit
  at::Tensor mask;  // units x devices: -infinity where one of its ops cannot run
};

// Which ops there are, by name: the rows of a table mean nothing on another graph.
std::string GraphName(const Problem& problem) {
  Hasher names;
  for (const OpId op : problem.graph().ops()) names.Add(problem.graph().op_name(op));
  return names.Text().substr(0, 8);
}

class TabularPolicy : public Policy {
 public:
  TabularPolicy(const Problem& problem, bool by_type) : by_type_(by_type), graph_(GraphName(problem)) {
    const auto rows = static_cast<int64_t>(by_type ? kTypeRows : Units(problem).size());
    logits_ = register_parameter("logits", torch::zeros({rows, static_cast<int64_t>(problem.num_devices())}));
  }

  std::unique_ptr<Task> Prepare(const Problem& problem) const override {
    auto task = std::make_unique<TabularTask>(problem, by_type_);
    if (task->mask.size(1) != logits_.size(1)) {
      throw Error("tabular: its table is for {}, the cluster has {}", Counted(logits_.size(1), "device"),
                  task->mask.size(1));
    }
    if (!by_type_ && (task->mask.size(0) != logits_.size(0) || GraphName(problem) != graph_)) {
      throw Error("tabular: its table has a row for each op of another graph than {}: train with rows=type",
                  problem.graph().name());
    }
    return task;
  }

  int64_t evaluations(const Task&) const override { return 1; }
  int64_t recalled_at_once() const override { return 64; }
  double recalled_numbers(const Task& task, int64_t episodes) const override {
    return static_cast<double>(task.units.size()) * static_cast<double>(4 * logits_.size(1) + 8 * episodes);
  }
  int64_t replayed_decisions(const Task& task) const override { return static_cast<int64_t>(task.units.size()); }

  std::vector<std::unique_ptr<Episode>> Play(const Task& of, Search& search, std::span<Random> randoms,
                                             const PlayOptions& options) const override {
    const torch::NoGradGuard no_gradient;
    const auto& task = static_cast<const TabularTask&>(of);
    const at::Tensor table = LogProbabilities(task).contiguous();
    const size_t devices = task.problem.num_devices();
    std::vector<DeviceId> placement(task.problem.num_ops());
    std::vector<std::unique_ptr<Episode>> episodes;
    for (Random& random : randoms) {
      auto episode = std::make_unique<Episode>();
      if (!options.stopped()) {
        for (size_t unit = 0; unit < task.units.size(); ++unit) {
          const std::span row(table.const_data_ptr<float>() + unit * devices, devices);
          const size_t device = Decide(row, options.greedy, random);
          episode->device.push_back(static_cast<int64_t>(device));
          episode->log_prob.push_back(row[device]);
          episode->step_of.push_back(0);
          task.units.Put(placement, unit, MakeId<DeviceId>(device));
        }
        task.KeepRules(placement);
        const Score score = search.Evaluate({.device = placement}, options.cause);
        episode->cost.push_back(CostOf(task.problem, score, options.memory_penalty));
      }
      episodes.push_back(std::move(episode));
    }
    return episodes;
  }

  std::vector<std::unique_ptr<Likelihood>> Recall(std::span<const Played> episodes, int64_t) const override {
    return RecallTable(episodes, [&](const Task& task) {
      return OddsTable{.device = LogProbabilities(static_cast<const TabularTask&>(task))};
    });
  }

  std::string shape() const override {
    return fmt::format("tabular with {} devices, {}", logits_.size(1),
                       by_type_ ? "rows=type" : fmt::format("{} rows of graph {}", logits_.size(0), graph_));
  }

 private:
  at::Tensor LogProbabilities(const TabularTask& task) const {
    return MaskedLogSoftmax(logits_.index_select(0, task.row), task.mask);
  }

  bool by_type_;
  std::string graph_;
  at::Tensor logits_;
};

}  // namespace

void RegisterTabular(MethodCatalog& catalog) {
  AddMethod(
      catalog,
      {.name = "tabular",
       .sentence = "Learns a table of odds, a row per op or per op type, by REINFORCE: what policy gradients find "
                   "without a network.",
       .source = "Williams 1992",
       .parameters = {Choice("rows", {"op", "type"},
                             "a row for each op (those that must share a device have one), or for each op type, "
                             "so that a policy serves many graphs")},
       .modes = {{"best",
                  {{"normalise", "true"},
                   {"workers", "2"},
                   {"rollouts", "10"},
                   {"learning_rate", "0.1"},
                   {"learning_rate_end", "0.1"},
                   {"entropy", "0.01"},
                   {"entropy_end", "0.001"}}}},
       .make = [](const Params&, const Params& params, Method& method) {
         const bool by_type = params.Text("rows") == "type";
         method.make_policy = [by_type](const Problem& problem, const Random&) {
           return std::make_shared<TabularPolicy>(problem, by_type);
         };
       }});
}

}  // namespace berth
