#include "cli/plan_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "exec/statistics.h"
#include "placement/fusion.h"
#include "placement/search.h"
#include "placement/single_devices.h"
#include "report/plan_report.h"

namespace berth {
namespace {

constexpr size_t kPlansAtATime = 5;     // each is compiled and kept in memory meanwhile
constexpr size_t kMostMoved = 32;       // kernels, between a plan and its neighbours
constexpr double kLeastSeconds = 0.25;  // that a plan runs for, in all its runs

std::vector<std::vector<DeviceId>> FastestFirst(const std::map<std::vector<DeviceId>, double>& found) {
  std::vector<std::pair<double, std::vector<DeviceId>>> order;
  for (const auto& [device, time] : found) order.emplace_back(time, device);
  std::ranges::sort(order);
  std::vector<std::vector<DeviceId>> plans;
  for (auto& [time, device] : order) plans.push_back(std::move(device));
  return plans;
}

std::vector<double> RanksOf(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return values[i]; });
  std::vector<double> rank(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    // Equal values have the mean of their ranks.
    for (size_t i = begin; i < end; ++i) rank[order[i]] = 0.5 * static_cast<double>(begin + end - 1);
    begin = end;
  }
  return rank;
}

double Correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = Mean(a), mean_b = Mean(b);
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

}  // namespace

double PlanRun::seconds() const { return measured.seconds_at_file_pace() / speed; }
double PlanRun::seconds_as_measured() const { return Median(measured.seconds) / machine_speed; }

void SpeedChange::Add(const PlanRun& run) {
  if (!run.ran() || !(run.machine_speed > 0)) return;
  least_ = most_ > 0 ? std::min(least_, run.machine_speed) : run.machine_speed;
  most_ = std::max(most_, run.machine_speed);
}

void CheckHasTwoDevices(const Cluster& cluster) {
  if (cluster.num_devices() > 1) return;
  throw Error(
      "cluster {} has one device, and a plan is cut between two; `berth cluster detect --split cpu:2` makes two of one "
      "processor",
      cluster.name());
}

PlanRunner::PlanRunner(const Catalogs& catalogs, ProblemStrings strings, std::shared_ptr<Runtime> runtime)
    : catalogs_(catalogs), strings_(std::move(strings)), runtime_(std::move(runtime)) {
  strings_.evaluator = "parts";
  setup_ = MakeOwnSetup(runtime_ ? runtime_->setup->instance : nullptr);
  CheckHasTwoDevices(problem().cluster());
  if (!runtime_) runtime_ = std::make_shared<Runtime>(setup_);
  ran_alone_.resize(problem().num_devices());
  for (const double time : ScoreSingleDevices(*setup_->evaluator).times()) {
    alone_.push_back(time < kCannotRun ? problem().ToSeconds(time).value : std::numeric_limits<double>::infinity());
  }
}

std::shared_ptr<const Setup> PlanRunner::MakeOwnSetup(std::shared_ptr<const Instance> instance) const {
  return std::make_shared<const Setup>(MakeSetup(catalogs_, strings_, std::move(instance)));
}

double PlanRunner::Predict(const std::vector<DeviceId>& device) const {
  const auto workspace = setup_->evaluator->NewWorkspace();
  return problem().ToSeconds(setup_->evaluator->ScorePlan({.device = device}, *workspace).time).value;
}

std::vector<std::vector<DeviceId>> PlanRunner::Candidates(const Random& random, int searches, int64_t evaluations,
                                                          const StopCheck& stop) const {
  std::map<std::vector<DeviceId>, double> found;
  const auto add = [&](const std::vector<DeviceId>& device) {
    if (const double time = Predict(device); std::isfinite(time)) found.emplace(device, time);
  };
  for (const DeviceId on : DistinctDevices(ScoreSingleDevices(*setup_->evaluator).times())) {
    add(std::vector<DeviceId>(problem().num_ops(), on));
  }
  for (int search = 0; search < searches; ++search) {
    for (const char* planner : {"on(group=fusion,planner=local_search)", "on(group=fusion,planner=annealing)"}) {
      if (stop && stop()) break;
      const auto made = catalogs_.planners.MakePlanner(planner);
      const PlanResult result = made->MakePlan({.evaluator = *setup_->evaluator,
                                                .budget = {.evaluations = evaluations},
                                                .random = random.Fork(static_cast<uint64_t>(search))});
      if (!result.plan.device.empty() && result.score.fits()) add(result.plan.device);
    }
  }
  return FastestFirst(found);
}

std::vector<std::vector<DeviceId>> PlanRunner::Neighbours(const std::vector<DeviceId>& device,
                                                          const StopCheck& stop) const {
  const Grouping fused = FusedOps(problem().graph());
  std::vector<int32_t> label;
  for (const OpId op : problem().graph().ops()) label.push_back(static_cast<int32_t>(Index(fused.group_of(op))));
  const Grouping kernels = JoinColocated(problem(), std::move(label));
  const std::vector<GroupId> order = TopologicalOrder(MakeQuotient(problem(), kernels));
  std::map<std::vector<DeviceId>, double> found;
  for (size_t begin = 0; begin < order.size() && !(stop && stop()); ++begin) {
    for (const DeviceId to : problem().cluster().ids()) {
      std::vector<DeviceId> moved = device;
      for (size_t count = 1; count <= kMostMoved && begin + count <= order.size(); ++count) {
        for (const OpId op : kernels.ops_of(order[begin + count - 1])) moved[Index(op)] = to;
        // 1, 2, 4, ... of them.
        if ((count & (count - 1)) != 0 || moved == device || FindViolation(problem(), {.device = moved})) continue;
        const double time = Predict(moved);
        if (std::isfinite(time)) found.emplace(moved, time);
      }
    }
  }
  return FastestFirst(found);
}

