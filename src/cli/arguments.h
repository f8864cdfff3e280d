// The command line as data: one struct per command.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"
#include "cli/problem_strings.h"
#include "placement/constraints.h"
#include "placement/planner.h"

namespace berth {

// Constraints as they were stated.
struct ConstraintArguments {
  std::array<std::vector<std::string>, kConstraintNames.size()> stated;  // by kind
  std::vector<std::string> files;
};

struct ProblemArguments {
  ProblemStrings strings;  // all but its constraints
  ConstraintArguments constraints;
  bool allow_unknown_shapes = false;

  // With its constraints; throws Error for a file of them.
  ProblemStrings Strings() const;
  // ProblemStrings::Files, and the files of constraints.
  std::vector<std::string> Files() const;
};

struct SearchArguments {
  Budget budget{.evaluations = 20'000, .seconds = 10};
  uint64_t seed = 1;
  std::optional<Bytes> memory_limit{};  // of this process
};

// What replaces the strings of a plan file, where given.
struct PlanOverrides {
  std::optional<std::string> model;
  std::vector<std::string> shapes;
  std::string batch;
  std::optional<std::string> format, mode, optimizer, cluster, costs, evaluator, objective;
  ConstraintArguments constraints;  // any of them replaces all of the plan's

  // What of these, and the plan itself, may be the name of a file.
  std::vector<std::string> FilesWith(const std::string& plan, const std::string& placement) const;
};

struct InspectArguments {
  ProblemStrings problem;  // without cluster and costs: what its ops cost is not asked
  std::string output;      // the graph in Berth's own format
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
  ProblemArguments problem;  // its model: the list of models to learn on
  std::string planner;
  std::string validation;  // models by whose answers the policy that is kept is chosen
  std::string tests;       // models that the trained policy is tried on
  std::string budget, updates, seed, checkpoint_every;
  std::string output;  // the folder
  std::string threads;
  bool resume = false;
  bool json = false;
};

struct SimulateArguments {
  std::string plan_or_model;  // as the user says it
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
  std::string limit;  // seconds that one question to the runtime may take; empty: half an hour and more
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
  ProblemStrings problem;  // without a cluster: this machine's processor as one device
  std::string runs = "30";
  std::string output;
  std::string limit;  // seconds that one question to the runtime may take; empty: half an hour and more
  bool json = false;
};

struct CalibrateArguments {
  std::vector<std::string> models;
  std::string cluster;
  std::string plans = "12";
  std::string runs = "7";
  std::string seed = "1";
  std::string output;
  std::string limit;  // seconds that one question to the runtime may take; empty: half an hour and more
  bool json = false;
};

struct TuneArguments {
  ProblemStrings problem;  // without costs: these are measured first
  std::string evaluations = "20";
  std::string runs = "10";
  std::string seed = "1";
  bool no_correction = false;
  std::string output;
  std::string limit;  // seconds that one question to the runtime may take; empty: half an hour and more
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

// A whole number from `least` to `most`; throws Error naming the option.
uint64_t ParseCount(std::string_view option, const std::string& text, uint64_t least,
                    uint64_t most = std::numeric_limits<uint64_t>::max());

// Seconds; infinity of an empty text. Throws Error for what is none.
double ParseLimit(const std::string& text);

// All of them, files read; throws Error for a file.
std::vector<ConstraintText> TextsOf(const ConstraintArguments& arguments);

// Throws Error for what is no command line of Berth's.
Arguments ParseArguments(int argc, const char* const* argv);

}  // namespace berth
