#include "import/family_sets.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace berth {
namespace {

constexpr size_t kSeeds = 1000;  // of the models of a family, from its own seed times this
constexpr size_t kMostModels = 700;

// Members are drawn in blocks, of each a quarter for tests.
constexpr size_t kBlock = 32;

// Of the endless list of a family's members, the first `count` that are for tests, or that are not; ascending.
std::vector<size_t> Members(size_t count, bool tests, const Random& random) {
  std::vector<size_t> members;
  for (size_t block = 0; members.size() < count; ++block) {
    std::vector<size_t> order(kBlock);
    std::iota(order.begin(), order.end(), block * kBlock);
    Random draw = block == 0 ? random : random.Fork(block);
    draw.Shuffle(std::span(order));
    const auto middle = order.begin() + kBlock / 4;
    if (tests) order.erase(middle, order.end());
    if (!tests) order.erase(order.begin(), middle);
    std::ranges::sort(order);
    members.insert(members.end(), order.begin(), order.end());
  }
  members.resize(count);
  return members;
}

std::vector<std::string> MakeFamily(const Params& params) {
  std::vector<std::string> names = {params.Text("name")};
  if (names[0] == "mix") names = {"enas_conv", "enas_rnn", "nmt_like"};
  const auto count = static_cast<size_t>(params.Int("count"));
  const auto seed = static_cast<uint64_t>(params.Int("seed"));
  const std::string& split = params.Text("split");
  std::vector<size_t> members;
  if (split != "test") members = Members(count, false, Random(seed));
  if (split != "train") {
    const std::vector<size_t> tests = Members((count + 2) / 3, true, Random(seed));
    members.insert(members.end(), tests.begin(), tests.end());
    std::ranges::sort(members);
  }
  std::vector<std::string> models;
  // In turn, so that neighbours in a mix are of different families.
  for (const size_t member : members) {
    for (const std::string& name : names) models.push_back(fmt::format("{}(seed={})", name, seed * kSeeds + member));
  }
  return models;
}

}  // namespace

void RegisterFamilies(FamilyCatalog& catalog) {
  catalog.Add({.name = "family",
               .sentence = "Models that are alike but for their seeds, some to train on and others for tests.",
               .source = "in the spirit of Addanki et al. 2019, section 4: 32 graphs of each family",
               .parameters = {{.name = "name",
                               .type = ParameterType::kChoice,
                               .default_value = "enas_conv",
                               .sentence = "the formula; mix: all three, so many of each",
                               .choices = {"enas_conv", "enas_rnn", "nmt_like", "mix"}},
                              {.name = "count",
                               .type = ParameterType::kInt,
                               .default_value = "24",
                               .sentence = "how many there are to train on; a third as many others are for tests",
                               .least = 1,
                               .most = kMostModels},
                              {.name = "split",
                               .type = ParameterType::kChoice,
                               .default_value = "train",
                               .sentence = "which of them",
                               .choices = {"train", "test", "all"}},
                              {.name = "seed",
                               .type = ParameterType::kInt,
                               .default_value = "1",
                               .sentence = "another one gives other models and another split",
                               .least = 0,
                               .most = 1e9}}},
              MakeFamily);
}

std::vector<std::string> ExpandModels(std::string_view list, const FamilyCatalog& families) {
  std::vector<std::string> models;
  const auto add = [&](std::string model) {
    if (std::ranges::count(models, model) > 0) throw Error("{}: is named twice; once is enough", model);
    models.push_back(std::move(model));
  };
  for (const std::string& part : SplitList(list)) {
    if (part.empty()) throw Error("'{}': a model was expected before or after a comma", list);
    if (families.Find(part.substr(0, part.find('('))) == nullptr) {
      add(part);
    } else {
      for (std::string& model : families.Make(part)) add(std::move(model));
    }
  }
  if (models.empty()) throw Error("no model is named: write a list like resnet50,vgg16 or family(name=enas_conv)");
  return models;
}

}  // namespace berth
