#include "import/read_piper.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/file.h"
#include "base/json_object.h"

namespace berth {
namespace {

using nlohmann::json;

constexpr double kMostTime = 1e12;
constexpr double kMostMemory = 1e15;
constexpr double kMostBandwidth = 1e15;
// Two of these add up to the size of one parameter or tensor (MakeInstance).
constexpr auto kMostBytes = static_cast<double>(kMostTensorBytes / 2);
constexpr std::string_view kConfigurationNames[] = {"vanilla", "activation recomp"};  // by PiperConfiguration

// Keys of JSON objects that are numbers.
int64_t NumberOf(const std::string& key, const JsonObject& object, int64_t least, int64_t most) {
  int64_t number = 0;
  const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (code != std::errc() || end != key.data() + key.size() || number < least || number > most) {
    throw object.Mistake(key, fmt::format("this key should be an integer from {} to {}", least, most));
  }
  return number;
}

std::map<int64_t, double> ReadSync(JsonObject& variant, const json& raw, std::string_view key) {
  JsonObject object = variant.Object(key);
  std::map<int64_t, double> sync;
  for (const auto& [id, bytes] : raw.at(key).items()) {
    sync[NumberOf(id, object, INT32_MIN, INT32_MAX)] = object.Number(id, 0, kMostBytes);
  }
  return sync;
}

PiperVariant ReadVariant(const json& raw, const std::string& path, std::string place) {
  JsonObject object(raw, path, std::move(place));
  PiperVariant variant{.name = object.Text("id"),
                       .time = object.Number("timePerSample", 0, kMostTime),
                       .weight_bytes = object.Number("parameterSize", 0, kMostBytes),
                       .bytes_per_sample = object.Number("memoryUsageA", 0, kMostBytes),
                       .bytes_fixed = object.Number("memoryUsageB", 0, kMostBytes),
                       .sync_forward = ReadSync(object, raw, "syncTimeFw"),
                       .sync_backward = ReadSync(object, raw, "syncTimeBw")};
  object.Finish();
  return variant;
}

PiperLayer ReadLayer(const json& raw, const std::string& path, size_t position) {
  const std::string place = fmt::format("nodes[{}]", position);
  JsonObject object(raw, path, place);
  PiperLayer layer{.id = object.Int("id", INT32_MIN, INT32_MAX)};
  layer.name = object.Has("name") ? object.Text("name") : fmt::format("layer{}", layer.id);
  const JsonObject degrees = object.Object("TMPCs");
  for (const auto& [key, list] : raw.at("TMPCs").items()) {
    const int64_t degree = NumberOf(key, degrees, 1, 65536);
    if (!list.is_array() || list.empty()) throw degrees.Mistake(key, "expected a list of at least one configuration");
    for (size_t i = 0; i < list.size(); ++i) {
      layer.by_degree[degree].push_back(ReadVariant(list[i], path, fmt::format("{}.TMPCs.{}[{}]", place, key, i)));
    }
  }
  object.Finish();
  return layer;
}

const PiperVariant& VariantOf(const PiperModel& model, const PiperLayer& layer, PiperConfiguration configuration) {
  const std::string_view name = kConfigurationNames[static_cast<size_t>(configuration)];
  if (const auto found = layer.by_degree.find(1); found != layer.by_degree.end()) {
    for (const PiperVariant& variant : found->second) {
      if (variant.name == name) return variant;
    }
  }
  throw Error("{}: layer {} ({}) has no configuration '{}' at tensor degree 1; add it to its TMPCs, or choose another",
              model.path, layer.id, layer.name, name);
}

Cluster MakeCluster(const PiperModel& model) {
  const auto count = static_cast<size_t>(model.devices);
  std::vector<Device> devices;
  for (size_t i = 0; i < count; ++i) {
    devices.push_back(
        {.name = fmt::format("acc{}", i),
         .kind = "acc",
         .memory = Quantity{.value = model.bytes_per_device, .source = "maxMemoryPerDevice of the data set"}});
  }
  const Link link{.bandwidth = {.value = model.bandwidth, .source = "bandwidth of the data set"}};
  return Cluster("piper", std::move(devices), {link}, std::vector<uint32_t>(count * count));
}

}  // namespace

bool LooksLikePiper(std::string_view content) {
  return content.find("\"TMPCs\"") != content.npos || content.find("\"maxMemoryPerDevice\"") != content.npos;
}

PiperModel ParsePiper(std::string_view content, const std::string& path) {
  const json document = ParseJson(content, path);
  JsonObject top(document, path);
  PiperModel model{.path = path,
                   .devices = top.Int("maxDevices", 1, 1024),
                   .bytes_per_device = top.Number("maxMemoryPerDevice", 0, kMostMemory),
                   .bandwidth = top.Number("bandwidth", 1, kMostBandwidth),
                   // The files' name for it; the data set's own description calls it maxBatchSize.
                   .microbatches = top.Int(top.Has("maxBatchSize") ? "maxBatchSize" : "mbsInBatch", 1, INT32_MAX)};
  std::unordered_map<int64_t, size_t> position_of;
  for (const json& raw : top.List("nodes")) {
    const size_t position = model.layers.size();
    PiperLayer layer = ReadLayer(raw, path, position);
    if (const auto [other, is_new] = position_of.emplace(layer.id, position); !is_new) {
      throw Error("{}: nodes[{}].id: {} is the id of nodes[{}] already; give each layer its own", path, position,
                  layer.id, other->second);
    }
    model.layers.push_back(std::move(layer));
  }
  if (model.layers.empty()) throw top.Mistake("nodes", "is empty; there is nothing to place");
  for (const json& raw : top.List("edges")) {
    JsonObject object(raw, path, fmt::format("edges[{}]", model.edges.size()));
    const auto end = [&](std::string_view key) {
      const int64_t id = object.Int(key, INT32_MIN, INT32_MAX);
      const auto found = position_of.find(id);
      if (found == position_of.end())
        throw object.Mistake(key, fmt::format("no layer has the id {}; remove the edge or add the layer", id));
      return found->second;
    };
    model.edges.push_back({.source = end("sourceId"),
                           .target = end("destId"),
                           .bytes = object.Number("communicationCost", 0, kMostBytes)});
    object.Finish();
  }
  top.Finish();
  return model;
}

Instance MakeInstance(const PiperModel& model, PiperConfiguration configuration) {
  GraphBuilder builder(std::filesystem::path(model.path).stem().string());
  for (const PiperLayer& layer : model.layers) {
    const PiperVariant& variant = VariantOf(model, layer, configuration);
    const size_t op = builder.AddOp(layer.name, "Layer", {});
    const double bytes = std::ceil(variant.bytes_per_sample + variant.bytes_fixed);
    if (bytes > 0) builder.UseParameter(builder.AddParameter(static_cast<int64_t>(bytes), layer.name), op);
  }
  // Piper pays for each edge, though edges of one layer carry the same data; and for the gradient that comes back.
  for (const PiperEdge& edge : model.edges) {
    builder.Consume(builder.AddTensor(edge.source, std::llround(2 * edge.bytes)), edge.target);
  }
  builder.AddNote("times as the data set has them, without a unit; one is taken as one second");
  builder.AddNote(fmt::format("configuration '{}' of each layer at tensor degree 1, forward and backward in one op",
                              kConfigurationNames[static_cast<size_t>(configuration)]));
  builder.AddNote(
      "a layer's memory is its fixed part and one sample in flight; a pipeline of s stages holds up to s samples");
  builder.AddNote("a tensor per edge, of twice the edge's bytes: the activation and its gradient");

  Instance instance;
  instance.graph = std::make_shared<const Graph>(builder.Build(model.path));
  instance.cluster = std::make_shared<const Cluster>(MakeCluster(model));
  instance.evaluator = "pipeline";
  const auto devices = static_cast<size_t>(model.devices);
  OpTimes& times =
      instance.times.emplace(OpTimes{.time = std::vector<double>(model.layers.size() * devices), .source = "data set"});
  instance.file_ids.resize(model.layers.size());
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const size_t op = Index(instance.graph->op_at_file_position(i));
    std::fill_n(times.time.begin() + static_cast<std::ptrdiff_t>(op * devices), devices,
                VariantOf(model, model.layers[i], configuration).time);
    instance.file_ids[op] = model.layers[i].id;
  }
  return instance;
}

Instance ReadPiper(std::string_view content, const std::string& path, PiperConfiguration configuration) {
  return MakeInstance(ParsePiper(content, path), configuration);
}

}  // namespace berth
