#include "import/family_sets.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace berth {
namespace {

constexpr size_t kMostModels = 1000;

// Which of `count` are for training and which for tests: one in four, drawn, and at least one of two.
std::vector<size_t> Split(size_t count, const std::string& split, const Random& random) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  Random draw = random;
  draw.Shuffle(std::span(order));
  const size_t tests = count == 1 ? 0 : std::max<size_t>(count / 4, 1);
  if (split == "test") order.resize(tests);
  if (split == "train") order.erase(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(tests));
  std::ranges::sort(order);
  return order;
}

std::vector<std::string> MakeFamily(const Params& params) {
  std::vector<std::string> names = {params.Text("name")};
  if (names[0] == "mix") names = {"enas_conv", "enas_rnn", "nmt_like"};
  const auto count = static_cast<size_t>(params.Int("count"));
  const auto seed = static_cast<uint64_t>(params.Int("seed"));
  const std::string& split = params.Text("split");
  std::vector<std::string> models;
  // In turn, so that neighbours in a mix are of different families.
  for (const size_t member : Split(count, split, Random(seed))) {
    for (const std::string& name : names)
      models.push_back(fmt::format("{}(seed={})", name, seed * kMostModels + member));
  }
  if (models.empty()) {
    throw Error("{}: of {} graph no {} split is left; count=2 is the least that has one", params.canonical(), count,
                split);
  }
  return models;
}

}  // namespace

void RegisterFamilies(FamilyCatalog& catalog) {
  catalog.Add({.name = "family",
               .sentence = "Models that are alike but for their seeds, a quarter of them kept for tests.",
               .source = "in the spirit of Addanki et al. 2019, section 4: 32 graphs each",
               .parameters = {{.name = "name",
                               .type = ParameterType::kChoice,
                               .default_value = "enas_conv",
                               .sentence = "the formula; mix: all three, so many of each",
                               .choices = {"enas_conv", "enas_rnn", "nmt_like", "mix"}},
                              {.name = "count",
                               .type = ParameterType::kInt,
                               .default_value = "32",
                               .sentence = "how many there are, over both splits",
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
