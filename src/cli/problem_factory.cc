#include "cli/problem_factory.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "cli/arguments.h"
#include "cli/openvino_reading.h"
#include "import/training.h"
#include "placement/costs.h"
#include "report/notes.h"

namespace berth {
namespace {

constexpr std::string_view kDefaultEvaluator = "parallel(contention=ports)";

Optimizer ParseOptimizer(const std::string& name) {
  const auto found = std::ranges::find(kOptimizerNames, name);
  if (found == kOptimizerNames.end()) {
    ThrowUnknownName("optimizer", name, {kOptimizerNames.begin(), kOptimizerNames.end()});
  }
  return static_cast<Optimizer>(found - kOptimizerNames.begin());
}

// Mode and optimizer as they are meant, or an Error.
void CompleteMode(ProblemStrings& strings) {
  if (strings.mode.empty()) strings.mode = "inference";
  if (strings.mode != "inference" && strings.mode != "training") {
    ThrowUnknownName("mode", strings.mode, {"inference", "training"});
  }
  if (strings.mode == "inference" && !strings.optimizer.empty()) {
    throw Error("--optimizer {}: only training has an optimizer; add --mode training", strings.optimizer);
  }
  if (strings.mode == "training" && strings.optimizer.empty()) strings.optimizer = kOptimizerNames.front();
}

// The data set's own rule where it answers what is asked: `pipeline` gives no latency and nothing else a throughput.
// The data sets with staging costs have a rule for latency too (`pieces`).
std::string DefaultEvaluator(const Instance& instance, const Problem& problem,
                             const std::optional<ObjectiveRequest>& objective) {
  if (objective && objective->throughput > 0) return "pipeline";
  const bool steady = instance.evaluator.starts_with("pipeline");
  if (steady && objective && objective->latency > 0)
    return problem.has_staging() ? "pieces" : std::string(kDefaultEvaluator);
  return instance.evaluator.empty() ? std::string(kDefaultEvaluator) : instance.evaluator;
}

// Published simulators have ops as they are published.
std::string DefaultCosts(const Instance& instance, const ProblemStrings& strings) {
  const bool published = !instance.evaluator.empty() || strings.evaluator.starts_with("placeto");
  return published ? "roofline(fusion=none)" : "roofline";
}

// The problem with the constraints of setup.strings.
void Constrain(Setup& setup, std::shared_ptr<const Graph> graph, std::shared_ptr<const Cluster> cluster, OpTimes times,
               Problem::Options options) {
  std::vector<Constraint> constraints = ResolveConstraints(setup.strings.constraints, *graph, *cluster, options);
  setup.check = std::make_unique<const ConstraintCheck>(graph, cluster, times, options, constraints);
  if (auto diagnosis = setup.check->Diagnose("none")) throw NoPlan(std::move(*diagnosis));
  ApplyConstraints(constraints, *graph, *cluster, times, options);
  setup.problem =
      std::make_unique<const Problem>(std::move(graph), std::move(cluster), std::move(times), std::move(options));
}

}  // namespace

ImportOptions ReadingOf(const ProblemStrings& strings) {
  static const OpenVinoReading other;
  ImportOptions options{.format = strings.format, .other = &other};
  for (const std::string& shape : strings.shapes) ParseShape(shape, options);
  if (!strings.batch.empty()) {
    options.batch = static_cast<int64_t>(std::min<uint64_t>(ParseCount("--batch", strings.batch, 1), INT64_MAX));
  }
  return options;
}

Instance MakeInstance(const Catalogs& catalogs, const ProblemStrings& strings) {
  ProblemStrings complete = strings;
  CompleteMode(complete);
  const bool training = complete.mode == "training";
  const Optimizer optimizer = training ? ParseOptimizer(complete.optimizer) : Optimizer::kSgd;
  if (const std::string name = strings.model.substr(0, strings.model.find('(')); catalogs.families.Find(name)) {
    throw Error("{}: {} is a list of many models, for `berth train --on`; name one of them, like {}", strings.model,
                name, catalogs.families.Make(strings.model).front());
  }
  ImportOptions options = ReadingOf(strings);
  options.sets = catalogs.families.Names();
  Instance instance = ReadInstance(strings.model, catalogs.models, options);
  if (!training) return instance;
  if (instance.times || !instance.times_by_kind.empty()) {
    throw Error("{}: the file gives costs for inference ops only; --mode training works where Berth predicts the costs",
                strings.model);
  }
  TrainingGraph step = MakeTrainingGraph(*instance.graph, optimizer);
  if (step.graph.num_ops() == instance.graph->num_ops()) {
    throw Error(
        "{}: no gradient flows from any of its results, so that there is no training step; Berth's JSON marks "
        "results with \"result\": true, and an OpenVINO IR has them where it is read with view=folded",
        strings.model);
  }
  instance.graph = std::make_shared<const Graph>(std::move(step.graph));
  instance.options.constraints.colocate = std::move(step.colocate);
  return instance;
}

Setup MakeSetup(const Catalogs& catalogs, const ProblemStrings& strings, std::shared_ptr<const Instance> known,
                std::span<const DeviceId> placement) {
  const bool names_cluster = !strings.cluster.empty() && strings.cluster != kOwn;
  std::shared_ptr<const Cluster> cluster;
  // First what is quick to be wrong about.
  if (names_cluster) {
    cluster = strings.stored_cluster ? strings.stored_cluster
                                     : std::make_shared<const Cluster>(ReadCluster(strings.cluster, catalogs.clusters));
  }
  std::optional<ObjectiveRequest> objective;
  if (!strings.objective.empty()) objective = catalogs.objectives.Make(strings.objective);
  if (known == nullptr) known = std::make_shared<const Instance>(MakeInstance(catalogs, strings));
  const Instance& instance = *known;

  Setup setup{.strings = strings, .instance = known, .problem = nullptr, .evaluator = nullptr, .check = nullptr};
  CompleteMode(setup.strings);
  if (!names_cluster) {
    if (strings.cluster == kOwn && !instance.cluster)
      throw Error("{}: describes no cluster of its own; name one with --cluster", strings.model);
    // Placeto's costs are those of its simulator's machine.
    setup.strings.cluster = instance.cluster ? kOwn : instance.evaluator == "placeto" ? "placeto" : "cpu_gpu";
    cluster = instance.cluster ? instance.cluster
                               : std::make_shared<const Cluster>(ReadCluster(setup.strings.cluster, catalogs.clusters));
  }
  const bool own_cluster = setup.strings.cluster == kOwn;
  const bool has_times = own_cluster ? instance.times.has_value() : !instance.times_by_kind.empty();
  if (strings.costs.empty() && !has_times && instance.times) {
    throw Error(
        "{}: its costs are for its own devices; leave --cluster out, or say with --costs where others come from",
        strings.model);
  }
  if (strings.costs == kOwn && !has_times)
    throw Error("{}: has no costs of its own for this cluster; name others with --costs", strings.model);
  if (strings.costs.empty()) setup.strings.costs = has_times ? std::string(kOwn) : DefaultCosts(instance, strings);
  OpTimes times;
  std::optional<OpTimes> loosest;
  Problem::Options options;
  if (setup.strings.costs == kOwn) {
    times = own_cluster ? *instance.times : instance.TimesOn(*cluster);
    options = instance.options;
  } else {
    times = catalogs.costs.MakeTimes(setup.strings.costs, *instance.graph, *cluster);
    setup.strings.costs = times.source;
    if (placement.size() == instance.graph->num_ops()) {
      loosest = times;
      SplitKernels(placement, cluster->num_devices(), times);
      if (times.kernels.size() == loosest->kernels.size()) loosest.reset();
    }
    options.constraints = instance.options.constraints;
  }
  Constrain(setup, instance.graph, cluster, std::move(times), options);
  if (strings.evaluator.empty()) setup.strings.evaluator = DefaultEvaluator(instance, *setup.problem, objective);
  const auto add_evaluator = [&](Setup& to) {
    to.evaluator = catalogs.evaluators.Make(setup.strings.evaluator, *to.problem, ModelFile(strings.model));
    if (objective) to.evaluator = WithObjective(std::move(to.evaluator), *objective);
  };
  add_evaluator(setup);
  if (loosest) {
    LoosenKernels(cluster->num_devices(), *loosest);
    auto other = std::make_unique<Setup>();
    other->strings = setup.strings;
    Constrain(*other, instance.graph, cluster, std::move(*loosest), options);
    add_evaluator(*other);
    setup.loosest = std::move(other);
  }
  setup.strings.objective = setup.evaluator->facts().objective.name;
  setup.strings.evaluator = setup.evaluator->name();
  return setup;
}

Bound BoundOfAllPlans(const Setup& setup) {
  return LowerBound(setup.loosest ? *setup.loosest->evaluator : *setup.evaluator);
}

void CheckMemory(const Setup& setup) {
  if (auto diagnosis = setup.check->Diagnose(MemoryRule(setup.evaluator->facts()))) throw NoPlan(std::move(*diagnosis));
}

void CheckSizes(const Setup& setup, bool allow_unknown) {
  const Graph& graph = setup.problem->graph();
  const auto unknown = FindDoubtful(graph, Certainty::kUnknown);
  if (!unknown || allow_unknown) return;
  const std::string what =
      fmt::format("{}: the sizes of {} are unknown", setup.strings.model, DescribeDoubtful(graph, *unknown));
  constexpr std::string_view kElse = "or let guesses take their place with --allow-unknown-shapes";
  for (const InputId input : graph.inputs()) {
    if (!std::ranges::binary_search(graph.input_consumers(input), unknown->first)) continue;
    const auto shape = graph.input_shape(input);
    // Of one number, like how often a loop runs, it is the value that is not known.
    constexpr int64_t kBytesOfANumber = 8;
    if (shape.empty() && graph.input_bytes(input) > 0 && graph.input_bytes(input) <= kBytesOfANumber) continue;
    // The first axis is the batch; of the others a size that is left open counts as 1.
    if (!shape.empty() && std::ranges::count(shape.subspan(1), 1) == 0) continue;
    // A 1 that is copied from here would be the guess once more.
    std::vector<std::string> sizes;
    for (const int64_t size : shape) sizes.push_back(size == 1 && !sizes.empty() ? "?" : fmt::to_string(size));
    throw Error("{}, from input '{}' on; say its sizes with --shape {}={}, {}", what, graph.input_name(input),
                graph.input_name(input),
                sizes.empty() ? "1,3,224,224" : fmt::format("{} (a number for each ?)", fmt::join(sizes, ",")), kElse);
  }
  throw Error(
      "{}, from op '{}' ({}) on, and `berth inspect` says why; export the model with the shapes of its tensors, {}",
      what, graph.op_name(unknown->first), graph.op_type(unknown->first), kElse);
}

std::vector<std::string> StatedConstraints(const Setup& setup) {
  std::vector<std::string> texts;
  for (const ConstraintText& constraint : setup.strings.constraints) texts.push_back(constraint.ToString());
  return texts;
}

PlanFile MakePlanFile(const Setup& setup, const Plan& plan) {
  PlanFile file = MakePlanFile(*setup.problem, plan);
  file.model = setup.strings.model;
  file.shapes = setup.strings.shapes;
  file.batch = setup.strings.batch;
  file.format = setup.strings.format;
  file.cluster = setup.strings.cluster;
  if (file.cluster != kOwn) file.device_file = WriteCluster(setup.problem->cluster());
  file.costs = setup.strings.costs;
  file.constraints = StatedConstraints(setup);
  file.evaluator = setup.strings.evaluator;
  file.mode = setup.strings.mode;
  file.optimizer = setup.strings.optimizer;
  file.objective = setup.strings.objective;
  return file;
}

}  // namespace berth
