#include "cli/saved_plan.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <ranges>

#include "base/file.h"
#include "cli/console.h"
#include "exec/cut_fit.h"
#include "import/split_file.h"
#include "placement/placement_list.h"

namespace berth {
namespace {

// Files that a plan names by a relative path are looked for from here, then from where the plan lies, then by
// their bare names beside the plan.
std::string Located(const std::string& name, const std::string& plan_path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (name.empty() || fs::exists(name, ignored)) return name;
  const fs::path folder = fs::path(plan_path).parent_path();
  for (const fs::path& other : {folder / name, folder / fs::path(name).filename()}) {
    if (fs::is_regular_file(other, ignored)) return other.string();
  }
  return name;
}

// The same of the files with op times that a cost model names.
std::string LocatedCosts(std::string costs, const std::string& plan_path) {
  const std::vector<FileInCosts> files = FilesInCosts(costs);
  for (const FileInCosts& file : std::views::reverse(files)) {
    const std::string located = Located(file.name, plan_path);
    if (located == file.name || located.find('"') != located.npos) continue;
    costs.replace(file.at, file.size, fmt::format("\"{}\"", located));
  }
  return costs;
}

// Puts what is given in the place of what `strings` say.
void Replace(ProblemStrings& strings, const PlanOverrides& given) {
  const auto put = [](std::string& text, const std::optional<std::string>& other) {
    if (other) text = *other;
  };
  put(strings.model, given.model);
  put(strings.format, given.format);
  put(strings.mode, given.mode);
  put(strings.optimizer, given.optimizer);
  put(strings.cluster, given.cluster);
  put(strings.costs, given.costs);
  put(strings.evaluator, given.evaluator);
  put(strings.objective, given.objective);
  if (!given.shapes.empty()) strings.shapes = given.shapes;
  if (!given.batch.empty()) strings.batch = given.batch;
  if (auto constraints = TextsOf(given.constraints); !constraints.empty()) strings.constraints = std::move(constraints);
}

// The problem of a plan that names none itself.
ProblemStrings StringsOf(const PlanOverrides& given) {
  ProblemStrings strings;
  Replace(strings, given);
  return strings;
}

// The machines that the plan holds; null where it holds none.
std::shared_ptr<const Cluster> StoredCluster(const PlanFile& file) {
  if (file.device_file.empty()) return nullptr;
  return std::make_shared<const Cluster>(
      ParseCluster(file.device_file, fmt::format("{}: cluster.device_file", file.path)));
}

// Warns where the name of the plan's cluster stands for something else by now, which then does not count.
void WarnOfChange(const PlanFile& file, const std::string& name, const Cluster& stored, const Catalogs& catalogs) {
  try {
    const Cluster now = ReadCluster(name, catalogs.clusters);
    if (now.fingerprint() == stored.fingerprint()) return;
    // What cuts cost, `tune` has corrected for its plan alone.
    const auto uncorrected = [](const Cluster& cluster) { return WithCutCosts(cluster, {}, "").fingerprint(); };
    if (file.planner == "tune" && uncorrected(now) == uncorrected(stored)) return;
  } catch (const Error&) {
    std::error_code ignored;
    if (!std::filesystem::exists(name, ignored)) return;
  }
  Warn(
      fmt::format("{} has changed since {} was made for it, which holds the machines as they were: these count; "
                  "--cluster {} is a what-if on the others",
                  name, file.path, ShellWord(name)));
}

// Throws for a plan that `setup` does not allow.
void CheckPlan(const Setup& setup, const std::string& path, const Plan& plan) {
  const auto violation = FindViolation(*setup.problem, plan.view());
  if (!violation) return;
  if (auto broken = setup.check->Broken(plan.device); !broken.empty()) throw BrokenPlan(path, std::move(broken));
  throw Error("{}: {}", path, *violation);
}

// Whether a plan puts the ops of a kernel on several devices, which it says.
bool SplitsKernels(const Problem& problem, const std::string& path, std::span<const DeviceId> device) {
  const auto split = std::ranges::count_if(problem.kernels(), [&](const Kernel& kernel) {
    const auto away = [&](OpId op) { return device[Index(op)] != device[Index(kernel.ops.front())]; };
    return std::ranges::any_of(kernel.ops, away);
  });
  if (split > 0) Warn(fmt::format("{} parts {}: their ops are timed apart", path, Counted(split, "kernel")));
  return split > 0;
}

SavedPlan Simulated(Setup setup, const std::string& path, Plan plan) {
  CheckPlan(setup, path, plan);
  PlanReport report =
      MakePlanReport(*setup.evaluator, "given", PlanResult{.plan = std::move(plan)}, BoundOfAllPlans(setup));
  report.result.evaluations = 1;
  report.constraints = StatedConstraints(setup);
  return {.setup = std::move(setup), .report = std::move(report)};
}

// The execution model that a plan was made under. Plans say where inputs start (io=...); one that does not was made
// when they were everywhere by default.
std::string EvaluatorOf(const PlanFile& file) {
  const Spec spec = Spec::Parse(file.evaluator);
  const bool says = std::ranges::any_of(spec.parameters, [](const auto& parameter) { return parameter.first == "io"; });
  if ((spec.name != "parallel" && spec.name != "serial") || says) return file.evaluator;
  if (spec.parameters.empty()) return spec.name + "(io=everywhere)";
  return file.evaluator.substr(0, file.evaluator.rfind(')')) + ",io=everywhere)";
}

// Warns where a plan of this problem does not take what its file says.
bool IsAsItSays(const PlanFile& file, const Setup& setup, const Plan& plan) {
  const Score score = setup.evaluator->ScorePlan(plan.view(), *setup.evaluator->NewWorkspace());
  const double seconds = setup.problem->ToSeconds(score.time).value;
  constexpr double kRounding = 1e-9;
  if (score.failed() || std::abs(seconds - file.score_seconds) <= kRounding * seconds) return true;
  Warn(
      fmt::format("{} says that it takes {:.9g} s, but it takes {:.9g} s: it was edited, or made by other means; what "
                  "it says of bounds and proofs is not believed, and `berth plan` makes it anew",
                  file.path, file.score_seconds, seconds));
  return false;
}

// The costs that a plan was made with. Plans say what is fused; one that does not was made when nothing was.
std::string CostsOf(const PlanFile& file) { return file.costs == "roofline" ? "roofline(fusion=none)" : file.costs; }

// The problem of a plan file, with what replaces it; the evaluator is left to EvaluatorOf where none is given.
ProblemStrings StringsOf(const PlanFile& file, const PlanOverrides& given) {
  ProblemStrings strings = {.model = Located(file.model, file.path),
                            .shapes = file.shapes,
                            .batch = file.batch,
                            .format = file.format,
                            .cluster = Located(file.cluster, file.path),
                            .costs = LocatedCosts(CostsOf(file), file.path),
                            .mode = file.mode,
                            .optimizer = file.optimizer,
                            .objective = file.objective};
  // A plan keeps its objective, unless it is the time itself and another execution model was asked for, whose time may
  // be another.
  if (given.evaluator && (file.objective == "latency" || file.objective == "throughput")) strings.objective.clear();
  if (!given.cluster) strings.stored_cluster = StoredCluster(file);
  Replace(strings, given);
  if (strings.mode != "training" && !given.optimizer) strings.optimizer.clear();
  if (!strings.constraints.empty()) return strings;
  for (const std::string& text : file.constraints) {
    strings.constraints.push_back(ParseConstraint(text, fmt::format("{}: constraints", file.path)));
  }
  return strings;
}

SavedPlan OpenSplit(std::string_view content, const std::string& path, const PlanOverrides& overrides,
                    const Catalogs& catalogs) {
  if (!overrides.model) {
    throw Error(
        "{0}: a split does not name its model: give its instance, as in `berth check {1} --model INSTANCE` or `berth "
        "simulate INSTANCE --plan {1}`",
        path, ShellWord(path));
  }
  ProblemStrings strings = StringsOf(overrides);
  // Splits that were made for latency say so.
  if (strings.evaluator.empty() && content.find("\"totalLatency\"") != content.npos) strings.evaluator = "pieces";
  Setup setup = MakeSetup(catalogs, strings);
  Plan plan = ReadSplit(content, path, *setup.instance);
  if (setup.strings.cluster != kOwn) {
    throw Error("{}: a split uses the devices of its instance; leave --cluster out", path);
  }
  return Simulated(std::move(setup), path, std::move(plan));
}

// The simulator of what ran a plan that was made by measuring; nothing where it was made by a simulator.
std::optional<std::string> SimulatorOf(const std::string& path) {
  const std::string content = ReadFile(path, kPlanKind);
  if (LooksLikeSplit(content)) return std::nullopt;
  const std::string evaluator = ParsePlanFile(content, path).evaluator;
  if (evaluator.find("openvino_parallel") != std::string::npos) return "parts";
  if (evaluator.find("openvino") != std::string::npos) return "serial";
  return std::nullopt;
}

}  // namespace

BrokenPlan::BrokenPlan(const std::string& path, Broken how)
    : Error("{}: breaks constraint `{}`: {}{}; `berth plan` makes a plan that keeps it", path,
            how.front().first.ToString(), how.front().second,
            how.size() > 1 ? fmt::format("; it breaks {} more", how.size() - 1) : ""),
      broken(std::move(how)) {}

SavedPlan OpenPlacement(const std::string& placement, const PlanOverrides& overrides, const Catalogs& catalogs) {
  const ProblemStrings strings = StringsOf(overrides);
  Setup setup = MakeSetup(catalogs, strings);
  const bool in_file = placement.starts_with('@');
  const std::string path = in_file ? placement.substr(1) : "--placement";
  const std::string list = in_file ? ReadFile(path, {.what = "placement"}) : placement;
  Plan plan{.device = ParsePlacementList(list, path, *setup.problem)};
  if (SplitsKernels(*setup.problem, path, plan.device))
    setup = MakeSetup(catalogs, strings, setup.instance, plan.device);
  plan.SetCause("given");
  return Simulated(std::move(setup), path, std::move(plan));
}

SavedPlan OpenPlan(const std::string& path, const PlanOverrides& overrides, const Catalogs& catalogs) {
  const std::string content = ReadFile(path, kPlanKind);
  if (LooksLikeSplit(content)) return OpenSplit(content, path, overrides, catalogs);
  const PlanFile file = ParsePlanFile(content, path);
  ProblemStrings strings = StringsOf(file, overrides);
  std::shared_ptr<const Instance> instance;
  const auto make_setup = [&](std::span<const DeviceId> placement) {
    try {
      if (!overrides.evaluator) strings.evaluator = EvaluatorOf(file);
      return MakeSetup(catalogs, strings, instance, placement);
    } catch (const NoPlan&) {
      throw;
    } catch (const Error& error) {
      if (overrides.model || overrides.cluster || overrides.costs || overrides.evaluator) throw;
      if (std::string_view(error.what()).starts_with(path)) throw;
      throw Error("{}: {}", path, error.what());
    }
  };
  Setup setup = make_setup({});
  if (strings.stored_cluster) WarnOfChange(file, strings.cluster, *strings.stored_cluster, catalogs);
  std::vector<std::string> warnings;
  const bool other_sizes = !overrides.batch.empty() || !overrides.shapes.empty();
  PlanResult result;
  result.plan = BindPlan(file, *setup.problem, warnings, other_sizes);
  if (SplitsKernels(*setup.problem, path, result.plan.device)) {
    instance = setup.instance;
    setup = make_setup(result.plan.device);
    warnings.clear();
    result.plan = BindPlan(file, *setup.problem, warnings, other_sizes);
  }
  CheckPlan(setup, path, result.plan);
  for (const std::string& warning : warnings) Warn(warning);
  if (!setup.evaluator->facts().uses_priorities && (!result.plan.priority.empty() || result.plan.sequence)) {
    result.plan.priority.clear();
    result.plan.sequence.reset();
    Warn(fmt::format("{} ignores the plan's order of ops", setup.evaluator->name()));
  }
  bool is_same = warnings.empty() && setup.evaluator->name() == EvaluatorOf(file);
  if (is_same && setup.evaluator->facts().deterministic) is_same = IsAsItSays(file, setup, result.plan);
  result.optimal = is_same && file.optimal && setup.strings.objective == file.objective;
  if (result.optimal && setup.evaluator->facts().objective.is_time() && file.lower_bound_seconds > 0) {
    // Of the same problem, as the fingerprints say.
    result.bound = ProvenBound{.value = file.lower_bound_seconds / setup.problem->seconds_per_unit(),
                               .problem = setup.problem->fingerprint(),
                               .evaluator = setup.evaluator->name(),
                               .objective = setup.evaluator->facts().objective.name};
  }
  PlanReport report = MakePlanReport(*setup.evaluator, file.planner, std::move(result), BoundOfAllPlans(setup));
  report.result.evaluations = 1;
  report.seed = file.seed;
  report.ended = file.ended;
  report.constraints = StatedConstraints(setup);
  return {.setup = std::move(setup), .report = std::move(report)};
}

SavedPlan OpenToSimulate(const std::string& path, PlanOverrides overrides, const Catalogs& catalogs) {
  if (!overrides.evaluator) overrides.evaluator = SimulatorOf(path);
  return OpenPlan(path, overrides, catalogs);
}

}  // namespace berth
