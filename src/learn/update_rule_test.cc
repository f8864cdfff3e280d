#include "learn/update_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace berth {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Episode MakeEpisode(double start, std::vector<double> cost) {
  Episode episode;
  episode.start_cost = start;
  for (size_t i = 0; i < cost.size(); ++i) {
    episode.step_of.push_back(static_cast<int32_t>(i));
    episode.log_prob.push_back(-1.0f);
  }
  episode.cost = std::move(cost);
  return episode;
}

std::vector<double> WeighOne(const RuleOptions& options, const Episode& episode, double reference = 1) {
  UpdateRule rule(options);
  const Episode* const one[] = {&episode};
  return rule.Weigh(0, one, reference, 0.5)[0];  // a unit is half a second
}

auto Near(double value) { return DoubleNear(value, 1e-12); }

TEST(UpdateRule, LetsOnlyTheBestQuarterCount) {
  UpdateRule rule({.reward = Reward::kNegative, .credit = Credit::kTerminal, .baseline = Baseline::kElite});
  std::vector<Episode> episodes;
  for (const double cost : {8, 2, 6, 4, 20, 10, 12, 14}) episodes.push_back(MakeEpisode(kNan, {cost}));
  std::vector<const Episode*> all;
  for (const Episode& episode : episodes) all.push_back(&episode);
  std::vector<double> weight;
  for (const auto& each : rule.Weigh(0, all, 1, 1)) weight.push_back(each[0]);
  // Of 2, 4, 6, ... the first two, over the third.
  EXPECT_THAT(weight, ElementsAre(0, 4, 0, 2, 0, 0, 0, 0));
  EXPECT_THAT(WeighOne({.reward = Reward::kNegative, .credit = Credit::kTerminal, .baseline = Baseline::kElite},
                       MakeEpisode(kNan, {3})),
              ElementsAre(0));
}

