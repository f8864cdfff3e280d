#include "learn/learner.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <iterator>
#include <limits>
#include <thread>

#include "base/error.h"
#include "placement/search.h"

namespace berth {
namespace {

// Calls run(i) for i = 0 .. count - 1 on so many threads; the first exception, by i, is thrown again.
void InParallel(int64_t count, int64_t threads, const std::function<void(size_t)>& run) {
  std::vector<std::exception_ptr> failed(static_cast<size_t>(count));
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    // Graphs are small: a thread per worker is faster than threads within an operation, and sums do not depend on it.
    at::set_num_threads(1);
    for (int64_t i = next++; i < count; i = next++) {
      try {
        run(static_cast<size_t>(i));
      } catch (...) {
        failed[static_cast<size_t>(i)] = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> helpers;
  for (int64_t t = 1; t < std::min(threads, count); ++t) helpers.emplace_back(work);
  work();
  helpers.clear();
  for (const std::exception_ptr& error : failed) {
    if (error) std::rethrow_exception(error);
  }
}

double Between(double first, double last, double share) { return first + (last - first) * std::clamp(share, 0.0, 1.0); }

}  // namespace

// What one worker does in one update.
struct Learner::Worker {
  size_t index;  // of its case
  int64_t anchor;
  int64_t rollouts;
  int64_t evaluations;
  std::unique_ptr<Search> search;  // over its lease
  std::vector<std::unique_ptr<Episode>> episodes{};
  std::vector<std::vector<double>> weight{};  // per episode, per step
  std::vector<at::Tensor> gradient{};
  double loss = 0, entropy = 0;
};

Learner::Learner(const Method& method, std::vector<LearnCase> cases, const Random& random, int64_t planned_updates)
    : method_(method),
      cases_(std::move(cases)),
      random_(random),
      planned_updates_(std::max<int64_t>(planned_updates, 1)),
      rule_(method.rule),
      cause_("drawn by the policy of " + method.name) {
  if (cases_.empty()) throw Error("{}: there is no graph to learn on", method.name);
  policy_ = method_.make_policy(cases_[0].problem, random_.Fork(0));
  for (const LearnCase& each : cases_) tasks_.push_back(policy_->Prepare(each.problem));
  adam_ = std::make_unique<torch::optim::Adam>(policy_->parameters(),
                                               torch::optim::AdamOptions(method_.learner.learning_rate));
  reference_.assign(cases_.size(), std::numeric_limits<double>::quiet_NaN());
  for (const LearnCase& each : cases_) {
    double work = 0;
    for (const OpId op : each.problem.graph().ops()) work += std::ranges::min(each.problem.op_times(op));
    work_.push_back(work > 0 ? work : 1);
  }
  for (const LearnCase& each : cases_) {
    scoring_.push_back(ForLearning(each.evaluator, method_.scoring));
    if (each.search == nullptr) {
      own_searches_.push_back(std::make_unique<Search>(
          PlanRequest{.evaluator = each.evaluator, .budget = {}, .random = random_, .constrained = &each.problem}));
    }
    searches_.push_back(each.search == nullptr ? own_searches_.back().get() : each.search);
  }
  workspaces_.resize(static_cast<size_t>(method_.learner.workers * policy_->anchors()));
  for (auto& workspaces : workspaces_) workspaces.resize(cases_.size());
  if (method_.critic.prior != CriticOptions::Prior::kNone) {
    for (size_t i = 0; i < cases_.size(); ++i) {
      BERTH_CHECK(tasks_[i]->graph() != nullptr, "{} has no nodes for a critic", method_.name);
      critic_.push_back(std::make_unique<Critic>(cases_[i].problem, *tasks_[i]->graph(),
                                                 method_.critic.prior == CriticOptions::Prior::kCosts));
    }
  }
}

Learner::~Learner() = default;

int64_t Learner::evaluations_per_update() const {
  int64_t sum = 0;
  for (const auto& task : tasks_) sum += policy_->evaluations(*task);
  const auto tasks = static_cast<int64_t>(tasks_.size());
  return (sum * method_.learner.workers * policy_->anchors() * method_.learner.rollouts + tasks - 1) / tasks;
}

// What an update changes, but for the critics, which come last.
struct Learner::Before {
  explicit Before(const Learner& learner)
      : rule(learner.rule_),
        reference(learner.reference_),
        updates(learner.updates_),
        evaluations(learner.evaluations_),
        failures(learner.failures_) {
    for (const at::Tensor& parameter : learner.policy_->parameters()) {
      policy.push_back(parameter.detach().clone());
      const auto state = learner.adam_->state().find(parameter.unsafeGetTensorImpl());
      if (state == learner.adam_->state().end()) continue;
      adam.emplace_back(static_cast<const torch::optim::AdamParamState&>(*state->second));
      adam.back().exp_avg(adam.back().exp_avg().clone()).exp_avg_sq(adam.back().exp_avg_sq().clone());
    }
  }

  // Before they learn: what they hold is large, and most updates that are stopped are stopped sooner.
  void KeepCritics(Learner& learner) {
    for (const auto& critic : learner.critic_) {
      critics.emplace_back();
      for (const at::Tensor& state : critic->State()) critics.back().push_back(state.clone());
    }
  }

  void Restore(Learner& learner) {
    const torch::NoGradGuard no_gradient;
    for (size_t i = 0; i < critics.size(); ++i) {
      const std::vector<at::Tensor> states = learner.critic_[i]->State();
      for (size_t s = 0; s < states.size(); ++s) states[s].copy_(critics[i][s]);
    }
    const std::vector<at::Tensor> parameters = learner.policy_->parameters();
    learner.adam_->state().clear();
    for (size_t p = 0; p < parameters.size(); ++p) {
      parameters[p].copy_(policy[p]);
      if (p >= adam.size()) continue;
      learner.adam_->state()[parameters[p].unsafeGetTensorImpl()] =
          std::make_unique<torch::optim::AdamParamState>(adam[p]);
    }
    learner.rule_ = std::move(rule);
    learner.reference_ = std::move(reference);
    learner.updates_ = updates;
    learner.evaluations_ = evaluations;
    learner.failures_ = failures;
  }

  UpdateRule rule;
  std::vector<double> reference;
  int64_t updates, evaluations, failures;
  std::vector<at::Tensor> policy;
  std::vector<torch::optim::AdamParamState> adam;  // none before the first step
  std::vector<std::vector<at::Tensor>> critics{};  // none before they learn
};

std::unique_ptr<Search> Learner::MakeSearch(size_t index, int64_t evaluations, Workspace* workspace,
                                            const StopCheck& stop) {
  const Lease lease = searches_[index]->Lend(evaluations);
  auto search = std::make_unique<Search>(PlanRequest{.evaluator = *scoring_[index],
                                                     .budget = {.evaluations = lease.evaluations},
                                                     .random = random_,
                                                     .first_evaluation = lease.first,
                                                     .confirms = false,
                                                     .constrained = &cases_[index].problem},
                                         workspace);
  if (workspace != nullptr && scoring_[index]->facts().stops) workspace->stop = stop;
  return search;
}

std::vector<Learner::Worker> Learner::MakeWorkers(int64_t evaluations, const StopCheck& stop) {
  std::vector<Worker> workers;
  int64_t left = evaluations;
  const int64_t anchors = policy_->anchors();
  for (int64_t w = 0; w < method_.learner.workers * anchors && left > 0; ++w) {
    // Every graph in turn, also when there are more graphs than workers.
    const size_t index = static_cast<size_t>(updates_ * method_.learner.workers + w / anchors) % cases_.size();
    const int64_t rollouts = std::min(method_.learner.rollouts, left);
    const int64_t wanted = std::min(policy_->evaluations(*tasks_[index]), left / rollouts);
    std::unique_ptr<Workspace>& workspace = workspaces_[static_cast<size_t>(w)][index];
    if (workspace == nullptr) workspace = scoring_[index]->NewWorkspace();
    workers.push_back({.index = index,
                       .anchor = w % anchors,
                       .rollouts = rollouts,
                       .evaluations = wanted,
                       .search = MakeSearch(index, wanted * rollouts, workspace.get(), stop)});
    left -= wanted * rollouts;
  }
  return workers;
}

std::optional<CurvePoint> Learner::Update(int64_t evaluations, int64_t threads, const StopCheck& stop) {
  Before before(*this);
  std::vector<Worker> workers = MakeWorkers(evaluations, stop);
  const auto update = static_cast<uint64_t>(updates_) + 1;
  InParallel(static_cast<int64_t>(workers.size()), threads, [&](size_t w) {
    Worker& worker = workers[w];
    std::vector<Random> randoms;
    for (int64_t r = 0; r < worker.rollouts; ++r) {
      randoms.push_back(
          random_.Fork(update, w * static_cast<size_t>(method_.learner.rollouts) + static_cast<size_t>(r)));
    }
    worker.episodes = policy_->Play(*tasks_[worker.index], *worker.search, randoms,
                                    {.evaluations = worker.evaluations,
                                     .memory_penalty = method_.scoring.memory_penalty,
                                     .cause = cause_,
                                     .anchor = worker.anchor,
                                     .stop = stop});
  });
  const auto dropped = [&] {
    for (const Worker& worker : workers) dropped_.emplace_back(worker.index, worker.search->Found());
    before.Restore(*this);
    return std::nullopt;
  };
  if (stop && stop()) return dropped();

  CurvePoint point{.update = ++updates_, .best_cost = std::numeric_limits<double>::infinity()};
  CollectCosts(workers, point);
  WeighSteps(workers);
  const double planned = static_cast<double>(planned_updates_), done = static_cast<double>(updates_ - 1);
  for (int64_t epoch = 0; epoch < rule_.options().epochs && !point.diverged; ++epoch) {
    const Stepped stepped = Step(workers, threads, WeightsAt(done / planned), false, point, stop);
    if (stepped == Stepped::kStopped) return dropped();
    point.diverged = stepped == Stepped::kDiverged;
  }
  if (!critic_.empty()) {
    if (stop) before.KeepCritics(*this);
    for (const Worker& worker : workers) {
      for (const auto& episode : worker.episodes) {
        for (size_t i = 0; i < episode->cost.size(); ++i) {
          if (!std::isfinite(episode->cost[i])) continue;
          critic_[worker.index]->Learn(episode->device_of_node[i], episode->cost[i]);
        }
      }
    }
    const auto imagined = static_cast<double>(method_.critic.imagined);
    for (int64_t i = 0; i < method_.critic.imagined && !point.diverged; ++i) {
      CurvePoint unused;
      const double share = (done + static_cast<double>(i) / imagined) / planned;
      const Stepped stepped = Step(workers, threads, WeightsAt(share), true, unused, stop);
      if (stepped == Stepped::kStopped) return dropped();
      point.diverged = stepped == Stepped::kDiverged;
    }
  }
  for (const at::Tensor& parameter : policy_->parameters()) {
    point.diverged = point.diverged || !torch::isfinite(parameter).all().item<bool>();
  }
  for (const Worker& worker : workers) searches_[worker.index]->Adopt(worker.search->Found());
  return point;
}

void Learner::CollectCosts(std::span<Worker> workers, CurvePoint& point) {
  std::string failure;
  double asked = 0, episodes = 0, logarithms = 0;
  for (Worker& worker : workers) {
    const double unit = cases_[worker.index].problem.seconds_per_unit();
    evaluations_ += worker.search->evaluations();
    failures_ += worker.search->failures();
    if (!worker.search->last_failure().empty()) failure = worker.search->last_failure();
    for (const auto& episode : worker.episodes) {
      for (const double cost : episode->cost) {
        if (!std::isfinite(cost)) continue;
        if (std::isnan(reference_[worker.index])) reference_[worker.index] = cost;
        point.mean_cost += cost * unit;
        point.best_cost = std::min(point.best_cost, cost * unit);
        logarithms += std::log(cost / Scale(worker.index));
        ++asked;
      }
      point.groups += episode->groups;
      ++episodes;
    }
  }
  if (failures_ == evaluations_) {
    throw Error("{}: none of {} placements could be scored: {}", method_.name, evaluations_, failure);
  }
  point.evaluations = evaluations_;
  point.mean_cost /= std::max(asked, 1.0);
  point.relative_cost = std::exp(logarithms / asked);
  point.groups /= std::max(episodes, 1.0);
}

// Baselines are shared by the workers of a case, so one case after another, in the order of the workers.
void Learner::WeighSteps(std::span<Worker> workers) {
  for (size_t index = 0; index < cases_.size(); ++index) {
    std::vector<const Episode*> of_case;
    std::vector<Worker*> owners;
    std::vector<Episode> unexplained;
    for (Worker& worker : workers) {
      if (worker.index != index) continue;
      for (const auto& episode : worker.episodes) {
        of_case.push_back(episode.get());
        owners.push_back(&worker);
        if (critic_.empty()) continue;
        // What the critic foresaw is not due to luck; its own gradient takes care of that part (Loss).
        Episode& rest = unexplained.emplace_back();
        rest.start_cost = std::numeric_limits<double>::quiet_NaN();
        for (size_t i = 0; i < episode->cost.size(); ++i) {
          rest.cost.push_back((episode->cost[i] - critic_[index]->Predict(episode->device_of_node[i])) /
                              reference_[index]);
        }
      }
    }
    if (of_case.empty() || std::isnan(reference_[index])) continue;
    for (size_t i = 0; i < unexplained.size(); ++i) of_case[i] = &unexplained[i];
    const auto task = static_cast<int64_t>(index);
    std::vector<std::vector<double>> weight =
        critic_.empty() ? rule_.Weigh(task, of_case, reference_[index], cases_[index].problem.seconds_per_unit())
                        : rule_.Weigh(task, of_case, 1, 1);  // what the critic's expectation is divided by, in Loss
    for (size_t i = 0; i < weight.size(); ++i) owners[i]->weight.push_back(std::move(weight[i]));
  }
}

Learner::Weights Learner::WeightsAt(double share) const {
  const LearnerOptions& options = method_.learner;
  share = std::clamp(share, 0.0, 1.0);
  return {.learning_rate = Between(options.learning_rate, options.learning_rate_end, share),
          // Cooled as annealing is, by a constant factor, where it does not end at nothing.
          .entropy = options.entropy_end > 0 && options.entropy > 0
                         ? options.entropy * std::pow(options.entropy_end / options.entropy, share)
                         : Between(options.entropy, options.entropy_end, share),
          .hold = options.hold * std::pow(1e-3, share)};
}

double Learner::Scale(size_t index) const {
  return cases_[index].evaluator.facts().objective.is_time() ? work_[index] : reference_[index];
}

at::Tensor Learner::Loss(const Worker& worker, size_t episode, const Likelihood& likelihood, const Weights& weights,
                         bool imagined) const {
  if (critic_.empty()) {
    return rule_.Loss(likelihood, *worker.episodes[episode], worker.weight[episode], weights.entropy);
  }
  // Control variate: the critic's expectation, whose gradient is exact, and what it left unexplained, by the rule.
  at::Tensor loss = torch::zeros({});
  const auto states = static_cast<double>(likelihood.states.size());
  for (const Likelihood::State& state : likelihood.states) {
    const at::Tensor p = state.probability;
    const at::Tensor entropy = -(p * torch::log(p.clamp_min(1e-12))).sum();
    loss = loss + critic_[worker.index]->Expected(p, state.decision_of_node) / (reference_[worker.index] * states) -
           entropy * (weights.entropy / states);
    if (worker.anchor > 0) loss = loss - p.select(1, worker.anchor - 1).sum() * (weights.hold / states);
  }
  if (imagined) return loss;
  const auto steps = static_cast<double>(worker.episodes[episode]->cost.size());
  return loss + rule_.Loss(likelihood, *worker.episodes[episode], worker.weight[episode], 0) / steps;
}

Learner::Stepped Learner::Step(std::span<Worker> workers, int64_t threads, const Weights& weights, bool imagined,
                               CurvePoint& point, const StopCheck& stop) {
  const std::vector<at::Tensor> parameters = policy_->parameters();
  InParallel(static_cast<int64_t>(workers.size()), threads, [&](size_t w) {
    Worker& worker = workers[w];
    worker.gradient.assign(parameters.size(), at::Tensor());
    worker.loss = worker.entropy = 0;
    const size_t episodes = imagined ? std::min<size_t>(worker.weight.size(), 1) : worker.weight.size();
    for (size_t i = 0; i < episodes && !(stop && stop()); ++i) {
      const Likelihood likelihood = policy_->Recall(*tasks_[worker.index], *worker.episodes[i]);
      const at::Tensor loss = Loss(worker, i, likelihood, weights, imagined);
      worker.loss += loss.item<double>();
      worker.entropy += likelihood.entropy.mean().item<double>() / static_cast<double>(episodes);
      const auto gradient = torch::autograd::grad({loss}, parameters, {}, false, false, true);
      for (size_t p = 0; p < gradient.size(); ++p) {
        if (!gradient[p].defined()) continue;
        worker.gradient[p] = worker.gradient[p].defined() ? worker.gradient[p] + gradient[p] : gradient[p];
      }
    }
  });
  if (stop && stop()) return Stepped::kStopped;
  double squares = 0;
  for (size_t p = 0; p < parameters.size(); ++p) {
    at::Tensor sum = torch::zeros_like(parameters[p]);
    for (const Worker& worker : workers) {
      if (worker.gradient[p].defined()) sum += worker.gradient[p];
    }
    parameters[p].mutable_grad() = sum;
    squares += sum.to(torch::kFloat64).square().sum().item<double>();
  }
  point.loss = point.entropy = 0;
  for (const Worker& worker : workers) {
    point.loss += worker.loss;
    point.entropy += worker.entropy / static_cast<double>(workers.size());
  }
  point.gradient_norm = std::sqrt(squares);
  if (!std::isfinite(point.loss) || !std::isfinite(point.gradient_norm)) return Stepped::kDiverged;
  if (const double most = method_.learner.clip_norm; most > 0 && point.gradient_norm > most) {
    const torch::NoGradGuard no_gradient;
    for (const at::Tensor& parameter : parameters) {
      parameter.mutable_grad().mul_(most / point.gradient_norm);
    }
  }
  for (auto& group : adam_->param_groups()) {
    static_cast<torch::optim::AdamOptions&>(group.options()).lr(weights.learning_rate);
  }
  adam_->step();
  return Stepped::kDone;
}

void Learner::AdoptDropped() {
  for (const auto& [index, found] : std::exchange(dropped_, {})) searches_[index]->Adopt(found);
}

int64_t Learner::greedy_evaluations(size_t index) const {
  return policy_->greedy_evaluations(*tasks_[index]) * policy_->anchors();
}

Learner::Answer Learner::Greedy(size_t index, int64_t most) {
  const std::unique_ptr<Search> search = MakeSearch(index, std::min(greedy_evaluations(index), most), nullptr, {});
  at::set_num_threads(1);
  Answer answer{.cost = std::numeric_limits<double>::infinity()};
  for (int64_t anchor = 0; anchor < policy_->anchors() && search->evaluations() < most; ++anchor) {
    const int64_t evaluations = std::min(policy_->greedy_evaluations(*tasks_[index]), most - search->evaluations());
    std::vector<Random> randoms{random_.Fork(0, 1)};
    const auto episodes = policy_->Play(*tasks_[index], *search, randoms,
                                        {.greedy = true,
                                         .evaluations = evaluations,
                                         .memory_penalty = method_.scoring.memory_penalty,
                                         .cause = cause_,
                                         .anchor = anchor});
    answer.cost = std::min(answer.cost, episodes[0]->cost.back() * cases_[index].problem.seconds_per_unit());
  }
  answer.failure = search->last_failure();
  evaluations_ += search->evaluations();
  failures_ += search->failures();
  answer.result = search->Found();
  searches_[index]->Adopt(answer.result);
  return answer;
}

double Learner::GreedyCost() {
  double logarithms = 0;
  for (size_t i = 0; i < cases_.size(); ++i) {
    logarithms += std::log(Greedy(i).cost / cases_[i].problem.seconds_per_unit() / Scale(i));
  }
  return std::exp(logarithms / static_cast<double>(cases_.size()));
}

}  // namespace berth
