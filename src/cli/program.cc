#include "cli/program.h"

#include <fmt/format.h>

#include <csignal>
#include <new>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/launch.h"
#include "cli/problem_factory.h"
#include "report/diagnosis_page.h"
#include "report/table.h"

namespace berth {
namespace {

constexpr int kMistake = 2;

struct Run {
  const Catalogs& catalogs;
  int operator()(const TextArguments& arguments) const {
    Print(arguments.text);
    return 0;
  }
  int operator()(const InspectArguments& arguments) const { return Inspect(arguments, catalogs); }
  int operator()(const PlanArguments& arguments) const { return MakePlan(arguments, catalogs); }
  int operator()(const CompareArguments& arguments) const { return Compare(arguments, catalogs); }
  int operator()(const TrainArguments& arguments) const { return TrainPlanner(arguments, catalogs); }
  int operator()(const SimulateArguments& arguments) const { return Simulate(arguments, catalogs); }
  int operator()(const ExplainArguments& arguments) const { return ExplainPlan(arguments, catalogs); }
  int operator()(const CheckArguments& arguments) const { return Check(arguments, catalogs); }
  int operator()(const ExportArguments& arguments) const { return ExportPlan(arguments, catalogs); }
  int operator()(const RunArguments& arguments) const { return RunPlan(arguments, catalogs); }
  int operator()(const ProfileArguments& arguments) const { return MakeProfile(arguments, catalogs); }
  int operator()(const CalibrateArguments& arguments) const { return Calibrate(arguments, catalogs); }
  int operator()(const TuneArguments& arguments) const { return Tune(arguments, catalogs); }
  int operator()(const DetectArguments& arguments) const { return DetectCluster(arguments); }
  int operator()(const ClusterArguments& arguments) const { return ShowCluster(arguments, catalogs); }
  int operator()(const ListArguments& arguments) const { return ListCatalog(arguments, catalogs); }
  int operator()(const DemoArguments&) const { return Demo(catalogs); }
};

// 1, as for a plan that does not fit.
int ShowNoPlan(const Diagnosis& diagnosis, const Arguments& arguments) {
  const bool json = std::visit(
      [](const auto& command) {
        if constexpr (requires { command.json; }) return command.json;
        return false;
      },
      arguments);
  if (!json) {
    Print(DiagnosisPage(diagnosis));
    return 1;
  }
  Json answer = DiagnosisJson(diagnosis);
  if (std::holds_alternative<CheckArguments>(arguments)) answer["passed"] = false;
  Print(DumpJson(answer));
  return 1;
}

// Throws Error.
int RunCommand(const Arguments& arguments) {
  const Catalogs catalogs;
  try {
    return std::visit(Run{catalogs}, arguments);
  } catch (const NoPlan& no_plan) {
    return ShowNoPlan(no_plan.diagnosis, arguments);
  }
}

}  // namespace

int RunProgram(int argc, const char* const* argv) {
  std::signal(SIGCHLD, SIG_DFL);  // where whoever started this ignores it, no child tells how it ended
  SetPageWidth(OutputWidth());
  const Launch launch = ThisLaunch();
  try {
    const Arguments arguments = ParseArguments(argc, argv);
    CheckLaunch(launch, std::holds_alternative<TrainArguments>(arguments));
    return RunCommand(arguments);
  } catch (const Error& error) {
    // What all processes of a launch would say is said once, by rank 0 and its exit code: launchers kill what is left
    // when one ends with another code than 0. Of mistakes of one rank alone, Together tells rank 0.
    if (launch.rank != 0) return 0;
    PrintError(fmt::format("berth: {}\n", Legible(error.what())));
  } catch (const std::bad_alloc&) {
    PrintError("berth: this problem does not fit into this computer's memory; try a smaller model or fewer devices\n");
  } catch (const std::exception& exception) {
    // As where a part of the installation is of another version.
    PrintError(fmt::format("berth: stopped by what should not happen: {}; please report it with the command\n",
                           Legible(exception.what())));
  }
  return kMistake;
}

}  // namespace berth
