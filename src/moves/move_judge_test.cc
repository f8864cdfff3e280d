#include "moves/move_judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.h"

namespace berth {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> RandomFeatures(size_t count, Random& random) {
  std::vector<double> features(count);
  for (double& each : features) each = random.Uniform(-1, 1);
  return features;
}

double Dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Makes a move as much worse as a linear function of its features says.
struct Rule {
  std::vector<double> weight;
  double operator()(std::span<const double> features) const { return 0.02 * Dot(weight, features); }
};

void Teach(MoveJudge& judge, const Rule& rule, int examples, Random& random) {
  for (int i = 0; i < examples; ++i) {
    const std::vector<double> features = RandomFeatures(rule.weight.size(), random);
    judge.Learn(features, rule(features));
  }
}

// Of pairs of moves of which one helps and the other does not: the share in which the judge guesses which.
double ShareOfRightGuesses(const MoveJudge& judge, const Rule& rule, Random& random) {
  int right = 0, asked = 0;
  while (asked < 1000) {
    std::vector<double> good = RandomFeatures(rule.weight.size(), random), bad = good;
    bad = RandomFeatures(rule.weight.size(), random);
    if (rule(good) > rule(bad)) std::swap(good, bad);
    if (rule(good) > -0.002 || rule(bad) < 0.002) continue;
    ++asked;
    right += judge.Guess(good, random) < judge.Guess(bad, random) ? 1 : 0;
  }
  return right / 1000.0;
}

double SpreadOfGuesses(const MoveJudge& judge, std::span<const double> features, Random& random) {
  double sum = 0, squares = 0;
  for (int i = 0; i < 2000; ++i) {
    const double guess = judge.Guess(features, random);
    sum += guess;
    squares += guess * guess;
  }
  return std::sqrt(squares / 2000 - (sum / 2000) * (sum / 2000));
}

std::vector<double> Solve(std::vector<std::vector<double>> matrix, std::vector<double> right) {
  const size_t n = right.size();
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column; row < n; ++row) {
      if (std::abs(matrix[row][column]) > std::abs(matrix[pivot][column])) pivot = row;
    }
    std::swap(matrix[column], matrix[pivot]);
    std::swap(right[column], right[pivot]);
    for (size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double factor = matrix[row][column] / matrix[column][column];
      for (size_t k = 0; k < n; ++k) matrix[row][k] -= factor * matrix[column][k];
      right[row] -= factor * right[column];
    }
  }
  for (size_t i = 0; i < n; ++i) right[i] /= matrix[i][i];
  return right;
}

TEST(MoveJudge, GuessesTheBetterOfTwoMovesOnceItHasSeenExamples) {
  Random random(1);
  const Rule rule{{0.3, -0.7, 0, 0.5, 0.1, -0.2}};
  MoveJudge judge(6);
  EXPECT_NEAR(ShareOfRightGuesses(judge, rule, random), 0.5, 0.06) << "of which it knows nothing";
  Teach(judge, rule, 100, random);
  EXPECT_GT(ShareOfRightGuesses(judge, rule, random), 0.9);
  Teach(judge, rule, 1000, random);
  EXPECT_GT(ShareOfRightGuesses(judge, rule, random), 0.97);
}

TEST(MoveJudge, HasTheWeightsThatARegressionOverAllExamplesHas) {
  Random random(2);
  constexpr size_t kFeatures = 4;
  MoveJudge judge(kFeatures);
  // The normal equations of all examples so far, solved anew for each; an example counts as much as its noise says.
  std::vector<std::vector<double>> matrix(kFeatures, std::vector<double>(kFeatures, 0));
  for (size_t i = 0; i < kFeatures; ++i) matrix[i][i] = 1;
  std::vector<double> right(kFeatures, 0);
  double noise = 0.01;
  for (int i = 0; i < 200; ++i) {
    const std::vector<double> features = RandomFeatures(kFeatures, random);
    const double change = random.Uniform(-0.005, 0.02);
    const double badness = change < 0 ? -1 : 0.5 * std::min(change / 0.01, 1.0);
    const double error = badness - Dot(Solve(matrix, right), features);
    noise = 0.98 * noise + 0.02 * error * error;
    for (size_t a = 0; a < kFeatures; ++a) {
      for (size_t b = 0; b < kFeatures; ++b) matrix[a][b] += features[a] * features[b] / noise;
      right[a] += features[a] * badness / noise;
    }
    judge.Learn(features, change);
    const std::vector<double> weights = Solve(matrix, right);
    for (size_t a = 0; a < kFeatures; ++a) ASSERT_NEAR(judge.state()[a], weights[a], 1e-9) << "after " << i;
  }
}

TEST(MoveJudge, IsSureOfWhatItHasSeenAlone) {
  Random random(3);
  const Rule rule{{0.5, -0.5, 0}};
  MoveJudge judge(3);
  const std::vector<double> seen = {0.6, 0.8, 0}, never = {0, 0, 1};
  EXPECT_NEAR(SpreadOfGuesses(judge, seen, random), 1, 0.1);
  for (int i = 0; i < 300; ++i) {
    std::vector<double> features = RandomFeatures(3, random);
    features[2] = 0;
    judge.Learn(features, rule(features));
  }
  EXPECT_LT(SpreadOfGuesses(judge, seen, random), 0.1);
  EXPECT_NEAR(SpreadOfGuesses(judge, never, random), 1, 0.1);
}

TEST(MoveJudge, TakesAnyGainForOneAndAnyDisasterForAnother) {
  const auto after = [](double change) {
    MoveJudge judge(2);
    judge.Learn(std::vector<double>{1, 0.5}, change);
    return std::vector(judge.state().begin(), judge.state().end());
  };
  EXPECT_EQ(after(-1e-6), after(-0.5));
  EXPECT_EQ(after(0.01), after(kInfinity)) << "what failed is as bad as what is a percent worse";
  EXPECT_LT(after(-1e-6)[0], after(0)[0]);
  EXPECT_LT(after(0)[0], after(0.005)[0]);
  EXPECT_LT(after(0.005)[0], after(0.01)[0]);
}

TEST(MoveJudge, IsTheSameForTheSameSeed) {
  const Rule rule{{0.3, -0.7, 0.4}};
  const auto guesses = [&](uint64_t seed) {
    Random random(seed);
    MoveJudge judge(3);
    std::vector<double> all;
    for (int i = 0; i < 100; ++i) {
      const std::vector<double> features = RandomFeatures(3, random);
      all.push_back(judge.Guess(features, random));
      judge.Learn(features, rule(features));
    }
    return all;
  };
  EXPECT_EQ(guesses(4), guesses(4));
  EXPECT_NE(guesses(4), guesses(5));
}

TEST(MoveJudge, GoesOnFromItsState) {
  Random random(6);
  const Rule rule{{0.3, -0.7, 0.4}};
  MoveJudge judge(3), other(3);
  Teach(judge, rule, 50, random);
  const std::vector<double> features = {0.1, -0.9, 0.5};
  {
    Random same = random, as_well = random;
    EXPECT_NE(judge.Guess(features, same), other.Guess(features, as_well));
  }
  ASSERT_EQ(judge.state().size(), other.state().size());
  std::ranges::copy(judge.state(), other.state().begin());
  for (MoveJudge* each : {&judge, &other}) {
    Random same = random;
    Teach(*each, rule, 50, same);
  }
  EXPECT_TRUE(std::ranges::equal(judge.state(), other.state()));
  Random same = random, as_well = random;
  EXPECT_EQ(judge.Guess(features, same), other.Guess(features, as_well));
}

}  // namespace
}  // namespace berth
