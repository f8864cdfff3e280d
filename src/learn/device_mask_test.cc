#include "learn/device_mask.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "placement/testing.h"

namespace berth {
namespace {

// All permutations of the devices within their classes.
TEST(NameLikeliest, FindsTheLikeliestNamesAndKeepsThePlacement) {
  Random random(9);
  for (int round = 0; round < 50; ++round) {
    const size_t nodes = 1 + random.Below(6);
    const std::vector<DeviceId> class_of =
        round % 2 == 0 ? std::vector<DeviceId>{DeviceId{0}, DeviceId{1}, DeviceId{1}, DeviceId{0}}
                       : std::vector<DeviceId>{DeviceId{0}, DeviceId{0}};
    const size_t devices = class_of.size();
    std::vector<float> log_probability;
    for (size_t i = 0; i < nodes * devices; ++i) log_probability.push_back(static_cast<float>(-random.Uniform()));
    std::vector<int64_t> drawn;
    for (size_t i = 0; i < nodes; ++i) drawn.push_back(static_cast<int64_t>(random.Below(devices)));
    const auto likelihood = [&](const std::vector<int64_t>& device) {
      double sum = 0;
      for (size_t i = 0; i < nodes; ++i) {
        sum += static_cast<double>(log_probability[i * devices + static_cast<size_t>(device[i])]);
      }
      return sum;
    };
    std::vector<int64_t> name(devices);
    std::iota(name.begin(), name.end(), 0);
    double most = -1e30;
    do {
      bool allowed = true;
      for (size_t d = 0; d < devices; ++d) {
        allowed = allowed && class_of[d] == class_of[static_cast<size_t>(name[d])];
      }
      if (!allowed) continue;
      std::vector<int64_t> renamed;
      for (const int64_t d : drawn) renamed.push_back(name[static_cast<size_t>(d)]);
      most = std::max(most, likelihood(renamed));
    } while (std::ranges::next_permutation(name).found);

    std::vector<int64_t> found = drawn;
    NameLikeliest(class_of, log_probability, found);
    EXPECT_NEAR(likelihood(found), most, 1e-9);
    for (size_t i = 0; i < nodes; ++i) {
      for (size_t k = 0; k < nodes; ++k) EXPECT_EQ(found[i] == found[k], drawn[i] == drawn[k]);
      EXPECT_EQ(class_of[static_cast<size_t>(found[i])], class_of[static_cast<size_t>(drawn[i])]);
    }
  }
  std::vector<int64_t> alone = {1, 1, 0};
  NameLikeliest({}, std::vector<float>(6, -1), alone);
  EXPECT_EQ(alone, (std::vector<int64_t>{1, 1, 0}));
}

}  // namespace
}  // namespace berth
