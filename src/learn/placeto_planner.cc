#include <memory>
#include <string>
#include <vector>

#include "base/parameters.h"
#include "learn/message_passing.h"
#include "learn/method_parameters.h"
#include "learn/placeto.h"

namespace berth {
namespace {

// An episode embeds each node once per node: with more, one takes minutes.
constexpr int64_t kMostNodes = 2000;

std::vector<Parameter> PlacetoParameters() {
  return {
      Choice("head", {"devices", "shared"},
             "shared: one network scores each device in turn, so that a policy serves any number of them; devices: an "
             "output per device (published)"),
      Choice("scale", {"largest", "relative"},
             "scale of times and bytes: shares of the largest (published), or logarithms relative to the mean node"),
      Choice("costs", {"mean", "columns"},
             "columns of a node's time: its mean over the devices (published), or one per device"),
      Switch("start_times", "false",
             "a column of simulated start times, as in the released code (it makes results worse)"),
      Whole("rounds", "8", "rounds of messages between nodes; 0: a full sweep along the longest paths", 0, 1000),
      Choice("aggregator", {"three", "all"},
             "what is summed beside the node's own embedding: its ancestors, descendants and parallel nodes, or, "
             "instead of all that, all nodes"),
      Choice("pooling", {"sum", "mean"}, "how a set of nodes is summarised: their sum (published) or their mean"),
      Choice("order", {"topological", "shuffled"}, "order in which an episode visits the nodes"),
      Choice("start", {"random", "first", "varying"},
             "placement at the start of an episode: one random placement for the whole run (published; not for "
             "credit=terminal, unless given), everything on the first device, or a new random one each time")};
}

// Ours, and what is published: `hyperparameters.txt` of the released code, and its defaults where that is silent; but 2
// workers, where 4 to 8 are published.
const std::vector<Mode>& PlacetoModes() {
  static const std::vector<Mode> modes = {{"best",
                                           {{"head", "shared"},
                                            {"scale", "relative"},
                                            {"start", "first"},
                                            {"rounds", "4"},
                                            {"credit", "intermediate"},
                                            {"baseline", "window"},
                                            {"gamma", "0.95"},
                                            {"normalise", "true"},
                                            {"ppo", "0.2"},
                                            {"epochs", "4"},
                                            {"workers", "2"},
                                            {"rollouts", "4"},
                                            {"learning_rate", "0.003"},
                                            {"learning_rate_end", "0.0003"},
                                            {"entropy", "0.1"},
                                            {"entropy_end", "0.003"},
                                            {"clip", "1.25"},
                                            {"seeded", "true"}}},
                                          {"paper",
                                           {{"reward", "time"},
                                            {"credit", "intermediate"},
                                            {"baseline", "window"},
                                            {"workers", "2"},
                                            {"learning_rate_end", "0.0001"},
                                            {"entropy", "1"},
                                            {"entropy_end", "1"},
                                            {"clip", "1.25"}}}};
  return modes;
}

std::optional<std::string> PlacetoRefuses(const Problem& problem, const PlacetoOptions& options) {
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
  return std::nullopt;
}

void CompletePlaceto(const Params& given, const Params& params, Method& method) {
  using Start = PlacetoOptions::Start;
  const bool at_end = method.rule.credit == Credit::kTerminal;
  // A terminal reward alone begins on the first device, in the released code.
  const std::string start = at_end && !given.Given("start") ? "first" : params.Text("start");
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
  method.make_policy = [options](const Problem& problem, const Random& random) {
    return std::make_shared<PlacetoPolicy>(problem, options, random);
  };
  method.refuses = [options](const Problem& problem) { return PlacetoRefuses(problem, options); };
}

}  // namespace

void RegisterPlaceto(MethodCatalog& catalog) {
  AddMethod(catalog,
            {.name = "placeto",
             .sentence = "Learns to improve a placement, one node after another, by REINFORCE on a graph network.",
             .source = "Addanki et al. 2019, section 3",
             .parameters = PlacetoParameters(),
             .modes = PlacetoModes(),
             .default_evaluations = 50'000,
             .make = CompletePlaceto});
}

}  // namespace berth
