#include "placement/mean_transfer.h"

#include <gtest/gtest.h>

#include "placement/testing.h"

namespace berth {
namespace {

TEST(MeanTransfer, IsTheMeanOverAllRoutes) {
  Random random(1);
  for (const size_t devices : {1U, 2U, 4U}) {
    const Problem problem = testing::RandomProblem(random, {.ops = 12, .devices = devices});
    const MeanTransfer mean(problem);
    for (const TensorId tensor : problem.graph().tensors()) {
      double sum = 0, routes = 0;
      for (const DeviceId from : problem.cluster().ids()) {
        for (const DeviceId to : problem.cluster().ids()) {
          if (from == to) continue;
          sum += problem.transfer_time(tensor, from, to);
          ++routes;
        }
      }
      EXPECT_NEAR(mean(tensor), routes > 0 ? sum / routes : 0, 1e-12 * (1 + sum));
      EXPECT_NEAR(mean(problem.graph().tensor_bytes(tensor)), mean(tensor), 1e-12 * (1 + sum));
    }
  }
}

}  // namespace
}  // namespace berth
