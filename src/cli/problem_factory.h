// Problems made from strings, so that whoever holds the strings (a command, a plan file, a thread) can make one of its
// own.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/catalogs.h"
#include "cli/problem_strings.h"
#include "import/import.h"
#include "placement/bound.h"
#include "placement/diagnosis.h"
#include "placement/evaluator.h"
#include "placement/plan_file.h"
#include "placement/problem.h"

namespace berth {

// Published instances bring devices, costs and a rule of their own; this names them.
inline constexpr std::string_view kOwn = "own";

// There is no plan at all: the answer to a question, thrown so that whoever asks for a problem need not ask for this.
class NoPlan : public Error {
 public:
  explicit NoPlan(Diagnosis found) : Error("{}", found.summary), diagnosis(std::move(found)) {}
  Diagnosis diagnosis;
};

// An evaluator refers to its problem; here they stay together.
struct Setup {
  ProblemStrings strings;                    // as they came out; plan files hold these
  std::shared_ptr<const Instance> instance;  // the model, for whoever makes another problem of it
  std::unique_ptr<const Problem> problem;
  std::unique_ptr<const Evaluator> evaluator;
  std::unique_ptr<const ConstraintCheck> check;
  // Where a placement that is given splits kernels: the same with LoosenKernels, for bounds. Else null.
  std::unique_ptr<const Setup> loosest = nullptr;
};

// Below the score of every plan, also of those that keep whole what a placement that is given splits.
Bound BoundOfAllPlans(const Setup& setup);

// How the model's file is read: --shape, --batch and --format, and OpenVINO for what Berth does not read itself.
ImportOptions ReadingOf(const ProblemStrings& strings);
// The model alone, with backward and update ops in training.
Instance MakeInstance(const Catalogs& catalogs, const ProblemStrings& strings);
// Throws NoPlan when the constraints contradict one another. `known`: what MakeInstance gives for these strings, where
// somebody has it already; null: the model is read. `placement`: kernels that it puts on several devices are none, so
// that it is one of the problem's and pays for them.
Setup MakeSetup(const Catalogs& catalogs, const ProblemStrings& strings,
                std::shared_ptr<const Instance> known = nullptr, std::span<const DeviceId> placement = {});

// Throws NoPlan when it is certain that no plan fits into memory.
void CheckMemory(const Setup& setup);

// Throws Error where sizes of the model are unknown, with what would help; not where they are allowed to be.
void CheckSizes(const Setup& setup, bool allow_unknown);

// As plan files and reports have them.
std::vector<std::string> StatedConstraints(const Setup& setup);

// A plan file of `plan`, with the strings of its setup.
PlanFile MakePlanFile(const Setup& setup, const Plan& plan);

}  // namespace berth
