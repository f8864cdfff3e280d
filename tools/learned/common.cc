#include "tools/learned/common.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace berth::learned {

namespace {

// Of a processor that this thread has used, however busy the machine is.
double ProcessorSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

Outcome Play(const Catalogs& catalogs, const Setup& setup, const std::string& planner, int64_t evaluations,
             uint64_t seed, int64_t threads) {
  Outcome outcome;
  const double unit = setup.problem->seconds_per_unit();
  const double before = ProcessorSeconds();
  const PlanResult result = catalogs.planners.MakePlanner(planner)->MakePlan(
      {.evaluator = *setup.evaluator,
       .budget = {.evaluations = evaluations},
       .random = Random(seed),
       .progress =
           [&](const Progress& progress) {
             const double seconds = progress.best.value() * unit;
             if (!outcome.improvements.empty() && !(seconds < outcome.improvements.back().second)) return;
             outcome.improvements.emplace_back(progress.evaluations, seconds);
           },
       .threads = threads});
  outcome.processor = ProcessorSeconds() - before;
  outcome.wall = result.wall_seconds;
  outcome.found = result.score.value() * unit;
  outcome.evaluations = result.evaluations;
  outcome.learned = result.learned;
  return outcome;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
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
