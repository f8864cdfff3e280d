#include <algorithm>
#include <cctype>
#include <charconv>
#include <pugixml.hpp>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "import/ir_net.h"
#include "import/readers.h"

namespace berth {
namespace {

constexpr size_t kMostAxes = 64;

class IrReader {
 public:
  IrReader(std::string_view content, const std::string& path) : content_(content), path_(path) {}

  IrNet Read() {
    const pugi::xml_parse_result result = document_.load_buffer(content_.data(), content_.size());
    if (!result) throw Error("{}:{}: is no whole XML: {}", path_, LineAt(result.offset), result.description());
    const pugi::xml_node root = document_.child("net");
    if (!root) throw Error("{}: has no <net>; an OpenVINO IR was expected", path_);
    net_.name = root.attribute("name").as_string(path_.c_str());
    for (const pugi::xml_node node : root.child("layers").children()) ReadLayer(node);
    if (net_.layers.empty()) throw Error("{}: <layers> is missing or empty; there is nothing to place", path_);
    for (const pugi::xml_node node : root.child("edges").children()) ReadEdge(node);
    CloseInputs();
    if (dynamic_ > 0)
      net_.notes.push_back(fmt::format("taken as 1, because the file leaves it open: {}",
                                       Counted(static_cast<int64_t>(dynamic_), "dimension")));
    if (bodies_ > 0)
      net_.notes.push_back(
          fmt::format("without the work of its loop or branch: {}", Counted(static_cast<int64_t>(bodies_), "layer")));
    return std::move(net_);
  }

 private:
  // What the file says of a layer's ports: their numbers, in order.
  struct Ports {
    std::vector<int64_t> inputs{}, outputs{};
    std::vector<bool> connected{};  // by input
    std::vector<IrLayer::Source> sources{};
    pugi::xml_node node{};
  };

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

  IrPort ReadPort(pugi::xml_node node, const IrLayer& layer) {
    IrPort port;
    for (const pugi::xml_node dim : node.children("dim")) {
      if (port.dims.size() == kMostAxes)
        throw Mistake(node, "layer {} has a tensor of more than {} axes", layer.name, kMostAxes);
      int64_t size = Trim(dim.child_value()) == "?" ? -1 : IntOf(dim, dim.child_value(), "<dim>", -1, INT32_MAX);
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

  void ReadLayer(pugi::xml_node node) {
    if (node.type() != pugi::node_element) return;
    if (std::string_view(node.name()) != "layer")
      throw Mistake(node, "<{}> stands where a <layer> is expected", node.name());
    IrLayer layer{.name = node.attribute("name").value(), .type = node.attribute("type").value()};
    if (layer.type.empty()) throw Mistake(node, "a layer has no type");
    const int64_t id = NumberOf(node, "id");
    if (!position_of_.emplace(id, net_.layers.size()).second) {
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
    if (node.child("body") || node.child("then_body")) ++bodies_;
    net_.layers.push_back(std::move(layer));
    ports_.push_back(std::move(ports));
  }

  size_t LayerOf(pugi::xml_node edge, const char* attribute) const {
    const int64_t id = NumberOf(edge, attribute);
    const auto found = position_of_.find(id);
    if (found == position_of_.end())
      throw Mistake(edge, "no layer has the id {}; remove the edge or add the layer", id);
    return found->second;
  }

  size_t PortOf(pugi::xml_node edge, const char* attribute, size_t layer, const std::vector<int64_t>& ports) const {
    const int64_t id = NumberOf(edge, attribute);
    const auto found = std::ranges::find(ports, id);
    if (found == ports.end())
      throw Mistake(edge, "layer {} has no port {} there; correct {}", net_.layers[layer].name, id, attribute);
    return static_cast<size_t>(found - ports.begin());
  }

  void ReadEdge(pugi::xml_node node) {
    if (node.type() != pugi::node_element) return;
    if (std::string_view(node.name()) != "edge")
      throw Mistake(node, "<{}> stands where an <edge> is expected", node.name());
    const size_t from = LayerOf(node, "from-layer"), to = LayerOf(node, "to-layer");
    if (net_.layers[from].type == "Result") {
      throw Mistake(node, "layer {} reads from {}, which is a Result; read from what the Result reads",
                    net_.layers[to].name, net_.layers[from].name);
    }
    const size_t output = PortOf(node, "from-port", from, ports_[from].outputs);
    const size_t input = PortOf(node, "to-port", to, ports_[to].inputs);
    if (ports_[to].connected[input])
      throw Mistake(node, "port {} of layer {} has two edges", ports_[to].inputs[input], net_.layers[to].name);
    ports_[to].connected[input] = true;
    ports_[to].sources[input] = {from, output};
  }

  void CloseInputs() {
    for (size_t i = 0; i < net_.layers.size(); ++i) {
      const auto open = std::ranges::find(ports_[i].connected, false);
      if (open != ports_[i].connected.end()) {
        throw Mistake(ports_[i].node, "nothing comes in at port {} of layer {}; the file is cut or was edited",
                      ports_[i].inputs[static_cast<size_t>(open - ports_[i].connected.begin())], net_.layers[i].name);
      }
      net_.layers[i].inputs = std::move(ports_[i].sources);
    }
  }

  const std::string_view content_;
  const std::string& path_;
  pugi::xml_document document_;
  IrNet net_;
  std::vector<Ports> ports_;  // by layer
  std::unordered_map<int64_t, size_t> position_of_;
  size_t dynamic_ = 0, bodies_ = 0;
};

}  // namespace

bool LooksLikeIr(std::string_view content) {
  const std::string_view start = content.substr(0, 4096);
  return start.find("<net ") != start.npos && content.find("<layers") != content.npos;
}

Graph ReadIr(std::string_view content, const std::string& path, IrView view, std::vector<std::string> notes) {
  IrNet net = IrReader(content, path).Read();
  net.notes.insert(net.notes.begin(), notes.begin(), notes.end());
  return BuildIrGraph(net, view, path);
}

}  // namespace berth
