#include "tools/seeds/play.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>

#include "placement/bound.h"
#include "placement/search.h"
#include "tools/seeds/published_placement.h"

namespace berth::seeds {
namespace {

// Smaller steps are left out of the list.
constexpr double kStep = 1e-3;

// The largest of what is known: where a minimum cut is the optimum, that.
double BoundOf(const Catalogs& catalogs, const Evaluator& evaluator) {
  double bound = LowerBound(evaluator).value();
  const auto cut = catalogs.planners.MakePlanner("mincut");
  if (cut->Refuses(evaluator.problem(), evaluator)) return bound;
  const PlanResult result = cut->MakePlan({.evaluator = evaluator, .budget = {}, .random = Random(1)});
  if (result.optimal) bound = std::max(bound, result.score.value());
  return bound;
}

int64_t MostMemory(const Evaluator& evaluator, const Plan& plan) {
  int64_t most = 0;
  for (const DeviceMemory& device : evaluator.Trace(plan.view()).memory) most = std::max(most, device.peak_bytes);
  return most;
}

}  // namespace

void Player::MakeProblem(const Question& question) {
  Question problem = question;
  problem.planner.clear();
  problem.seed = 0;
  problem.limits = {};
  if (made_ == problem.Key()) return;
  made_.clear();
  setup_ = std::make_unique<Setup>(MakeSetup(catalogs_, question.Strings()));
  bound_ = BoundOf(catalogs_, *setup_->evaluator) * setup_->problem->seconds_per_unit();
  made_ = problem.Key();
}

void Player::Fill(Cell& cell) const {
  const Question& asked = cell.question;
  const Evaluator& evaluator = *setup_->evaluator;
  const double unit = setup_->problem->seconds_per_unit();
  PlanRequest request{.evaluator = evaluator,
                      .budget = {.evaluations = asked.limits.evaluations, .seconds = asked.limits.seconds},
                      .random = Random(static_cast<uint64_t>(asked.seed)),
                      .threads = 1,
                      .causes = false};
  std::optional<Improvement> last;
  request.progress = [&cell, &last, unit](const Progress& progress) {
    if (!progress.best.fits()) return;
    const double time = progress.best.value() * unit;
    if (last && time >= last->time) return;
    last = Improvement{.evaluations = progress.best_after, .seconds = progress.seconds, .time = time};
    if (cell.on.empty() || time < (1 - kStep) * cell.on.back().time) cell.on.push_back(*last);
  };
  PlanResult result;
  if (asked.planner == kPublished) {
    const Plan plan = ReadPublishedPlacement(kPublishedPlacement, *setup_->problem);
    Search search(request);
    search.Evaluate(plan);
    result = search.Finish();
  } else {
    const auto planner = catalogs_.planners.MakePlanner(asked.planner);
    if (const auto why = planner->Refuses(*setup_->problem, evaluator)) {
      cell.found = Found::kRefuses;
      cell.why = *why;
      return;
    }
    result = planner->MakePlan(request);
  }
  if (last && last->time < cell.on.back().time) cell.on.push_back(*last);
  cell.seconds = result.wall_seconds;
  cell.evaluations = result.evaluations;
  cell.ended = kSearchEndNames[static_cast<size_t>(HowItEnded(request.budget, result))];
  if (result.plan.device.empty() || result.score.failed()) {
    cell.why = result.failure.empty() ? "it found no plan" : result.failure;
    return;
  }
  cell.memory = MostMemory(evaluator, result.plan);
  switch (result.score.outcome) {
    case berth::Outcome::kFits:
      cell.found = Found::kPlan;
      cell.time = result.score.value() * unit;
      break;
    case berth::Outcome::kTooBig:
      cell.found = Found::kTooBig;
      break;
    default:
      cell.why = "its best plan breaks a rule of the evaluator";
      break;
  }
}

Cell Player::Play(const Question& question) {
  Cell cell{.question = question};
  try {
    MakeProblem(question);
    cell.bound = bound_;
    cell.ops = static_cast<int64_t>(setup_->problem->num_ops());
    Fill(cell);
  } catch (const std::exception& error) {
    cell.found = Found::kFails;
    cell.why = error.what();
  }
  return cell;
}

int AnswerQuestions(int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(static_cast<size_t>(processor), &only);
  // Where the system refuses, the cell runs where it is put.
  ::sched_setaffinity(0, sizeof only, &only);
  Player player;
  for (std::string line; std::getline(std::cin, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    const Cell cell = player.Play(CellOf(json, "standard input").question);
    std::cout << ToJson(cell).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  }
  return 0;
}

}  // namespace berth::seeds
