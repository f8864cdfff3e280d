#include "tools/measured/prediction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <span>
#include <vector>

#include "cli/plan_runs.h"
#include "exec/statistics.h"

namespace berth::measured {
namespace {

// What cuts cost is fitted to plans of these, and the prediction is held against plans of those.
constexpr const char* kFitted[] = {"googlenet", "resnet50", "squeezenet1_1"};
constexpr const char* kUnseen[] = {"inception_v3", "densenet121", "mobilenet_v2"};
constexpr size_t kFittedPlans = 12, kPlanRuns = 21;
// How often a plan of those is compiled and measured: compiled again, it is up to a few percent faster or slower.
constexpr size_t kTimes = 4;
// Printed where there is no number.
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
// A plan counts that is within this of the best: how far worse ones are off decides nothing.
constexpr double kNearTheBest = 1.5;

// Plans of one model, near the best of them. Seconds.
struct Plans {
  size_t all = 0;
  std::vector<double> predicted{}, before{};          // with what cuts cost, and with nothing but the links' latency
  std::vector<double> first{}, second{}, measured{};  // means of the first and of the last measurements, and of all
  std::vector<double> undivided{};  // the last without the share by which the devices alone were off meanwhile
  std::vector<double> parts{}, transfers{};
};

Plans Measure(PlanRunner& runner, size_t count) {
  const std::vector<std::vector<DeviceId>> plans = runner.VariedPlans(count, 2);
  const std::vector<std::vector<DeviceId>> backwards(plans.rbegin(), plans.rend());
  std::vector<std::vector<PlanRun>> runs;
  for (size_t time = 0; time < kTimes; ++time) {
    // Each second time in the opposite order, so that no two plans share the moments at which they are measured.
    const bool turned = time % 2 == 1;
    runs.push_back(runner.Run(turned ? backwards : plans, kPlanRuns, {}, [](size_t) {}));
    if (turned) std::ranges::reverse(runs.back());
  }
  runner.SetCosts({}, "nothing");
  std::vector<std::vector<double>> seconds(plans.size()), undivided(plans.size());  // by plan; of one that failed, none
  double best = std::numeric_limits<double>::infinity();
  for (size_t k = 0; k < plans.size(); ++k) {
    if (!std::ranges::all_of(runs, [&](const auto& measured) { return measured[k].ran(); })) continue;
    for (const std::vector<PlanRun>& measured : runs) {
      seconds[k].push_back(measured[k].seconds());
      undivided[k].push_back(measured[k].measured.seconds_at_file_pace());
    }
    best = std::min(best, Mean(seconds[k]));
  }
  Plans result{.all = plans.size()};
  for (size_t k = 0; k < plans.size(); ++k) {
    if (seconds[k].empty() || Mean(seconds[k]) > kNearTheBest * best) continue;
    result.predicted.push_back(runs[0][k].predicted);
    result.before.push_back(runner.Predict(plans[k]));
    result.first.push_back(Mean(std::span(seconds[k]).first(kTimes / 2)));
    result.second.push_back(Mean(std::span(seconds[k]).last(kTimes / 2)));
    result.measured.push_back(Mean(seconds[k]));
    result.undivided.push_back(Mean(undivided[k]));
    result.parts.push_back(static_cast<double>(runs[0][k].measured.subgraphs));
    result.transfers.push_back(static_cast<double>(runs[0][k].measured.transfers.size()));
  }
  return result;
}

}  // namespace

size_t Calibrate(const Catalogs& catalogs, Models& models) {
  CutFit fit;
  for (const char* model : kFitted) {
    PlanRunner runner(catalogs, models.Strings(model));
    fmt::print(stderr, "{}: plans to fit to\n", model);
    AddTo(fit, runner.problem(), runner.Run(runner.VariedPlans(kFittedPlans, 1), kPlanRuns, {}, [](size_t) {}));
  }
  const CutCosts costs = fit.Fit();
  models.SetCluster(WithCutCosts(models.cluster(), costs, "runs of plans"));
  fmt::print("What one part costs above its ops' times and the bytes that it shares: {:.0f} us.\n",
             costs.part_overhead * 1e6);
  return fit.num_parts();
}

void PredictPlans(const Catalogs& catalogs, Models& models, size_t fitted_parts, size_t plans) {
  fmt::print(
      "\n## Plans, predicted\n\n`parts`, with what {} parts of plans of {} cost (fitted as by `berth calibrate`, to {} plans "
      "of each), held against plans of models that the fit has not seen, within {:.1f} times of the best of them, searched and random. Each "
      "plan is compiled and measured {} times, {} runs each time (more where a run is short), each second time in the "
      "opposite order; a plan's time is the mean of the medians. These are divided by what the devices alone took in the "
      "same rounds, as a multiple of what the profile predicts of them: what the profile is off by in all is not in "
      "the errors *off*, and it is in those *undivided*. Op times are from each model's profile. The order of "
      "the plans is a rank correlation; beside it those of the number of parts alone, of the number of tensors that "
      "are sent, and of the second half of the measurements with the first, which shows the noise.\n\n"
      "| model | plans | off, median | 90th percentile | undivided: median | 90th percentile | order | order by parts "
      "alone | by tensors sent alone | order of the second half "
      "| before the fit: median | 90th percentile | order "
      "|\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
      fitted_parts, fmt::join(kFitted, ", "), kFittedPlans, kNearTheBest, kTimes, kPlanRuns);
  for (const char* model : kUnseen) {
    PlanRunner runner(catalogs, models.Strings(model));
    fmt::print(stderr, "{}: plans to predict\n", model);
    const Plans seen = Measure(runner, plans);
    const auto errors = [](const PredictionError& of) {
      return fmt::format("{:.1f} % | {:.1f} %", 100 * of.median.value_or(kUnknown),
                         100 * of.ninetieth.value_or(kUnknown));
    };
    const auto order = [](const PredictionError& of) { return of.rank_correlation.value_or(kUnknown); };
    const PredictionError error = ErrorOf(seen.predicted, seen.measured), raw = ErrorOf(seen.before, seen.measured);
    fmt::print("| {} | {} of {} | {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {} | {:.2f} |\n", model,
               seen.measured.size(), seen.all, errors(error), errors(ErrorOf(seen.predicted, seen.undivided)),
               order(error), order(ErrorOf(seen.parts, seen.measured)), order(ErrorOf(seen.transfers, seen.measured)),
               order(ErrorOf(seen.second, seen.first)), errors(raw), order(raw));
  }
}

}  // namespace berth::measured
