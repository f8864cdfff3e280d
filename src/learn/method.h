// What one learned placer is: a policy and how it is trained. Methods are made by name, and planners and training from
// them alike.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/catalog.h"
#include "base/random.h"
#include "learn/critic.h"
#include "learn/memory.h"
#include "learn/policy.h"
#include "learn/schedule.h"
#include "learn/scoring.h"
#include "learn/update_rule.h"
#include "placement/planner.h"

namespace berth {

struct LearnerOptions {
  int64_t workers = 1;   // play side by side, on threads, each on a case of its own where there are several
  int64_t rollouts = 1;  // episodes that a worker plays at once
  // Of Adam (Kingma and Ba 2015), and the weight of the entropy bonus.
  Schedule learning_rate{.first = 1e-3, .last = 1e-3}, entropy{.shape = Schedule::Shape::kGeometric};
  Staircase decay{};     // of the learning rate, beside its schedule
  double clip_norm = 0;  // of the gradient over all parameters; 0: none
  // Updates after which the policy begins anew where there is one graph to learn on; 0: never.
  int64_t restart_every = 0;

  // An untrained twin does not.
  bool learns() const { return learning_rate.first != 0 || learning_rate.last != 0; }
};

struct Method {
  std::string name{};  // canonical
  std::function<std::shared_ptr<Policy>(const Problem&, const Random&)> make_policy{};
  // Why it cannot place this problem; empty when it can.
  std::function<std::optional<std::string>(const Problem&)> refuses{};
  // A critic of a task that the policy has prepared; null: the method has none.
  std::function<std::unique_ptr<Critic>(const Task&)> make_critic{};
  int64_t imagined = 0;  // gradient steps on the critic alone, after each update
  RuleOptions rule{};
  MemoryOptions memory{};
  ScoringOptions scoring{};
  LearnerOptions learner{};
  int64_t default_evaluations = 2000;  // where no budget is given
  bool seeded = false;                 // scores every single device first
  bool gives_priorities = false;       // its plans say which op of a device runs first
  std::string checkpoint{};            // a file of Learner::Save to begin with; empty: begin anew
  bool train = true;                   // false: one greedy episode of the policy as it is
};

// Why a method cannot learn on a problem with this evaluator's scores; empty when it can.
std::optional<std::string> WhyNot(const Method& method, const Problem& problem, const Evaluator& evaluator);

// A planner that trains a method on the problem that it is given, within its budget.
std::unique_ptr<Planner> MakeLearnedPlanner(Method method);

// Learned placers by name.
struct MethodCatalog : Catalog<Method()> {
  MethodCatalog() : Catalog("learned planner") {}
};

// Each learned placer there is: a function of its own, which RegisterMethods calls.
void RegisterGdp(MethodCatalog& catalog);
void RegisterHdp(MethodCatalog& catalog);
void RegisterHsdag(MethodCatalog& catalog);
void RegisterPlaceto(MethodCatalog& catalog);
void RegisterRnn(MethodCatalog& catalog);
void RegisterTabular(MethodCatalog& catalog);

void RegisterMethods(MethodCatalog& catalog);

}  // namespace berth
