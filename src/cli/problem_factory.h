// Problems made from strings, so that whoever holds the strings (a command, a plan file, a thread) can make one of its
// own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/catalogs.h"
#include "placement/evaluator.h"
#include "placement/plan_file.h"
#include "placement/problem.h"

namespace berth {

struct ProblemStrings {
  std::string model;
  std::vector<std::string> shapes;
  std::string format;
  std::string cluster;
  std::string costs;
  std::string evaluator;
};

// An evaluator refers to its problem; here they stay together.
struct Setup {
  ProblemStrings strings;
  std::unique_ptr<const Problem> problem;
  std::unique_ptr<const Evaluator> evaluator;
};

Graph MakeGraph(const Catalogs& catalogs, const std::string& model, const std::vector<std::string>& shapes,
                const std::string& format);
Setup MakeSetup(const Catalogs& catalogs, const ProblemStrings& strings);

// A plan file of `plan`, with the strings of its setup.
PlanFile MakePlanFile(const Setup& setup, const Plan& plan);

}  // namespace berth