// Five of eight are equally good: no worse one may count, and they must.
TEST(UpdateRule, LetsTheBestCountWhereMoreThanAQuarterAreEquallyGood) {
  UpdateRule rule({.reward = Reward::kNegative, .credit = Credit::kTerminal, .baseline = Baseline::kElite});
  const auto weigh = [&](const std::vector<double>& costs) {
    std::vector<Episode> episodes;
    for (const double cost : costs) episodes.push_back(MakeEpisode(kNan, {cost}));
    std::vector<const Episode*> all;
    for (const Episode& episode : episodes) all.push_back(&episode);
    std::vector<double> weight;
    for (const auto& each : rule.Weigh(0, all, 1, 1)) weight.push_back(each[0]);
    return weight;
  };
  EXPECT_THAT(weigh({2, 8, 2, 2, 6, 2, 9, 2}), ElementsAre(4, 0, 4, 4, 0, 4, 0, 4));
  EXPECT_THAT(weigh({2, 2, 2, 2, 2, 2, 2, 2}), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(UpdateRule, CreditsAStepWithWhatComesOfIt) {
  const Episode episode = MakeEpisode(8, {6, 10, 4});
  const auto weigh = [&](Credit credit) {
    return WeighOne({.reward = Reward::kNegative, .credit = credit, .baseline = Baseline::kNone}, episode);
  };
  // Seconds: 4 at the start, then 3, 5, 2.
  EXPECT_THAT(weigh(Credit::kToGo), ElementsAre(Near(2), Near(1), Near(3)));
  EXPECT_THAT(weigh(Credit::kTerminal), ElementsAre(Near(-2), Near(-2), Near(-2)));
  EXPECT_THAT(weigh(Credit::kBestFuture), ElementsAre(Near(2), Near(1), Near(3)));
  EXPECT_THAT(weigh(Credit::kIncremental), ElementsAre(Near(1), Near(-2), Near(3)));
  EXPECT_THAT(weigh(Credit::kOwn), ElementsAre(Near(-3), Near(-5), Near(-2)));
  EXPECT_THAT(WeighOne({.reward = Reward::kNegative, .credit = Credit::kBestFuture, .baseline = Baseline::kNone},
                       MakeEpisode(8, {6, 4, 10})),
              ElementsAre(Near(2), Near(1), Near(-3)));
}

TEST(UpdateRule, DiscountsAsThePaperOrAsItsCode) {
  const Episode episode = MakeEpisode(kNan, {2, 4});
  EXPECT_THAT(WeighOne({.reward = Reward::kInverse, .credit = Credit::kOwn, .baseline = Baseline::kNone, .gamma = 0.5},
                       episode),
              ElementsAre(Near(0.5), Near(0.125)));
  EXPECT_THAT(
      WeighOne({.reward = Reward::kInverse, .credit = Credit::kBuffer, .baseline = Baseline::kNone, .gamma = 0.5},
               episode),
      ElementsAre(Near(1), Near(1)));
}

TEST(UpdateRule, DiscountsWhatComesLater) {
  const Episode episode = MakeEpisode(10, {8, 12, 2});  // seconds less: 1, -2, 5
  const auto weigh = [&](double gamma) {
    return WeighOne({.reward = Reward::kNegative, .credit = Credit::kToGo, .baseline = Baseline::kNone, .gamma = gamma},
                    episode);
  };
  EXPECT_THAT(weigh(1), ElementsAre(Near(4), Near(3), Near(5)));
  EXPECT_THAT(weigh(0.5), ElementsAre(Near(1 - 1 + 1.25), Near(-2 + 2.5), Near(5)));
  EXPECT_THAT(weigh(0), ElementsAre(Near(1), Near(-2), Near(5)));
}

TEST(UpdateRule, RewardsByLogarithmAreTheSameForGraphsOfAnySize) {
  const RuleOptions options{.reward = Reward::kLog, .credit = Credit::kToGo, .baseline = Baseline::kNone};
  const auto small = WeighOne(options, MakeEpisode(8, {6, 10, 4}), 8);
  const auto large = WeighOne(options, MakeEpisode(8e6, {6e6, 10e6, 4e6}), 8e6);
  for (size_t i = 0; i < small.size(); ++i) EXPECT_NEAR(small[i], large[i], 1e-12);
  EXPECT_NEAR(small[0], std::log(8.0 / 4), 1e-12);
  // Failed: ten times the worst cost.
  EXPECT_THAT(WeighOne(options, MakeEpisode(8, {10, kInfinity}), 8),
              ElementsAre(Near(std::log(8.0 / 100)), Near(std::log(10.0 / 100))));
}

TEST(UpdateRule, NeedsOneCostForATerminalReward) {
  const RuleOptions options{.reward = Reward::kNegative, .credit = Credit::kTerminal, .baseline = Baseline::kNone};
  EXPECT_THAT(WeighOne(options, MakeEpisode(kNan, {kNan, kNan, 4})), ElementsAre(Near(-2), Near(-2), Near(-2)));
}

TEST(UpdateRule, CountsFromTheMeanOfTheLastEpisodesPerStep) {
  UpdateRule rule({.reward = Reward::kNegative, .credit = Credit::kOwn, .baseline = Baseline::kWindow, .window = 2});
  const auto weigh = [&](double first, double second) {
    const Episode episode = MakeEpisode(kNan, {first, second});
    const Episode* const one[] = {&episode};
    return rule.Weigh(0, one, 1, 1)[0];
  };
  EXPECT_THAT(weigh(2, 10), ElementsAre(Near(0), Near(0)));
  EXPECT_THAT(weigh(4, 20), ElementsAre(Near(-1), Near(-5)));
  EXPECT_THAT(weigh(8, 20), ElementsAre(Near(-2), Near(0)));
  // Baselines go into checkpoints.
  UpdateRule again(rule.options());
  again.Load(rule.Save(), "checkpoint");
  const Episode episode = MakeEpisode(kNan, {1, 2});
  const Episode* const one[] = {&episode};
  EXPECT_EQ(again.Weigh(0, one, 1, 1), rule.Weigh(0, one, 1, 1));
}

TEST(UpdateRule, CountsFromTheMeanOfTheUpdateOrOfManyUpdates) {
  const Episode a = MakeEpisode(kNan, {2, 4}), b = MakeEpisode(kNan, {6, 8});
  const Episode* const both[] = {&a, &b};
  UpdateRule batch({.reward = Reward::kNegative, .credit = Credit::kOwn, .baseline = Baseline::kBatch});
  const auto weight = batch.Weigh(0, both, 1, 1);
  EXPECT_THAT(weight[0], ElementsAre(Near(3), Near(1)));
  EXPECT_THAT(weight[1], ElementsAre(Near(-1), Near(-3)));
  UpdateRule moving({.reward = Reward::kNegative, .credit = Credit::kOwn, .baseline = Baseline::kMoving});
  moving.Weigh(0, both, 1, 1);
  const Episode* const one[] = {&a};
  EXPECT_THAT(moving.Weigh(0, one, 1, 1)[0], ElementsAre(Near(-2 + 4.8), Near(-4 + 4.8)));
  EXPECT_THAT(moving.Weigh(1, one, 1, 1)[0], ElementsAre(Near(1), Near(-1))) << "another task has its own baseline";
}

TEST(UpdateRule, CountsRootsOfSecondsWhereAsked) {
  const Episode episode = MakeEpisode(kNan, {8, kInfinity});
  // 4 seconds; a placement that failed counts as ten times the worst.
  EXPECT_THAT(WeighOne({.reward = Reward::kSquareRoot, .credit = Credit::kOwn, .baseline = Baseline::kNone}, episode),
              ElementsAre(Near(-2), Near(-std::sqrt(40.0))));
}

TEST(UpdateRule, CountsRootsOfSharesOfTheReferenceDownToAFloor) {
  const Episode episode = MakeEpisode(kNan, {8, 2, 1e6, kInfinity});
  EXPECT_THAT(
      WeighOne({.reward = Reward::kRelativeRoot, .credit = Credit::kOwn, .baseline = Baseline::kNone}, episode, 2),
      ElementsAre(Near(-2), Near(-1), Near(-10), Near(-10)));
}

TEST(UpdateRule, NormalisesToADeviationOfOne) {
  const auto weight =
      WeighOne({.reward = Reward::kNegative, .credit = Credit::kOwn, .baseline = Baseline::kBatch, .normalise = true},
               MakeEpisode(kNan, {2, 6}));
  EXPECT_THAT(weight, ElementsAre(Near(1), Near(-1)));
}

TEST(UpdateRule, LossFollowsTheWeights) {
  const Episode episode = MakeEpisode(kNan, {1, 1});
  Likelihood now;
  now.log_prob = torch::tensor({-1.0, -3.0}, torch::kFloat64);
  now.entropy = torch::tensor({0.5, 0.25}, torch::kFloat64);
  const std::vector<double> weight = {2, -1};
  EXPECT_NEAR(UpdateRule(RuleOptions{}).Loss(now, episode, weight, 0.1).item<double>(), 2 - 3 - 0.075, 1e-12);
  // PPO: ratios 1 and exp(-2); of the second, with a negative weight, the clipped one is the smaller gain.
  EXPECT_NEAR(UpdateRule({.clip_ratio = 0.2}).Loss(now, episode, weight, 0).item<double>(), -2 + 0.8, 1e-12);
}

// As in the code of Mirhoseini et al. 2018: a signal of 100 s, with which the average begins, and which is left out
// after so many updates.
TEST(UpdateRule, TakesFailuresForTheSignalThatItIsTold) {
  const RuleOptions options{.reward = Reward::kSquareRoot,
                            .baseline = Baseline::kMoving,
                            .failed_seconds = 100,
                            .first_baseline = -10,
                            .failures_until = 1000};
  UpdateRule rule(options);
  const Episode fast = MakeEpisode(kNan, {4}), failed = MakeEpisode(kNan, {kInfinity});
  const std::vector<const Episode*> both = {&fast, &failed}, only = {&failed};
  // A unit is a second: rewards of -2 and -10, whose mean is -6.
  const double average = 0.9 * -10 + 0.1 * -6;
  EXPECT_THAT(rule.Weigh(0, both, 1, 1, 999),
              ElementsAre(ElementsAre(Near(-2 - average)), ElementsAre(Near(-10 - average))));
  const double later = 0.9 * average + 0.1 * -2;
  EXPECT_THAT(rule.Weigh(0, both, 1, 1, 1000), ElementsAre(ElementsAre(Near(-2 - later)), ElementsAre(0)));
  EXPECT_THAT(rule.Weigh(0, only, 1, 1, 1001), ElementsAre(ElementsAre(0)));
  const double last = 0.9 * later + 0.1 * -2;
  EXPECT_THAT(rule.Weigh(0, both, 1, 1, 1002), ElementsAre(ElementsAre(Near(-2 - last)), ElementsAre(0)))
      << "the one before changed nothing";
}

TEST(UpdateRule, RewardsWhatIsSlowerWhereItIsToldTo) {
  EXPECT_THAT(WeighOne({.reward = Reward::kSlower, .baseline = Baseline::kNone}, MakeEpisode(kNan, {18})),
              ElementsAre(Near(3)));
  EXPECT_THAT(WeighOne({.reward = Reward::kSquareRoot, .baseline = Baseline::kNone}, MakeEpisode(kNan, {18})),
              ElementsAre(Near(-3)));
}

}  // namespace
}  // namespace berth
