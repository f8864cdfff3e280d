#include "learn/policy.h"

#include <algorithm>
#include <cmath>

namespace berth {

void Episode::Pack(Parcel& parcel) {
  parcel(start_cost);
  parcel(cost);
  parcel(step_of);
  parcel(log_prob);
  parcel(beside);
  parcel(device);
  parcel(priority);
}

Task::Task(const Problem& of) : problem(of), units(of) {
  if (has_rules() && !units.contradiction()) otherwise_ = units.AllOn(DeviceId{0});
}

void Task::KeepRules(std::span<DeviceId> placement) const {
  if (has_rules() && !units.Legalise(placement)) std::ranges::copy(otherwise_, placement.begin());
}

void UseOneThread() { at::set_num_threads(1); }

size_t Decide(std::span<const float> log_probability, bool greedy, Random& random) {
  if (greedy) return static_cast<size_t>(std::ranges::max_element(log_probability) - log_probability.begin());
  return DecideBy(log_probability, random.Uniform());
}

size_t DecideBy(std::span<const float> log_probability, double uniform) {
  size_t chosen = 0;
  for (size_t d = 0; d < log_probability.size(); ++d) {
    const double probability = std::exp(static_cast<double>(log_probability[d]));
    if (probability <= 0) continue;
    chosen = d;  // of the last that is possible, where rounding leaves a rest
    uniform -= probability;
    if (uniform < 0) break;
  }
  return chosen;
}

std::vector<std::unique_ptr<Likelihood>> RecallTable(std::span<const Played> episodes,
                                                     const std::function<OddsTable(const Task&)>& table_of) {
  const auto entropy_of = [](const at::Tensor& odds) { return -(torch::exp(odds) * odds).sum(1); };
  const auto chosen = [](const at::Tensor& odds, const std::vector<int64_t>& decisions) {
    return odds.gather(1, torch::tensor(decisions, torch::kInt64).unsqueeze(1)).squeeze(1);
  };
  std::vector<std::unique_ptr<Likelihood>> likelihoods;
  struct Known {
    const Task* task;
    OddsTable table;
    at::Tensor entropy;
  };
  std::vector<Known> known;  // as many as there are tasks
  const auto of_task = [&](const Task& task) -> const Known& {
    const auto found = std::ranges::find(known, &task, &Known::task);
    if (found != known.end()) return *found;
    Known& added = known.emplace_back(Known{.task = &task, .table = table_of(task), .entropy = {}});
    added.entropy = entropy_of(added.table.device);
    if (added.table.priority.defined()) {
      added.entropy = torch::cat({added.entropy, entropy_of(added.table.priority)});
    }
    return added;
  };
  for (const auto& [task, episode] : episodes) {
    const auto& [_, table, entropy] = of_task(task);
    auto likelihood = std::make_unique<Likelihood>();
    likelihood->log_prob = chosen(table.device, episode.device);
    if (table.priority.defined()) {
      likelihood->log_prob = torch::cat({likelihood->log_prob, chosen(table.priority, episode.priority)});
    }
    likelihood->entropy = entropy;
    likelihoods.push_back(std::move(likelihood));
  }
  return likelihoods;
}

}  // namespace berth
