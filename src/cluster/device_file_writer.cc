// WriteCluster: a device file that ParseCluster reads back as an equal cluster, and that people like to read.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/device_numbers.h"

namespace berth {
namespace {

// Provenance and source as text: "vendor (data sheet)".
using OriginText = std::string;

OriginText OriginOf(const Quantity& quantity) {
  const std::string_view name = kProvenanceNames[static_cast<size_t>(quantity.provenance)];
  return quantity.source.empty() ? std::string(name) : fmt::format("{} ({})", name, quantity.source);
}

// As plain text where YAML reads it back as such, quoted else.
std::string Scalar(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-=() ";
  const auto plain = [&](char c) { return kPlain.find(c) != std::string_view::npos; };
  if (!text.empty() && text.front() != '-' && text.front() != ' ' && text.back() != ' ' && text != "null" &&
      text != "Null" && text != "NULL" && std::ranges::all_of(text, plain)) {
    return std::string(text);
  }
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < ' ') {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array kByteUnits = {Unit{"GiB", 0x1p30}, Unit{"MiB", 0x1p20}, Unit{"KiB", 0x1p10}, Unit{"GB", 1e9},
                                   Unit{"B", 1}};
constexpr std::array kBandwidthUnits = {Unit{"TB/s", 1e12}, Unit{"GB/s", 1e9}, Unit{"MB/s", 1e6}, Unit{"B/s", 1}};
constexpr std::array kRateUnits = {Unit{"TFLOP/s", 1e12}, Unit{"GFLOP/s", 1e9}, Unit{"FLOP/s", 1}};
constexpr std::array kTimeUnits = {Unit{"ms", 1e-3}, Unit{"us", 1e-6}, Unit{"s", 1}};

// In the unit that gives the shortest text among those that read back as the same number; the last unit always does.
template <size_t kCount, typename Parse>
std::string WithUnit(double value, const std::array<Unit, kCount>& units, const Parse& parse) {
  std::string best = fmt::format("{}{}", value, units.back().name);
  for (const Unit& unit : units) {
    // Rounded to what a person would write; exactness is asked of the parser.
    const std::string text = fmt::format("{:.12g}{}", value / unit.factor, unit.name);
    if (text.size() < best.size() && text.find('e') == std::string::npos && parse(text) == value) best = text;
  }
  return best;
}

std::string MemoryText(double value) {
  const std::string best =
      WithUnit(value, kByteUnits, [](std::string_view text) { return static_cast<double>(ParseBytes(text).value); });
  return best.find('e') == std::string::npos ? best : fmt::format("{:.0f}B", value);
}
std::string BandwidthText(double value) { return WithUnit(value, kBandwidthUnits, ParseBytesPerSecond); }
std::string RateText(double value) { return WithUnit(value, kRateUnits, ParseFlopsPerSecond); }
std::string TimeText(double value) {
  return WithUnit(value, kTimeUnits, [](std::string_view text) { return ParseSeconds(text).value; });
}
std::string PlainText(double value) { return fmt::format("{}", value); }

using Format = std::string (*)(double);

// A number, with its range, and its origin where that is not the default.
std::string Number(const Quantity& quantity, Format format, const OriginText& otherwise) {
  std::string text = format(quantity.value);
  if (quantity.has_range()) text += fmt::format(" from {} to {}", format(quantity.low), format(quantity.high));
  const OriginText origin = OriginOf(quantity);
  return Scalar(origin == otherwise ? text : text + ' ' + origin);
}

OriginText MostCommon(const std::vector<const Quantity*>& quantities) {
  // The links of a large cluster have millions of numbers and few origins: the texts of these alone are made.
  std::map<std::pair<Provenance, std::string_view>, std::pair<const Quantity*, size_t>> uses;
  for (const Quantity* quantity : quantities) {
    auto& [example, number] = uses[{quantity->provenance, quantity->source}];
    example = quantity;
    ++number;
  }
  std::map<OriginText, size_t> count;
  for (const auto& [origin, use] : uses) count[OriginOf(*use.first)] += use.second;
  const auto most = std::ranges::max_element(count, {}, [](const auto& entry) { return entry.second; });
  return most == count.end() ? "guess" : most->first;
}

std::vector<const Quantity*> QuantitiesOf(const Device& device) {
  std::vector<const Quantity*> all;
  ForEachNumber(device, [&](std::string_view, std::string_view, const Quantity& number) {
    if (number.value > 0) all.push_back(&number);
  });
  return all;
}

// The body of a device: equal for devices that `count` can repeat.
class DeviceText {
 public:
  explicit DeviceText(const Device& device, const OriginText& file_origin) : origin_(MostCommon(QuantitiesOf(device))) {
    Line("kind", Scalar(device.kind));
    if (origin_ != file_origin) Line("provenance", Scalar(origin_));
    if (device.memory) Line("memory", Number(*device.memory, MemoryText, origin_));
    Map("peak", device.peak, RateText);
    if (device.memory_bandwidth.value > 0) Positive("memory_bandwidth", device.memory_bandwidth, BandwidthText);
    Positive("op_overhead", device.op_overhead, TimeText);
    Map("efficiency", device.efficiency, PlainText);
    Positive("half_rate_outputs", device.half_rate_outputs, PlainText);
    Positive("part_overhead", device.part_overhead, TimeText);
    Map("cut_read", device.cut_read, BandwidthText);
    Map("cut_write", device.cut_write, BandwidthText);
    List("supports", device.supports);
    List("lacks", device.lacks);
    Map("watts", {{"idle", device.watts_idle}, {"busy", device.watts_busy}}, PlainText);
    if (device.precision != "f32") Line("precision", Scalar(device.precision));
    if (!device.runs_on.empty()) Line("runs_on", Scalar(device.runs_on));
    std::vector<std::string> cores;
    for (const int core : device.cores) cores.push_back(std::to_string(core));
    List("cores", cores);
    if (device.pace > 0) Line("pace", TimeText(device.pace));
  }

  const std::string& text() const { return text_; }

 private:
  void Line(std::string_view key, std::string_view value) { text_ += fmt::format("    {}: {}\n", key, value); }

  void Positive(std::string_view key, const Quantity& quantity, Format format) {
    const bool says_nothing = quantity.value == 0 && OriginOf(quantity) == OriginOf({});
    if (!says_nothing) Line(key, Number(quantity, format, origin_));
  }

  void Map(std::string_view key, const std::map<std::string, Quantity, std::less<>>& quantities, Format format) {
    std::string entries;
    for (const auto& [name, quantity] : quantities) {
      if (quantity.value > 0) entries += fmt::format("      {}: {}\n", name, Number(quantity, format, origin_));
    }
    if (!entries.empty()) text_ += fmt::format("    {}:\n{}", key, entries);
  }

  void List(std::string_view key, const std::vector<std::string>& items) {
    std::vector<std::string> scalars;
    for (const std::string& item : items) scalars.push_back(Scalar(item));
    if (!items.empty()) Line(key, fmt::format("[{}]", fmt::join(scalars, ", ")));
  }

  OriginText origin_;
  std::string text_;
};

// How many devices from `first` on have equal bodies and are named <stem>0, <stem>1, ...; below 2: no such run.
size_t RunLength(const Cluster& cluster, const std::vector<std::string>& bodies, size_t first, std::string& stem) {
  const std::string& name = cluster.device(MakeId<DeviceId>(first)).name;
  if (name.size() < 2 || name.back() != '0') return 1;
  stem = name.substr(0, name.size() - 1);
  size_t length = 1;
  while (first + length < bodies.size() && bodies[first + length] == bodies[first] &&
         cluster.device(MakeId<DeviceId>(first + length)).name == fmt::format("{}{}", stem, length)) {
    ++length;
  }
  return length;
}

std::string DevicesText(const Cluster& cluster, const OriginText& file_origin) {
  std::vector<std::string> bodies;
  for (const DeviceId id : cluster.ids()) bodies.push_back(DeviceText(cluster.device(id), file_origin).text());
  std::string text = "devices:\n";
  for (size_t i = 0; i < bodies.size();) {
    std::string stem;
    const size_t length = RunLength(cluster, bodies, i, stem);
    if (length > 1) {
      text += fmt::format("  {}:\n    count: {}\n{}", stem, length, bodies[i]);
    } else {
      text += fmt::format("  {}:\n{}", cluster.device(MakeId<DeviceId>(i)).name, bodies[i]);
    }
    i += length;
  }
  return text;
}

std::string LinkText(const Link& link, const OriginText& origin) {
  std::string text = fmt::format("latency: {}, bandwidth: {}", Number(link.latency, TimeText, origin),
                                 Number(link.bandwidth, BandwidthText, origin));
  if (!link.domain.empty()) text += fmt::format(", domain: {}", Scalar(link.domain));
  return text;
}

// Links that are written alike.
struct LinkKind {
  std::string text{};
  size_t uses = 0;
};

std::string LinksText(const Cluster& cluster, const OriginText& origin) {
  const size_t count = cluster.num_devices();
  if (count < 2) return "";
  const auto key = [](const Link& link) {
    const auto parts = [](const Quantity& quantity) {
      return std::make_tuple(quantity.value, quantity.provenance, std::string_view(quantity.source), quantity.low,
                             quantity.high);
    };
    return std::make_tuple(parts(link.latency), parts(link.bandwidth), std::string_view(link.domain));
  };
  std::map<decltype(key(Link{})), LinkKind> kinds;
  std::vector<const LinkKind*> kind_of(count * count);
  for (const DeviceId from : cluster.ids()) {
    for (const DeviceId to : cluster.ids()) {
      if (from == to) continue;
      const Link& link = cluster.link(from, to);
      LinkKind& kind = kinds[key(link)];
      if (kind.uses++ == 0) kind.text = LinkText(link, origin);
      kind_of[Index(from) * count + Index(to)] = &kind;
    }
  }
  const LinkKind* usual = nullptr;
  for (const auto& [unused, kind] : kinds) {
    if (usual == nullptr || kind.uses > usual->uses || (kind.uses == usual->uses && kind.text < usual->text))
      usual = &kind;
  }
  std::string text = fmt::format("links:\n  - {{{}}}\n", usual->text);
  for (size_t p = 0; p < count; ++p) {
    for (size_t q = 0; q < count; ++q) {
      const LinkKind* one = kind_of[p * count + q];
      const bool both = one == kind_of[q * count + p];
      if (p == q || one == usual || (both && q < p)) continue;
      text += fmt::format("  - {{from: {}, to: {}, {}{}}}\n", cluster.device(MakeId<DeviceId>(p)).name,
                          cluster.device(MakeId<DeviceId>(q)).name, both ? "both: true, " : "", one->text);
    }
  }
  return text;
}

}  // namespace

std::string WriteCluster(const Cluster& cluster) {
  std::vector<const Quantity*> of_links;
  for (const DeviceId from : cluster.ids()) {
    for (const DeviceId to : cluster.ids()) {
      if (from != to)
        of_links.insert(of_links.end(), {&cluster.link(from, to).latency, &cluster.link(from, to).bandwidth});
    }
  }
  const OriginText origin = MostCommon(of_links);
  return fmt::format("name: {}\nprovenance: {}\n\n{}\n{}", Scalar(cluster.name()), Scalar(origin),
                     DevicesText(cluster, origin), LinksText(cluster, origin));
}

}  // namespace berth