std::vector<std::vector<DeviceId>> PlanRunner::VariedPlans(size_t count, uint64_t seed) const {
  constexpr int kGroups[] = {4, 8, 16, 32, 64, 128, 256};
  constexpr int64_t kEvaluations[] = {50, 200, 800};
  std::set<std::vector<DeviceId>> seen;
  std::vector<std::vector<DeviceId>> plans;
  const Random random(seed);
  for (uint64_t k = 0; plans.size() < count && k < 10 * count; ++k) {
    const bool searched = k % 2 == 0;
    const std::string planner =
        searched ? "on(group=fusion,planner=local_search)"
                 : fmt::format("on(group=\"merge(size={})\",planner=random)", kGroups[k / 2 % std::size(kGroups)]);
    const auto made = catalogs_.planners.MakePlanner(planner);
    const int64_t evaluations = searched ? kEvaluations[k / 2 % std::size(kEvaluations)] : 1;
    PlanResult result = made->MakePlan(
        {.evaluator = *setup_->evaluator, .budget = {.evaluations = evaluations}, .random = random.Fork(k)});
    if (result.plan.device.empty() || !seen.insert(result.plan.device).second) continue;
    plans.push_back(std::move(result.plan.device));
  }
  return plans;
}

std::vector<PlanRun> PlanRunner::Run(const std::vector<std::vector<DeviceId>>& plans, size_t rounds,
                                     const StopCheck& stop, const std::function<void(size_t done)>& progress) {
  std::vector<PlanRun> runs;
  for (size_t begin = 0; begin < plans.size(); begin += kPlansAtATime) {
    const size_t end = std::min(plans.size(), begin + kPlansAtATime);
    std::vector<RunWay> ways;
    double round = 0;  // seconds
    for (size_t i = begin; i < end; ++i) {
      ways.push_back({.how = "parallel", .device = plans[i]});
      round += Predict(plans[i]);
    }
    for (const DeviceId on : problem().cluster().ids()) {
      ways.push_back({.how = "alone", .on = on});
      if (std::isfinite(alone_[Index(on)])) round += alone_[Index(on)];
    }
    const size_t times = RoundsFor(rounds, round / static_cast<double>(ways.size()), kLeastSeconds);
    const double limit = LimitFor(static_cast<double>(times) * round);
    std::vector<Measurement> measured = runtime_->openvino.Run(ways, {.rounds = times, .limit = limit, .stop = stop});
    if (stop && stop()) break;
    // A runtime may run what does not fit by the device file; no plan is to be that.
    std::vector<std::pair<DeviceId, double>> alone;
    std::vector<double> multiples, as_measured;  // of what was predicted of each
    for (const DeviceId on : problem().cluster().ids()) {
      const Measurement& one = measured[end - begin + Index(on)];
      if (!one.error.empty() || !std::isfinite(alone_[Index(on)])) continue;
      alone.emplace_back(on, one.seconds_at_file_pace());
      multiples.push_back(alone.back().second / alone_[Index(on)]);
      as_measured.push_back(Median(one.seconds) / alone_[Index(on)]);
    }
    const double speed = alone.empty() ? 1 : Mean(multiples), machine_speed = alone.empty() ? 1 : Mean(as_measured);
    for (const auto& [on, seconds] : alone) ran_alone_[Index(on)].push_back(seconds / speed);
    for (size_t i = begin; i < end; ++i) {
      runs.push_back({.device = plans[i],
                      .predicted = Predict(plans[i]),
                      .measured = std::move(measured[i - begin]),
                      .speed = speed,
                      .machine_speed = machine_speed});
    }
    progress(end);
  }
  return runs;
}

std::optional<DeviceId> PlanRunner::fastest_alone() const {
  std::optional<DeviceId> fastest;
  double least = std::numeric_limits<double>::infinity();
  for (const DeviceId on : problem().cluster().ids()) {
    const std::vector<double>& turns = ran_alone_[Index(on)];
    if (turns.empty() || Median(turns) >= least) continue;
    least = Median(turns);
    fastest = on;
  }
  return fastest;
}

void PlanRunner::SetCosts(const CutCosts& costs, const std::string& source) {
  strings_.stored_cluster = std::make_shared<const Cluster>(WithCutCosts(problem().cluster(), costs, source));
  setup_ = MakeOwnSetup(setup_->instance);
}

void AddTo(CutFit& fit, const Problem& problem, const std::vector<PlanRun>& runs) {
  for (const PlanRun& run : runs) fit.Add(problem, run.measured, run.speed);
}

PredictionError ErrorOf(const std::vector<double>& predicted, const std::vector<double>& measured) {
  PredictionError error;
  if (predicted.empty()) return error;
  std::vector<double> off;
  for (size_t i = 0; i < predicted.size(); ++i) off.push_back(std::abs(predicted[i] / measured[i] - 1));
  std::ranges::sort(off);
  error.median = Median(off);
  error.ninetieth = off[static_cast<size_t>(std::ceil(0.9 * static_cast<double>(off.size()))) - 1];
  if (off.size() > 2) error.rank_correlation = Correlation(RanksOf(predicted), RanksOf(measured));
  return error;
}

}  // namespace berth
