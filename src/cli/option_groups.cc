#include "cli/option_groups.h"

#include "placement/constraint_file.h"

namespace berth {

void AddModelOptions(CLI::App& command, std::vector<std::string>& shapes, std::string& batch,
                     const std::string& model_help) {
  command
      .add_option("--shape", shapes, "Shape of a model's input, like input=32,3,224,224 (may be repeated)" + model_help)
      ->allow_extra_args(false)
      ->type_name("NAME=SIZES");
  command.add_option("--batch", batch, "Size of the batch, in every input whose batch axis is plain" + model_help)
      ->type_name("N");
}

void AddAllowUnknown(CLI::App& command, bool& allow) {
  command.add_flag("--allow-unknown-shapes", allow,
                   "Go on where sizes of the model are unknown: guesses take their place, and no bound is claimed");
}

void AddReading(CLI::App& command, ProblemStrings& strings) {
  AddModelOptions(command, strings.shapes, strings.batch, "");
  command.add_option("--format", strings.format, "Format of the model's file, where its content does not show it")
      ->type_name("NAME");
  command
      .add_option("--mode", strings.mode, "inference or training: one step, backward and update (default: inference)")
      ->type_name("MODE");
  command.add_option("--optimizer", strings.optimizer, "Optimizer of training: sgd, momentum or adam (default: sgd)")
      ->type_name("NAME");
}

void AddModel(CLI::App& command, ProblemStrings& strings) {
  command
      .add_option("model", strings.model,
                  "A file (ONNX, OpenVINO's IR, TensorFlow, ...), a model that ships, or a formula: berth list models")
      ->required()
      ->type_name("MODEL");
  AddReading(command, strings);
}

void AddObjective(CLI::App& command, std::string& objective) {
  command
      .add_option("--objective", objective,
                  "What planners minimise: berth list objectives (default: latency, or throughput under pipeline)")
      ->type_name("OBJECTIVE");
}

void AddConstraints(CLI::App& command, ConstraintArguments& arguments, const std::string& instead) {
  struct Help {
    std::string_view type, text;
  };
  constexpr std::array<Help, kConstraintNames.size()> kHelp = {{
      {"OPS=DEVICES", "Ops that must be on one of these devices"},
      {"OPS=DEVICES", "Ops that must not be on any of these devices"},
      {"OPS", "Ops that must share a device"},
      {"OPS,OPS", "Ops that must not share a device with those of another pattern"},
      {"DEVICE=BYTES", "How much of a device's memory a plan may use"},
      {"[DEVICE=]SHARE", "How much of the memory a plan must leave free, like 10%"},
      {"TENSORS=FROM>TO", "Tensors that must not be sent over this link"},
  }};
  for (size_t kind = 0; kind < kConstraintNames.size(); ++kind) {
    command
        .add_option(fmt::format("--{}", kConstraintNames[kind]), arguments.stated[kind], std::string(kHelp[kind].text))
        ->allow_extra_args(false)
        ->group("Constraints (may be repeated; docs/constraints.md)" + instead)
        ->type_name(std::string(kHelp[kind].type));
  }
  command.add_option("--constraints", arguments.files, "A file of constraints")
      ->allow_extra_args(false)
      ->group("Constraints (may be repeated; docs/constraints.md)" + instead)
      ->type_name("FILE");
}

void AddMachines(CLI::App& command, ProblemStrings& strings) {
  command
      .add_option(
          "--cluster", strings.cluster,
          "A preset or a device file: berth cluster list (default: cpu_gpu, or what the model's file describes)")
      ->type_name("CLUSTER");
  command
      .add_option("--costs", strings.costs,
                  "Where op times come from: berth list costs (default: roofline, or what the model's file says)")
      ->type_name("COSTS");
  command
      .add_option(
          "--evaluator", strings.evaluator,
          "The execution model: berth list evaluators (default: parallel(contention=ports), or the data set's own)")
      ->type_name("EVALUATOR");
  AddObjective(command, strings.objective);
}

void AddProblem(CLI::App& command, ProblemArguments& arguments) {
  AddModel(command, arguments.strings);
  AddMachines(command, arguments.strings);
  AddAllowUnknown(command, arguments.allow_unknown_shapes);
  AddConstraints(command, arguments.constraints, "");
}

SearchArguments SearchTexts::Parsed() const {
  SearchArguments search{.budget = Budget::Parse(budget), .seed = ParseCount("--seed", seed, 0)};
  if (memory_limit.empty()) return search;
  try {
    search.memory_limit = ParseBytes(memory_limit);
    if (search.memory_limit->value == 0)
      throw Error("'{}' is no memory to work with; give some, like 8GiB", memory_limit);
  } catch (const Error& error) {
    throw Error("--memory-limit: {}", error.what());
  }
  return search;
}

void AddSearch(CLI::App& command, SearchTexts& texts) {
  command.add_option("--budget", texts.budget, "When a planner stops: evaluations, seconds, or both")
      ->capture_default_str()
      ->type_name("BUDGET");
  command
      .add_option("--seed", texts.seed,
                  "Seed of the random numbers: the same seed and a budget in evaluations give the same plan")
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option("--memory-limit", texts.memory_limit,
                  "Memory that Berth itself may take, like 8GiB: beyond, the search ends with the best plan it has")
      ->type_name("BYTES");
}

void AddTraining(CLI::App& command, TrainArguments& train) {
  command.add_option("--planner", train.planner, "The planner to train, like placeto(rounds=4): berth list planners")
      ->type_name("PLANNER");
  command
      .add_option("--on", train.problem.strings.model,
                  "Models to train on, separated by commas; family(name=enas_conv) names many: berth list models")
      ->type_name("MODELS");
  command
      .add_option("--validate", train.validation,
                  "Models that the policy does not learn from: the checkpoint that answers them best is kept (default: "
                  "the one that answers best what it is trained on)")
      ->type_name("MODELS");
  command.add_option("--test", train.tests, "Models to test the trained policy on")->type_name("MODELS");
  AddReading(command, train.problem.strings);
  AddMachines(command, train.problem.strings);
  AddAllowUnknown(command, train.problem.allow_unknown_shapes);
  command
      .add_option("--budget", train.budget,
                  "When training stops: evaluations over all models, seconds, or both (default: the planner's own)")
      ->type_name("BUDGET");
  command.add_option("--updates", train.updates, "When training stops: updates of the policy")->type_name("N");
  command.add_option("--seed", train.seed, "Seed of the random numbers (default: 1)")->type_name("N");
  command.add_option("-o,--out", train.output, "The folder of this run, which is made: curve, checkpoints, results")
      ->required()
      ->type_name("FOLDER");
  command.add_option("--checkpoint-every", train.checkpoint_every, "Updates between checkpoints (default: 10)")
      ->type_name("N");
  command.add_flag("--resume", train.resume, "Continue an interrupted run, with the options that it was begun with");
  command
      .add_option("--threads", train.threads,
                  "How many threads to use (default: as many as this process may); results do not depend on it")
      ->type_name("N");
}

void AddOverrides(CLI::App& command, PlanOverrides& overrides) {
  AddModelOptions(command, overrides.shapes, overrides.batch, "; instead of the plan's");
  command.add_option("--format", overrides.format, "The model file's format, instead of the plan's")->type_name("NAME");
  command.add_option("--cluster", overrides.cluster, "Another cluster instead of the plan's: what if?")
      ->type_name("CLUSTER");
  command.add_option("--costs", overrides.costs, "Other op times instead of the plan's: what if?")->type_name("COSTS");
  command.add_option("--evaluator", overrides.evaluator, "Another execution model instead of the plan's: what if?")
      ->type_name("EVALUATOR");
  command.add_option("--mode", overrides.mode, "inference or training, instead of the plan's")->type_name("MODE");
  command.add_option("--optimizer", overrides.optimizer, "Optimizer of training, instead of the plan's")
      ->type_name("NAME");
  command.add_option("--objective", overrides.objective, "What is minimised, instead of the plan's")
      ->type_name("OBJECTIVE");
  AddConstraints(command, overrides.constraints, ", instead of all of the plan's");
}

void AddPlanOrPlacement(CLI::App& command, const std::string& plan_help, std::string& plan, std::string& placement,
                        std::optional<std::string>& model) {
  CLI::Option* const plan_option = command.add_option("plan", plan, plan_help)->type_name("PLAN");
  command
      .add_option("--placement", placement,
                  "Instead of a plan: a device per op in the file's order, 0,1,1,... or @file (with --model)")
      ->excludes(plan_option)
      ->type_name("LIST");
  command.add_option("--model", model, "The model, where it is not the one that the plan names")->type_name("MODEL");
}

void AddLimits(CLI::App& command, CheckArguments& check) {
  command.add_option("--max-latency", check.latency, "The time of a run, or per sample under pipeline, like 5ms")
      ->type_name("TIME");
  command
      .add_option("--max-memory", check.memory,
                  "A device's peak memory, like gpu0=4GiB, or 4GiB for each (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("DEVICE=BYTES");
  command.add_option("--max-transfers", check.transfers, "How many tensors are sent, like 6")->type_name("N");
  command.add_option("--max-energy", check.energy, "The energy of a run, like 2J")->type_name("JOULES");
  command
      .add_option("--max-gap", check.gap,
                  "How far the objective is above its lower bound, as a share of that bound, like 5%")
      ->type_name("SHARE");
}

void AddLimit(CLI::App& command, std::string& limit) {
  command
      .add_option(
          "--limit", limit,
          "What is compiled and run in turns together fails where that takes longer, like 60s (default: half an "
          "hour, and ten times what the runs are predicted to take)")
      ->type_name("SECONDS");
}

void AddJson(CLI::App& command, bool& json) { command.add_flag("--json", json, "Print JSON, for machines"); }

}  // namespace berth
