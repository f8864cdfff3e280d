#include "learn/learner.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "learn/checkpoint.h"

namespace berth {
namespace {

constexpr int kCheckpointVersion = 2;

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

// Adopts what was found where it is better than what was found before.
void Keep(PlanResult result, PlanResult& found) {
  found.evaluations += result.evaluations;
  if (result.plan.device.empty()) return;
  if (!found.plan.device.empty() && !Better(result.score, found.score)) return;
  found.plan = std::move(result.plan);
  found.score = result.score;
}

nlohmann::json FoundJson(const PlanResult& found) {
  nlohmann::json json = {{"evaluations", found.evaluations}, {"device", nlohmann::json::array()}};
  for (const DeviceId device : found.plan.device) json["device"].push_back(Index(device));
  const Score& score = found.score;
  json["score"] = {score.time, score.feasible, score.excess_bytes};
  if (score.objective) json["score"].push_back(*score.objective);
  return json;
}

PlanResult FoundOf(const nlohmann::json& json) {
  PlanResult found{.evaluations = json.at("evaluations")};
  for (const auto& device : json.at("device")) found.plan.device.push_back(MakeId<DeviceId>(device.get<size_t>()));
  const auto& score = json.at("score");
  found.score = {.time = score.at(0), .feasible = score.at(1), .excess_bytes = score.at(2)};
  if (score.size() > 3) found.score.objective = score.at(3).get<double>();
  return found;
}

double Between(double first, double last, double share) { return first + (last - first) * std::clamp(share, 0.0, 1.0); }

}  // namespace

// What one worker does in one update.
struct Learner::Worker {
  size_t index;  // of its case
  int64_t rollouts;
  int64_t evaluations;
  std::unique_ptr<Judge> judge;
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
      rule_(method.rule) {
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
  found_.resize(cases_.size());
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
  return (sum * method_.learner.workers * method_.learner.rollouts + tasks - 1) / tasks;
}

CurvePoint Learner::Update(int64_t evaluations, int64_t threads) {
  std::vector<Worker> workers;
  int64_t left = evaluations;
  for (int64_t w = 0; w < method_.learner.workers && left > 0; ++w) {
    // Every graph in turn, also when there are more graphs than workers.
    const size_t index = static_cast<size_t>(updates_ * method_.learner.workers + w) % cases_.size();
    const int64_t rollouts = std::min(method_.learner.rollouts, left);
    const int64_t wanted = std::min(policy_->evaluations(*tasks_[index]), left / rollouts);
    workers.push_back({.index = index,
                       .rollouts = rollouts,
                       .evaluations = wanted,
                       .judge = std::make_unique<Judge>(cases_[index].evaluator, method_.judge)});
    left -= wanted * rollouts;
  }
  const auto update = static_cast<uint64_t>(updates_) + 1;
  InParallel(static_cast<int64_t>(workers.size()), threads, [&](size_t w) {
    Worker& worker = workers[w];
    std::vector<Random> randoms;
    for (int64_t r = 0; r < worker.rollouts; ++r) {
      randoms.push_back(
          random_.Fork(update, w * static_cast<size_t>(method_.learner.rollouts) + static_cast<size_t>(r)));
    }
    worker.episodes = policy_->Play(*tasks_[worker.index], *worker.judge, randoms, {.evaluations = worker.evaluations});
  });

  CurvePoint point{.update = ++updates_, .best_cost = std::numeric_limits<double>::infinity()};
  CollectFound(workers, point);
  WeighSteps(workers);
  const double share = static_cast<double>(updates_ - 1) / static_cast<double>(planned_updates_);
  for (int64_t epoch = 0; epoch < rule_.options().epochs && !point.diverged; ++epoch) {
    point.diverged = !Step(workers, threads, share, false, point);
  }
  if (!critic_.empty()) {
    for (const Worker& worker : workers) {
      for (const auto& episode : worker.episodes) {
        for (size_t i = 0; i < episode->cost.size(); ++i) {
          if (!std::isfinite(episode->cost[i])) continue;
          critic_[worker.index]->Learn(episode->device_of_node[i], episode->cost[i]);
        }
      }
    }
    for (int64_t i = 0; i < method_.critic.imagined && !point.diverged; ++i) {
      CurvePoint unused;
      point.diverged = !Step(workers, threads, share, true, unused);
    }
  }
  for (const at::Tensor& parameter : policy_->parameters()) {
    point.diverged = point.diverged || !torch::isfinite(parameter).all().item<bool>();
  }
  return point;
}

void Learner::CollectFound(std::span<Worker> workers, CurvePoint& point) {
  std::string failure;
  double asked = 0, episodes = 0, logarithms = 0;
  for (Worker& worker : workers) {
    const double unit = cases_[worker.index].problem.seconds_per_unit();
    evaluations_ += worker.judge->evaluations();
    failures_ += worker.judge->failures();
    if (!worker.judge->last_failure().empty()) failure = worker.judge->last_failure();
    for (const auto& episode : worker.episodes) {
      for (const double cost : episode->cost) {
        if (!std::isfinite(cost)) continue;
        if (std::isnan(reference_[worker.index])) reference_[worker.index] = cost;
        point.mean_cost += cost * unit;
        point.best_cost = std::min(point.best_cost, cost * unit);
        logarithms += std::log(cost / work_[worker.index]);
        ++asked;
      }
      point.groups += episode->groups;
      ++episodes;
    }
    Keep(worker.judge->Take(), found_[worker.index]);
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
          rest.cost.push_back(episode->cost[i] - critic_[index]->Predict(episode->device_of_node[i]));
        }
      }
    }
    if (of_case.empty() || std::isnan(reference_[index])) continue;
    for (size_t i = 0; i < unexplained.size(); ++i) of_case[i] = &unexplained[i];
    std::vector<std::vector<double>> weight =
        rule_.Weigh(static_cast<int64_t>(index), of_case, reference_[index], cases_[index].problem.seconds_per_unit());
    for (size_t i = 0; i < weight.size(); ++i) owners[i]->weight.push_back(std::move(weight[i]));
  }
}

