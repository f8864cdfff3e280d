#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <pugixml.hpp>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "import/ir_net.h"
#include "import/ir_rounds.h"
#include "import/note_list.h"
#include "import/readers.h"

namespace berth {
namespace {

constexpr size_t kMostAxes = 64;
constexpr int kMostNested = 32;  // bodies within bodies
constexpr int64_t kFarAway = int64_t{1} << 60;

// By what a loop goes on after a round: always, never, or by what its body makes.
enum class Condition : uint8_t { kTrue, kFalse, kMade };

class IrReader {
 public:
  IrReader(std::string_view content, const std::string& path, const IrWeights& weights)
      : content_(content), path_(path), weights_(weights) {}

  IrNet Read() {
    const pugi::xml_parse_result result = document_.load_buffer(content_.data(), content_.size());
    if (!result) throw Error("{}:{}: is no whole XML: {}", path_, LineAt(result.offset), result.description());
    const pugi::xml_node root = document_.child("net");
    if (!root) throw Error("{}: has no <net>; an OpenVINO IR was expected", path_);
    IrNet net = ReadScope(root, 0).net;
    net.name = root.attribute("name").as_string(path_.c_str());
    if (dynamic_ > 0)
      net.notes.push_back(fmt::format("taken as 1, because the file leaves it open: {}",
                                      Counted(static_cast<int64_t>(dynamic_), "dimension")));
    notes_.Append(net.notes);
    return net;
  }

 private:
  // What the file says of a layer's ports: their numbers, in order.
  struct Ports {
    std::vector<int64_t> inputs{}, outputs{};
    std::vector<bool> connected{};  // by input
    std::vector<IrLayer::Source> sources{};
    pugi::xml_node node{};
    // Of a loop.
    Condition condition = Condition::kTrue;
    size_t made_by = 0;                      // the Result of its body that is the condition
    std::map<size_t, IrCounter> counters{};  // the Parameters of its body
    std::map<size_t, int64_t> fed_by{};      // of these the ports of the loop that they begin with
  };
  // The whole, or a body.
  struct Scope {
    IrNet net{};
    std::vector<Ports> ports{};  // by layer
    std::unordered_map<int64_t, size_t> position_of{};
  };

  Scope ReadScope(pugi::xml_node root, int depth) {
    if (depth > kMostNested) throw Mistake(root, "bodies are nested more than {} deep", kMostNested);
    Scope scope;
    for (const pugi::xml_node node : root.child("layers").children()) ReadLayer(node, depth, scope);
    if (scope.net.layers.empty()) throw Mistake(root, "<{}> has no <layer>", root.name());
    for (const pugi::xml_node node : root.child("edges").children()) ReadEdge(node, scope);
    CloseInputs(scope);
    for (size_t i = 0; i < scope.net.layers.size(); ++i) {
      if (!scope.net.layers[i].bodies.empty()) CountRounds(scope, i);
    }
    return scope;
  }

  size_t LineAt(ptrdiff_t offset) const {
    const std::string_view before = content_.substr(0, static_cast<size_t>(std::max<ptrdiff_t>(offset, 0)));
    return 1 + static_cast<size_t>(std::ranges::count(before, '\n'));
  }
  template <typename... Args>
  Error Mistake(pugi::xml_node node, fmt::format_string<Args...> format, Args&&... args) const {
    return Error("{}:{}: {}", path_, LineAt(node.offset_debug()), fmt::format(format, std::forward<Args>(args)...));
  }

