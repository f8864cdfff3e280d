#include "learn/policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "placement/testing.h"

namespace berth {
namespace {

// What is drawn on several graphs and then what is remembered of them: A B A B.
TEST(RecallTable, AsksOnceForTheOddsOfEachTaskHoweverTheirEpisodesAreMixed) {
  const Problem one = testing::Chain(3, 2), other = testing::Chain(2, 2);
  const Task first(one), second(other);
  Episode of_first, again, of_second;
  of_first.device = {0, 1, 0};
  again.device = {1, 1, 1};
  of_second.device = {1, 0};
  const std::vector<Played> episodes = {{.task = first, .episode = of_first},
                                        {.task = second, .episode = of_second},
                                        {.task = first, .episode = again},
                                        {.task = second, .episode = of_second}};
  std::vector<const Task*> asked;
  const auto likelihoods = RecallTable(episodes, [&](const Task& task) {
    asked.push_back(&task);
    const auto nodes = static_cast<int64_t>(task.problem.num_ops());
    // Device 1 has odds of a third on the first task, of two thirds on the second.
    const double of_one = &task == &first ? 1.0 / 3 : 2.0 / 3;
    return OddsTable{
        .device =
            torch::tensor({std::log(1 - of_one), std::log(of_one)}, torch::kFloat32).unsqueeze(0).repeat({nodes, 1})};
  });
  EXPECT_EQ(asked, (std::vector<const Task*>{&first, &second}));
  const auto sum = [&](size_t i) { return likelihoods[i]->log_prob.sum().item<double>(); };
  EXPECT_NEAR(sum(0), 2 * std::log(2.0 / 3) + std::log(1.0 / 3), 1e-5);
  EXPECT_NEAR(sum(1), std::log(2.0 / 3) + std::log(1.0 / 3), 1e-5);
  EXPECT_NEAR(sum(2), 3 * std::log(1.0 / 3), 1e-5);
  EXPECT_EQ(sum(3), sum(1));
  EXPECT_EQ(likelihoods[2]->entropy.size(0), 3);
}

}  // namespace
}  // namespace berth
