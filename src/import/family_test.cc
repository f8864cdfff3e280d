#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "import/family_sets.h"
#include "import/model_families.h"
#include "import/training.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelCatalog Models() {
  ModelCatalog catalog("model");
  RegisterFamilyModels(catalog);
  return catalog;
}

FamilyCatalog Families() {
  FamilyCatalog catalog("model");
  RegisterFamilies(catalog);
  return catalog;
}

// All that a graph is, but its name.
std::string Content(const Graph& graph) {
  std::string text = WriteGraphJson(graph);
  const size_t at = text.find(graph.name());
  return at == std::string::npos ? text : text.erase(at, graph.name().size());
}

struct Sizes {
  const char* name;
  size_t least, most;  // ops
};

class Family : public ::testing::TestWithParam<Sizes> {};

TEST_P(Family, MembersAreOfTheStatedSizeAllDifferentAndRepeat) {
  const ModelCatalog models = Models();
  std::set<std::string> seen;
  for (const std::string& member : Families().Make(fmt::format("family(name={},split=all)", GetParam().name))) {
    const Graph graph = models.Make(member);
    EXPECT_GE(graph.num_ops(), GetParam().least) << member;
    EXPECT_LE(graph.num_ops(), GetParam().most) << member;
    // Ops are numbered so that all tensors point forward.
    for (const TensorId tensor : graph.tensors()) {
      for (const OpId consumer : graph.consumers(tensor)) EXPECT_LT(graph.producer(tensor), consumer) << member;
    }
    EXPECT_TRUE(seen.insert(Content(graph)).second) << member;
    EXPECT_EQ(Content(models.Make(member)), Content(graph)) << member;
  }
  EXPECT_EQ(seen.size(), 32u);
}

TEST_P(Family, MembersCanBeTrained) {
  const Graph graph = Models().Make(GetParam().name);
  EXPECT_GT(MakeTrainingGraph(graph, Optimizer::kSgd).graph.num_ops(), 3 * graph.num_ops() / 2);
}

// The ranges that docs/training.md states.
INSTANTIATE_TEST_SUITE_P(All, Family,
                         ::testing::Values(Sizes{"enas_conv", 150, 400}, Sizes{"enas_rnn", 200, 550},
                                           Sizes{"nmt_like", 200, 600}),
                         [](const auto& test) { return test.param.name; });

TEST(Families, TrainOnAsManyAsAreAskedForAndNeverOnTests) {
  const FamilyCatalog families = Families();
  std::set<std::string> trained, tested;
  for (const int count : {1, 2, 3, 4, 10, 24, 32, 100, 700}) {
    const auto of = [&](const char* split) {
      const auto list = families.Make(fmt::format("family(count={},split={},seed=7)", count, split));
      return std::set<std::string>(list.begin(), list.end());
    };
    const std::set<std::string> train = of("train"), test = of("test");
    EXPECT_EQ(train.size(), static_cast<size_t>(count));
    EXPECT_EQ(test.size(), static_cast<size_t>((count + 2) / 3));
    std::set<std::string> both = train;
    both.insert(test.begin(), test.end());
    EXPECT_EQ(both.size(), train.size() + test.size());
    EXPECT_EQ(both, of("all"));
    // A longer list begins with the shorter one, and the splits of different lengths are apart, too.
    EXPECT_TRUE(std::ranges::includes(train, trained));
    EXPECT_TRUE(std::ranges::includes(test, tested));
    trained = train;
    tested = test;
  }
  for (const std::string& model : tested) EXPECT_FALSE(trained.contains(model)) << model;
}

TEST(Families, MixTheThreeInTurn) {
  const auto mix = Families().Make("family(name=mix)");
  EXPECT_EQ(mix.size(), 72u);
  EXPECT_THAT(mix[0], HasSubstr("enas_conv"));
  EXPECT_THAT(mix[1], HasSubstr("enas_rnn"));
  EXPECT_THAT(mix[2], HasSubstr("nmt_like"));
}

TEST(ExpandModels, PutsMembersInThePlaceOfFamiliesAndRefusesRepetitions) {
  const FamilyCatalog families = Families();
  const std::vector<std::string> two = families.Make("family(count=2,seed=3)");
  EXPECT_THAT(ExpandModels("resnet50, family(count=2,seed=3),lstm_grid(layers=2,steps=3)", families),
              ElementsAre("resnet50", two[0], two[1], "lstm_grid(layers=2,steps=3)"));
  for (const char* wrong : {"", "a,,b", "a,a", "family(count=1),family(count=1)"}) {
    EXPECT_THROW(ExpandModels(wrong, families), Error) << wrong;
  }
}

}  // namespace
}  // namespace berth
