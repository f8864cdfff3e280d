#include "learn/pair_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "base/random.h"

namespace berth {
namespace {

const std::vector<DeviceId> kTwoAlikeAndOne = {DeviceId{0}, DeviceId{0}, DeviceId{2}};

std::vector<int64_t> Drawn(Random& random, size_t nodes, size_t devices) {
  std::vector<int64_t> device;
  for (size_t i = 0; i < nodes; ++i) device.push_back(static_cast<int64_t>(random.Below(devices)));
  return device;
}

// Gaussian elimination with the rows of all that was learned: (1 + X'X) w = X'y, as plainly as it can be written.
double SlowGuess(const std::vector<std::vector<double>>& rows, const std::vector<double>& values,
                 const std::vector<double>& asked) {
  const size_t n = asked.size();
  std::vector<std::vector<double>> matrix(n, std::vector<double>(n + 1, 0));
  for (size_t i = 0; i < n; ++i) matrix[i][i] = 1;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < n; ++k) matrix[i][k] += rows[r][i] * rows[r][k];
      matrix[i][n] += rows[r][i] * values[r];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t below = i + 1; below < n; ++below) {
      const double factor = matrix[below][i] / matrix[i][i];
      for (size_t k = i; k <= n; ++k) matrix[below][k] -= factor * matrix[i][k];
    }
  }
  double guess = 0;
  std::vector<double> weight(n, 0);
  for (size_t i = n; i-- > 0;) {
    weight[i] = matrix[i][n];
    for (size_t k = i + 1; k < n; ++k) weight[i] -= matrix[i][k] * weight[k];
    weight[i] /= matrix[i][i];
    guess += weight[i] * asked[i];
  }
  return guess;
}

std::vector<double> SlowFeatures(const std::vector<int64_t>& device) {
  std::vector<double> row = {1};
  for (size_t i = 0; i < device.size(); ++i) {
    for (size_t k = i + 1; k < device.size(); ++k) row.push_back(device[i] == device[k] ? 1 : -1);
  }
  for (const int64_t each : device) row.push_back(each == 2 ? 1 : -1);
  return row;
}

TEST(PairModel, GuessesAsLeastSquaresWithAPriorDo) {
  Random random(1);
  PairModel model(5, kTwoAlikeAndOne);
  std::vector<std::vector<double>> rows;
  std::vector<double> values;
  double first = 0;
  for (int i = 0; i < 40; ++i) {
    const std::vector<int64_t> device = Drawn(random, 5, 3);
    const double cost = 1 + random.Uniform();
    if (i == 0) first = cost;
    model.Learn(device, cost);
    rows.push_back(SlowFeatures(device));
    values.push_back(std::log(cost / first));
    const std::vector<int64_t> asked = Drawn(random, 5, 3);
    ASSERT_NEAR(model.Guess(asked), SlowGuess(rows, values, SlowFeatures(asked)), 1e-9) << i;
  }
}

TEST(PairModel, TakesPlacementsThatDifferInNamesAloneForOne) {
  Random random(2);
  PairModel model(6, kTwoAlikeAndOne);
  for (int i = 0; i < 30; ++i) model.Learn(Drawn(random, 6, 3), 1 + random.Uniform());
  for (int i = 0; i < 20; ++i) {
    const std::vector<int64_t> device = Drawn(random, 6, 3);
    std::vector<int64_t> renamed;
    for (const int64_t each : device) renamed.push_back(each < 2 ? 1 - each : each);
    EXPECT_EQ(model.Guess(device), model.Guess(renamed));
    std::vector<int64_t> other = device;
    for (int64_t& each : other) each = each == 0 ? 2 : each == 2 ? 0 : each;
    if (std::ranges::count(device, 0) != std::ranges::count(device, 2)) {
      EXPECT_NE(model.Guess(device), model.Guess(other));
    }
  }
}

// Two pairs that should be apart and one that should be together: after a hundred of 3^8 placements.
TEST(PairModel, OrdersPlacementsThatItHasNotSeen) {
  Random random(3);
  const auto cost = [](const std::vector<int64_t>& device) {
    return std::exp((device[0] == device[1] ? 0.3 : 0) + (device[2] == device[3] ? 0.2 : 0) -
                    (device[4] == device[5] ? 0.4 : 0));
  };
  PairModel model(8, {});
  for (int i = 0; i < 100; ++i) {
    const std::vector<int64_t> device = Drawn(random, 8, 3);
    model.Learn(device, cost(device));
  }
  int right = 0, asked = 0;
  for (int i = 0; i < 200; ++i) {
    const std::vector<int64_t> a = Drawn(random, 8, 3), b = Drawn(random, 8, 3);
    if (std::abs(cost(a) - cost(b)) < 0.05) continue;
    ++asked;
    right += (model.Guess(a) < model.Guess(b)) == (cost(a) < cost(b)) ? 1 : 0;
  }
  EXPECT_GT(right, asked * 9 / 10);
}

TEST(PairModel, CountsItsFeatures) {
  EXPECT_EQ(PairModel::NumFeatures(20, {}), 191U);
  EXPECT_EQ(PairModel::NumFeatures(20, kTwoAlikeAndOne), 211U);
  const std::vector<DeviceId> alike = {DeviceId{0}, DeviceId{0}};
  EXPECT_EQ(PairModel::NumFeatures(20, alike), 191U);
}

}  // namespace
}  // namespace berth