at::Tensor Learner::Loss(const Worker& worker, size_t episode, const Likelihood& likelihood, double entropy_weight,
                         bool imagined) const {
  if (critic_.empty()) {
    return rule_.Loss(likelihood, *worker.episodes[episode], worker.weight[episode], entropy_weight);
  }
  // Control variate: the critic's expectation, whose gradient is exact, and what it left unexplained, by the rule.
  at::Tensor loss = torch::zeros({});
  const auto states = static_cast<double>(likelihood.states.size());
  for (const Likelihood::State& state : likelihood.states) {
    const at::Tensor p = state.probability;
    const at::Tensor entropy = -(p * torch::log(p.clamp_min(1e-12))).sum();
    loss = loss + critic_[worker.index]->Expected(p, state.decision_of_node) / (reference_[worker.index] * states) -
           entropy * (entropy_weight / states);
  }
  if (imagined) return loss;
  const auto steps = static_cast<double>(worker.episodes[episode]->cost.size());
  return loss + rule_.Loss(likelihood, *worker.episodes[episode], worker.weight[episode], 0) / steps;
}

bool Learner::Step(std::span<Worker> workers, int64_t threads, double share, bool imagined, CurvePoint& point) {
  const LearnerOptions& options = method_.learner;
  // Cooled as annealing is, by a constant factor, where it does not end at nothing.
  const double entropy_weight = options.entropy_end > 0 && options.entropy > 0
                                    ? options.entropy * std::pow(options.entropy_end / options.entropy, share)
                                    : Between(options.entropy, options.entropy_end, share);
  const std::vector<at::Tensor> parameters = policy_->parameters();
  InParallel(static_cast<int64_t>(workers.size()), threads, [&](size_t w) {
    Worker& worker = workers[w];
    worker.gradient.assign(parameters.size(), at::Tensor());
    worker.loss = worker.entropy = 0;
    const size_t episodes = imagined ? std::min<size_t>(worker.weight.size(), 1) : worker.weight.size();
    for (size_t i = 0; i < episodes; ++i) {
      const Likelihood likelihood = policy_->Recall(*tasks_[worker.index], *worker.episodes[i]);
      const at::Tensor loss = Loss(worker, i, likelihood, entropy_weight, imagined);
      worker.loss += loss.item<double>();
      worker.entropy += likelihood.entropy.mean().item<double>() / static_cast<double>(episodes);
      const auto gradient = torch::autograd::grad({loss}, parameters, {}, false, false, true);
      for (size_t p = 0; p < gradient.size(); ++p) {
        if (!gradient[p].defined()) continue;
        worker.gradient[p] = worker.gradient[p].defined() ? worker.gradient[p] + gradient[p] : gradient[p];
      }
    }
  });
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
  if (!std::isfinite(point.loss) || !std::isfinite(point.gradient_norm)) return false;
  if (options.clip_norm > 0 && point.gradient_norm > options.clip_norm) {
    const torch::NoGradGuard no_gradient;
    for (const at::Tensor& parameter : parameters) {
      parameter.mutable_grad().mul_(options.clip_norm / point.gradient_norm);
    }
  }
  for (auto& group : adam_->param_groups()) {
    static_cast<torch::optim::AdamOptions&>(group.options())
        .lr(Between(options.learning_rate, options.learning_rate_end, share));
  }
  adam_->step();
  return true;
}

PlanResult Learner::Take(size_t index) { return std::exchange(found_[index], {}); }

double Learner::Greedy(size_t index, int64_t evaluations) {
  Judge judge(cases_[index].evaluator, method_.judge);
  std::vector<Random> randoms{random_.Fork(0, 1)};
  at::set_num_threads(1);
  const auto episodes = policy_->Play(*tasks_[index], judge, randoms, {.greedy = true, .evaluations = evaluations});
  evaluations_ += judge.evaluations();
  failures_ += judge.failures();
  if (failures_ == evaluations_) {
    throw Error("{}: none of {} placements could be scored: {}", method_.name, evaluations_, judge.last_failure());
  }
  Keep(judge.Take(), found_[index]);
  return episodes[0]->cost.back() * cases_[index].problem.seconds_per_unit();
}

