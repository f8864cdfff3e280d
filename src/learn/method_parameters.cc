#include "learn/method_parameters.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>

#include "base/parameters.h"

namespace berth {
namespace {

template <typename T>
using Words = std::vector<std::pair<std::string_view, T>>;

// A parameter that takes one of these words; the first is the default.
const Words<Reward>& Rewards() {
  static const Words<Reward> words = {{"log", Reward::kLog},
                                      {"time", Reward::kNegative},
                                      {"square_root", Reward::kSquareRoot},
                                      {"relative_root", Reward::kRelativeRoot},
                                      {"inverse", Reward::kInverse},
                                      {"slower", Reward::kSlower}};
  return words;
}

const Words<Credit>& Credits() {
  static const Words<Credit> words = {
      {"own", Credit::kOwn},           {"buffer", Credit::kBuffer},     {"incremental", Credit::kIncremental},
      {"intermediate", Credit::kToGo}, {"terminal", Credit::kTerminal}, {"best_future", Credit::kBestFuture}};
  return words;
}

const Words<Baseline>& Baselines() {
  static const Words<Baseline> words = {{"batch", Baseline::kBatch},
                                        {"none", Baseline::kNone},
                                        {"moving", Baseline::kMoving},
                                        {"window", Baseline::kWindow},
                                        {"elite", Baseline::kElite}};
  return words;
}

template <typename T>
std::vector<std::string> NamesOf(const Words<T>& words) {
  std::vector<std::string> names;
  for (const auto& [name, value] : words) names.emplace_back(name);
  return names;
}

template <typename T>
T Meaning(const Words<T>& words, const std::string& name) {
  return std::ranges::find(words, name, &std::pair<std::string_view, T>::first)->second;
}

// What the parameters of training say; `given` where it counts whether somebody wrote one.
void SetTraining(const Params& given, const Params& params, Method& method) {
  method.rule = {.reward = Meaning(Rewards(), params.Text("reward")),
                 .credit = Meaning(Credits(), params.Text("credit")),
                 .baseline = Meaning(Baselines(), params.Text("baseline")),
                 .window = params.Int("window"),
                 .gamma = params.Real("gamma"),
                 .normalise = params.Bool("normalise"),
                 .clip_ratio = params.Real("ppo"),
                 .epochs = params.Int("epochs")};
  method.memory = {
      .kept = params.Int("memory"), .imitation = params.Real("imitation"), .distinct = params.Bool("distinct")};
  method.scoring = {.runs = params.Int("runs"),
                    .kept = params.Int("kept"),
                    .memory_penalty = params.Real("memory_penalty"),
                    .cache = params.Bool("cache"),
                    .reject_single_device = params.Bool("reject_single")};
  if (method.scoring.kept > method.scoring.runs) {
    throw Error("{}: kept={} is more than runs={}; make it at most as many", Spec::Parse(given.canonical()).name,
                method.scoring.kept, method.scoring.runs);
  }
  const bool one_rate = given.Given("learning_rate") && !given.Given("learning_rate_end");
  method.learner = {.workers = params.Int("workers"),
                    .rollouts = params.Int("rollouts"),
                    .learning_rate = {.first = params.Real("learning_rate"),
                                      .last = params.Real(one_rate ? "learning_rate" : "learning_rate_end")},
                    .entropy = {.shape = Schedule::Shape::kGeometric,
                                .first = params.Real("entropy"),
                                .last = params.Real("entropy_end")},
                    .clip_norm = params.Real("clip"),
                    .restart_every = params.Int("restart_every")};
  method.seeded = params.Bool("seeded");
  method.checkpoint = params.Text("checkpoint");
  method.train = given.Given("train") ? params.Bool("train") : method.checkpoint.empty();
}

const std::string* ValueIn(const Mode& mode, const std::string& parameter) {
  const auto found = std::ranges::find(mode.values, parameter, &std::pair<std::string, std::string>::first);
  return found == mode.values.end() ? nullptr : &found->second;
}

// The defaults of the first mode, and in words where another one differs from them.
void TellModes(const std::vector<Mode>& modes, std::vector<Parameter>& parameters) {
  for (Parameter& parameter : parameters) {
    const std::string plain = parameter.default_value;
    const auto value = [&](const Mode& mode) {
      const std::string* own = ValueIn(mode, parameter.name);
      return own == nullptr ? plain : *own;
    };
    if (!modes.empty()) parameter.default_value = value(modes.front());
    std::vector<std::pair<std::string, std::vector<std::string>>> others;  // a value and its modes
    for (const Mode& mode : modes) {
      if (value(mode) == parameter.default_value) continue;
      const auto known = std::ranges::find(others, value(mode), &decltype(others)::value_type::first);
      if (known == others.end()) {
        others.push_back({value(mode), {mode.name}});
      } else {
        known->second.push_back(mode.name);
      }
    }
    for (const auto& [other, names] : others) {
      parameter.sentence +=
          fmt::format("; {} in mode{} {}", other, names.size() == 1 ? "" : "s", fmt::join(names, " and "));
    }
    parameter.mode_decides = parameter.mode_decides || !others.empty();
  }
}

// `params` with what its mode says of all that it leaves open.
Params WithMode(const Params& params, const std::vector<Mode>& modes, const std::vector<Parameter>& declared) {
  if (modes.size() < 2) return params;
  const Mode& mode = *std::ranges::find(modes, params.Text("mode"), &Mode::name);
  Spec spec = Spec::Parse(params.canonical());
  if (&mode != &modes.front()) {
    for (const auto& [name, value] : mode.values) {
      if (!params.Given(name)) spec.parameters.emplace_back(name, value);
    }
  }
  return Params(spec, declared, "planner");
}

}  // namespace

std::vector<Parameter> TrainingParameters() {
  std::vector<Parameter> list = {
      Choice(
          "reward", NamesOf(Rewards()),
          "reward of a placement: minus the logarithm of its time, minus its time in seconds or the square root of "
          "that, minus the square root of its time over the first one's, at least -10 (relative_root), 1 / its time, "
          "or plus the square root (slower: as in the recurrent baseline that HSDAG released)"),
      Choice("credit", NamesOf(Credits()),
             "what a step is credited with: the reward of its own placement; all of an episode's, discounted (buffer); "
             "its reward minus the one before (incremental), or how much better all later placements become "
             "(intermediate); the last placement alone (terminal); or the best later one (best_future)"),
      Choice("baseline", NamesOf(Baselines()),
             "what is subtracted from credits: their mean over an update (batch), nothing, a moving mean over updates, "
             "the mean of the last `window` episodes at the same step, or all but their best quarter (elite), so that "
             "what is worse counts for nothing"),
      Whole("window", "10", "episodes over which the baseline of each step is the mean, for baseline=window", 1, 1e6),
      Real("gamma", "1", "discount of later rewards, for credit own and intermediate; of earlier ones for buffer", 0,
           1),
      Switch("normalise", "false", "divide credits by their standard deviation over an update"),
      Real("ppo", "0", "clip the ratios of PPO at 1 +- this; 0: REINFORCE", 0, 1),
      Whole("epochs", "1", "gradient steps per update on its own episodes", 1, 100),
      Whole("memory", "0", "best placements drawn so far that each update imitates", 0, 4096),
      Real("imitation", "1", "what these weigh together, as a share of an update's episodes", 0, 1e3),
      Switch("distinct", "false", "a placement that was drawn before is drawn again, from flatter odds each time"),
      Whole("restart_every", "0",
            "updates after which the policy begins anew and imitates what is best since then; the last time what was "
            "best of all (on one graph; 0: never)",
            0, 1e9),
      Whole("workers", "1",
            "workers per update, side by side on threads, each on a graph of its own in training on several", 1, 1024),
      Whole("rollouts", "1", "episodes that a worker plays at once", 1, 1024),
      Real("learning_rate", "0.001", "learning rate of Adam at first; 0: nothing is learned", 0, 10),
      Real("learning_rate_end", "0.001",
           "learning rate at the end of the budget, reached linearly; learning_rate where only that is given", 0, 10),
      Real("entropy", "0", "weight of the policy's entropy at first", 0, 1e6),
      Real("entropy_end", "0", "weight at the end of the budget, reached geometrically, or linearly if it is 0", 0,
           1e6),
      Real("clip", "0", "largest norm of a gradient; 0: no limit", 0, 1e6),
      Real("memory_penalty", "2", "seconds added per GB over the memory limits", 0, 1e6),
      Switch("seeded", "false", "in planning, score each single device first, so that the answer is never worse"),
      Switch("cache", "false", "score a repeated placement only once (each time counts as an evaluation)"),
      Whole("runs", "1", "scores of each placement, for evaluators that measure (10 published, HSDAG and Placeto)", 1,
            1000),
      Whole("kept", "1", "how many of these, the last ones, are averaged (5 published)", 1, 1000),
      Switch("reject_single", "false", "placements on a single device fail"),
      {.name = "checkpoint", .sentence = "a policy that `berth train` has written, to begin with"},
      Switch("train", "true",
             "false (default with a checkpoint): answer with the policy's likeliest placement, without training")};
  // A checkpoint decides the first, and which of the two rates are given decides how the rate ends.
  for (Parameter& parameter : list) {
    parameter.mode_decides = parameter.name == "train" || parameter.name.starts_with("learning_rate");
  }
  return list;
}

void AddMethod(MethodCatalog& catalog, MethodDeclaration declaration) {
  EntryInfo info{.name = declaration.name,
                 .sentence = declaration.sentence,
                 .source = declaration.source,
                 .parameters = std::move(declaration.parameters)};
  std::ranges::move(TrainingParameters(), std::back_inserter(info.parameters));
  for (const Mode& mode : declaration.modes) {
    try {
      Params(Spec{.name = info.name, .parameters = mode.values}, info.parameters, "learned planner");
    } catch (const Error& error) {
      BERTH_CHECK(false, "mode {} of {}: {}", mode.name, info.name, error.what());
    }
  }
  // Every mode says all that any mode says: what it leaves out has the parameter's own default.
  for (const Mode& other : declaration.modes) {
    for (const auto& [name, value] : other.values) {
      for (Mode& mode : declaration.modes) {
        if (ValueIn(mode, name) != nullptr) continue;
        mode.values.emplace_back(name, std::ranges::find(info.parameters, name, &Parameter::name)->default_value);
      }
    }
  }
  TellModes(declaration.modes, info.parameters);
  if (declaration.modes.size() > 1) {
    std::vector<std::string> names;
    for (const Mode& mode : declaration.modes) names.push_back(mode.name);
    info.parameters.insert(info.parameters.begin(),
                           Choice("mode", std::move(names), "defaults of the other parameters: ours, or as published"));
  }
  const auto shared = std::make_shared<const MethodDeclaration>(std::move(declaration));
  const std::vector<Parameter> declared = info.parameters;
  catalog.Add(std::move(info), [shared, declared](const Params& given) {
    const Params params = WithMode(given, shared->modes, declared);
    Method method{.name = given.canonical(), .default_evaluations = shared->default_evaluations};
    SetTraining(given, params, method);
    shared->make(given, params, method);
    return method;
  });
}

}  // namespace berth
