#include "learn/player.h"

#include <algorithm>

#include "base/error.h"
#include "base/in_parallel.h"

namespace berth {

bool ShareOut(Ranks& ranks, size_t count, bool stopped, const std::function<void(Parcel&, size_t)>& pack) {
  if (ranks.size() == 1) return stopped;
  Parcel mine;
  mine(stopped);
  for (size_t i = 0; i < count; ++i) {
    if (IsOf(ranks, i)) pack(mine, i);
  }
  std::vector<std::string> all = ranks.Exchange(std::move(mine).Take());
  for (size_t r = 0; r < all.size(); ++r) {
    if (static_cast<int64_t>(r) == ranks.rank()) continue;
    Parcel theirs(std::move(all[r]));
    bool told = false;
    theirs(told);
    stopped = stopped || told;
    for (size_t i = r; i < count; i += all.size()) pack(theirs, i);
  }
  return stopped;
}

LearnCase::LearnCase(Search& of, const Policy& policy, const ScoringOptions& options)
    : search(&of), task(policy.Prepare(of.problem())), scoring(ForLearning(of.evaluator(), options)), work(0) {
  task->class_of = InterchangeableDevices(of.evaluator());
  for (const OpId op : problem().graph().ops()) work += std::ranges::min(problem().op_times(op));
  if (!(work > 0)) work = 1;
}

Player::Player(const Method& method, const Policy& policy, const std::vector<LearnCase>& cases,
               const std::vector<Memory>& memories, const std::vector<std::unique_ptr<Critic>>& critics, Ranks& ranks)
    : method_(method),
      policy_(policy),
      cases_(cases),
      memories_(memories),
      critics_(critics),
      ranks_(ranks),
      cause_("drawn by the policy of " + method.name),
      workspaces_(cases.size()) {}

int64_t Player::evaluations_per_update() const {
  int64_t sum = 0;
  for (const LearnCase& each : cases_) sum += policy_.evaluations(*each.task);
  const auto cases = static_cast<int64_t>(cases_.size());
  return (sum * plays() * method_.learner.rollouts + cases - 1) / cases;
}

int64_t Player::greedy_evaluations(size_t index) const {
  return policy_.greedy_evaluations(*cases_[index].task) * policy_.ways();
}

// A search over a lease of the case's own.
std::unique_ptr<Search> Player::Borrow(const LearnCase& of, const Lease& lease, const Random& random,
                                       Workspace& workspace, int64_t threads, const StopCheck& stop) const {
  auto search = std::make_unique<Search>(PlanRequest{.evaluator = *of.scoring,
                                                     .budget = {.evaluations = lease.evaluations},
                                                     .random = random,
                                                     .first_evaluation = lease.first,
                                                     .confirms = false,
                                                     .constrained = &of.problem(),
                                                     .threads = threads},
                                         &workspace);
  if (of.scoring->facts().stops) workspace.stop = stop;
  return search;
}

void Player::Pack(Parcel& parcel, Play& play) const {
  int64_t count = std::ssize(play.episodes);
  parcel(count);
  play.episodes.resize(static_cast<size_t>(count));
  for (auto& episode : play.episodes) {
    if (episode == nullptr) episode = policy_.NewEpisode();
    episode->Pack(parcel);
  }
  PlanResult& found = play.found;
  BERTH_CHECK(!found.plan.sequence, "policies draw placements and priorities");
  parcel(found.plan.device);
  parcel(found.plan.priority);
  parcel(found.score);
  parcel(found.evaluations);
  parcel(found.failures);
  parcel(found.failure);
  parcel(found.set_up);
  parcel(found.best_after);
  parcel(found.next_number);
  if (parcel.reads() && !found.plan.device.empty()) found.plan.SetCause(cause_);
}

Player::Plays Player::PlayUpdate(int64_t update, int64_t round, double share_of_round, int64_t evaluations,
                                 int64_t threads, const Random& random, const StopCheck& stop) {
  struct Share {
    int64_t way, rollouts, evaluations;
    std::unique_ptr<Search> search;
  };
  std::vector<Play> plays;
  std::vector<Share> shares;
  std::vector<size_t> own;
  std::vector<size_t> taken(cases_.size(), 0);  // of each case's workspaces
  const int64_t ways = policy_.ways(), at_once = (this->plays() + ranks_.size() - 1) / ranks_.size(),
                inside = std::max<int64_t>(threads / at_once, 1);
  for (int64_t p = 0, left = evaluations; p < this->plays() && left > 0; ++p) {
    const size_t index = static_cast<size_t>(update * method_.learner.workers + p / ways) % cases_.size();
    const int64_t rollouts = std::min(method_.learner.rollouts, left);
    const int64_t wanted = std::min(policy_.evaluations_in(*cases_[index].task, p % ways), left / rollouts);
    plays.push_back({.index = index});
    shares.push_back({.way = p % ways, .rollouts = rollouts, .evaluations = wanted, .search = nullptr});
    left -= wanted * rollouts;
    const Lease lease = cases_[index].search->Lend(wanted * rollouts);
    if (!IsOf(ranks_, static_cast<size_t>(p))) continue;
    own.push_back(static_cast<size_t>(p));
    std::vector<std::unique_ptr<Workspace>>& workspaces = workspaces_[index];
    const Evaluator& scoring = *cases_[index].scoring;
    if (taken[index] == workspaces.size()) workspaces.emplace_back();
    std::unique_ptr<Workspace>& workspace = workspaces[taken[index]++];
    // Noisy scores that are remembered from play to play would be others after a resume, or on other ranks.
    const bool forgets = method_.scoring.cache && !scoring.facts().deterministic;
    if (!workspace || forgets) workspace = scoring.NewWorkspace();
    shares.back().search = Borrow(cases_[index], lease, random, *workspace, inside, stop);
  }
  InParallel(std::ssize(own), threads, [&](size_t i) {
    UseOneThread();
    const size_t p = own[i];
    const Share& share = shares[p];
    std::vector<Random> randoms;
    for (int64_t r = 0; r < share.rollouts; ++r) {
      randoms.push_back(random.Fork(static_cast<uint64_t>(update) + 1,
                                    p * static_cast<size_t>(method_.learner.rollouts) + static_cast<size_t>(r)));
    }
    const Search& best = *cases_[plays[p].index].search;
    const bool asks = method_.learner.learns() && !critics_.empty();
    plays[p].episodes = policy_.Play(*cases_[plays[p].index].task, *share.search, randoms,
                                     {.evaluations = share.evaluations,
                                      .memory_penalty = method_.scoring.memory_penalty,
                                      .cause = cause_,
                                      .way = share.way,
                                      .share = share_of_round,
                                      .round = round,
                                      .update = update,
                                      .threads = inside,
                                      .critic = asks ? critics_[plays[p].index].get() : nullptr,
                                      .memory = memories_.empty() ? nullptr : &memories_[plays[p].index],
                                      .distinct = method_.memory.distinct,
                                      .best = best.has_best() ? &best.best() : nullptr,
                                      .best_score = best.has_best() ? best.best_score() : Score(),
                                      .stop = stop});
    plays[p].found = share.search->Found();
  });
  const bool stopped =
      ShareOut(ranks_, plays.size(), stop && stop(), [&](Parcel& parcel, size_t p) { Pack(parcel, plays[p]); });
  return {.all = std::move(plays), .stopped = stopped};
}

Play Player::PlayGreedily(size_t index, int64_t evaluations, int64_t threads, const Random& random,
                          const StopCheck& stop) const {
  const LearnCase& of = cases_[index];
  const int64_t most = std::min(greedy_evaluations(index), evaluations);
  const Lease lease = of.search->Lend(most);
  Play play{.index = index};
  if (!ranks_.first()) {
    Parcel parcel(ranks_.FromFirst({}));
    Pack(parcel, play);
    return play;
  }
  const std::unique_ptr<Workspace> workspace = of.scoring->NewWorkspace();
  const std::unique_ptr<Search> search = Borrow(of, lease, random, *workspace, threads, stop);
  UseOneThread();
  for (int64_t way = 0; way < policy_.ways() && search->evaluations() < most; ++way) {
    std::vector<Random> randoms{random.Fork(0, 1)};
    auto episodes =
        policy_.Play(*of.task, *search, randoms,
                     {.greedy = true,
                      .evaluations = std::min(policy_.greedy_evaluations(*of.task), most - search->evaluations()),
                      .memory_penalty = method_.scoring.memory_penalty,
                      .cause = cause_,
                      .way = way,
                      .threads = threads,
                      .stop = stop});
    play.episodes.push_back(std::move(episodes[0]));
  }
  play.found = search->Found();
  if (ranks_.size() == 1) return play;
  ranks_.FromFirst([&] {
    Parcel parcel;
    Pack(parcel, play);
    return std::move(parcel).Take();
  });
  return play;
}

}  // namespace berth
