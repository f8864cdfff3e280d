// Options that several commands share. Includes CLI11, which takes seconds to compile: for the files of arguments
// alone.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"

namespace berth {

void AddModelOptions(CLI::App& command, std::vector<std::string>& shapes, std::string& batch,
                     const std::string& model_help);
void AddAllowUnknown(CLI::App& command, bool& allow);
// How a model is read, in every command.
void AddReading(CLI::App& command, ProblemStrings& strings);
void AddModel(CLI::App& command, ProblemStrings& strings);
void AddObjective(CLI::App& command, std::string& objective);
// One option per kind of constraint, each as often as one likes.
void AddConstraints(CLI::App& command, ConstraintArguments& arguments, const std::string& instead);
void AddMachines(CLI::App& command, ProblemStrings& strings);
void AddProblem(CLI::App& command, ProblemArguments& arguments);
// Texts of a search as they are given; Parsed throws Error for what is none.
struct SearchTexts {
  std::string budget = SearchArguments{}.budget.ToString(), seed = std::to_string(SearchArguments{}.seed);
  std::string memory_limit{};
  SearchArguments Parsed() const;
};
void AddSearch(CLI::App& command, SearchTexts& texts);
void AddTraining(CLI::App& command, TrainArguments& train);
void AddOverrides(CLI::App& command, PlanOverrides& overrides);
// A plan file, or instead of it a placement; and another model.
void AddPlanOrPlacement(CLI::App& command, const std::string& plan_help, std::string& plan, std::string& placement,
                        std::optional<std::string>& model);
void AddLimits(CLI::App& command, CheckArguments& check);
void AddLimit(CLI::App& command, std::string& limit);
void AddJson(CLI::App& command, bool& json);

}  // namespace berth
