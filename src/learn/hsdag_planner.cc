#include "base/parameters.h"
#include "learn/hsdag.h"
#include "learn/learner.h"

namespace berth {
namespace {

Encoder EncoderNamed(const std::string& name) {
  return name == "gat" ? Encoder::kGat : name == "gin" ? Encoder::kGin : Encoder::kGcn;
}

// The three modes: what the paper says, what its released code does, and what works best here. Parameters that are
// given overrule the mode's.
struct Defaults {
  Method method;
  HsdagOptions policy;
};

Defaults PaperMode() {
  Defaults mode;
  mode.method.rule = {.reward = Reward::kInverse, .credit = Credit::kOwn, .baseline = Baseline::kNone, .gamma = 0.95};
  mode.method.learner = {.learning_rate = 1e-4, .learning_rate_end = 1e-4};
  mode.policy.shape.symmetric = false;
  return mode;
}

Defaults CodeMode() {
  Defaults mode = PaperMode();
  mode.method.rule.credit = Credit::kBuffer;
  mode.method.learner = {.learning_rate = 1e-3, .learning_rate_end = 1e-3};
  mode.method.scoring.reject_single_device = true;
  mode.policy.colocation = "code";
  mode.policy.features = {.in_degree = false, .out_degree = false, .fractal = false, .position = 1, .shape = false};
  return mode;
}

Defaults BestMode() {
  Defaults mode;
  mode.method.rule = {.reward = Reward::kNegative, .credit = Credit::kOwn, .baseline = Baseline::kBatch, .gamma = 1};
  mode.method.learner = {.learning_rate = 1e-3, .learning_rate_end = 3e-4, .entropy = 4e-3, .entropy_end = 3e-4};
  mode.method.learner.hold = 0.01;
  mode.method.critic = {.prior = CriticOptions::Prior::kCosts, .imagined = 30};
  mode.policy.features.costs = true;
  mode.policy.features.fixed = true;
  mode.policy.features.normalised = true;
  mode.policy.shape.dropout = 0;
  mode.policy.shape.levels = 0;
  mode.policy.state_update = false;
  return mode;
}

template <typename T>
void Set(const Params& params, std::string_view name, T& value) {
  if (!params.Given(name)) return;
  if constexpr (std::is_same_v<T, bool>) {
    value = params.Bool(name);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    value = params.Int(name);
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = params.Text(name);
  } else {
    value = params.Real(name);
  }
}

template <typename T>
void SetChoice(const Params& params, std::string_view name, T& value,
               std::initializer_list<std::pair<std::string_view, T>> choices) {
  if (!params.Given(name)) return;
  for (const auto& [text, choice] : choices) {
    if (params.Text(name) == text) value = choice;
  }
}

Method MakeMethod(const Params& params) {
  const std::string& name = params.Text("mode");
  Defaults mode = name == "paper" ? PaperMode() : name == "code" ? CodeMode() : BestMode();
  HsdagOptions& policy = mode.policy;
  Method& method = mode.method;
  Set(params, "colocation", policy.colocation);
  Set(params, "type", policy.features.type);
  if (params.Given("degrees")) policy.features.in_degree = policy.features.out_degree = params.Bool("degrees");
  Set(params, "fractal", policy.features.fractal);
  Set(params, "position", policy.features.position);
  Set(params, "shape", policy.features.shape);
  Set(params, "costs", policy.features.costs);
  if (params.Given("columns")) policy.features.fixed = params.Text("columns") == "fixed";
  Set(params, "normalised", policy.features.normalised);
  if (params.Given("encoder")) policy.shape.encoder = EncoderNamed(params.Text("encoder"));
  Set(params, "hidden", policy.shape.hidden);
  Set(params, "layers", policy.shape.gnn_layers);
  Set(params, "dropout", policy.shape.dropout);
  Set(params, "directed", policy.shape.directed);
  Set(params, "symmetric", policy.shape.symmetric);
  Set(params, "levels", policy.shape.levels);
  Set(params, "steps", policy.steps);
  Set(params, "state", policy.state_update);
  SetChoice<Reward>(params, "reward", method.rule.reward,
                    {{"inverse", Reward::kInverse}, {"time", Reward::kNegative}, {"log", Reward::kLog}});
  SetChoice<Credit>(params, "credit", method.rule.credit,
                    {{"own", Credit::kOwn}, {"buffer", Credit::kBuffer}, {"incremental", Credit::kIncremental}});
  SetChoice<Baseline>(params, "baseline", method.rule.baseline,
                      {{"none", Baseline::kNone}, {"batch", Baseline::kBatch}, {"moving", Baseline::kMoving}});
  SetChoice<CriticOptions::Prior>(params, "critic", method.critic.prior,
                                  {{"none", CriticOptions::Prior::kNone},
                                   {"blank", CriticOptions::Prior::kBlank},
                                   {"costs", CriticOptions::Prior::kCosts}});
  Set(params, "imagined", method.critic.imagined);
  Set(params, "gamma", method.rule.gamma);
  Set(params, "normalise_reward", method.rule.normalise);
  Set(params, "ppo", method.rule.clip_ratio);
  Set(params, "epochs", method.rule.epochs);
  Set(params, "learning_rate", method.learner.learning_rate);
  method.learner.learning_rate_end = params.Given("learning_rate_end") ? params.Real("learning_rate_end")
                                     : params.Given("learning_rate")   ? method.learner.learning_rate
                                                                       : method.learner.learning_rate_end;
  Set(params, "entropy", method.learner.entropy);
  Set(params, "entropy_end", method.learner.entropy_end);
  Set(params, "clip", method.learner.clip_norm);
  Set(params, "workers", method.learner.workers);
  Set(params, "seeded", method.seeded);
  Set(params, "cache", method.scoring.cache);
  Set(params, "runs", method.scoring.runs);
  Set(params, "kept", method.scoring.kept);
  Set(params, "reject_single", method.scoring.reject_single_device);
  Set(params, "checkpoint", method.checkpoint);
  method.train = params.Given("train") ? params.Bool("train") : method.checkpoint.empty();
  if (method.scoring.kept > method.scoring.runs) {
    throw Error("hsdag: kept={} is more than runs={}; make it at most as many", method.scoring.kept,
                method.scoring.runs);
  }
  Set(params, "hold", method.learner.hold);
  if (method.critic.prior == CriticOptions::Prior::kNone) {
    if (params.Given("hold") && method.learner.hold > 0)
      throw Error("hsdag: hold={} needs a critic", method.learner.hold);
    method.critic.imagined = 0;
    method.learner.hold = 0;
  } else if (method.rule.reward != Reward::kNegative) {
    throw Error("hsdag: a critic predicts times and needs reward=time; set that, or critic=none");
  }
  policy.anchors = method.learner.hold > 0;
  method.name = params.canonical();
  method.make_policy = [policy](const Problem& problem, Random random) {
    return std::make_shared<HsdagPolicy>(problem, policy, random);
  };
  method.refuses = [](const Problem& problem) -> std::optional<std::string> {
    if (problem.num_devices() < 2) return "it needs at least two devices";
    return std::nullopt;
  };
  return method;
}

}  // namespace

void RegisterHsdag(MethodCatalog& catalog) {
  EntryInfo info = {
      .name = "hsdag",
      .sentence =
          "Learns to group and place ops by policy gradient: a graph network scores edges, groups form along the best "
          "ones, and a classifier places each group.",
      .source = "Duan et al. 2024",
      .parameters = {
          Choice("mode", {"best", "paper", "code"},
                 "defaults of the other parameters: ours, the paper's or the released code's"),
          Choice("colocation", {"paper", "code", "none"},
                 "co-location rule by which ops become nodes; code in mode code"),
          Switch("type", "true", "feature: op types of the members"),
          Switch("degrees", "true", "features: in-degree and out-degree; false in mode code"),
          Switch("fractal", "true", "feature: fractal dimension; false in mode code"),
          Whole("position", "16",
                "feature: columns of the encoded topological number, 1 for the number itself (mode "
                "code), 0 for none",
                0, 256),
          Switch("shape", "true", "feature: output shape; false in mode code"),
          Switch("costs", "true", "features: op and transfer times; false in modes paper and code"),
          Choice("columns", {"fixed", "graph"},
                 "columns of op types and degrees: fixed for all graphs, so that a policy serves many, or one for each "
                 "that occurs in the graph (published; modes paper and code)"),
          Switch("normalised", "true", "features have mean 0 and deviation 1; false in modes paper and code"),
          Choice("encoder", {"gcn", "gat", "gin"}, "the graph network"),
          Whole("hidden", "128", "width of the network", 1, 4096),
          Whole("layers", "2", "graph layers before the edges are scored", 1, 16),
          Real("dropout", "0", "dropout probability; 0.2 in modes paper and code", 0, 0.9),
          Switch("directed", "false", "messages go along the direction of edges only"),
          Switch("symmetric", "true", "one score per edge; false in modes paper and code: one per direction"),
          Whole(
              "levels", "0",
              "levels of grouping: 0 places each node alone, -1 groups until nothing joins; 1 in modes paper and code",
              -1, 20),
          Whole("steps", "20", "placements per episode", 1, 1e6),
          Switch("state", "false", "a step changes the features of the next; true in modes paper and code"),
          Choice("reward", {"time", "inverse", "log"},
                 "reward of a placement: minus its time, 1 / its time, or minus its logarithm; inverse in modes paper "
                 "and code"),
          Choice("credit", {"own", "buffer", "incremental"}, "how rewards are credited to steps; buffer in mode code"),
          Choice("baseline", {"batch", "none", "moving"},
                 "baseline that is subtracted from rewards; none in modes paper and code"),
          Choice("critic", {"costs", "none", "blank"},
                 "a learned model of the reward, which begins with the problem's costs or blank; none in modes paper "
                 "and code"),
          Whole("imagined", "30", "gradient steps on the critic after each update", 0, 1000),
          Real("hold", "0.01",
               "weight per decision that holds additional episodes to each device in turn; it falls to a thousandth; 0 "
               "(as without a critic): no such episodes",
               0, 1e6),
          Real("gamma", "1", "discount of later rewards; 0.95 in modes paper and code", 0, 1),
          Switch("normalise_reward", "false", "divide rewards by their standard deviation"),
          Real("ppo", "0", "clip the ratios of PPO at 1 +- this; 0: REINFORCE", 0, 1),
          Whole("epochs", "1", "gradient steps per update on its own placements", 1, 100),
          Real("learning_rate", "0.001", "learning rate of Adam at first; 0.0001 in mode paper", 1e-12, 10),
          Real("learning_rate_end", "0.0003",
               "learning rate at the end of the budget, reached linearly; learning_rate where only that is given", 0,
               10),
          Real("entropy", "0.004", "weight of the policy's entropy at first; 0 in modes paper and code", 0, 1e6),
          Real("entropy_end", "0.0003",
               "weight at the end of the budget, reached geometrically, or linearly if it is 0", 0, 1e6),
          Real("clip", "0", "largest norm of a gradient; 0: no limit", 0),
          Whole("workers", "1", "episodes per update, side by side, free and held alike", 1, 1024),
          Switch("seeded", "false", "score each single device first"),
          Switch("cache", "false", "score a repeated placement only once (each time counts as an evaluation)"),
          Whole("runs", "1", "scores per placement; published: 10", 1),
          Whole("kept", "1", "how many of these, the last ones, are averaged; published: 5", 1),
          Switch("reject_single", "false", "placements on a single device fail; true in mode code"),
          {.name = "checkpoint", .sentence = "a policy that `berth train` has written"},
          Switch("train", "true",
                 "false (default with a checkpoint): answer with the policy's likeliest placement, without training")}};
  for (Parameter& parameter : info.parameters) parameter.mode_decides = parameter.name != "mode";
  catalog.Add(std::move(info), MakeMethod);
}

}  // namespace berth
