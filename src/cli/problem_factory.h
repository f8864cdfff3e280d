// Problems made from strings, so that whoever holds the strings (a command, a plan file, a thread) can make one of its
// own.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/catalogs.h"
#include "import/import.h"
#include "placement/diagnosis.h"
#include "placement/evaluator.h"
#include "placement/plan_file.h"
#include "placement/problem.h"

namespace berth {

// Published instances bring devices, costs and a rule of their own; this names them.
inline constexpr std::string_view kOwn = "own";

struct ProblemStrings {
  std::string model{};
  std::vector<std::string> shapes{};
  std::string batch{};
  std::string format{};
  // "own" is what the model's file brings. Empty: its own where it brings one, else a default.
  std::string cluster{};    // cpu_gpu
  std::string costs{};      // roofline(fusion=openvino)
  std::string evaluator{};  // parallel(contention=ports), or pipeline for an objective of throughput
  std::string mode{};       // inference; or training: one step of `optimizer`
  std::string optimizer{};  // sgd; empty for inference
  std::string objective{};  // latency, or throughput where the evaluator is one of steady states
  std::vector<ConstraintText> constraints{};
  // What `cluster` stood for when a plan was made: counts instead of what it stands for now. May be null.
  std::shared_ptr<const Cluster> stored_cluster{};
};

// There is no plan at all: the answer to a question, thrown so that whoever asks for a problem need not ask for this.
class NoPlan : public Error {
 public:
  explicit NoPlan(Diagnosis found) : Error("{}", found.summary), diagnosis(std::move(found)) {}
  Diagnosis diagnosis;
};

// An evaluator refers to its problem; here they stay together.
struct Setup {
  ProblemStrings strings;  // as they came out; plan files hold these
  std::unique_ptr<const Problem> problem;
  std::unique_ptr<const Evaluator> evaluator;
  std::unique_ptr<const ConstraintCheck> check;
};

// How the model's file is read: --shape, --batch and --format, and OpenVINO for what Berth does not read itself.
ImportOptions ReadingOf(const ProblemStrings& strings);
// The model alone, with backward and update ops in training.
Instance MakeInstance(const Catalogs& catalogs, const ProblemStrings& strings);
// Throws NoPlan when the constraints contradict one another. `known`: what MakeInstance gives for these strings, where
// somebody has it already. `placement`: kernels that it puts on several devices are none, so that it is one of the
// problem's and pays for them.
Setup MakeSetup(const Catalogs& catalogs, const ProblemStrings& strings, const Instance* known = nullptr,
                std::span<const DeviceId> placement = {});

// Throws NoPlan when it is certain that no plan fits into memory.
void CheckMemory(const Setup& setup);

// Throws Error where sizes of the model are unknown, with what would help; not where they are allowed to be.
void CheckSizes(const Setup& setup, bool allow_unknown);

// As plan files and reports have them.
std::vector<std::string> StatedConstraints(const Setup& setup);

// A plan file of `plan`, with the strings of its setup.
PlanFile MakePlanFile(const Setup& setup, const Plan& plan);

}  // namespace berth
