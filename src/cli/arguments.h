// The command line as data: one struct per command.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "placement/constraints.h"
#include "placement/planner.h"

namespace berth {

struct ModelArguments {
  std::string model;
  std::vector<std::string> shapes;  // "input=32,3,224,224"
  std::string batch;                // of every input that has one; empty: the file's
  std::string format;
  std::string mode;       // "inference" or "training"; empty: inference
  std::string optimizer;  // of training only
};

// Constraints as they were stated.
struct ConstraintArguments {
  std::array<std::vector<std::string>, kConstraintNames.size()> stated;  // by kind
  std::vector<std::string> files;
};

struct ProblemArguments {
  ModelArguments model;
  // Empty: what the model's file brings of its own, else the defaults of the problem factory.
  std::string cluster;
  std::string costs;
  std::string evaluator;
  std::string objective;  // empty: the evaluator's own
  ConstraintArguments constraints;
  bool allow_unknown_shapes = false;
};

struct SearchArguments {
  Budget budget{.evaluations = 20'000, .seconds = 10};
  uint64_t seed = 1;
};

// What replaces the strings of a plan file, where given.
struct PlanOverrides {
  std::optional<std::string> model;
  std::vector<std::string> shapes;
  std::string batch;
  std::optional<std::string> format, mode, optimizer, cluster, costs, evaluator, objective;
  ConstraintArguments constraints;  // any of them replaces all of the plan's
};

struct InspectArguments {
  ModelArguments model;
  std::string cluster, costs;  // to say what its ops cost there; empty: nowhere
  std::string output;          // the graph in Berth's own format
  bool json = false;
};

struct PlanArguments {
  ProblemArguments problem;
  SearchArguments search;
  std::string planner = "auto";
  std::string output;
  std::string picture;
  bool json = false;
};

struct CompareArguments {
  ProblemArguments problem;
  SearchArguments search;
  std::string planners;  // empty: a selection
  std::string output;    // the fastest plan
  bool json = false;
};

// Texts as they were given; empty where they were not. A run that is resumed takes them from its folder.
struct TrainArguments {
  ProblemArguments problem;  // problem.model.model: the list of models to learn on
  std::string planner;
  std::string tests;  // models that the trained policy is tried on
  std::string budget, updates, seed, checkpoint_every;
  std::string output;  // the folder
  std::string threads;
  bool resume = false;
  bool json = false;
};

struct SimulateArguments {
  PlanOverrides overrides;
  std::string plan;
  std::string placement;  // "0,1,1" or "@file"
  std::string trace;
  std::string picture;
  bool json = false;
};

struct ExplainArguments {
  PlanOverrides overrides;
  std::string plan;
  std::string op = "*";
  bool json = false;
};

struct CheckArguments {
  PlanOverrides overrides;
  std::string plan;
  std::string placement;  // "0,1,1" or "@file"
  // Limits; empty: none.
  std::string latency, transfers, energy, gap;
  std::vector<std::string> memory;  // "gpu0=4GiB" or "4GiB"
  bool allow_unknown_shapes = false;
  bool json = false;
};

struct RunArguments {
  PlanOverrides overrides;
  std::string plan;
  std::string placement;  // "0,1,1" or "@file"
  std::string executor;   // "openvino" or "openvino_parallel"; empty: as the plan's evaluator takes devices to work
  std::string runs = "20";
  std::string trace;
  bool json = false;
};

struct ExportArguments {
  std::string plan;
  std::optional<std::string> model;
  std::string to;      // "openvino" or "onnxruntime"
  std::string output;  // the folder
  bool json = false;
};

struct ProfileArguments {
  ModelArguments model;
  std::string cluster;  // empty: this machine's processor as one device
  std::string runs = "30";
  std::string output;
  bool json = false;
};

struct CalibrateArguments {
  std::vector<std::string> models;
  std::string cluster;
  std::string plans = "12";
  std::string runs = "7";
  std::string seed = "1";
  std::string output;
  bool json = false;
};

struct TuneArguments {
  ModelArguments model;
  std::string cluster;
  std::string costs;  // empty: measured first
  std::string evaluations = "20";
  std::string runs = "10";
  std::string seed = "1";
  bool no_correction = false;
  std::string output;
  bool json = false;
};

struct ClusterArguments {
  std::string cluster;  // empty: list them
  bool yaml = false;
  bool json = false;
};

struct DetectArguments {
  std::string output;
  std::string split;      // "cpu:2"; empty: as the machine is
  std::string precision;  // "f32,bf16", of the processor's devices; empty: f32
  bool quick = false;
  bool json = false;
};

struct ListArguments {
  std::string what;
  bool json = false;
};

struct DemoArguments {};

// Help or a version was asked for: print it.
struct TextArguments {
  std::string text;
};

using Arguments =
    std::variant<TextArguments, InspectArguments, PlanArguments, CompareArguments, TrainArguments, SimulateArguments,
                 ExplainArguments, CheckArguments, RunArguments, ExportArguments, ProfileArguments, CalibrateArguments,
                 TuneArguments, ClusterArguments, DetectArguments, ListArguments, DemoArguments>;

// A whole number of at least `least`; throws Error naming the option.
uint64_t ParseCount(std::string_view option, const std::string& text, uint64_t least);

// All of them, files read; throws Error for a file.
std::vector<ConstraintText> TextsOf(const ConstraintArguments& arguments);

// Throws Error for what is no command line of Berth's.
Arguments ParseArguments(int argc, const char* const* argv);

}  // namespace berth