  int64_t IntOf(pugi::xml_node node, const char* text, std::string_view what, int64_t least, int64_t most) const {
    const std::string_view trimmed = Trim(text);
    int64_t value = 0;
    const auto [end, code] = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), value);
    if (code != std::errc() || end != trimmed.data() + trimmed.size() || value < least || value > most) {
      throw Mistake(node, "{} is '{}'; expected an integer from {} to {}", what, text, least, most);
    }
    return value;
  }
  int64_t NumberOf(pugi::xml_node node, const char* attribute) const {
    if (!node.attribute(attribute)) throw Mistake(node, "<{}> has no {}", node.name(), attribute);
    return IntOf(node, node.attribute(attribute).value(), attribute, 0, INT32_MAX);
  }
  static std::string_view Trim(std::string_view text) {
    while (!text.empty() && std::string_view(" \t\r\n").find(text.front()) != text.npos) text.remove_prefix(1);
    while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != text.npos) text.remove_suffix(1);
    return text;
  }

  // Of a <dim>; -1 where it is open.
  int64_t SizeOf(pugi::xml_node dim) const {
    return Trim(dim.child_value()) == "?" ? -1 : IntOf(dim, dim.child_value(), "<dim>", -1, INT32_MAX);
  }

  IrPort ReadPort(pugi::xml_node node, const IrLayer& layer) {
    IrPort port;
    for (const pugi::xml_node dim : node.children("dim")) {
      if (port.dims.size() == kMostAxes)
        throw Mistake(node, "layer {} has a tensor of more than {} axes", layer.name, kMostAxes);
      int64_t size = SizeOf(dim);
      if (size < 0) {
        size = 1;
        ++dynamic_;
        if (!port.dims.empty()) port.certainty = Certainty::kUnknown;
      }
      port.dims.push_back(size);
    }
    const auto constant_type = layer.attributes.find("element_type");
    if (const std::string_view precision = node.attribute("precision").value(); !precision.empty()) {
      port.type = precision;
      std::ranges::transform(port.type, port.type.begin(),
                             [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      if (port.type.starts_with("fp")) port.type.erase(1, 1);
    } else if (constant_type != layer.attributes.end()) {
      port.type = constant_type->second;
    }
    return port;
  }

  void ReadLayer(pugi::xml_node node, int depth, Scope& scope) {
    if (node.type() != pugi::node_element) return;
    if (std::string_view(node.name()) != "layer")
      throw Mistake(node, "<{}> stands where a <layer> is expected", node.name());
    IrLayer layer{.name = node.attribute("name").value(), .type = node.attribute("type").value()};
    if (layer.type.empty()) throw Mistake(node, "a layer has no type");
    const int64_t id = NumberOf(node, "id");
    if (!scope.position_of.emplace(id, scope.net.layers.size()).second) {
      throw Mistake(node, "layer id {} is there already; give each layer its own", id);
    }
    for (const pugi::xml_attribute attribute : node.child("data").attributes())
      layer.attributes[attribute.name()] = attribute.value();
    Ports ports{.node = node};
    for (const pugi::xml_node port : node.child("input").children("port")) {
      ports.inputs.push_back(NumberOf(port, "id"));
      if (std::ranges::count(ports.inputs, ports.inputs.back()) > 1) {
        throw Mistake(port, "layer {} has two input ports {}", layer.name, ports.inputs.back());
      }
    }
    for (const pugi::xml_node port : node.child("output").children("port")) {
      ports.outputs.push_back(NumberOf(port, "id"));
      if (std::ranges::count(ports.outputs, ports.outputs.back()) > 1) {
        throw Mistake(port, "layer {} has two output ports {}", layer.name, ports.outputs.back());
      }
      layer.outputs.push_back(ReadPort(port, layer));
    }
    ports.connected.resize(ports.inputs.size());
    ports.sources.resize(ports.inputs.size());
    ReadBodies(node, depth, layer, ports);
    scope.net.layers.push_back(std::move(layer));
    scope.ports.push_back(std::move(ports));
  }

  void ReadBodies(pugi::xml_node node, int depth, IrLayer& layer, Ports& ports) {
    const auto read = [&](const char* name) {
      Scope body = ReadScope(node.child(name), depth + 1);
      if (std::string_view(name) == "body") {
        ports.condition = ConditionOf(node, body, ports.made_by);
        ReadCounters(node, body, ports);
      }
      layer.bodies.push_back(std::make_shared<const IrNet>(std::move(body.net)));
    };
    const bool loop = !node.child("body").empty();
    const int branches = (node.child("then_body") ? 1 : 0) + (node.child("else_body") ? 1 : 0);
    if (loop ? branches > 0 : branches == 1) {
      throw Mistake(node, "layer {} has neither the <body> of a loop alone, nor a <then_body> and an <else_body>",
                    layer.name);
    }
    if (loop) read("body");
    if (branches > 0) read("then_body"), read("else_body");
  }

  // What each Parameter of a loop's body is in the first round, and in the next one.
  void ReadCounters(pugi::xml_node loop, const Scope& body, Ports& ports) const {
    for (const pugi::xml_node entry : loop.child("port_map").children("input")) {
      if (entry.attribute("axis") || !entry.attribute("internal_layer_id")) continue;
      const size_t parameter = LayerOf(entry, "internal_layer_id", body);
      if (!ports.counters.try_emplace(parameter).second) {
        throw Mistake(entry, "layer {} of the body is fed twice; correct internal_layer_id",
                      body.net.layers[parameter].name);
      }
      if (std::string_view(entry.attribute("purpose").value()) == "current_iteration") {
        ports.counters[parameter] = {.first = 0, .step = 1};
      } else {
        ports.fed_by[parameter] = NumberOf(entry, "external_port_id");
      }
    }
    for (const pugi::xml_node edge : loop.child("back_edges").children("edge")) {
      ports.counters[LayerOf(edge, "to-layer", body)].next = LayerOf(edge, "from-layer", body);
    }
  }

  // A loop goes on where its body makes a constant of its condition that says so, or hands on that by which the round
  // began. A constant whose content was not read counts as true.
  Condition ConditionOf(pugi::xml_node loop, const Scope& body, size_t& result) const {
    for (const pugi::xml_node entry : loop.child("port_map").children("output")) {
      if (std::string_view(entry.attribute("purpose").value()) != "execution_condition") continue;
      result = LayerOf(entry, "internal_layer_id", body);
      const std::vector<IrLayer::Source>& inputs = body.net.layers[result].inputs;
      if (inputs.size() != 1) {
        throw Mistake(entry, "layer {} of the body is no Result; correct internal_layer_id",
                      body.net.layers[result].name);
      }
      const size_t maker = inputs.front().layer;
      if (body.net.layers[maker].type == "Const") {
        return ReadInteger(body.net.layers[maker]) == 0 ? Condition::kFalse : Condition::kTrue;
      }
      for (const pugi::xml_node edge : loop.child("back_edges").children("edge")) {
        if (LayerOf(edge, "from-layer", body) == result && LayerOf(edge, "to-layer", body) == maker)
          return Condition::kTrue;
      }
      return Condition::kMade;
    }
    return Condition::kTrue;
  }

  void CountRounds(Scope& scope, size_t i) {
    IrLayer& layer = scope.net.layers[i];
    if (layer.bodies.size() == 2) return notes_.Add("If layers, counted as the branch that computes more", layer.name);
    Condition condition = scope.ports[i].condition;
    const IrLayer *const count = LoopConstant(scope, layer, 0), *const begins = LoopConstant(scope, layer, 1);
    const std::optional<int64_t> trips = count != nullptr ? ReadInteger(*count) : std::nullopt,
                                 begin = begins != nullptr ? ReadInteger(*begins) : std::nullopt;
    const bool unread = count != nullptr && !trips && weights_;
    std::optional<int64_t> rounds = trips;
    // The largest number and those below 0 are ways to say "until the condition ends it".
    if (rounds && (*rounds < 0 || *rounds >= INT32_MAX)) rounds.reset();
    if (!rounds) rounds = Slices(scope.ports[i].node, layer);
    if (condition == Condition::kFalse) rounds = std::min<int64_t>(rounds.value_or(1), 1);
    if (condition == Condition::kMade) {
      const std::optional<int64_t> counted = CountedRounds(scope, i);
      if (counted) {
        rounds = std::min(rounds.value_or(*counted), *counted);
        // Unless what else may end it, or not begin it, was not read.
        const bool all_read = layer.type != "Loop" || (trips && begin);
        if (all_read) condition = Condition::kTrue;
      }
    }
    if (begin == 0) rounds = 0;
    if (!rounds) {
      layer.rounds_certainty = Certainty::kUnknown;
      notes_.Add(unread ? "loops whose number of rounds stands among weights that could not be read, counted as 1"
                        : "loops whose number of rounds only a run can tell, counted as 1",
                 layer.name);
      return;
    }
    layer.rounds = *rounds;
    if (layer.rounds <= 1 || condition != Condition::kMade) return;
    layer.rounds_certainty = Certainty::kEstimated;
    notes_.Add("loops that a run may leave early, counted with all their rounds", layer.name);
  }

  // Where whole numbers that the loop counts make its condition.
  std::optional<int64_t> CountedRounds(const Scope& scope, size_t i) const {
    const Ports& ports = scope.ports[i];
    std::map<size_t, IrCounter> counters = ports.counters;
    for (const auto& [parameter, port] : ports.fed_by) {
      const auto input = std::ranges::find(ports.inputs, port);
      if (input == ports.inputs.end()) {
        throw Mistake(ports.node, "layer {} has no input port {}; correct external_port_id", scope.net.layers[i].name,
                      port);
      }
      const auto at = static_cast<size_t>(input - ports.inputs.begin());
      const IrLayer& maker = scope.net.layers[scope.net.layers[i].inputs[at].layer];
      if (maker.type == "Const") counters[parameter].first = ReadInteger(maker);
    }
    return RoundsUntilFalse(*scope.net.layers[i].bodies.front(), ports.made_by, counters,
                            [this](const IrLayer& constant) { return ReadInteger(constant); });
  }

  // What comes in at port 0 (how many rounds at most) or 1 (whether to begin) of a Loop, where it is a constant.
  static const IrLayer* LoopConstant(const Scope& scope, const IrLayer& loop, size_t port) {
    if (loop.type != "Loop" || loop.inputs.size() <= port) return nullptr;
    const IrLayer& maker = scope.net.layers[loop.inputs[port].layer];
    return maker.type == "Const" ? &maker : nullptr;
  }

  // The content of a constant of one integer; none where the weights do not tell it.
  std::optional<int64_t> ReadInteger(const IrLayer& constant) const {
    const auto attribute = [&](const char* name) {
      const auto found = constant.attributes.find(name);
      return found == constant.attributes.end() ? std::string() : found->second;
    };
    const std::string type = attribute("element_type"), offset = attribute("offset");
    const size_t size = type == "i64" ? 8 : type == "i32" ? 4 : type == "boolean" ? 1 : 0;
    uint64_t at = 0;
    if (std::from_chars(offset.data(), offset.data() + offset.size(), at).ec != std::errc() || at > INT64_MAX ||
        size == 0 || !weights_ || constant.outputs.size() != 1 || Elements(constant.outputs.front().dims) != 1) {
      return std::nullopt;
    }
    char bytes[8] = {};
    if (!weights_(static_cast<int64_t>(at), {bytes, size})) return std::nullopt;
    int32_t narrow = 0;
    int64_t wide = 0;
    std::memcpy(&narrow, bytes, sizeof narrow);
    std::memcpy(&wide, bytes, sizeof wide);
    return type == "i32" ? narrow : wide;
  }

  // Of what a loop takes apart, or else of what it puts together, a part in each round.
  std::optional<int64_t> Slices(pugi::xml_node loop, const IrLayer& layer) const {
    for (const char* side : {"input", "output"}) {
      for (const pugi::xml_node entry : loop.child("port_map").children(side)) {
        if (!entry.attribute("axis")) continue;
        const int64_t id = NumberOf(entry, "external_port_id");
        pugi::xml_node port = loop.child(side).child("port");
        while (port && NumberOf(port, "id") != id) port = port.next_sibling("port");
        if (!port) {
          throw Mistake(entry, "layer {} has no {} port {}; correct external_port_id", layer.name, side, id);
        }
        const auto dims = port.children("dim");
        const int64_t rank = std::distance(dims.begin(), dims.end());
        if (rank == 0) continue;
        int64_t axis = Attribute(entry, "axis", 0, -rank, rank - 1);
        if (axis < 0) axis += rank;
        const int64_t size = SizeOf(*std::next(dims.begin(), axis));
        if (size < 0) continue;
        const int64_t part = Attribute(entry, "part_size", 1, 1, INT32_MAX);
        if (std::string_view(side) == "output" || size == 0) return size / part;
        // From `start` to `end`, both belonging to it, and counted from the end of the axis where they are negative.
        const auto at = [&](const char* name, int64_t otherwise) {
          const int64_t value =
              std::clamp(Attribute(entry, name, otherwise, INT64_MIN, INT64_MAX), -kFarAway, kFarAway);
          return value < 0 ? value + size : value;
        };
        return std::min(size, std::abs(at("end", -1) - at("start", 0)) + 1) / part;
      }
    }
    return std::nullopt;
  }

  int64_t Attribute(pugi::xml_node node, const char* name, int64_t otherwise, int64_t least, int64_t most) const {
    return node.attribute(name) ? IntOf(node, node.attribute(name).value(), name, least, most) : otherwise;
  }

  size_t LayerOf(pugi::xml_node edge, const char* attribute, const Scope& scope) const {
    const int64_t id = NumberOf(edge, attribute);
    const auto found = scope.position_of.find(id);
    if (found == scope.position_of.end())
      throw Mistake(edge, "no layer has the id {}; correct {} or add the layer", id, attribute);
    return found->second;
  }

  size_t PortOf(pugi::xml_node edge, const char* attribute, const IrLayer& layer,
                const std::vector<int64_t>& ports) const {
    const int64_t id = NumberOf(edge, attribute);
    const auto found = std::ranges::find(ports, id);
    if (found == ports.end())
      throw Mistake(edge, "layer {} has no port {} there; correct {}", layer.name, id, attribute);
    return static_cast<size_t>(found - ports.begin());
  }

  void ReadEdge(pugi::xml_node node, Scope& scope) {
    if (node.type() != pugi::node_element) return;
    if (std::string_view(node.name()) != "edge")
      throw Mistake(node, "<{}> stands where an <edge> is expected", node.name());
    const size_t from = LayerOf(node, "from-layer", scope), to = LayerOf(node, "to-layer", scope);
    const IrLayer &maker = scope.net.layers[from], &reader = scope.net.layers[to];
    if (maker.type == "Result") {
      throw Mistake(node, "layer {} reads from {}, which is a Result; read from what the Result reads", reader.name,
                    maker.name);
    }
    const size_t output = PortOf(node, "from-port", maker, scope.ports[from].outputs);
    Ports& ports = scope.ports[to];
    const size_t input = PortOf(node, "to-port", reader, ports.inputs);
    if (ports.connected[input])
      throw Mistake(node, "port {} of layer {} has two edges", ports.inputs[input], reader.name);
    ports.connected[input] = true;
    ports.sources[input] = {from, output};
  }

  void CloseInputs(Scope& scope) {
    for (size_t i = 0; i < scope.net.layers.size(); ++i) {
      IrLayer& layer = scope.net.layers[i];
      Ports& ports = scope.ports[i];
      const auto open = std::ranges::find(ports.connected, false);
      if (open != ports.connected.end()) {
        throw Mistake(ports.node, "nothing comes in at port {} of layer {}; the file is cut or was edited",
                      ports.inputs[static_cast<size_t>(open - ports.connected.begin())], layer.name);
      }
      layer.inputs = std::move(ports.sources);
    }
  }

  const std::string_view content_;
  const std::string& path_;
  const IrWeights& weights_;
  pugi::xml_document document_;
  NoteList notes_;
  size_t dynamic_ = 0;
};

}  // namespace

bool LooksLikeIr(std::string_view content) {
  const std::string_view start = content.substr(0, 4096);
  return start.find("<net ") != start.npos && content.find("<layers") != content.npos;
}

IrWeights WeightsBeside(const std::string& path) {
  return [file = std::filesystem::path(path).replace_extension(".bin")](int64_t offset, std::span<char> bytes) {
    std::ifstream weights(file, std::ios::binary);
    weights.seekg(offset);
    return static_cast<bool>(weights.read(bytes.data(), static_cast<std::streamsize>(bytes.size())));
  };
}

Graph ReadIr(std::string_view content, const std::string& path, IrView view, const IrWeights& weights,
             std::vector<std::string> notes) {
  IrNet net = IrReader(content, path, weights).Read();
  net.notes.insert(net.notes.begin(), notes.begin(), notes.end());
  return BuildIrGraph(net, view, path);
}

}  // namespace berth
