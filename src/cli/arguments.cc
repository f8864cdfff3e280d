#include "cli/arguments.h"

// The only file that includes CLI11, which takes seconds to compile.
#include <CLI/CLI.hpp>
#include <charconv>

#include "base/error.h"
#include "base/version.h"
#include "placement/constraint_file.h"

namespace berth {
namespace {

void AddModelOptions(CLI::App& command, std::vector<std::string>& shapes, std::string& batch,
                     const std::string& model_help) {
  command
      .add_option("--shape", shapes, "Shape of a model's input, like input=32,3,224,224 (may be repeated)" + model_help)
      ->allow_extra_args(false)
      ->type_name("NAME=SIZES");
  command
      .add_option("--batch", batch,
                  "Size of the batch, in every input of which it is plain which axis that is" + model_help)
      ->type_name("N");
}

void AddAllowUnknown(CLI::App& command, bool& allow) {
  command.add_flag("--allow-unknown-shapes", allow,
                   "Go on where sizes of the model are unknown: guesses take their place, and no bound is claimed");
}

// How a model is read, in every command.
void AddReading(CLI::App& command, ModelArguments& arguments) {
  AddModelOptions(command, arguments.shapes, arguments.batch, "");
  command.add_option("--format", arguments.format, "Format of the model's file, where its content does not tell")
      ->type_name("NAME");
  command
      .add_option("--mode", arguments.mode, "inference or training: one step, backward and update (default: inference)")
      ->type_name("MODE");
  command.add_option("--optimizer", arguments.optimizer, "Optimizer of training: sgd, momentum or adam (default: sgd)")
      ->type_name("NAME");
}

void AddModel(CLI::App& command, ModelArguments& arguments) {
  command
      .add_option("model", arguments.model,
                  "A file (ONNX, Berth's JSON, ...), a model that ships, or a formula: berth list models")
      ->required()
      ->type_name("MODEL");
  AddReading(command, arguments);
}

void AddObjective(CLI::App& command, std::string& objective) {
  command
      .add_option("--objective", objective,
                  "What planners minimise: berth list objectives (default: latency, or throughput under pipeline)")
      ->type_name("OBJECTIVE");
}

// One option per kind of constraint, each as often as one likes.
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

void AddMachines(CLI::App& command, ProblemArguments& arguments) {
  command
      .add_option(
          "--cluster", arguments.cluster,
          "A preset or a device file: berth cluster list (default: cpu_gpu, or what the model's file describes)")
      ->type_name("CLUSTER");
  command
      .add_option("--costs", arguments.costs,
                  "Where op times come from: berth list costs (default: roofline, or what the model's file says)")
      ->type_name("COSTS");
  command
      .add_option(
          "--evaluator", arguments.evaluator,
          "The execution model: berth list evaluators (default: parallel(contention=ports), or the data set's own)")
      ->type_name("EVALUATOR");
  AddObjective(command, arguments.objective);
}

void AddProblem(CLI::App& command, ProblemArguments& arguments) {
  AddModel(command, arguments.model);
  AddMachines(command, arguments);
  AddAllowUnknown(command, arguments.allow_unknown_shapes);
  AddConstraints(command, arguments.constraints, "");
}

void AddSearch(CLI::App& command, SearchArguments& arguments, std::string& seed) {
  command.add_option("--budget", arguments.budget, "When a planner stops: evaluations, seconds, or both")
      ->capture_default_str()
      ->type_name("BUDGET");
  command.add_option("--seed", seed, "Seed of the random numbers: the same seed gives the same plan")
      ->default_str("1")
      ->type_name("N");
}

void AddTraining(CLI::App& command, TrainArguments& train) {
  command.add_option("--planner", train.planner, "The planner to train, like placeto(rounds=4): berth list planners")
      ->type_name("PLANNER");
  command
      .add_option("--on", train.problem.model.model,
                  "Models to train on, separated by commas; family(name=enas_conv) names many: berth list models")
      ->type_name("MODELS");
  command.add_option("--test", train.tests, "Models to test the trained policy on")->type_name("MODELS");
  AddReading(command, train.problem.model);
  AddMachines(command, train.problem);
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
                  "How many threads to use (default: one per core); results do not depend on it")
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

void AddJson(CLI::App& command, bool& json) { command.add_flag("--json", json, "Print JSON, for machines"); }

// What was written like an option and is none of the command's.
void CheckOptions(const CLI::App& app, const std::string& command) {
  for (const std::string& left : app.remaining()) {
    const std::string option = left.substr(0, left.find('='));
    const size_t dashes = std::min(option.find_first_not_of('-'), option.size());
    if (dashes == 0 || dashes == option.size()) continue;
    std::vector<std::string> names;
    for (const CLI::Option* known : app.get_options()) {
      names.insert(names.end(), known->get_lnames().begin(), known->get_lnames().end());
    }
    // A single letter is like everything.
    const std::string_view closest = option.size() - dashes < 2 ? "" : Closest(option.substr(dashes), names);
    if (!closest.empty()) throw Error("{}: there is no such option; did you mean --{}?", option, closest);
    throw Error("{}: there is no such option; see `{} --help`", option, command);
  }
}

// CLI11's messages, in one line and with a remedy.
[[noreturn]] void ThrowMistake(const CLI::App& app, const CLI::ParseError& error, int argc, const char* const* argv) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const auto used = app.get_subcommands();
  if (used.empty()) {
    for (int i = 1; i < argc; ++i) {
      if (argv[i][0] == '-') continue;
      const std::string_view closest = Closest(argv[i], names);
      throw Error("no command '{}'; {}: {}", argv[i],
                  closest.empty() ? "there are" : fmt::format("did you mean '{}'? There are", closest),
                  fmt::join(names, ", "));
    }
    CheckOptions(app, "berth");
    throw Error("give a command: {}; `berth --help` says more", fmt::join(names, ", "));
  }
  std::string what = error.what();
  what.resize(std::min(what.find('\n'), what.size()));
  CheckOptions(app, "berth");
  std::string command;
  for (const CLI::App* deeper = &app; !deeper->get_subcommands().empty();) {
    deeper = deeper->get_subcommands().front();
    command += (command.empty() ? "" : " ") + deeper->get_name();
    CheckOptions(*deeper, "berth " + command);
    if (const auto left = deeper->remaining(); !left.empty()) what = fmt::format("'{}' was not expected", left.front());
  }
  throw Error("{}: {}; see `berth {} --help`", command, what, command);
}

}  // namespace

