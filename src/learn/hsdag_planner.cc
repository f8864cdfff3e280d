// What `hsdag` takes, and what its modes stand for.
#include "base/parameters.h"
#include "learn/hsdag.h"
#include "learn/method_parameters.h"

namespace berth {
namespace {

std::vector<Parameter> HsdagParameters() {
  return {Choice("colocation", {"paper", "code", "none"}, "co-location rule by which ops become nodes"),
          Switch("type", "true", "feature: op types of the members"),
          Switch("degrees", "true", "features: in-degree and out-degree"),
          Switch("fractal", "true", "feature: fractal dimension"),
          Whole("position", "16",
                "feature: columns of the encoded topological number, 1 for the number itself, 0 for none", 0, 256),
          Switch("shape", "true", "feature: output shape"),
          Switch("costs", "false", "features: op and transfer times"),
          Choice("columns", {"graph", "fixed"},
                 "columns of op types and degrees: one for each that occurs in the graph (published), or fixed for all "
                 "graphs, so that a policy serves many"),
          Switch("normalised", "false", "features have mean 0 and deviation 1"),
          Choice("encoder", {"gcn", "gat", "gin"}, "the graph network"),
          Whole("hidden", "128", "width of the network", 1, 4096),
          Whole("layers", "2", "graph layers before the edges are scored", 1, 16),
          Real("dropout", "0.2", "dropout probability", 0, 0.9),
          Switch("directed", "false", "messages go along the direction of edges only"),
          Switch("symmetric", "true", "one score per edge, or one per direction"),
          Whole("levels", "1", "levels of grouping: 0 places each node alone, -1 groups until nothing joins", -1, 20),
          Whole("steps", "20", "placements per episode", 1, 1e6),
          Switch("state", "true", "a step changes the features of the next"),
          Choice("critic", {"none", "blank", "costs"},
                 "a learned model of the reward, which begins blank or with the problem's costs"),
          Whole("imagined", "0", "gradient steps on the critic after each update", 0, 1000),
          Real("hold", "0",
               "weight per decision that holds additional episodes to each device in turn; it falls to a thousandth; 0 "
               "(as without a critic): no such episodes",
               0, 1e6),
          Real("near", "0",
               "share of an episode's placements that are drawn near the best one so far, one move each, and teach the "
               "critic alone; with costs=true a judge learns which moves to try; 0 without a critic",
               0, 0.95)};
}

// What works best here, what the paper says, and what its released code does.
const std::vector<Mode>& HsdagModes() {
  static const std::vector<Mode> modes = {{"best",
                                           {{"reward", "time"},
                                            {"learning_rate_end", "0.0003"},
                                            {"entropy", "0.004"},
                                            {"entropy_end", "0.0003"},
                                            {"critic", "costs"},
                                            {"imagined", "30"},
                                            {"hold", "0.01"},
                                            {"near", "0.9"},
                                            {"costs", "true"},
                                            {"columns", "fixed"},
                                            {"normalised", "true"},
                                            {"dropout", "0"},
                                            {"levels", "0"},
                                            {"state", "false"}}},
                                          {"paper",
                                           {{"reward", "inverse"},
                                            {"baseline", "none"},
                                            {"gamma", "0.95"},
                                            {"learning_rate", "0.0001"},
                                            {"learning_rate_end", "0.0001"},
                                            {"symmetric", "false"}}},
                                          {"code",
                                           {{"reward", "inverse"},
                                            {"credit", "buffer"},
                                            {"baseline", "none"},
                                            {"gamma", "0.95"},
                                            {"symmetric", "false"},
                                            {"reject_single", "true"},
                                            {"colocation", "code"},
                                            {"degrees", "false"},
                                            {"fractal", "false"},
                                            {"position", "1"},
                                            {"shape", "false"}}}};
  return modes;
}

HsdagOptions HsdagOptionsOf(const Params& params) {
  const std::string& encoder = params.Text("encoder");
  return {.shape = {.hidden = params.Int("hidden"),
                    .gnn_layers = params.Int("layers"),
                    .dropout = params.Real("dropout"),
                    .encoder = encoder == "gat"   ? Encoder::kGat
                               : encoder == "gin" ? Encoder::kGin
                                                  : Encoder::kGcn,
                    .directed = params.Bool("directed"),
                    .symmetric = params.Bool("symmetric"),
                    .levels = params.Int("levels")},
          .features = {.type = params.Bool("type"),
                       .in_degree = params.Bool("degrees"),
                       .out_degree = params.Bool("degrees"),
                       .fractal = params.Bool("fractal"),
                       .position = params.Int("position"),
                       .shape = params.Bool("shape"),
                       .costs = params.Bool("costs"),
                       .fixed = params.Text("columns") == "fixed",
                       .normalised = params.Bool("normalised")},
          .colocation = params.Text("colocation"),
          .steps = params.Int("steps"),
          .state_update = params.Bool("state"),
          .near = params.Text("critic") == "none" ? 0 : params.Real("near")};
}

void CompleteHsdag(const Params& given, const Params& params, Method& method) {
  HsdagOptions options = HsdagOptionsOf(params);
  const std::string& critic = params.Text("critic");
  const double hold = critic == "none" ? 0 : params.Real("hold");
  if (critic == "none") {
    if (given.Given("hold") && given.Real("hold") > 0) throw Error("hsdag: hold={} needs a critic", given.Real("hold"));
  } else {
    if (method.rule.reward != Reward::kNegative) {
      throw Error("hsdag: a critic predicts times and needs reward=time; set that, or critic=none");
    }
    method.imagined = params.Int("imagined");
    method.make_critic = [costs = critic == "costs", hold](const Task& task) {
      return MakeHsdagCritic(task, costs, hold);
    };
  }
  options.held = hold > 0;
  method.make_policy = [options](const Problem& problem, const Random& random) {
    return std::make_shared<HsdagPolicy>(problem, options, random);
  };
}

}  // namespace

void RegisterHsdag(MethodCatalog& catalog) {
  AddMethod(
      catalog,
      {.name = "hsdag",
       .sentence = "Learns to group and place ops by policy gradient: a graph network scores edges, groups form along "
                   "the best ones, and a classifier places each group.",
       .source = "Duan et al. 2024",
       .parameters = HsdagParameters(),
       .modes = HsdagModes(),
       .make = CompleteHsdag});
}

}  // namespace berth
