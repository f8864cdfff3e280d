#include "tools/seeds/published_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json_object.h"
#include "placement/units.h"

namespace berth::seeds {
namespace {

constexpr size_t kGpus = 4;
// Our blocks, in order: their kind in Szegedy et al. 2016, and the published name.
constexpr std::string_view kKinds = "AAABCCCCDEE";
constexpr std::array<const char*, 11> kBlocks = {"Mixed_5b", "Mixed_5c", "Mixed_5d", "Mixed_6a", "Mixed_6b", "Mixed_6c",
                                                 "Mixed_6d", "Mixed_6e", "Mixed_7a", "Mixed_7b", "Mixed_7c"};
constexpr std::array<const char*, 5> kStem = {"Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_2b_3x3", "Conv2d_3b_1x1",
                                              "Conv2d_4a_3x3"};
constexpr std::array<const char*, 2> kStemPools = {"MaxPool_3a_3x3", "MaxPool_5a_3x3"};
constexpr const char* kLast = "Logits/Conv2d_1c_1x1";

// The file: a device per layer, and per branch of a block those of its convolutions in order.
struct Published {
  std::map<std::string, DeviceId, std::less<>> layer;
  std::map<std::string, std::vector<DeviceId>, std::less<>> convolutions;
};

Published ReadLayers(const std::string& path) {
  const nlohmann::json json = ReadJson(path);
  JsonObject file(json, path);
  file.Text("source");
  Published published;
  for (const nlohmann::json& each : file.List("layers")) {
    JsonObject layer(each, path, "layers");
    const std::string name = layer.Text("name"), type = layer.Text("type");
    const int64_t device = layer.Int("device", 0, kGpus);
    if (device == 0) continue;  // the CPU has the images, which are no op
    const DeviceId gpu = MakeId<DeviceId>(static_cast<size_t>(device - 1));
    published.layer[name] = gpu;
    if (type == "Convolution") published.convolutions[name.substr(0, name.rfind('/'))].push_back(gpu);
  }
  return published;
}

// The number after `prefix` at the start of `name`; empty where there is none.
std::optional<size_t> NumberAfter(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return std::nullopt;
  const std::string digits(name.substr(prefix.size()));
  char* end = nullptr;
  const size_t number = std::strtoul(digits.c_str(), &end, 10);
  if (end == digits.c_str()) return std::nullopt;
  return number;
}

struct Place {
  int branch;
  size_t convolution;  // in the published branch
};

// Where the convolution `number` of our branch `name` stands in a block of this kind.
Place PlaceOf(char kind, std::string_view name, size_t number) {
  if (name == "1x1") return {0, number};
  if (name == "pool") return {3, number};
  if (name == "5x5" || name == "7x7") return {1, number};
  if (name == "3x3a") return {1, 1};
  if (name == "3x3b") return {1, 2};
  if (name == "double_a") return {2, 2};
  if (name == "double_b") return {2, 3};
  if (name == "double") return {kind == 'B' ? 1 : 2, number};
  return {kind == 'A' ? 2 : kind == 'E' ? 1 : 0, number};  // 3x3
}

class Reading {
 public:
  Reading(const std::string& path, const Problem& problem)
      : path_(path), problem_(problem), graph_(problem.graph()), published_(ReadLayers(path)) {}

  Plan Read() {
    if (problem_.num_devices() != kGpus) {
      throw Error("{}: a placement on {} devices, and the problem has {}", path_, kGpus, problem_.num_devices());
    }
    std::vector<DeviceId> forward(graph_.num_ops(), kNowhere);
    for (const OpId op : graph_.ops()) forward[Index(op)] = DeviceOf(op, forward);
    // Gradients and updates are of one unit with an op of the network.
    const Units units(problem_);
    Plan plan{.device = std::vector<DeviceId>(graph_.num_ops(), kNowhere)};
    for (size_t unit = 0; unit < units.size(); ++unit) {
      DeviceId device = kNowhere;
      for (const OpId op : units.ops(unit)) {
        if (device == kNowhere) device = forward[Index(op)];
      }
      if (device == kNowhere) {
        throw Error("{}: it has no place for op '{}'; the graph must be inception_v3", path_,
                    graph_.op_name(units.ops(unit).front()));
      }
      for (const OpId op : units.ops(unit)) plan.device[Index(op)] = device;
    }
    return plan;
  }

 private:
  static constexpr DeviceId kNowhere{-1};

  DeviceId Layer(std::string_view name) const {
    const auto found = published_.layer.find(name);
    if (found == published_.layer.end()) throw Error("{}: no layer '{}' on a GPU", path_, name);
    return found->second;
  }

  // kNowhere for what is no op of the network itself, but of its training.
  DeviceId DeviceOf(OpId op, const std::vector<DeviceId>& forward) {
    const std::string_view name = graph_.op_name(op), type = graph_.op_type(op);
    for (const std::string_view training : {"grad/", "sum/", "update/", "loss"}) {
      if (name.starts_with(training)) return kNowhere;
    }
    // An activation is a part of its convolution there.
    if (type == "Relu" && !graph_.inputs_of(op).empty()) {
      return forward[Index(graph_.producer(graph_.inputs_of(op).front()))];
    }
    if (const auto number = NumberAfter(name, "stem")) return *number < kStem.size() ? Layer(kStem[*number]) : kNowhere;
    const auto block = NumberAfter(name, "mixed");
    if (!block) {
      if (type == "MaxPool" && pools_ < kStemPools.size()) return Layer(kStemPools[pools_++]);
      const bool classifies = type == "GlobalAveragePool" || type == "Flatten" || type == "Gemm";
      return classifies ? Layer(kLast) : kNowhere;
    }
    if (*block >= kBlocks.size()) return kNowhere;
    const std::string_view in = kBlocks[*block];
    if (type == "Concat") return Layer(fmt::format("{}/concat", in));
    if (type == "MaxPool") return Layer(fmt::format("{}/Branch_2/MaxPool_1a_3x3", in));
    if (type == "Pad" || type == "AveragePool") return Layer(fmt::format("{}/Branch_3/AvgPool_0a_3x3", in));
    return Convolution(name.substr(name.find('/') + 1), kKinds[*block], in);
  }

  // `name`: what follows the block's, like "5x5/conv1/Conv".
  DeviceId Convolution(std::string_view name, char kind, std::string_view in) const {
    const size_t slash = name.find('/');
    if (slash == std::string_view::npos) return kNowhere;
    const auto number = NumberAfter(name.substr(slash + 1), "conv");
    if (!number) return kNowhere;
    const Place place = PlaceOf(kind, name.substr(0, slash), *number);
    const auto found = published_.convolutions.find(fmt::format("{}/Branch_{}", in, place.branch));
    if (found == published_.convolutions.end()) return kNowhere;
    // Mixed_6a lacks the last convolution of its second branch: it joins the one before.
    return found->second[std::min(place.convolution, found->second.size() - 1)];
  }

  const std::string& path_;
  const Problem& problem_;
  const Graph& graph_;
  Published published_;
  size_t pools_ = 0;
};

}  // namespace

Plan ReadPublishedPlacement(const std::string& path, const Problem& problem) { return Reading(path, problem).Read(); }

}  // namespace berth::seeds