std::vector<ConstraintText> TextsOf(const ConstraintArguments& arguments) {
  std::vector<ConstraintText> texts;
  for (size_t kind = 0; kind < kConstraintNames.size(); ++kind) {
    for (const std::string& text : arguments.stated[kind]) {
      texts.push_back({.kind = static_cast<ConstraintKind>(kind), .text = text, .place = {}});
    }
  }
  for (const std::string& file : arguments.files) {
    const std::vector<ConstraintText> more = ReadConstraintFile(file);
    texts.insert(texts.end(), more.begin(), more.end());
  }
  return texts;
}

uint64_t ParseCount(std::string_view option, const std::string& text, uint64_t least) {
  uint64_t count = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (text.empty() || code != std::errc() || end != text.data() + text.size() || count < least) {
    throw Error("{}: '{}' is no integer from {} to 2^64 - 1", option, text, least);
  }
  return count;
}

Arguments ParseArguments(int argc, const char* const* argv) {
  CLI::App app("Berth decides which device runs which op of a neural network.", "berth");
  app.set_version_flag("-V,--version", fmt::format("berth {}", kVersion));
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  berth demo\n"
      "  berth plan resnet50 --cluster cpu_gpu -o plan.json --picture plan.svg\n"
      "  berth compare bert_base_s128 --cluster k80x4 --planners heft,annealing --budget 5s\n"
      "  berth simulate --plan plan.json --trace trace.json\n"
      "  berth explain plan.json --op '*Conv'\n"
      "  berth help plan\n"
      "Exit codes: 0 fine, 1 no plan that fits or a limit is missed, 2 a mistake in what was asked.");

  std::string seed = "1";

  InspectArguments inspect;
  CLI::App& inspect_command = *app.add_subcommand("inspect", "What a model consists of, and what its ops cost");
  AddModel(inspect_command, inspect.model);
  inspect_command
      .add_option("--cluster", inspect.cluster,
                  "Say what the ops cost on these devices too: a preset or a device file, berth cluster list")
      ->type_name("CLUSTER");
  inspect_command
      .add_option("--costs", inspect.costs, "Where these op times come from: berth list costs (default: roofline)")
      ->type_name("COSTS");
  inspect_command.add_option("-o,--output", inspect.output, "Write the graph in Berth's own JSON format")
      ->type_name("FILE");
  AddJson(inspect_command, inspect.json);
  inspect_command.footer(
      "Examples:\n"
      "  berth inspect resnet50\n"
      "  berth inspect resnet50 --shape input=32,3,224,224 -o graph.json\n"
      "  berth inspect resnet50 --batch 32 --cluster cpu_gpu\n"
      "  berth inspect 'lstm_grid(layers=8,steps=40)' --mode training --json");

  PlanArguments plan;
  CLI::App& plan_command = *app.add_subcommand("plan", "Place a model's ops on a cluster's devices");
  AddProblem(plan_command, plan.problem);
  plan_command.add_option("--planner", plan.planner, "How to search: berth list planners")
      ->capture_default_str()
      ->type_name("PLANNER");
  AddSearch(plan_command, plan.search, seed);
  plan_command.add_option("-o,--output", plan.output, "Write the plan, for simulate and explain")->type_name("FILE");
  plan_command
      .add_option("--picture", plan.picture, "Draw the graph with its devices: .svg, .png or .pdf (needs Graphviz)")
      ->type_name("FILE");
  AddJson(plan_command, plan.json);
  plan_command.footer(
      "Examples:\n"
      "  berth plan resnet50 --cluster cpu_gpu -o plan.json --picture plan.svg\n"
      "  berth plan bert_base_s128 --evaluator serial --planner mincut\n"
      "  berth plan inception_v3 --pin '*Concat=gpu' --keep-free 10% --budget 2000evals");

  CompareArguments compare;
  CLI::App& compare_command = *app.add_subcommand("compare", "Compare planners with each other and with simple rules");
  AddProblem(compare_command, compare.problem);
  compare_command
      .add_option("--planners", compare.planners,
                  "Planners to compare, separated by commas; the simple rules are always compared too")
      ->type_name("A,B,C");
  AddSearch(compare_command, compare.search, seed);
  compare_command.add_option("-o,--output", compare.output, "Write the fastest plan")->type_name("FILE");
  AddJson(compare_command, compare.json);
  compare_command.footer(
      "Examples:\n"
      "  berth compare bert_base_s128 --cluster k80x4 --planners heft,annealing --budget 5s\n"
      "  berth compare resnet50 --objective energy --budget 2000evals -o plan.json");

  TrainArguments train;
  CLI::App& train_command =
      *app.add_subcommand("train", "Train a learned planner on one model or many, in a folder that can be resumed");
  AddTraining(train_command, train);
  AddJson(train_command, train.json);
  train_command.footer(
      "Examples:\n"
      "  berth train --planner placeto --on 'family(name=enas_conv)' --updates 200 --out run\n"
      "  berth train --planner hsdag --on resnet50 --cluster cpu_gpu --evaluator serial --updates 50 --out run\n"
      "  berth train --resume --out run");

  SimulateArguments simulate;
  CLI::App& simulate_command =
      *app.add_subcommand("simulate", "Simulate a plan: its timeline, its transfers, its memory");
  simulate_command
      .add_option("model", simulate.overrides.model, "The model, where it is not the one that the plan names")
      ->type_name("MODEL");
  CLI::Option* plan_option =
      simulate_command.add_option("--plan", simulate.plan, "A plan file, as `berth plan -o` writes it")
          ->type_name("FILE");
  simulate_command
      .add_option("--placement", simulate.placement,
                  "Instead of a plan: a device per op in the file's order, 0,1,1,... or @file")
      ->excludes(plan_option)
      ->type_name("LIST");
  AddOverrides(simulate_command, simulate.overrides);
  simulate_command.add_option("--trace", simulate.trace, "Write the timeline for ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE");
  simulate_command
      .add_option("--picture", simulate.picture, "Draw the graph with its devices: .svg, .png or .pdf (needs Graphviz)")
      ->type_name("FILE");
  AddJson(simulate_command, simulate.json);
  simulate_command.footer(
      "Examples:\n"
      "  berth simulate --plan plan.json --trace trace.json\n"
      "  berth simulate --plan plan.json --evaluator serial --json\n"
      "  berth simulate 'chain(ops=4)' --placement 0,0,1,1 --picture chain.svg");

  ExplainArguments explain;
  CLI::App& explain_command =
      *app.add_subcommand("explain", "Why each op is where it is, and what its alternatives would cost");
  explain_command.add_option("plan", explain.plan, "A plan file, as `berth plan -o` writes it")
      ->required()
      ->type_name("PLAN");
  explain_command.add_option("--op", explain.op, "Only ops whose name matches: * any text, ? one character")
      ->capture_default_str()
      ->type_name("GLOB");
  explain_command
      .add_option("--model", explain.overrides.model, "The model, where it is not the one that the plan names")
      ->type_name("MODEL");
  AddOverrides(explain_command, explain.overrides);
  AddJson(explain_command, explain.json);
  explain_command.footer(
      "Examples:\n"
      "  berth explain plan.json\n"
      "  berth explain plan.json --op '*Conv' --json");

  CheckArguments check;
  CLI::App& check_command = *app.add_subcommand("check", "Check a plan against limits; exit code 1 when it misses one");
  CLI::Option* checked_plan =
      check_command.add_option("plan", check.plan, "A plan file of Berth's, or a data set's split (with --model)")
          ->type_name("PLAN");
  check_command
      .add_option("--placement", check.placement,
                  "Instead of a plan: a device per op in the file's order, 0,1,1,... or @file (with --model)")
      ->excludes(checked_plan)
      ->type_name("LIST");
  check_command.add_option("--model", check.overrides.model, "The model, where it is not the one that the plan names")
      ->type_name("MODEL");
  AddOverrides(check_command, check.overrides);
  AddAllowUnknown(check_command, check.allow_unknown_shapes);
  AddLimits(check_command, check);
  AddJson(check_command, check.json);
  check_command.footer(
      "Examples:\n"
      "  berth check plan.json --max-latency 50ms --max-memory gpu=4GiB --max-gap 50%\n"
      "  berth check --model 'chain(ops=4)' --placement 0,0,0,0 --max-transfers 0");

  RunArguments run;
  CLI::App& run_command =
      *app.add_subcommand("run", "Run a plan on this machine, and set what was predicted beside what was measured");
  CLI::Option* run_plan =
      run_command.add_option("plan", run.plan, "A plan file, as `berth plan -o` writes it")->type_name("PLAN");
  run_command
      .add_option("--placement", run.placement,
                  "Instead of a plan: a device per op in the file's order, 0,1,1,... or @file (with --model)")
      ->excludes(run_plan)
      ->type_name("LIST");
  run_command.add_option("--model", run.overrides.model, "The model, where it is not the one that the plan names")
      ->type_name("MODEL");
  AddOverrides(run_command, run.overrides);
  run_command
      .add_option(
          "--with", run.executor,
          "What runs it: openvino_parallel, or openvino (HETERO) (default: openvino for plans made under serial)")
      ->type_name("EVALUATOR");
  run_command.add_option("--runs", run.runs, "How often it is run, in turns with what it is compared with")
      ->capture_default_str()
      ->type_name("N");
  run_command
      .add_option("--trace", run.trace,
                  "Write both timelines for ui.perfetto.dev or chrome://tracing, the measured below the predicted")
      ->type_name("FILE");
  AddJson(run_command, run.json);
  run_command.footer(
      "Examples:\n"
      "  berth cluster detect --split cpu:2 --quick -o here.yaml\n"
      "  berth plan inception_v3 --cluster here.yaml -o plan.json\n"
      "  berth run plan.json --trace trace.json\n"
      "  berth run plan.json --with openvino --runs 50 --json");

  ExportArguments exported;
  CLI::App& export_command = *app.add_subcommand("export", "Hand a plan over: files that a runtime runs without Berth");
  export_command.add_option("plan", exported.plan, "A plan file, as `berth plan -o` writes it")
      ->required()
      ->type_name("PLAN");
  export_command
      .add_option("--to", exported.to,
                  "openvino: its IR with each node's device; onnxruntime: an ONNX model per part, and a manifest")
      ->required()
      ->type_name("RUNTIME");
  export_command.add_option("-o,--output", exported.output, "Write into this folder, which must be new or empty")
      ->required()
      ->type_name("FOLDER");
  export_command.add_option("--model", exported.model, "The model, where it is not the one that the plan names")
      ->type_name("MODEL");
  AddJson(export_command, exported.json);
  export_command.footer(
      "Examples:\n"
      "  berth plan two_towers --cluster here.yaml -o plan.json\n"
      "  berth export plan.json --to onnxruntime -o parts\n"
      "  berth export plan.json --to openvino -o ir");

  ProfileArguments profile;
  CLI::App& profile_command =
      *app.add_subcommand("profile", "Measure how long each op of a model takes on this machine's devices");
  AddModel(profile_command, profile.model);
  profile_command
      .add_option("--cluster", profile.cluster,
                  "The devices: a device file, as `berth cluster detect` writes it (default: the processor as one)")
      ->type_name("CLUSTER");
  profile_command.add_option("--runs", profile.runs, "How often each device runs the model")
      ->capture_default_str()
      ->type_name("N");
  profile_command.add_option("-o,--output", profile.output, "Write the times, for --costs 'profile(file=...)'")
      ->type_name("FILE");
  AddJson(profile_command, profile.json);
  profile_command.footer(
      "Examples:\n"
      "  berth profile resnet50 --cluster here.yaml -o resnet50.json\n"
      "  berth plan resnet50 --cluster here.yaml --costs 'profile(file=resnet50.json)'");

  ClusterArguments cluster;
  DetectArguments detect;
  CLI::App& cluster_command = *app.add_subcommand("cluster", "Clusters: those that ship with Berth, and this machine");
  cluster_command.require_subcommand(1);
  cluster_command.footer(
      "Examples:\n"
      "  berth cluster list\n"
      "  berth cluster show cpu_gpu\n"
      "  berth cluster detect -o here.yaml");
  CLI::App& show_command = *cluster_command.add_subcommand("show", "One cluster, and where its numbers come from");
  show_command.add_option("cluster", cluster.cluster, "A preset or a device file")->required()->type_name("CLUSTER");
  show_command.add_flag("--yaml", cluster.yaml, "Print it as a device file, to edit");
  AddJson(show_command, cluster.json);
  show_command.footer(
      "Examples:\n"
      "  berth cluster show cpu_gpu\n"
      "  berth cluster show cpu_gpu --yaml");
  CLI::App& cluster_list_command = *cluster_command.add_subcommand("list", "All presets");
  AddJson(cluster_list_command, cluster.json);
  cluster_list_command.footer(
      "Examples:\n"
      "  berth cluster list");

  CLI::App& detect_command =
      *cluster_command.add_subcommand("detect", "Measure this machine, and write it as a device file");
  detect_command.add_option("-o,--output", detect.output, "Write the device file")->type_name("FILE");
  detect_command.add_option("--split", detect.split, "Divide the processor's cores into so many devices, like cpu:2")
      ->type_name("cpu:N");
  detect_command.add_flag("--quick", detect.quick, "Measure for about ten seconds instead of up to a minute");
  AddJson(detect_command, detect.json);
  detect_command.footer(
      "Examples:\n"
      "  berth cluster detect -o here.yaml\n"
      "  berth cluster detect --split cpu:2 --quick -o here.yaml");

  ListArguments list;
  CLI::App& list_command =
      *app.add_subcommand("list", "List planners, evaluators, objectives, clusters, models, costs or groupings");
  list_command.add_option("what", list.what, "planners, evaluators, objectives, clusters, models, costs or groupings")
      ->required()
      ->type_name("WHAT");
  AddJson(list_command, list.json);
  list_command.footer(
      "Examples:\n"
      "  berth list planners\n"
      "  berth list models --json");

  CLI::App& demo_command =
      *app.add_subcommand("demo", "Show what Berth does, on models and clusters that ship with it");
  demo_command.footer("Examples:\n  berth demo");

  app.add_subcommand("help", "What a command does and takes: berth help plan");
  // `berth help plan` is `berth plan --help`.
  std::vector<const char*> words(argv, argv + argc);
  const bool asked_by_word = argc > 1 && std::string_view(argv[1]) == "help";
  if (asked_by_word) {
    words.erase(words.begin() + 1);
    if (argc == 2 || std::string_view(words.back()) != "--help") words.push_back("--help");
  }

  try {
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::CallForHelp& help) {
    if (asked_by_word && words.size() > 2 && app.get_subcommands().empty()) {
      ThrowMistake(app, help, static_cast<int>(words.size()), words.data());
    }
    return TextArguments{app.help()};
  } catch (const CLI::CallForVersion&) {
    return TextArguments{fmt::format("berth {}\n", kVersion)};
  } catch (const CLI::ParseError& error) {
    ThrowMistake(app, error, static_cast<int>(words.size()), words.data());
  }
  plan.search.seed = compare.search.seed = ParseCount("--seed", seed, 0);
  if (inspect_command) return inspect;
  if (plan_command) return plan;
  if (compare_command) return compare;
  if (train_command) return train;
  if (simulate_command) return simulate;
  if (explain_command) return explain;
  if (check_command) return check;
  if (run_command) return run;
  if (export_command) return exported;
  if (profile_command) return profile;
  if (detect_command) return detect;
  if (cluster_command) return cluster;
  if (list_command) return list;
  BERTH_CHECK(demo_command.parsed());
  return DemoArguments{};
}

}  // namespace berth
