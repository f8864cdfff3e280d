#include "placement/rule_network.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace berth {
namespace {

using Answer = RuleNetwork::Answer;

double ByNumber(size_t, DeviceId device) { return static_cast<double>(Index(device)); }

bool Keeps(const RuleNetwork& network, const std::vector<DeviceId>& device) {
  for (size_t v = 0; v < network.size(); ++v) {
    if (!network.Fits(v, device[v], [&](size_t other) { return device[other]; })) return false;
  }
  return true;
}

// Every assignment, one after another.
bool AnyKeeps(const RuleNetwork& network, size_t devices) {
  std::vector<DeviceId> device(network.size(), DeviceId{0});
  while (true) {
    if (Keeps(network, device)) return true;
    size_t v = 0;
    for (; v < device.size(); ++v) {
      device[v] = MakeId<DeviceId>(Index(device[v]) + 1);
      if (Index(device[v]) < devices) break;
      device[v] = DeviceId{0};
    }
    if (v == device.size()) return false;
  }
}

TEST(RuleNetwork, AgreesWithTryingEverything) {
  Random random(1);
  int possible = 0;
  for (int round = 0; round < 2000; ++round) {
    const size_t variables = 1 + random.Below(6), devices = 1 + random.Below(4);
    RuleNetwork network(variables, devices);
    const auto any_device = [&] { return MakeId<DeviceId>(random.Below(devices)); };
    for (size_t k = random.Below(variables * devices); k > 0; --k) {
      if (random.Chance(0.5)) network.Forbid(random.Below(variables), any_device());
    }
    for (size_t k = random.Below(3 * variables); k > 0; --k) {
      const size_t a = random.Below(variables), b = random.Below(variables);
      if (a == b) continue;
      random.Chance(0.5) ? network.Separate(a, b) : network.ForbidPair(a, any_device(), b, any_device());
    }
    network.Prepare();
    std::vector<DeviceId> device(variables);
    const Answer answer = network.Solve(device, ByNumber);
    ASSERT_EQ(answer == Answer::kYes, AnyKeeps(network, devices));
    ASSERT_NE(answer, Answer::kUnknown);
    if (answer == Answer::kYes) {
      EXPECT_TRUE(Keeps(network, device));
    }
    possible += answer == Answer::kYes ? 1 : 0;
  }
  EXPECT_GT(possible, 500);
  EXPECT_LT(possible, 1900);
}

TEST(RuleNetwork, SeesThatTwelveCannotAllDifferOnEleven) {
  for (const size_t variables : {11u, 12u}) {
    RuleNetwork network(variables, 11);
    for (size_t a = 0; a < variables; ++a) {
      for (size_t b = 0; b < a; ++b) network.Separate(a, b);
    }
    network.Prepare();
    std::vector<DeviceId> device(variables);
    EXPECT_EQ(network.Solve(device, ByNumber), variables == 11 ? Answer::kYes : Answer::kNo);
  }
}

TEST(RuleNetwork, AnswersLongChainsOfTwoDevicesEachAtOnce) {
  constexpr size_t kVariables = 50'000;
  RuleNetwork network(kVariables, 2);
  for (size_t v = 1; v < kVariables; ++v) network.Separate(v - 1, v);
  network.Prepare();
  std::vector<DeviceId> device(kVariables);
  ASSERT_EQ(network.Solve(device, ByNumber), Answer::kYes);
  EXPECT_EQ(device[0], DeviceId{0});
  EXPECT_EQ(device[kVariables - 1], DeviceId{1});

  // An odd cycle.
  network.Separate(0, kVariables - 2);
  network.Prepare();
  EXPECT_EQ(network.Solve(device, ByNumber), Answer::kNo);
}

TEST(RuleNetwork, DecidesPartsApartSoThatOneDoesNotRepeatForTheOthers) {
  // Many easy parts, then an impossible one.
  constexpr size_t kParts = 1000;
  RuleNetwork network(3 * kParts + 4, 3);
  const auto all_differ = [&](size_t first, size_t count) {
    for (size_t a = 0; a < count; ++a) {
      for (size_t b = 0; b < a; ++b) network.Separate(first + a, first + b);
    }
  };
  for (size_t part = 0; part < kParts; ++part) all_differ(3 * part, 3);
  all_differ(3 * kParts, 4);
  network.Prepare();
  std::vector<DeviceId> device(network.size());
  EXPECT_EQ(network.Solve(device, ByNumber), Answer::kNo);
}

TEST(RuleNetwork, GivesEachTheCheapestThatIsLeft) {
  RuleNetwork network(3, 3);
  network.Separate(0, 1);
  network.ForbidPair(0, DeviceId{2}, 2, DeviceId{2});
  network.Prepare();
  std::vector<DeviceId> device(3);
  const auto backwards = [](size_t, DeviceId d) { return -static_cast<double>(Index(d)); };
  ASSERT_EQ(network.Solve(device, backwards), Answer::kYes);
  EXPECT_EQ(device, (std::vector<DeviceId>{DeviceId{2}, DeviceId{1}, DeviceId{1}}));
}

}  // namespace
}  // namespace berth
