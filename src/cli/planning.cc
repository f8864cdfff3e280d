#include "cli/planning.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "cli/console.h"
#include "cli/measured_run.h"
#include "export/graphviz.h"
#include "export/picture.h"
#include "report/notes.h"
#include "report/table.h"

namespace berth {

Conditions ConditionsOf(const Setup& setup, const SearchArguments& search, const std::atomic<bool>* cancelled) {
  const Evaluator& evaluator = *setup.evaluator;
  Conditions conditions{
      .evaluator = evaluator,
      .bound = LowerBound(evaluator),
      .singles = ScoreSingleDevices(evaluator),
      .budget = search.budget,
      .seed = search.seed,
      .constraints = StatedConstraints(setup),
      .progress = [&evaluator](const std::string& planner) { return ShowProgress(evaluator, planner); }};
  conditions.budget.cancelled = cancelled;
  return conditions;
}

PlanFile MakePlanFile(const Setup& setup, const PlanReport& report) {
  PlanFile file = MakePlanFile(setup, report.result.plan);
  file.planner = report.planner;
  file.seed = report.seed;
  file.budget = report.budget;
  file.ended = report.ended;
  file.score_seconds = setup.problem->ToSeconds(report.timeline.score.time).value;
  file.lower_bound_seconds = setup.problem->ToSeconds(report.bound.time).value;
  file.feasible = report.timeline.score.fits();
  file.optimal = report.result.optimal;  // the bound says the rest
  return file;
}

std::string HowToFit(const Problem& problem, const PlanReport& report) {
  const std::vector<double>& alone = report.single_device_time;
  if (const auto able = std::ranges::find_if(alone, [](double time) { return std::isfinite(time); });
      able != alone.end()) {
    const std::string name =
        LegibleName(problem.cluster(), MakeId<DeviceId>(static_cast<size_t>(able - alone.begin())));
    return fmt::format("Everything on {} fits: --planner 'single(device={})' puts it there.", name, name);
  }
  std::vector<std::string> enough;
  for (const DeviceId device : problem.cluster().ids()) {
    if (report.timeline.memory.empty()) break;
    const int64_t peak = report.timeline.memory[Index(device)].peak_bytes;
    if (peak > problem.memory_limit(device))
      enough.push_back(fmt::format("{} on {}", ToBudget(Bytes{peak}), LegibleName(problem.cluster(), device)));
  }
  const std::string relax = enough.empty() ? "" : fmt::format(", or allow {}", JoinAnd(enough));
  return "No plan that fits was found, though there may be one: give the search a larger --budget or another "
         "--planner" +
         relax + ".";
}

std::string HintLines(const Evaluator& evaluator) {
  std::string text;
  for (const std::string& note : HonestyNotes(evaluator)) text += Item(note);
  const Disturbance disturbance = evaluator.disturbance();
  text += DisturbedLine(disturbance.stolen, "of a plan's time, at most");
  text +=
      UnsteadyLine(disturbance.speed_change(), "times are as measured, and plans may seem faster or slower by that");
  return text.empty() ? text : "\nBefore you trust these numbers:\n" + text;
}

void AddDisturbance(const Evaluator& evaluator, Json& json) {
  if (!evaluator.facts().Is<MeasuredFacts>() || !evaluator.facts().exclusive) return;  // noise is only invented
  const Disturbance disturbance = evaluator.disturbance();
  json["stolen_share"] = disturbance.stolen;
  json["speed_change"] = disturbance.speed_change();
}

void CheckPicture(const std::string& path, const std::string& other, std::span<const std::string> inputs) {
  if (path.empty()) return;
  const auto place = [](const std::string& name) { return std::filesystem::weakly_canonical(FollowLinks(name)); };
  if (!other.empty() && place(path) == place(other)) {
    throw Error("{}: two things are to be written to it; name another file for the picture", path);
  }
  PictureFormatOf(path);
  CheckWritable(path, inputs);
  CheckGraphviz();
}

void WritePicture(const std::string& path, const Problem& problem, const PlanReport& report,
                  const std::atomic<bool>* cancelled) {
  if (path.empty()) return;
  GraphvizLimits limits;
  if (cancelled != nullptr && !cancelled->load()) limits.cancelled = cancelled;
  const std::string dot = PictureDot(problem, report.result.plan, report.timeline);
  std::string picture;
  try {
    picture = DrawDot(dot, PictureFormatOf(path), limits);
  } catch (const Error& error) {
    throw Error("{}: not drawn: {}", path, error.what());
  }
  WriteFile(path, picture);
}

}  // namespace berth
