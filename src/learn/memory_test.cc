#include "learn/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace berth {
namespace {

using ::testing::ElementsAre;

const std::vector<DeviceId> kTwoAlike = {DeviceId{0}, DeviceId{0}, DeviceId{2}};

Episode Drawn(double cost, std::vector<int64_t> device) {
  Episode episode;
  episode.cost = {cost};
  episode.step_of.assign(device.size(), 0);
  episode.device = std::move(device);
  return episode;
}

std::vector<std::vector<int64_t>> Best(const Memory& memory) {
  std::vector<std::vector<int64_t>> best;
  for (const Memory::Kept& kept : memory.best()) best.push_back(kept.device);
  return best;
}

TEST(Memory, IsEmptyUntilSomethingWasDrawnWhateverItKeeps) {
  for (const MemoryOptions& options :
       {MemoryOptions{.kept = 2}, MemoryOptions{.distinct = true}, MemoryOptions{.parents = 3}}) {
    Memory memory(options, 3, {});
    EXPECT_TRUE(memory.empty());
    memory.Add(Drawn(5, {0, 1, 2}));
    EXPECT_FALSE(memory.empty());
    memory.BeginRound(false);
    EXPECT_FALSE(memory.empty());
    Memory loaded(options, 3, {});
    loaded.Load(memory.Save(), "file", 3);
    EXPECT_FALSE(loaded.empty());
  }
}

TEST(Memory, KeepsTheBestPlacementsAndEachOnce) {
  Memory memory({.kept = 2, .distinct = true}, 3, {});
  memory.Add(Drawn(5, {0, 1, 2}));
  memory.Add(Drawn(3, {0, 0, 2}));
  memory.Add(Drawn(3, {0, 0, 2}));
  EXPECT_THAT(Best(memory), ElementsAre(ElementsAre(0, 0, 2), ElementsAre(0, 1, 2)));
  memory.Add(Drawn(4, {2, 2, 2}));
  memory.Add(Drawn(std::numeric_limits<double>::infinity(), {1, 1, 1}));
  EXPECT_THAT(Best(memory), ElementsAre(ElementsAre(0, 0, 2), ElementsAre(2, 2, 2)));
  EXPECT_TRUE(memory.Has(std::vector<int64_t>{0, 1, 2})) << "what is no longer among the best was drawn";
  EXPECT_TRUE(memory.Has(std::vector<int64_t>{1, 1, 1})) << "and what failed";
  EXPECT_FALSE(memory.Has(std::vector<int64_t>{1, 1, 2}));
  Memory careless({.kept = 2}, 3, {});
  careless.Add(Drawn(5, {0, 1, 2}));
  EXPECT_FALSE(careless.Has(std::vector<int64_t>{0, 1, 2})) << "nobody asked for distinct ones, and these are many";
}

TEST(Memory, TakesNamesOfEqualDevicesForOnePlacement) {
  Memory memory({.kept = 3, .distinct = true}, 4, kTwoAlike);
  memory.Add(Drawn(5, {1, 0, 2, 0}));
  EXPECT_TRUE(memory.Has(std::vector<int64_t>{0, 1, 2, 1}));
  EXPECT_FALSE(memory.Has(std::vector<int64_t>{2, 1, 0, 1})) << "the third is another device";
  memory.Add(Drawn(4, {0, 1, 2, 1}));
  EXPECT_THAT(Best(memory), ElementsAre(ElementsAre(1, 0, 2, 0)));
  // Named as the best one is, also where a better one comes later.
  memory.Add(Drawn(6, {0, 1, 2, 2}));
  EXPECT_THAT(Best(memory), ElementsAre(ElementsAre(1, 0, 2, 0), ElementsAre(1, 0, 2, 2)));
  memory.Add(Drawn(1, {0, 1, 1, 1}));
  EXPECT_THAT(Best(memory), ElementsAre(ElementsAre(0, 1, 1, 1), ElementsAre(0, 1, 2, 1), ElementsAre(0, 1, 2, 2)));
}

TEST(Memory, TellsPlansApartByTheirPriorities) {
  constexpr int64_t kLevels = 4;
  const MemoryOptions options{.kept = 3, .distinct = true, .parents = 3};
  Memory memory(options, 2, kTwoAlike, true, kLevels);
  EXPECT_EQ(memory.model(), nullptr) << "it knows devices only";
  Episode episode = Drawn(5, {0, 2});
  episode.priority = {3, 0};
  memory.Add(episode);
  episode.priority = {0, 3};
  episode.cost = {4};
  memory.Add(episode);
  EXPECT_TRUE(memory.Has(std::vector<int64_t>{1, 2}, std::vector<int64_t>{3, 0}));
  EXPECT_FALSE(memory.Has(std::vector<int64_t>{1, 2}, std::vector<int64_t>{3, 1}));
  EXPECT_FALSE(memory.Has(std::vector<int64_t>{1, 2}));
  ASSERT_EQ(memory.best().size(), 2U);
  EXPECT_THAT(memory.best()[0].priority, ElementsAre(0, 3));
  Memory again(options, 2, kTwoAlike, true, kLevels);
  again.Load(memory.Save(), "file", 3);
  EXPECT_EQ(again.Save(), memory.Save());
  EXPECT_THAT(again.best()[1].priority, ElementsAre(3, 0));
  for (const nlohmann::json& wrong : std::vector<nlohmann::json>{{1}, {1, kLevels}, {1, -1}, {1, "2"}, nullptr}) {
    nlohmann::json broken = memory.Save();
    broken["best"][0]["priority"] = wrong;
    EXPECT_THROW(again.Load(broken, "file", 3), Error) << wrong.dump();
  }
  nlohmann::json without = memory.Save();
  without["best"][0].erase("priority");
  EXPECT_THROW(again.Load(without, "file", 3), Error);
  Memory none(options, 2, kTwoAlike);
  EXPECT_THROW(none.Load(memory.Save(), "file", 3), Error) << "no levels are known";
}

TEST(Memory, BeginsEachRoundAnewAndTheLastWithTheBestOfAll) {
  Memory memory({.kept = 1, .distinct = true, .parents = 3}, 2, {});
  memory.Add(Drawn(2, {0, 1}));
  memory.BeginRound(false);
  EXPECT_TRUE(memory.best().empty());
  EXPECT_TRUE(memory.Has(std::vector<int64_t>{0, 1}));
  memory.Add(Drawn(3, {1, 1}));
  EXPECT_THAT(Best(memory), ElementsAre(ElementsAre(1, 1)));
  memory.BeginRound(true);
  EXPECT_THAT(Best(memory), ElementsAre(ElementsAre(0, 1)));
  ASSERT_EQ(memory.parents().size(), 2U) << "of all rounds";
  EXPECT_THAT(memory.parents()[0].device, ElementsAre(0, 1));
  EXPECT_THAT(memory.parents()[1].device, ElementsAre(1, 1));
}

// Placements of a million decisions would fill the memory.
TEST(Memory, HasFewerParentsWherePlacementsAreLong) {
  constexpr int64_t kDecisions = 1 << 20;
  Memory memory({.parents = 200}, kDecisions, {});
  for (int i = 0; i < 6; ++i) {
    std::vector<int64_t> device(kDecisions, 0);
    device[static_cast<size_t>(i)] = 1;
    memory.Add(Drawn(i, device));
  }
  EXPECT_EQ(memory.parents().size(), 4U);
}

TEST(Memory, LearnsAModelOfCostsWhereItMayAndDecisionsAreFew) {
  const MemoryOptions options{.parents = 2};
  EXPECT_NE(Memory(options, 40, kTwoAlike, true).model(), nullptr);
  EXPECT_EQ(Memory(options, 40, kTwoAlike, false).model(), nullptr);
  EXPECT_EQ(Memory(options, 50, kTwoAlike, true).model(), nullptr) << "1276 weights";
  EXPECT_EQ(Memory({.kept = 2}, 40, kTwoAlike, true).model(), nullptr) << "nobody would ask";
}

TEST(Memory, ComesBackFromACheckpointAndRefusesWhatItHasNotSaved) {
  const MemoryOptions options{.kept = 2, .distinct = true, .parents = 3};
  Memory memory(options, 3, kTwoAlike), again(options, 3, kTwoAlike);
  memory.Add(Drawn(5, {0, 1, 2}));
  memory.BeginRound(false);
  memory.Add(Drawn(7, {0, 0, 2}));
  again.Load(memory.Save(), "file", 3);
  EXPECT_EQ(again.Save(), memory.Save());
  EXPECT_TRUE(again.Has(std::vector<int64_t>{1, 0, 2}));
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, nlohmann::json>>{{"best", {{{"cost", 1}, {"device", {0, 1}}}}},
                                                           {"best", {{{"cost", 1}, {"device", {0, 1, 3}}}}},
                                                           {"best", {{{"cost", "1"}, {"device", {0, 1, 2}}}}},
                                                           {"of_all_rounds", {1}},
                                                           {"of_all_rounds", {{{"cost", 1}, {"device", {0, 1}}}}},
                                                           {"drawn", {"x"}}}) {
    nlohmann::json broken = memory.Save();
    broken[key] = value;
    EXPECT_THROW(again.Load(broken, "file", 3), Error) << broken.dump();
  }
}

}  // namespace
}  // namespace berth
