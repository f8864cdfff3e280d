// Trains a learned planner's policy, in a folder that holds all that a run is. No torch in it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/ranks.h"
#include "learn/curve.h"
#include "placement/evaluator.h"
#include "placement/grouping.h"
#include "placement/planner.h"

namespace berth {

struct TrainingCase {
  std::string name{};
  const Evaluator& evaluator;  // with its problem; outlives the training
  std::string group{};         // of its ops, by name; empty: as the planner says
};

struct TrainingRequest {
  // The name of a learned planner, with parameters, or on(group=...,planner=...) with one: then it learns on these
  // groups of each case.
  std::string planner{};
  const GroupingCatalog* groupings = nullptr;  // for on(...) and the cases' own groups
  std::vector<TrainingCase> cases{};
  // The policy answers them at each checkpoint, and the one whose answers cost least is kept; without any, its answers
  // to the cases decide. Each must be another problem than all cases. The budget does not count these evaluations.
  std::vector<TrainingCase> validation{};
  // Unseen in training: the trained policy answers them at the end. Each must be another problem than all of these.
  std::vector<TrainingCase> tests{};
  // Whichever ends first; the schedules run over what the first two allow. Seconds are this call's own. Without
  // evaluations and updates the method's own number of evaluations ends it.
  Budget budget{};
  std::optional<int64_t> updates{};
  uint64_t seed = 1;
  std::string folder{};
  bool resume = false;  // goes on where the folder's last checkpoint stands
  int64_t checkpoint_every = 10;
  int64_t threads = 0;  // 0: as many as there are cores. The numbers do not depend on it
  // What trains together, each with a request that says the same; null: this process alone. The numbers do not depend
  // on how many they are. Rank 0 has the folder, which the others need not see, and the result.
  Ranks* ranks = nullptr;
  // What else the caller needs to make the cases again; kept in config.json.
  std::vector<std::pair<std::string, std::string>> arguments{};
  std::function<void(const CurvePoint& point, int64_t planned_updates)> progress{};
};

// What came of one case. Costs in seconds, penalties for memory included.
struct TrainedCase {
  double first_cost = 0;   // of the first placement that was drawn; NaN where none was, and in tests
  PlanResult best{};       // of all placements that were drawn, with their number; no plan where none was
  double greedy_cost = 0;  // of the trained policy's likeliest placement; infinity where it has no score
  PlanResult greedy{};     // that placement; no plan where it has no score
};

struct TrainingResult {
  std::string planner{};  // what learned, canonical
  std::string answer{};   // the same with the policy that it has learned, as planning takes it
  int64_t updates = 0, planned_updates = 0, evaluations = 0;
  int64_t validation_evaluations = 0;  // beside these
  int64_t best_update = 0;             // whose policy `best` is; 0: none, then `last` answers
  bool finished = false;               // false: stopped by Ctrl-C or SIGTERM
  std::vector<TrainedCase> cases{}, tests{};
  std::vector<CurvePoint> curve{};
  std::shared_ptr<const FolderLock> lock{};  // the folder is the caller's alone for as long as it keeps this
};

// Writes into the folder, which it makes:
//  config.json  what was asked, with the fingerprint of each case
//  curve.csv    a row per update, as they come
//  curve.svg    its picture, with every checkpoint
//  last         a checkpoint every `checkpoint_every` updates, and at the end
//  best         the one of these whose answers cost least, on average over the cases for validation, or where there are
//               none, over the cases; that takes evaluations, which count there
//  lock         held while somebody trains in the folder, and naming its process
// An interrupted run that is resumed gives the same bytes as an unbroken one (where no clock ended either).
// Throws Error where a case cannot be learned on, a test or a case for validation is among the cases, the folder is
// there already (or, to resume, is not, or is of another run), when another process trains in it, and when the loss is
// not finite: the last good checkpoint stays then. Of ranks also where their problems differ, where there are more of
// them than an update has plays, and where several would measure on one machine at once.
TrainingResult Train(const TrainingRequest& request);

// The `arguments` of the run in a folder. Throws Error where there is none.
std::vector<std::pair<std::string, std::string>> TrainingArguments(const std::string& folder);

}  // namespace berth
