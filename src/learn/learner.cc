#include "learn/learner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "learn/update_memory.h"

namespace berth {
namespace {

LearnerState FirstState(const Method& method, const std::vector<Search*>& searches, const Random& random) {
  if (searches.empty()) throw Error("{}: there is no graph to learn on", method.name);
  LearnerState state{.policy = method.make_policy(searches[0]->problem(), random),
                     .adam = nullptr,
                     .rule = UpdateRule(method.rule),
                     .reference = std::vector<double>(searches.size(), std::numeric_limits<double>::quiet_NaN()),
                     .next_evaluation = std::vector<int64_t>(searches.size(), 0)};
  state.adam = std::make_unique<torch::optim::Adam>(state.policy->parameters(),
                                                    torch::optim::AdamOptions(method.learner.learning_rate.first));
  return state;
}

std::vector<LearnCase> MakeCases(const std::vector<Search*>& searches, const Policy& policy,
                                 const ScoringOptions& scoring) {
  std::vector<LearnCase> cases;
  for (Search* search : searches) cases.emplace_back(*search, policy, scoring);
  return cases;
}

// Per decision: the average surprise at draws.
double EntropyOfDraws(std::span<const Play> plays) {
  double sum = 0, decisions = 0;
  for (const Play& play : plays) {
    for (const auto& episode : play.episodes) {
      for (const float log_prob : episode->log_prob) sum -= log_prob, ++decisions;
    }
  }
  return sum / std::max(decisions, 1.0);
}

}  // namespace

Learner::Learner(const Method& method, const std::vector<Search*>& searches, const Random& random,
                 int64_t planned_updates, Ranks* ranks)
    : ranks_(ranks == nullptr ? alone_ : *ranks),
      method_(method),
      random_(random),
      planned_updates_(std::max<int64_t>(planned_updates, 1)),
      state_(FirstState(method, searches, random.Fork(0))),
      cases_(MakeCases(searches, *state_.policy, method.scoring)),
      player_(method_, *state_.policy, cases_, state_.memories, state_.critics, ranks_) {
  KeepFirst();
  if (method_.memory.kept > 0 && state_.policy->replayed_decisions(*cases_[0].task) == 0) {
    throw Error("{}: its episodes are more than placements, so it cannot imitate any: leave memory away", method_.name);
  }
  if (method_.memory.distinct && !state_.policy->redraws()) {
    throw Error("{}: it draws no placement again: leave distinct away", method_.name);
  }
  if (method_.memory.any()) {
    for (const LearnCase& each : cases_) {
      state_.memories.emplace_back(method_.memory, state_.policy->replayed_decisions(*each.task), each.task->class_of,
                                   method_.learner.learns(), state_.policy->priority_levels());
    }
  }
  if (!method_.make_critic) return;
  for (const LearnCase& each : cases_) state_.critics.push_back(method_.make_critic(*each.task));
}

std::optional<std::string> Learner::WhyTooLarge(int64_t threads, std::optional<Bytes> left) const {
  std::vector<const Task*> tasks;
  for (const LearnCase& each : cases_) tasks.push_back(each.task.get());
  return berth::WhyTooLarge(method_, *state_.policy, tasks, {.threads = threads, .ranks = ranks_.size(), .left = left});
}

std::optional<CurvePoint> Learner::Update(int64_t evaluations, int64_t threads, const StopCheck& stop) {
  UseOneThread();  // for what is done here, too
  Undo undo(state_);
  const Rounds rounds = this->rounds();
  const int64_t round = rounds.Of(state_.updates);
  const bool begins = rounds.Begins(state_.updates);
  if (begins) BeginAnew();
  SharePolicy();
  auto [plays, stopped] =
      player_.PlayUpdate(state_.updates, round, rounds.Share(round, static_cast<double>(state_.updates)), evaluations,
                         threads, random_, stop);
  const auto dropped = [&, &played = plays] {
    for (Play& play : played) dropped_.emplace_back(play.index, std::move(play.found));
    undo.Restore();
    return std::nullopt;
  };
  if (stopped) return dropped();

  CurvePoint point{.update = ++state_.updates, .best_cost = std::numeric_limits<double>::infinity()};
  try {
    CollectCosts(plays, point);
  } catch (const Error&) {
    dropped();
    throw;
  }
  Weigh(plays);
  const size_t drawn = plays.size();
  if (!begins) AddReplays(plays);  // those there are belong to the round before
  if (!Descend(plays, threads, undo, point, stop)) return dropped();
  plays.resize(drawn);
  if (begins) {
    for (Memory& memory : state_.memories) memory.BeginRound(round + 1 == rounds.count());
  }
  for (const Play& play : plays) {
    if (state_.memories.empty()) break;
    for (const auto& episode : play.episodes) state_.memories[play.index].Add(*episode);
  }
  for (const at::Tensor& parameter : state_.policy->parameters()) {
    point.diverged = point.diverged || !torch::isfinite(parameter).all().item<bool>();
  }
  for (const Play& play : plays) Adopt(play.index, play.found);
  point.evaluations = state_.evaluations;
  KeepNumbers();
  return point;
}

void Learner::CollectCosts(std::span<const Play> plays, CurvePoint& point) {
  std::string failure;
  double asked = 0, episodes = 0, logarithms = 0;
  for (const Play& play : plays) {
    const double unit = cases_[play.index].problem().seconds_per_unit();
    state_.evaluations += play.found.evaluations;
    state_.failures += play.found.failures;
    if (!play.found.failure.empty()) failure = play.found.failure;
    for (const auto& episode : play.episodes) {
      for (const double cost : episode->cost) {
        if (!std::isfinite(cost)) continue;
        // A graph that takes no time has nothing to be learned from.
        if (std::isnan(state_.reference[play.index]) && cost > 0) state_.reference[play.index] = cost;
        point.mean_cost += cost * unit;
        point.best_cost = std::min(point.best_cost, cost * unit);
        if (cost > 0) logarithms += std::log(cost / Scale(play.index));
        ++asked;
      }
      for (const double cost : episode->beside) {
        if (std::isfinite(cost)) point.best_cost = std::min(point.best_cost, cost * unit);
      }
      // NaN where nobody asked.
      if (episode->start_cost * unit < point.start_cost) point.start_cost = episode->start_cost * unit;
      point.groups += episode->decisions_per_step();
      ++episodes;
    }
  }
  constexpr int64_t kMostInVain = 20;  // fewer that fail say little of those to come
  if (state_.failures == state_.evaluations && state_.evaluations >= kMostInVain) {
    throw Error("{}: none of {} placements could be scored: {}", method_.name, state_.evaluations, failure);
  }
  point.evaluations = state_.evaluations;
  point.mean_cost = asked > 0 ? point.mean_cost / asked : std::numeric_limits<double>::quiet_NaN();
  point.relative_cost = std::exp(logarithms / asked);
  point.groups /= std::max(episodes, 1.0);
}

// Baselines are shared by the plays of a case, so one case after another, in the order of the plays.
void Learner::Weigh(std::span<Play> plays) {
  for (size_t index = 0; index < cases_.size(); ++index) {
    const double reference = state_.reference[index];
    std::vector<const Episode*> of_case;
    std::vector<Play*> owners;
    for (Play& play : plays) {
      if (play.index != index) continue;
      for (const auto& episode : play.episodes) {
        of_case.push_back(episode.get());
        owners.push_back(&play);
      }
    }
    if (of_case.empty() || std::isnan(reference)) continue;
    const auto task = static_cast<int64_t>(index);
    std::vector<std::vector<double>> weight;
    if (state_.critics.empty()) {
      weight =
          state_.rule.Weigh(task, of_case, reference, cases_[index].problem().seconds_per_unit(), state_.updates - 1);
    } else {
      // Only the cost that the critic did not foresee is weighed, as a share of the reference; Loss adds the gradient
      // of the part that it did.
      std::vector<Episode> unexplained(of_case.size());
      for (size_t i = 0; i < of_case.size(); ++i) {
        const std::vector<double> foreseen = state_.critics[index]->Foresee(*of_case[i]);
        for (size_t step = 0; step < foreseen.size(); ++step) {
          unexplained[i].cost.push_back((of_case[i]->cost[step] - foreseen[step]) / reference);
        }
      }
      for (size_t i = 0; i < unexplained.size(); ++i) of_case[i] = &unexplained[i];
      weight = state_.rule.Weigh(task, of_case, 1, 1);
    }
    for (size_t i = 0; i < weight.size(); ++i) owners[i]->weight.push_back(std::move(weight[i]));
  }
}

void Learner::KeepFirst() {
  first_.clear();
  if (method_.learner.restart_every == 0) return;
  for (const at::Tensor& parameter : state_.policy->parameters()) first_.push_back(parameter.detach().clone());
}

void Learner::SharePolicy() {
  if (ranks_.size() == 1) return;
  const torch::NoGradGuard no_gradient;
  Parcel parcel(ranks_.FromFirst([&] {
    Parcel own;
    for (at::Tensor parameter : state_.policy->parameters()) own(parameter);
    return std::move(own).Take();
  }));
  for (const at::Tensor& parameter : state_.policy->parameters()) {
    at::Tensor of_first;
    parcel(of_first);
    parameter.copy_(of_first);
  }
}

void Learner::BeginAnew() {
  const torch::NoGradGuard no_gradient;
  const std::vector<at::Tensor> parameters = state_.policy->parameters();
  for (size_t p = 0; p < parameters.size(); ++p) parameters[p].copy_(first_[p]);
  state_.adam->state().clear();
}

// The best that was drawn before on each case of this update, which weighs as much as the share of the episodes that
// imitation says.
void Learner::AddReplays(std::vector<Play>& plays) const {
  if (method_.memory.kept == 0) return;
  for (size_t index = 0; index < cases_.size(); ++index) {
    const auto best = state_.memories[index].best();
    double episodes = 0;
    for (const Play& play : plays) episodes += play.index == index ? static_cast<double>(play.weight.size()) : 0;
    if (best.empty() || episodes == 0) continue;
    Play& replay = plays.emplace_back(Play{.index = index});
    replay.replayed = true;
    for (const Memory::Kept& kept : best) {
      auto episode = std::make_unique<Episode>();
      episode->cost = {kept.cost};
      episode->device = kept.device;
      episode->priority = kept.priority;
      episode->step_of.assign(kept.device.size() + kept.priority.size(), 0);
      replay.episodes.push_back(std::move(episode));
      replay.weight.push_back({method_.memory.imitation * episodes / static_cast<double>(best.size())});
    }
  }
}

bool Learner::Descend(std::span<const Play> plays, int64_t threads, Undo& undo, CurvePoint& point,
                      const StopCheck& stop) {
  // An untrained twin learns nothing, and needs no gradient for that.
  if (!method_.learner.learns()) {
    point.entropy = EntropyOfDraws(plays);
    return true;
  }
  enum class Step : uint8_t { kDone, kDiverged, kStopped };
  Gradient gradient;
  // `at`: the share of the round's planned updates, from 0 to 1.
  const auto step = [&](double at, bool imagined) {
    constexpr size_t kAll = std::numeric_limits<size_t>::max();
    const EpisodeLoss loss = [&](const Play& play, size_t episode, const Likelihood& likelihood) {
      return Loss(play, episode, likelihood, at, imagined);
    };
    auto computed = GradientOf(*state_.policy, cases_, plays, imagined ? 1 : kAll, loss, threads, ranks_, stop);
    if (!computed) return Step::kStopped;
    gradient = std::move(*computed);
    if (!gradient.finite()) return Step::kDiverged;
    const double rate = method_.learner.learning_rate.At(at) * method_.learner.decay.At(state_.updates - 1);
    Follow(gradient, *state_.policy, *state_.adam, rate, method_.learner.clip_norm);
    return Step::kDone;
  };
  const Rounds rounds = this->rounds();
  const auto share = [&](double of_update) {
    return std::min(rounds.Share(rounds.Of(state_.updates - 1), static_cast<double>(state_.updates - 1) + of_update),
                    1.0);
  };
  for (int64_t epoch = 0; epoch < method_.rule.epochs && !point.diverged; ++epoch) {
    const Step took = step(share(0), false);
    if (took == Step::kStopped) return false;
    point.diverged = took == Step::kDiverged;
    point.loss = gradient.loss;
    const bool weighed = std::ranges::any_of(plays, [](const Play& play) { return !play.weight.empty(); });
    point.entropy = weighed ? gradient.entropy : EntropyOfDraws(plays);
    point.gradient_norm = gradient.norm;
  }
  if (state_.critics.empty()) return true;
  if (stop) undo.KeepCritics();
  for (const Play& play : plays) {
    for (const auto& episode : play.episodes) state_.critics[play.index]->Learn(*episode);
  }
  const auto imagined = static_cast<double>(method_.imagined);
  for (int64_t i = 0; i < method_.imagined && !point.diverged; ++i) {
    const Step took = step(share(static_cast<double>(i) / imagined), true);
    if (took == Step::kStopped) return false;
    point.diverged = took == Step::kDiverged;
  }
  return true;
}

double Learner::Scale(size_t index) const {
  const LearnCase& of = cases_[index];
  if (of.search->evaluator().facts().objective.is_time()) return of.work;
  return state_.updates == 0 ? 1 : state_.reference[index];
}

at::Tensor Learner::Loss(const Play& play, size_t episode, const Likelihood& likelihood, double share,
                         bool imagined) const {
  const Episode& played = *play.episodes[episode];
  if (play.replayed) return -play.weight[episode][0] * likelihood.log_prob.sum();
  const double entropy = method_.learner.entropy.At(share);
  if (state_.critics.empty()) return state_.rule.Loss(likelihood, played, play.weight[episode], entropy);
  const at::Tensor foreseen = state_.critics[play.index]->Loss(
      played, likelihood, {.reference = state_.reference[play.index], .entropy = entropy, .share = share});
  if (imagined) return foreseen;
  return foreseen +
         state_.rule.Loss(likelihood, played, play.weight[episode], 0) / static_cast<double>(played.cost.size());
}

void Learner::AdoptDropped() {
  for (const auto& [index, found] : std::exchange(dropped_, {})) cases_[index].search->Adopt(found);
}

Learner::Answer Learner::Greedy(size_t index, int64_t threads, int64_t most, const StopCheck& stop) {
  Play play = player_.PlayGreedily(index, most, threads, random_, stop);
  Answer answer{.cost = std::numeric_limits<double>::infinity(), .result = std::move(play.found)};
  for (const auto& episode : play.episodes) {
    if (episode->cost.empty() || std::isnan(episode->cost.back())) continue;  // stopped before it asked
    answer.cost = std::min(answer.cost, episode->cost.back() * cases_[index].problem().seconds_per_unit());
  }
  state_.evaluations += answer.result.evaluations;
  state_.failures += answer.result.failures;
  Adopt(index, answer.result);
  KeepNumbers();
  return answer;
}

// What seems the best is scored once more where scores are noisy, which counts. Measured scores differ between ranks,
// and what one rank counts all must, or some would end before others.
void Learner::Adopt(size_t index, const PlanResult& found) {
  Search& search = *cases_[index].search;
  const int64_t before = search.evaluations() + found.evaluations;
  search.Adopt(found);
  int64_t confirmed = search.evaluations() - before;
  if (ranks_.size() > 1 && !search.evaluator().facts().deterministic) {
    confirmed = std::stoll(ranks_.FromFirst([&] { return std::to_string(confirmed); }));
  }
  state_.evaluations += confirmed;
}

void Learner::KeepNumbers() {
  for (size_t i = 0; i < cases_.size(); ++i) state_.next_evaluation[i] = cases_[i].search->next_number();
}

int64_t Learner::own_evaluations() const {
  int64_t own = 0;
  for (size_t i = 0; i < num_cases(); ++i) own += greedy_evaluations(i);
  return own;
}

int64_t Learner::UpdatesWithin(int64_t evaluations) const {
  const int64_t per_update = evaluations_per_update();
  return (std::max<int64_t>(evaluations, 1) + per_update - 1) / per_update;
}

double Learner::GreedyCost(int64_t threads) {
  double logarithms = 0, counted = 0;
  for (size_t i = 0; i < cases_.size(); ++i) {
    const double greedy = Greedy(i, threads).cost / cases_[i].problem().seconds_per_unit();
    const double cost = std::max(greedy, UpdateRule::LeastCost(state_.reference[i])), scale = Scale(i);
    if (!(cost > 0) || std::isnan(scale)) continue;  // of a graph that takes no time each answer is as good
    logarithms += std::log(cost / scale);
    ++counted;
  }
  return counted > 0 ? std::exp(logarithms / counted) : 0;
}

void Learner::TakePolicy(const Learner& other) {
  const torch::NoGradGuard no_gradient;
  const std::vector<at::Tensor> from = other.state_.policy->parameters(), to = state_.policy->parameters();
  BERTH_CHECK(from.size() == to.size());
  for (size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
  for (size_t i = 0; i < cases_.size(); ++i) {
    // Each of an answer's evaluations may be confirmed by another one.
    const int64_t first = 2 * greedy_evaluations(i) * other.updates();
    cases_[i].search->Lend(std::max<int64_t>(first - cases_[i].search->next_number(), 0));
  }
}

void Learner::Save(const std::string& path) const {
  std::vector<const Search*> searches;
  for (const LearnCase& each : cases_) searches.push_back(each.search);
  SaveState(path, state_, {.method = method_.name, .planned_updates = planned_updates_}, searches);
}

std::string Learner::Load(const std::string& path, bool policy_only) {
  const std::string bytes = ranks_.FromFirst([&] { return ReadCheckpoint(path); });
  const std::string hash = Hasher().Add(std::string_view(bytes)).Text();
  if (policy_only) {
    LoadPolicy(bytes, path, *state_.policy);
    KeepFirst();
    return hash;
  }
  std::vector<Search*> searches;
  for (const LearnCase& each : cases_) searches.push_back(each.search);
  LoadState(bytes, path, state_, {.method = method_.name, .planned_updates = planned_updates_}, searches);
  return hash;
}

}  // namespace berth
