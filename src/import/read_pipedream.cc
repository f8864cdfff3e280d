#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "import/readers.h"

namespace berth {
namespace {

constexpr double kMostMilliseconds = 1e12;
constexpr auto kMostBytes = static_cast<double>(kMostTensorBytes);
constexpr std::string_view kSeparator = " -- ";
constexpr std::array<std::string_view, 4> kFields = {"forward_compute_time", "backward_compute_time", "activation_size",
                                                     "parameter_size"};
constexpr std::string_view kExample =
    "expected 'node1 -- ReLU() -- forward_compute_time=0.5, backward_compute_time=0.2, activation_size=4.0, "
    "parameter_size=0.0'";

struct Layer {
  std::string name, type;
  double forward_time, backward_time;  // milliseconds
  int64_t activation_bytes, parameter_bytes;
};

struct Profile {
  std::vector<Layer> layers;
  std::vector<std::pair<size_t, size_t>> edges;  // positions of layers
};

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\r')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// One line of a file; `where` is "file:line".
class LineReader {
 public:
  explicit LineReader(std::string where) : where_(std::move(where)) {}

  // Reads "name=number" and takes it off `text`. A list "[1.0; 2.0]" (a layer with several outputs) counts as its sum.
  double Take(std::string_view& text, std::string_view name, double most) const {
    text = Trim(text);
    if (!text.starts_with(name) || text.size() == name.size() || text[name.size()] != '=') {
      throw Error("{}: no '{}='; {}", where_, name, kExample);
    }
    text.remove_prefix(name.size() + 1);
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view value = Trim(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (value.starts_with('[') && value.ends_with(']') && value.size() > 1) {
      value = value.substr(1, value.size() - 2);
      double sum = 0;
      while (true) {
        const size_t end = std::min(value.find(';'), value.size());
        sum += Number(Trim(value.substr(0, end)), name, most);
        if (sum > most) throw Error("{}: {} adds up to more than {}; correct the list", where_, name, most);
        if (end == value.size()) return sum;
        value.remove_prefix(end + 1);
      }
    }
    return Number(value, name, most);
  }

  Layer ReadLayer(std::string_view line) const {
    const size_t first = line.find(kSeparator);
    const size_t second = line.rfind(std::string(kSeparator) + std::string(kFields[0]));
    if (first == line.npos || second == line.npos || second <= first)
      throw Error("{}: is no layer; {}", where_, kExample);
    const std::string_view description =
        Trim(line.substr(first + kSeparator.size(), second - first - kSeparator.size()));
    std::string_view fields = line.substr(second + kSeparator.size());
    // Files that PipeDream's optimizer wrote name a stage at the end, which is a plan and no part of the model.
    if (const size_t stage = fields.find(std::string(kSeparator) + "stage_id="); stage != fields.npos)
      fields = fields.substr(0, stage);
    Layer layer{.name = std::string(Trim(line.substr(0, first))),
                .type = std::string(description.substr(0, std::min(description.find('('), description.size()))),
                .forward_time = Take(fields, kFields[0], kMostMilliseconds),
                .backward_time = Take(fields, kFields[1], kMostMilliseconds),
                .activation_bytes = static_cast<int64_t>(std::ceil(Take(fields, kFields[2], kMostBytes))),
                .parameter_bytes = static_cast<int64_t>(std::ceil(Take(fields, kFields[3], kMostBytes)))};
    if (!Trim(fields).empty()) throw Error("{}: unknown field '{}'; remove it", where_, Trim(fields));
    if (layer.name.empty()) throw Error("{}: a layer without a name; {}", where_, kExample);
    return layer;
  }

 private:
  double Number(std::string_view text, std::string_view name, double most) const {
    double number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc() || end != text.data() + text.size() || !(number >= 0 && number <= most)) {
      throw Error("{}: {} is '{}'; expected a number from 0 to {}", where_, name, text, most);
    }
    return number;
  }