double Learner::GreedyCost() {
  double logarithms = 0;
  for (size_t i = 0; i < cases_.size(); ++i) {
    logarithms += std::log(Greedy(i, 1) / cases_[i].problem.seconds_per_unit() / work_[i]);
  }
  return std::exp(logarithms / static_cast<double>(cases_.size()));
}

void Learner::Save(const std::string& path) const {
  nlohmann::json meta = {{"berth_checkpoint", kCheckpointVersion},
                         {"method", method_.name},
                         {"shape", policy_->shape()},
                         {"updates", updates_},
                         {"planned_updates", planned_updates_},
                         {"evaluations", evaluations_},
                         {"failures", failures_},
                         {"cases", cases_.size()},
                         {"rule", rule_.Save()}};
  for (const double reference : reference_) {
    meta["reference"].push_back(std::isnan(reference) ? nlohmann::json() : nlohmann::json(reference));
  }
  for (const PlanResult& found : found_) meta["found"].push_back(FoundJson(found));
  Checkpoint checkpoint{.meta = std::move(meta)};
  const auto add = [&](std::string name, const at::Tensor& tensor) {
    checkpoint.tensors.emplace_back(std::move(name), tensor);
  };
  for (const auto& parameter : policy_->named_parameters()) add("policy." + parameter.key(), parameter.value());
  for (const auto& parameter : policy_->named_parameters()) {
    const auto state = adam_->state().find(parameter.value().unsafeGetTensorImpl());
    if (state == adam_->state().end()) continue;  // before the first step
    const auto& moments = static_cast<const torch::optim::AdamParamState&>(*state->second);
    checkpoint.meta["adam_step"] = moments.step();
    add("adam.first." + parameter.key(), moments.exp_avg());
    add("adam.second." + parameter.key(), moments.exp_avg_sq());
  }
  for (const auto& critic : critic_) {
    for (const at::Tensor& tensor : critic->State()) add("critic", tensor);
  }
  WriteFile(path, checkpoint.ToBytes());
}

void Learner::Load(const std::string& path, bool policy_only) {
  const Checkpoint checkpoint = Checkpoint::Parse(ReadFile(path), path);
  const nlohmann::json& meta = checkpoint.meta;
  if (const int version = meta.value("berth_checkpoint", 0); version != kCheckpointVersion) {
    throw Error("{}: a checkpoint of version {}; this program reads version {}: train it anew", path, version,
                kCheckpointVersion);
  }
  if (const std::string shape = meta.at("shape"); shape != policy_->shape()) {
    throw Error("{}: the checkpoint is of a policy for {}, but this one is for {}", path, shape, policy_->shape());
  }
  checkpoint.CopyTo("policy.", policy_->parameters(), path);
  if (policy_only) return;
  if (meta.at("method") != method_.name || meta.at("cases") != cases_.size() ||
      meta.at("planned_updates") != planned_updates_) {
    throw Error("{}: the checkpoint is of {} on {} graphs over {} updates, not of {} on {} over {}: resume with these",
                path, meta.at("method").get<std::string>(), meta.at("cases").get<size_t>(),
                meta.at("planned_updates").get<int64_t>(), method_.name, cases_.size(), planned_updates_);
  }
  adam_->state().clear();
  if (meta.contains("adam_step")) {
    std::vector<at::Tensor> first, second;
    for (const at::Tensor& parameter : policy_->parameters()) {
      first.push_back(torch::zeros_like(parameter));
      second.push_back(torch::zeros_like(parameter));
      auto state = std::make_unique<torch::optim::AdamParamState>();
      state->step(meta.at("adam_step")).exp_avg(first.back()).exp_avg_sq(second.back());
      adam_->state()[parameter.unsafeGetTensorImpl()] = std::move(state);
    }
    checkpoint.CopyTo("adam.first.", first, path);
    checkpoint.CopyTo("adam.second.", second, path);
  }
  updates_ = meta.at("updates");
  evaluations_ = meta.at("evaluations");
  failures_ = meta.at("failures");
  rule_.Load(meta.at("rule"));
  std::vector<at::Tensor> critics;
  for (const auto& critic : critic_) std::ranges::copy(critic->State(), std::back_inserter(critics));
  checkpoint.CopyTo("critic", critics, path);
  for (size_t i = 0; i < found_.size(); ++i) found_[i] = FoundOf(meta.at("found").at(i));
  for (size_t i = 0; i < reference_.size(); ++i) {
    const auto& reference = meta.at("reference").at(i);
    reference_[i] = reference.is_null() ? std::numeric_limits<double>::quiet_NaN() : reference.get<double>();
  }
}

}  // namespace berth
