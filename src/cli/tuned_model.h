// A model tuned on this machine: the plan that won, and how it ran.
#pragma once

#include <functional>
#include <string>

#include "cli/measured_run.h"
#include "cli/saved_plan.h"
#include "cli/tuning.h"

namespace berth {

struct TunedModel {
  Tuning tuning;
  SavedPlan saved;       // the plan that won, under `parts` as its runs have corrected it
  MeasuredRun run;       // of that plan, once more, beside each device alone and OpenVINO's own threads
  bool stopped = false;  // then, or while plans were run
};

// `strings.costs` and `runtime`: as PlanRunner takes them. `keep` is given the plan that won before that is run once
// more, which takes a while and may be interrupted. Throws Error where no plan could be run.
TunedModel TuneModel(const Catalogs& catalogs, const ProblemStrings& strings, const TuneOptions& options,
                     const std::function<void(const std::string&)>& progress,
                     std::shared_ptr<Runtime> runtime = nullptr,
                     const std::function<void(const SavedPlan&)>& keep = {});

std::string TunedPage(const TunedModel& tuned);

}  // namespace berth
