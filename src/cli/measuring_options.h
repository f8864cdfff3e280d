// The commands that run models on this machine: run, profile, calibrate, tune, cluster detect.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

#include "cli/arguments.h"

namespace berth {

// Adds them to the program's options; holds what is parsed into them, so it must be there while that happens.
class MeasuringCommands {
 public:
  MeasuringCommands(CLI::App& app, CLI::App& cluster_command);
  MeasuringCommands(const MeasuringCommands&) = delete;
  MeasuringCommands& operator=(const MeasuringCommands&) = delete;

  // Of that command which was given, if it is one of these.
  std::optional<Arguments> Chosen() const;

 private:
  void AddRun(CLI::App& command);
  void AddProfile(CLI::App& command);
  void AddCalibrate(CLI::App& command);
  void AddTune(CLI::App& command);
  void AddDetect(CLI::App& command);

  RunArguments run_;
  ProfileArguments profile_;
  CalibrateArguments calibrate_;
  TuneArguments tune_;
  DetectArguments detect_;
  CLI::App *run_command_, *profile_command_, *calibrate_command_, *tune_command_, *detect_command_;
};

}  // namespace berth
