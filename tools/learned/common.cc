#include "tools/learned/common.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace berth::learned {

Outcome Play(const Catalogs& catalogs, const Setup& setup, const std::string& planner, int64_t evaluations,
             uint64_t seed, double near) {
  Outcome outcome;
  std::vector<std::pair<int64_t, double>> improvements;  // evaluations so far, seconds
  const double unit = setup.problem->seconds_per_unit();
  const PlanResult result = catalogs.planners.MakePlanner(planner)->MakePlan(
      {.evaluator = *setup.evaluator,
       .budget = {.evaluations = evaluations},
       .random = Random(seed),
       .progress = [&](const Progress& progress) {
         improvements.emplace_back(progress.evaluations, progress.best.value() * unit);
         if (outcome.near_evaluations == 0 && progress.best.fits() && progress.best.value() * unit <= near) {
           outcome.near_evaluations = progress.evaluations;
         }
       }});
  outcome.seconds = result.score.value() * unit;
  // The policy's own answer is what a learned planner scores last.
  for (const auto& [count, seconds] : improvements) {
    if (result.policy_seconds && count < result.evaluations) outcome.drawn = seconds;
  }
  outcome.policy = result.policy_seconds;
  outcome.decisions = result.policy_decisions;
  outcome.wall = result.wall_seconds;
  if (outcome.near_evaluations == 0 && outcome.seconds <= near) outcome.near_evaluations = result.evaluations;
  return outcome;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double Deviation(const std::vector<double>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return values.size() < 2 ? 0 : std::sqrt(sum / static_cast<double>(values.size() - 1));
}

void Jobs::Run() {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failed;  // any, where there are several
  const auto work = [&] {
    for (size_t i = next++; i < jobs_.size(); i = next++) {
      try {
        jobs_[i]();
      } catch (...) {
        const std::lock_guard lock(mutex);
        failed = std::current_exception();
      }
      fmt::print(stderr, "\rbench-learned: {}/{}  ", i + 1, jobs_.size());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 1; t < std::max(1U, std::thread::hardware_concurrency()); ++t) threads.emplace_back(work);
    work();
  }
  fmt::print(stderr, "\n");
  jobs_.clear();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace berth::learned
