#include "cli/measuring_options.h"

#include "cli/option_groups.h"

namespace berth {

MeasuringCommands::MeasuringCommands(CLI::App& app, CLI::App& cluster_command)
    : run_command_(
          app.add_subcommand("run", "Run a plan on this machine, and set what was predicted beside what was measured")),
      profile_command_(
          app.add_subcommand("profile", "Measure how long each op of a model takes on this machine's devices")),
      calibrate_command_(
          app.add_subcommand("calibrate",
                             "Measure what a plan pays for its cuts and how fast each class of ops is, and write it "
                             "into a device file")),
      tune_command_(app.add_subcommand("tune", "Plan, run the best plans, learn from the runs, and plan again")),
      detect_command_(cluster_command.add_subcommand("detect", "Measure this machine, and write it as a device file")) {
  AddRun(*run_command_);
  AddProfile(*profile_command_);
  AddCalibrate(*calibrate_command_);
  AddTune(*tune_command_);
  AddDetect(*detect_command_);
}

std::optional<Arguments> MeasuringCommands::Chosen() const {
  if (*run_command_) return run_;
  if (*profile_command_) return profile_;
  if (*calibrate_command_) return calibrate_;
  if (*tune_command_) return tune_;
  if (*detect_command_) return detect_;
  return std::nullopt;
}

void MeasuringCommands::AddRun(CLI::App& command) {
  AddPlanOrPlacement(command, "A plan file, as `berth plan -o` writes it", run_.plan, run_.placement,
                     run_.overrides.model);
  AddOverrides(command, run_.overrides);
  command
      .add_option(
          "--with", run_.executor,
          "What runs it: openvino_parallel, or openvino (HETERO) (default: openvino for plans made under serial)")
      ->type_name("EVALUATOR");
  command.add_option("--runs", run_.runs, "How often it is run, in turns with what it is compared with")
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option("--trace", run_.trace,
                  "Write both timelines for ui.perfetto.dev or chrome://tracing, the measured below the predicted")
      ->type_name("FILE");
  AddLimit(command, run_.limit);
  AddJson(command, run_.json);
  command.footer(
      "Examples:\n"
      "  berth cluster detect --split cpu:2 --quick -o here.yaml\n"
      "  berth plan inception_v3 --cluster here.yaml -o plan.json\n"
      "  berth run plan.json --trace trace.json\n"
      "  berth run plan.json --with openvino --runs 50 --json");
}

void MeasuringCommands::AddProfile(CLI::App& command) {
  AddModel(command, profile_.problem);
  command
      .add_option("--cluster", profile_.problem.cluster,
                  "The devices: a device file, as `berth cluster detect` writes it (default: the processor as one)")
      ->type_name("CLUSTER");
  command
      .add_option("--runs", profile_.runs,
                  "How often each device runs the model, at least: more often where a run is short")
      ->capture_default_str()
      ->type_name("N");
  command.add_option("-o,--output", profile_.output, "Write the times, for --costs 'profile(file=...)'")
      ->type_name("FILE");
  AddLimit(command, profile_.limit);
  AddJson(command, profile_.json);
  command.footer(
      "Examples:\n"
      "  berth profile resnet50 --cluster here.yaml -o resnet50.json\n"
      "  berth plan resnet50 --cluster here.yaml --costs 'profile(file=resnet50.json)'");
}

void MeasuringCommands::AddCalibrate(CLI::App& command) {
  command
      .add_option("models", calibrate_.models,
                  "Files of models, or models that ship; the more kinds of ops, the better: berth list models")
      ->required()
      ->type_name("MODEL");
  command.add_option("--cluster", calibrate_.cluster, "A device file, as `berth cluster detect` writes it")
      ->required()
      ->type_name("CLUSTER");
  command
      .add_option("--plans", calibrate_.plans,
                  "How many plans of each model are run; every third is held out of the fit, to test it")
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option("--runs", calibrate_.runs, "How often each plan is run, at least: more often where a run is short")
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--seed", calibrate_.seed, "Of the plans")->capture_default_str()->type_name("N");
  command.add_option("-o,--output", calibrate_.output, "Write the device file with what was found")->type_name("FILE");
  AddLimit(command, calibrate_.limit);
  AddJson(command, calibrate_.json);
  command.footer(
      "Examples:\n"
      "  berth calibrate googlenet resnet50 --cluster here.yaml -o calibrated.yaml\n"
      "  berth plan inception_v3 --cluster calibrated.yaml --evaluator parts");
}

void MeasuringCommands::AddTune(CLI::App& command) {
  AddModel(command, tune_.problem);
  command.add_option("--cluster", tune_.problem.cluster, "A device file, as `berth cluster detect` writes it")
      ->required()
      ->type_name("CLUSTER");
  command
      .add_option(
          "--costs", tune_.problem.costs,
          "Op times (default: measured first, and kept beside the plan that is written, plan.profile.json for plan.json)")
      ->type_name("COSTS");
  command
      .add_option("--evaluations", tune_.evaluations,
                  "How many plans are run at most: fewer where searches find no others")
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--runs", tune_.runs, "How often each plan is run, at least: more often where a run is short")
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--seed", tune_.seed, "Of the searches")->capture_default_str()->type_name("N");
  command.add_flag("--no-correction", tune_.no_correction,
                   "Learn nothing from the runs: run the best plans of the first prediction, for comparison");
  command.add_option("-o,--output", tune_.output, "Write the plan that won")->type_name("FILE");
  AddLimit(command, tune_.limit);
  AddJson(command, tune_.json);
  command.footer(
      "Examples:\n"
      "  berth cluster detect --split cpu:2 --quick -o here.yaml\n"
      "  berth tune inception_v3 --cluster here.yaml --evaluations 20 -o plan.json");
}

void MeasuringCommands::AddDetect(CLI::App& command) {
  command.add_option("-o,--output", detect_.output, "Write the device file")->type_name("FILE");
  command.add_option("--split", detect_.split, "Divide the processor's cores into so many devices, like cpu:2")
      ->type_name("cpu:N");
  command
      .add_option("--precision", detect_.precision,
                  "In what the processor's devices compute, one each or one for all: f32, f16 or bf16 (default: f32)")
      ->type_name("TYPE,...");
  command.add_flag("--quick", detect_.quick, "Measure for about ten seconds instead of up to a minute");
  AddJson(command, detect_.json);
  command.footer(
      "Examples:\n"
      "  berth cluster detect -o here.yaml\n"
      "  berth cluster detect --split cpu:2 --quick -o here.yaml\n"
      "  berth cluster detect --split cpu:2 --precision f32,bf16 -o mixed.yaml");
}

}  // namespace berth
