#include "tools/learned/common.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>

#include "base/system_limits.h"
#include "cli/learning.h"

namespace berth::learned {

double ProcessorSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double Foresee(const std::function<void(int64_t amount)>& run, int64_t few, int64_t more, int64_t all) {
  const auto seconds = [&run](int64_t amount) {
    const double before = ProcessorSeconds();
    run(amount);
    return ProcessorSeconds() - before;
  };
  const double less = seconds(few);
  const double each = std::max(seconds(more) - less, 0.0) / static_cast<double>(more - few);
  return less + each * static_cast<double>(all - few);
}

double ForeseeTraining(const std::function<void(int64_t updates)>& train, int64_t updates, bool validates) {
  const int64_t few = std::clamp<int64_t>(updates / 4, 1, validates ? 10 : 5);
  return Foresee(train, few, 2 * few, updates);
}

void SayPlan(std::string_view part, double seconds, const std::string& runs) {
  fmt::print(stderr, "bench-learned: {} plans {:.2f} processor hours, for {}\n", part, seconds / 3600, runs);
}

Scratch::Scratch(const std::string& name)
    : path_((std::filesystem::temp_directory_path() / fmt::format("berth-learned-{}-{}", ::getpid(), name)).string()) {
  std::filesystem::remove_all(path_);
}

Scratch::~Scratch() { std::filesystem::remove_all(path_); }

TrainingResult TrainOn(const Catalogs& catalogs, const std::string& planner, const std::vector<TrainingCase>& cases,
                       const std::vector<TrainingCase>& tests, int64_t updates, uint64_t seed, const Scratch& folder,
                       const std::vector<TrainingCase>& validation) {
  return Learning().train({.planner = planner,
                           .groupings = &catalogs.groupings,
                           .cases = cases,
                           .validation = validation,
                           .tests = tests,
                           .updates = updates,
                           .seed = seed,
                           .folder = folder.path(),
                           .checkpoint_every = std::max<int64_t>(updates / (validation.empty() ? 5 : 10), 1),
                           .threads = 1});
}

double SecondsOf(const Problem& problem, const Score& score) {
  return score.fits() ? score.value() * problem.seconds_per_unit() : std::numeric_limits<double>::infinity();
}

Outcome Play(const Catalogs& catalogs, const Setup& setup, const std::string& planner, int64_t evaluations,
             uint64_t seed, int64_t threads) {
  Outcome outcome;
  const double before = ProcessorSeconds();
  const PlanResult result = catalogs.planners.MakePlanner(planner)->MakePlan(
      {.evaluator = *setup.evaluator,
       .budget = {.evaluations = evaluations},
       .random = Random(seed),
       .progress =
           [&](const Progress& progress) {
             if (!progress.best.fits()) return;
             const double seconds = SecondsOf(*setup.problem, progress.best);
             if (!outcome.improvements.empty() && !(seconds < outcome.improvements.back().found)) return;
             outcome.improvements.push_back(
                 {.evaluations = progress.best_after, .found = seconds, .processor = ProcessorSeconds() - before});
           },
       .threads = threads});
  outcome.processor = ProcessorSeconds() - before;
  outcome.wall = result.wall_seconds;
  outcome.found = SecondsOf(*setup.problem, result.score);
  outcome.evaluations = result.evaluations;
  outcome.learned = result.learned;
  return outcome;
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
    for (size_t left = UsableThreads() - 1; left > 0; --left) threads.emplace_back(work);
    work();
  }
  fmt::print(stderr, "\n");
  jobs_.clear();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace berth::learned