  std::string where_;
};

// Layers stand at the start of a line, edges behind a tab; an edge may stand before its layers.
Profile ParseProfile(std::string_view content, const std::string& path) {
  Profile profile;
  std::unordered_map<std::string_view, size_t> position_of;
  std::vector<std::pair<size_t, std::string_view>> edge_lines;
  size_t number = 0;
  while (!content.empty()) {
    const size_t end = std::min(content.find('\n'), content.size());
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    ++number;
    if (Trim(line).empty()) continue;
    if (line.front() == '\t') {
      edge_lines.emplace_back(number, Trim(line.substr(1)));
      continue;
    }
    profile.layers.push_back(LineReader(fmt::format("{}:{}", path, number)).ReadLayer(line));
    const std::string_view name = Trim(line.substr(0, line.find(kSeparator)));
    if (!position_of.emplace(name, profile.layers.size() - 1).second) {
      throw Error("{}:{}: there is a layer {} already; give each its own name", path, number, name);
    }
  }
  if (profile.layers.empty()) throw Error("{}: has no layers; {}", path, kExample);
  for (const auto& [line_number, line] : edge_lines) {
    const size_t separator = line.find(kSeparator);
    if (separator == line.npos)
      throw Error("{}:{}: is no edge; expected a tab and 'node1 -- node2'", path, line_number);
    const auto position = [&](std::string_view name) {
      const auto found = position_of.find(Trim(name));
      if (found == position_of.end())
        throw Error("{}:{}: there is no layer {}; remove the edge or add the layer", path, line_number, Trim(name));
      return found->second;
    };
    profile.edges.emplace_back(position(line.substr(0, separator)),
                               position(line.substr(separator + kSeparator.size())));
  }
  return profile;
}

struct BuiltGraph {
  std::shared_ptr<const Graph> graph;
  std::vector<std::pair<size_t, size_t>> pairs;  // file positions of a forward op and its backward op
};

// A backward op consumes the gradients of its layer's output, one per consumer, and what its forward op consumed, which
// therefore stays in memory; where the forward pass ends, its layer's output. A gradient is as large as the activation.
BuiltGraph MakeGraph(const Profile& profile, const std::string& path, bool training) {
  // "gnmt.graph.txt" is gnmt.
  GraphBuilder builder(std::filesystem::path(path).stem().stem().string());
  const size_t count = profile.layers.size();
  std::vector<size_t> activation(count);
  std::vector<int64_t> parameter(count, -1);
  std::vector<bool> is_consumed(count);
  for (const auto& [source, target] : profile.edges) is_consumed[source] = true;
  for (size_t i = 0; i < count; ++i) {
    const Layer& layer = profile.layers[i];
    const size_t op =
        builder.AddOp(layer.name, layer.type, {.bytes_written = layer.activation_bytes, .bytes_only = true});
    activation[i] = builder.AddTensor(op, layer.activation_bytes, {}, !is_consumed[i] && !training);
    if (layer.parameter_bytes > 0) {
      parameter[i] = static_cast<int64_t>(builder.AddParameter(layer.parameter_bytes, layer.name + "/weights"));
      builder.UseParameter(static_cast<size_t>(parameter[i]), op);
    }
  }
  for (const auto& [source, target] : profile.edges) builder.Consume(activation[source], target);

  BuiltGraph built;
  if (training) {
    std::vector<size_t> backward(count);
    for (size_t i = count; i-- > 0;) {
      const Layer& layer = profile.layers[i];
      backward[i] = builder.AddOp("grad/" + layer.name, layer.type + "Grad",
                                  {.bytes_written = layer.activation_bytes, .bytes_only = true});
      builder.MarkBackward(backward[i]);
      if (parameter[i] >= 0) builder.UseParameter(static_cast<size_t>(parameter[i]), backward[i]);
      if (!is_consumed[i]) builder.Consume(activation[i], backward[i]);
      built.pairs.emplace_back(i, backward[i]);
    }
    for (const auto& [source, target] : profile.edges) {
      builder.Consume(activation[source], backward[target]);
      builder.Consume(builder.AddTensor(backward[target], profile.layers[source].activation_bytes), backward[source]);
    }
  }
  builder.AddNote("times in milliseconds, as the data set has them, of one GPU that it does not describe");
  if (training)
    builder.AddNote(
        fmt::format("{}, each with its backward op on the same device", Counted(static_cast<int64_t>(count), "layer")));
  built.graph = std::make_shared<const Graph>(builder.Build(path));
  return built;
}

}  // namespace

bool LooksLikePipeDream(std::string_view content) { return content.find(" -- forward_compute_time=") != content.npos; }

Instance ReadPipeDream(std::string_view content, const std::string& path, const PipeDreamOptions& options) {
  const Profile profile = ParseProfile(content, path);
  const BuiltGraph built = MakeGraph(profile, path, options.training);
  Instance instance;
  instance.graph = built.graph;
  instance.evaluator = "pipeline";
  const Graph& graph = *built.graph;
  instance.options.seconds_per_unit = 1e-3;
  std::vector<double>& times = instance.times_by_kind["gpu"];
  times.resize(graph.num_ops());
  for (size_t i = 0; i < profile.layers.size(); ++i)
    times[Index(graph.op_at_file_position(i))] = profile.layers[i].forward_time;
  for (const auto& [forward, backward] : built.pairs) {
    times[Index(graph.op_at_file_position(backward))] = profile.layers[forward].backward_time;
    std::vector<OpId>& group = instance.options.constraints.colocate.emplace_back();
    group = {graph.op_at_file_position(forward), graph.op_at_file_position(backward)};
    std::ranges::sort(group);
  }
  return instance;
}

}  // namespace berth
