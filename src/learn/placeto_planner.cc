#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/parameters.h"
#include "learn/learner.h"
#include "learn/message_passing.h"
#include "learn/placeto.h"

namespace berth {
namespace {

// An episode embeds each node once per node: with more, one takes minutes.
constexpr int64_t kMostNodes = 2000;

// What is published where the default is another: `hyperparameters.txt` of the released code, and its defaults where
// that is silent.
struct Published {
  const char* name;
  const char* value;
};
constexpr Published kPublished[] = {{"head", "devices"}, {"scale", "largest"},       {"start", "random"},
                                    {"rounds", "8"},     {"rollouts", "1"},          {"reward", "time"},
                                    {"gamma", "1"},      {"normalise", "false"},     {"ppo", "0"},
                                    {"epochs", "1"},     {"learning_rate", "0.001"}, {"learning_rate_end", "0.0001"},
                                    {"entropy", "1"},    {"entropy_end", "1"},       {"seeded", "false"}};

std::vector<Parameter> Parameters() {
  std::vector<Parameter> list = {
      Choice("mode", {"best", "paper"}, "defaults of the other parameters: ours, or the published values"),
      Choice("head", {"shared", "devices"},
             "shared: one network scores each device in turn, so that a policy serves any number of them; devices: an "
             "output per device (published)"),
      Choice("scale", {"relative", "largest"},
             "scale of times and bytes: logarithms relative to the mean node, or shares of the largest (published)"),
      Choice("costs", {"mean", "columns"},
             "columns of a node's time: its mean over the devices (published), or one per device"),
      Switch("start_times", "false",
             "a column of simulated start times, as in the released code (it makes results worse)"),
      Whole("rounds", "4", "rounds of messages between nodes (8 published); 0: a full sweep along the longest paths", 0,
            1000),
      Choice("aggregator", {"three", "all"},
             "what is summed beside the node's own embedding: its ancestors, descendants and parallel nodes, or, "
             "instead of all that, all nodes"),
      Choice("pooling", {"sum", "mean"}, "how a set of nodes is summarised: their sum (published) or their mean"),
      Choice("order", {"topological", "shuffled"}, "order in which an episode visits the nodes"),
      Choice("start", {"first", "random", "varying"},
             "placement at the start of an episode: everything on the first device, one random placement for the whole "
             "run (published; not for credit=terminal, unless given), or a new random one each time"),
      Choice("reward", {"log", "time"},
             "reward of a placement: minus the logarithm of its time, or minus its time in seconds (published)"),
      Choice("credit", {"intermediate", "terminal", "best_future"},
             "what a step is credited with: how much faster the placements after it become (published), the last "
             "placement alone, which needs one evaluation per episode, or the best later one"),
      Real("gamma", "0.95", "discount of later rewards, for credit=intermediate (1 published)", 0, 1),
      Whole("window", "10", "episodes over which the baseline of each step is the mean (10, or 1000, published)", 1,
            1e6),
      Switch("normalise", "true", "divide credits by their standard deviation over an update (false published)"),
      Real("ppo", "0.2", "clip the ratios of PPO at 1 +- this; 0: REINFORCE (published)", 0, 1),
      Whole("epochs", "4", "gradient steps per update on its own episodes (1 published)", 1, 100),
      Whole("workers", "2",
            "episodes side by side on threads, each on a graph of its own in training on several (4 to 8 published)", 1,
            1024),
      Whole("rollouts", "4", "episodes that a worker plays at once (1 published)", 1, 1024),
      Real("learning_rate", "0.003", "learning rate of Adam at first (0.001 published)", 0, 1),
      Real("learning_rate_end", "0.0003", "learning rate at the end of the budget, reached linearly (0.0001 published)",
           0, 1),
      Real("entropy", "0.1", "weight of the policy's entropy at first (1 published)", 0, 1e6),
      Real("entropy_end", "0.003",
           "weight at the end of the budget, reached geometrically, or linearly if it is 0 (1 published)", 0, 1e6),
      Real("clip", "1.25", "largest norm of a gradient (1.25 published); 0: no limit", 0, 1e6),
      Real("memory_penalty", "2", "seconds added per GB over the memory limits (2 published)", 0, 1e6),
      Whole("runs", "1", "scores of each placement, for evaluators that measure (10 published)", 1, 1000),
      Whole("kept", "1", "how many of these, the last ones, are averaged (5 published)", 1, 1000),
      Switch("seeded", "true", "score each single device first, so that the answer is never worse"),
      {.name = "checkpoint", .sentence = "a file with a trained policy to begin with"},
      Switch("train", "true",
             "false (default with a checkpoint): answer with one episode of the likeliest devices, without training"),
  };
  for (Parameter& parameter : list) {
    for (const Published& each : kPublished) parameter.mode_decides |= parameter.name == each.name;
    parameter.mode_decides |= parameter.name == "train";  // a checkpoint decides it
  }
  return list;
}

// With the published values given where mode=paper leaves them open.
Params WithMode(const Params& params) {
  if (params.Text("mode") != "paper") return params;
  Spec spec = Spec::Parse(params.canonical());
  for (const Published& each : kPublished) {
    // A terminal reward alone begins on the first device, in the released code.
    if (params.Text("credit") == "terminal" && each.name == std::string_view("start")) continue;
    if (!params.Given(each.name)) spec.parameters.emplace_back(each.name, each.value);
  }
  return Params(spec, Parameters(), "planner");
}

std::optional<std::string> RefusesProblem(const Problem& problem, const PlacetoOptions& options) {
  if (problem.num_devices() < 2) return "it chooses between devices, and there is only one";
  if (problem.num_ops() == 0) return "there is no op to place";
  const int64_t columns = PlacetoTask::Columns(options, static_cast<int64_t>(problem.num_devices()));
  if (columns > kMostChannels) {
    return fmt::format(
        "its features would have {} columns for {} devices, and it can take {}: use head=shared and "
        "costs=mean",
        columns, problem.num_devices(), kMostChannels);
  }
  const Grouping units = ColocatedOps(problem);
  if (static_cast<int64_t>(units.num_groups()) > kMostNodes) {
    return fmt::format("it can place {} groups and not {}: put ops together, as in on(group=merge,planner=placeto)",
                       kMostNodes, units.num_groups());
  }
  const Quotient quotient = MakeQuotient(problem, units);
  for (const GroupId group : units.groups()) {
    const auto times = std::span(quotient.time).subspan(Index(group) * problem.num_devices(), problem.num_devices());
    if (std::ranges::all_of(times, [](double time) { return time == kCannotRun; })) {
      return fmt::format("no device can run all {} ops that must share one with {}", units.ops_of(group).size(),
                         problem.graph().op_name(units.ops_of(group).front()));
    }
  }
  return std::nullopt;
}

Method MakeMethod(const Params& given) {
  const Params params = WithMode(given);
  const std::string& credit = params.Text("credit");
  const std::string& start = params.Text("start");
  const bool at_end = credit == "terminal";
  using Start = PlacetoOptions::Start;
  const PlacetoOptions options{
      .order =
          params.Text("order") == "shuffled" ? PlacetoOptions::Order::kShuffled : PlacetoOptions::Order::kTopological,
      .start = start == "first"     ? Start::kFirst
               : start == "varying" ? Start::kVarying
                                    : Start::kFixed,
      .every_step = !at_end,
      .start_times = params.Bool("start_times"),
      .cost_columns = params.Text("costs") == "columns",
      .relative = params.Text("scale") == "relative",
      .shared = params.Text("head") == "shared",
      .rounds = params.Int("rounds"),
      .three_sets = params.Text("aggregator") == "three",
      .mean = params.Text("pooling") == "mean",
  };
  if (at_end && options.start_times)
    throw Error("placeto: credit=terminal simulates no start times; leave start_times out");
  if (params.Int("kept") > params.Int("runs")) {
    throw Error("placeto: kept={1} is more than runs={0}; make it at most as many", params.Int("runs"),
                params.Int("kept"));
  }
  return {
      .name = given.canonical(),
      .make_policy = [options](
                         const Problem& problem,
                         const Random& random) { return std::make_shared<PlacetoPolicy>(problem, options, random); },
      .refuses = [options](const Problem& problem) { return RefusesProblem(problem, options); },
      .rule = {.reward = params.Text("reward") == "log" ? Reward::kLog : Reward::kNegative,
               .credit = at_end                    ? Credit::kTerminal
                         : credit == "best_future" ? Credit::kBestFuture
                                                   : Credit::kToGo,
               .baseline = Baseline::kWindow,
               .window = params.Int("window"),
               .gamma = params.Real("gamma"),
               .normalise = params.Bool("normalise"),
               .clip_ratio = params.Real("ppo"),
               .epochs = params.Int("epochs")},
      .scoring = {.runs = params.Int("runs"),
                  .kept = params.Int("kept"),
                  .memory_penalty = params.Real("memory_penalty")},
      .learner = {.workers = params.Int("workers"),
                  .rollouts = params.Int("rollouts"),
                  .learning_rate = params.Real("learning_rate"),
                  .learning_rate_end = params.Real("learning_rate_end"),
                  .entropy = params.Real("entropy"),
                  .entropy_end = params.Real("entropy_end"),
                  .clip_norm = params.Real("clip")},
      .default_evaluations = 50'000,
      .seeded = params.Bool("seeded"),
      .checkpoint = params.Text("checkpoint"),
      .train = params.Given("train") ? params.Bool("train") : params.Text("checkpoint").empty(),
  };
}

}  // namespace

void RegisterPlaceto(MethodCatalog& catalog) {
  catalog.Add({.name = "placeto",
               .sentence = "Learns to improve a placement, one node after another, by REINFORCE on a graph network.",
               .source = "Addanki et al. 2019, section 3",
               .parameters = Parameters()},
              MakeMethod);
}

}  // namespace berth
