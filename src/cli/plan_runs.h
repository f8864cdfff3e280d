// Plans that are predicted and run: what `calibrate` and `tune` share.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "cli/catalogs.h"
#include "cli/runtime.h"
#include "exec/cut_fit.h"

namespace berth {

// A plan that was run by openvino_parallel. Times in seconds.
struct PlanRun {
  std::vector<DeviceId> device{};
  double predicted = 0;  // by `parts`, before it was run
  Measurement measured{};
  // How long the devices took alone in the same rounds, at the paces of the device file, as a multiple of what was
  // predicted of them before any costs were set: what the machine's speed was meanwhile, as far as these do not tell
  // it.
  double speed = 1;
  double machine_speed = 1;  // the same of times as they were measured

  bool ran() const { return measured.error.empty(); }
  // The median of its runs, at the speed at which the op times are told.
  double seconds() const;
  // As measured, but for the speed that the machine had in all in these rounds: cores that were slower than others
  // count as they were.
  double seconds_as_measured() const;
};

// The largest speed of the machine in any of these runs over the smallest; 1 without runs.
class SpeedChange {
 public:
  void Add(const PlanRun& run);
  double factor() const { return most_ > 0 ? most_ / least_ : 1; }

 private:
  double least_ = 0, most_ = 0;
};

// Throws Error where there is nothing to divide a model over.
void CheckHasTwoDevices(const Cluster& cluster);

// A problem under `parts`, whose cuts cost what runs have shown so far.
class PlanRunner {
 public:
  // `strings.costs` should be measured times. The evaluator of `strings` is not used. `runtime`: of the same model and
  // cluster, where somebody has opened it already. Throws Error where the model cannot be run here.
  PlanRunner(const Catalogs& catalogs, ProblemStrings strings, std::shared_ptr<Runtime> runtime = nullptr);

  const Setup& setup() const { return *setup_; }
  const Problem& problem() const { return *setup_->problem; }
  Runtime& runtime() { return *runtime_; }
  // Ends the process that holds the model. Nothing can be run then, but predicted.
  void EndRuntime() { runtime_.reset(); }

  double Predict(const std::vector<DeviceId>& device) const;  // seconds
  // Different plans, those with the smallest prediction first, as many as so many searches end with; single devices
  // that can run the model are among them. Ends between two searches where `stop` says so.
  std::vector<std::vector<DeviceId>> Candidates(const Random& random, int searches, int64_t evaluations,
                                                const StopCheck& stop = {}) const;
  // The plans that differ from this one by a run of kernels, 1 to 32 that follow one another in a topological order, on
  // another device; those with the smallest prediction first. O(kernels x devices) predictions; fewer where `stop` says
  // so.
  std::vector<std::vector<DeviceId>> Neighbours(const std::vector<DeviceId>& device, const StopCheck& stop = {}) const;
  // Different plans, good and bad, for a fit: half of them random over groups of ops of many sizes.
  std::vector<std::vector<DeviceId>> VariedPlans(size_t count, uint64_t seed) const;

  // Each plan `rounds` times, in turns with every device alone, a few plans at a time; more often, up to 250 times,
  // where these runs are predicted to last less than a quarter of a second each in the mean: a moment at which the
  // machine does something else would be most of that. Ends early where `stop` says so, with the plans until then.
  std::vector<PlanRun> Run(const std::vector<std::vector<DeviceId>>& plans, size_t rounds, const StopCheck& stop,
                           const std::function<void(size_t done)>& progress);

  // The device that was the fastest alone in these runs, of those that the model fits on; none where none has run well.
  std::optional<DeviceId> fastest_alone() const;

  // From here on cuts cost this.
  void SetCosts(const CutCosts& costs, const std::string& source);

 private:
  std::shared_ptr<const Setup> MakeOwnSetup(std::shared_ptr<const Instance> instance) const;

  const Catalogs& catalogs_;
  ProblemStrings strings_;
  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<const Setup> setup_;  // of the numbers as they are now
  std::vector<double> alone_;           // predicted seconds of each device, before any costs were set; infinite: cannot
  std::vector<std::vector<double>> ran_alone_;  // by device, the median of each turn at the speed of the op times
};

// Adds all of these to a fit.
void AddTo(CutFit& fit, const Problem& problem, const std::vector<PlanRun>& runs);

// Of predictions beside measurements; shares.
struct PredictionError {
  std::optional<double> median{}, ninetieth{};  // none where there are no predictions
  std::optional<double> rank_correlation{};     // Spearman's; none for fewer than 3
};
PredictionError ErrorOf(const std::vector<double>& predicted, const std::vector<double>& measured);

}  // namespace berth
