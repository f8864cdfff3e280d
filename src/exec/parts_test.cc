#include "exec/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace berth {
namespace {

using ::testing::ElementsAre;

using Rows = std::vector<std::vector<int32_t>>;

TEST(CutIntoParts, EndsAPartWhereAnotherDeviceWaitsForIt) {
  // 0 feeds 1 (here) and 2 (there), 3 joins both: 0 is a part of its own, so that 2 can start while 1 runs.
  const Rows before = {{}, {0}, {0}, {1, 2}};
  const Parts parts = CutIntoParts(before, std::vector<int32_t>{0, 0, 1, 0});
  ASSERT_EQ(parts.parts.size(), 4u);
  EXPECT_THAT(parts.parts[0].nodes, ElementsAre(0));
  EXPECT_THAT(parts.parts[3].nodes, ElementsAre(3));
  EXPECT_EQ(parts.parts[2].device, 1);
  EXPECT_THAT(parts.parts[3].before, ElementsAre(1, 2));
}

TEST(CutIntoParts, IsOnePartPerConnectedPieceOnOneDevice) {
  const Rows before = {{}, {0}, {}, {2}, {1}};
  const Parts parts = CutIntoParts(before, std::vector<int32_t>{0, 0, 0, 0, 0});
  ASSERT_EQ(parts.parts.size(), 2u);
  EXPECT_THAT(parts.parts[0].nodes, ElementsAre(0, 1, 4));
  EXPECT_THAT(parts.parts[1].nodes, ElementsAre(2, 3));
}

TEST(CutIntoParts, OfAnyGraphHaveOneDeviceAndWaitOnlyForPartsBeforeThem) {
  Random random(11);
  for (int trial = 0; trial < 300; ++trial) {
    const size_t count = 1 + random.Below(40);
    Rows before(count);
    std::vector<int32_t> device(count);
    for (size_t node = 0; node < count; ++node) {
      device[node] = static_cast<int32_t>(random.Below(3));
      for (size_t from = 0; from < node; ++from) {
        if (random.Chance(2.0 / static_cast<double>(node + 1))) before[node].push_back(static_cast<int32_t>(from));
      }
    }
    const Parts parts = CutIntoParts(before, device);
    std::vector<int> seen(count, 0);
    for (size_t part = 0; part < parts.parts.size(); ++part) {
      for (const int32_t node : parts.parts[part].nodes) {
        ++seen[static_cast<size_t>(node)];
        EXPECT_EQ(parts.part_of[static_cast<size_t>(node)], static_cast<int32_t>(part));
        EXPECT_EQ(device[static_cast<size_t>(node)], parts.parts[part].device);
        for (const int32_t from : before[static_cast<size_t>(node)]) {
          const int32_t other = parts.part_of[static_cast<size_t>(from)];
          if (other == static_cast<int32_t>(part)) continue;
          EXPECT_LT(other, static_cast<int32_t>(part));
          EXPECT_THAT(parts.parts[part].before, ::testing::Contains(other));
        }
      }
    }
    EXPECT_THAT(seen, ::testing::Each(1));
  }
}

TEST(EndAtOtherSpeeds, IsDecidedByTheDeviceThatOthersWaitFor) {
  // 0 and 1 run side by side, 2 on the first device waits for both.
  const std::vector<Part> parts = {{.device = 0}, {.device = 1}, {.device = 0, .before = {0, 1}}};
  const std::vector<PartRun> runs = {{0, 10}, {0, 20}, {20.5, 25.5}};
  EXPECT_DOUBLE_EQ(EndAtOtherSpeeds(parts, runs, std::vector<double>{1, 1}), 25.5);
  EXPECT_DOUBLE_EQ(EndAtOtherSpeeds(parts, runs, std::vector<double>{1, 2}), 10 + 0.5 + 5) << "the second was slow";
  EXPECT_DOUBLE_EQ(EndAtOtherSpeeds(parts, runs, std::vector<double>{1, 4}), 10 + 0.5 + 5) << "the first decides now";
  EXPECT_DOUBLE_EQ(EndAtOtherSpeeds(parts, runs, std::vector<double>{2, 1}), 20 + 0.5 + 2.5);
}

TEST(EndAtOtherSpeeds, OfAnyRunIsTheRunsOwnAtItsSpeedAndShrinksAsDevicesGetFaster) {
  Random random(3);
  for (int trial = 0; trial < 200; ++trial) {
    const size_t count = 1 + random.Below(20), devices = 1 + random.Below(3);
    std::vector<Part> parts;
    std::vector<PartRun> runs;
    std::vector<double> free(devices, 0);
    double end = 0;
    for (size_t part = 0; part < count; ++part) {
      const size_t device = random.Below(devices);
      parts.push_back({.device = static_cast<int32_t>(device)});
      double begin = free[device];
      for (size_t before = 0; before < part; ++before) {
        if (random.Uniform() > 0.2) continue;
        parts[part].before.push_back(static_cast<int32_t>(before));
        begin = std::max(begin, runs[before].end);
      }
      begin += 0.1 * random.Uniform();
      free[device] = begin + random.Uniform();
      runs.push_back({begin, free[device]});
      end = std::max(end, free[device]);
    }
    EXPECT_NEAR(EndAtOtherSpeeds(parts, runs, std::vector<double>(devices, 1)), end, 1e-12);
    std::vector<double> faster(devices, 1);
    faster[random.Below(devices)] = 2;
    const double sooner = EndAtOtherSpeeds(parts, runs, faster);
    EXPECT_LE(sooner, end + 1e-12);
    EXPECT_GE(sooner, end / 2 - 1e-12);
  }
}

}  // namespace
}  // namespace berth
