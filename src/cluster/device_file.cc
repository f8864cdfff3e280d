// ParseCluster: the device file of docs/cluster-format.md.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/yaml_fields.h"

namespace berth {
namespace {

constexpr size_t kMaxDevices = 1024;  // as many as any preset makes
constexpr size_t kMaxNameLength = 64;

const std::vector<std::string> kDataTypeKeys = {"f32", "f16", "bf16", "i8", "f64"};
const std::vector<std::string> kOpClassKeys = {"matmul",    "conv",          "elementwise", "normalization",
                                               "reduction", "data_movement", "recurrent",   "other"};

const std::vector<std::string> kProvenances = {kProvenanceNames.begin(), kProvenanceNames.end()};

// Every number of every device has a copy.
constexpr size_t kLongestSource = 1000;

// What a number gets that says nothing of itself.
struct Origin {
  Provenance provenance = Provenance::kGuess;
  std::string source;
};

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::optional<Provenance> ProvenanceNamed(std::string_view name) {
  const auto known = std::ranges::find(kProvenanceNames, name);
  if (known == kProvenanceNames.end()) return std::nullopt;
  return static_cast<Provenance>(known - kProvenanceNames.begin());
}

// "16GiB vendor (data sheet)" -> "16GiB" and its origin; an origin alone leaves an empty text.
std::string_view SplitOrigin(std::string_view text, const YamlPlace& place, Origin& origin) {
  text = Trim(text);
  std::string_view source;
  const size_t open = text.find('(');
  if (open != std::string_view::npos && text.back() == ')') {
    source = text.substr(open + 1, text.size() - open - 2);
    text = Trim(text.substr(0, open));
  }
  const size_t space = text.find_last_of(" \t");
  const std::string_view last = space == std::string_view::npos ? text : text.substr(space + 1);
  if (const std::optional<Provenance> provenance = ProvenanceNamed(last)) {
    if (source.size() > kLongestSource)
      throw place.Fail(fmt::format("a source of {} bytes; expected at most {}", source.size(), kLongestSource));
    origin = {*provenance, std::string(source)};
    return Trim(text.substr(0, text.size() - last.size()));
  }
  const std::string_view closest = Closest(last, kProvenances);
  if (!closest.empty())
    throw place.Fail(fmt::format("'{}' (did you mean {}?); expected guess, vendor or measured", last, closest));
  if (open != std::string_view::npos) {
    throw place.Fail(fmt::format(
        "'{}' before '('; expected guess, vendor or measured there, like `16GiB vendor (data sheet)`", last));
  }
  return text;
}

Origin ReadOrigin(const YamlFields& fields, const Origin& otherwise) {
  const YamlField* field = fields.Find("provenance");
  if (field == nullptr) return otherwise;
  const YamlPlace place = fields.PlaceOf(*field);
  const std::string_view example = "guess, vendor or measured, like `vendor (data sheet)`";
  Origin origin;
  const std::string& text = YamlText(field->value, place, example);
  if (!SplitOrigin(text, place, origin).empty() || Trim(text).empty()) {
    throw place.Fail(fmt::format("'{}'; expected {}", text, example));
  }
  return origin;
}

double ParsePlain(std::string_view text, std::string_view unit, std::string_view what) {
  if (text.ends_with(unit)) text = Trim(text.substr(0, text.size() - unit.size()));
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0) {
    throw Error("'{}' is not {}", text, what);
  }
  return value;
}

double Memory(std::string_view text) { return static_cast<double>(ParseBytes(text).value); }
double Time(std::string_view text) { return ParseSeconds(text).value; }
double Watts(std::string_view text) { return ParsePlain(text, "W", "watts: write a number of at least 0, like 75W"); }
double Outputs(std::string_view text) {
  constexpr std::string_view kExpected =
      "how many values an op makes: write a number from 1 to 1e15, like 350000, or 0";
  const double values = ParsePlain(text, "", kExpected);
  if (values != 0 && (values < 1 || values > 1e15)) throw Error("'{}' is not {}", text, kExpected);
  return values;
}
double Positive(double value, std::string_view text, std::string_view example) {
  if (!(value > 0)) throw Error("'{}' is zero; expected more, like {}", text, example);
  return value;
}
double Bandwidth(std::string_view text) { return Positive(ParseBytesPerSecond(text), text, "12GB/s"); }
double Rate(std::string_view text) { return Positive(ParseFlopsPerSecond(text), text, "8.2TFLOP/s"); }
double Share(std::string_view text) {
  const double share = ParsePlain(text, "", "an efficiency: write a share of the peak above 0 and up to 1, like 0.6");
  if (share <= 0 || share > 1) {
    throw Error(
        "'{}' is out of range; expected a share of the peak above 0 and up to 1 (op types that a device cannot run go "
        "under `lacks`)",
        text);
  }
  return share;
}

using Parser = double (*)(std::string_view);

Quantity ReadQuantity(const YamlFields& fields, const YamlField& field, Parser parse, const Origin& otherwise) {
  const YamlPlace place = fields.PlaceOf(field);
  const std::string& text = YamlText(field.value, place, "a number with its unit, like `16GiB vendor (data sheet)`");
  Origin origin = otherwise;
  const std::string_view number = SplitOrigin(text, place, origin);
  constexpr std::string_view kFrom = " from ", kTo = " to ";
  const size_t from = number.find(kFrom), to = number.find(kTo);
  try {
    Quantity quantity{
        .value = parse(Trim(number.substr(0, from))), .provenance = origin.provenance, .source = origin.source};
    if (from == std::string_view::npos) return quantity;
    if (to == std::string_view::npos || to < from) {
      throw Error("'{}'; expected a range like `15us from 5us to 40us`", number);
    }
    quantity.low = parse(Trim(number.substr(from + kFrom.size(), to - from - kFrom.size())));
    quantity.high = parse(Trim(number.substr(to + kTo.size())));
    if (!(quantity.low <= quantity.value && quantity.value <= quantity.high) || !(quantity.low > 0)) {
      throw Error("'{}'; expected a range above 0 that holds the number, like `15us from 5us to 40us`", number);
    }
    if (quantity.provenance != Provenance::kGuess) {
      throw Error("'{}' has a range and is no guess; expected `guess` behind it, or no range", number);
    }
    return quantity;
  } catch (const Error& error) {
    throw place.Fail(error.what());
  }
}

std::map<std::string, Quantity, std::less<>> ReadRates(const YamlFields& fields, std::string_view key,
                                                       const std::vector<std::string>& known, Parser parse,
                                                       const Origin& origin) {
  std::map<std::string, Quantity, std::less<>> rates;
  const YamlField* field = fields.Find(key);
  if (field == nullptr) return rates;
  const YamlFields entries(field->value, fields.PlaceOf(*field), known);
  for (const YamlField& entry : entries.all()) rates[entry.key] = ReadQuantity(entries, entry, parse, origin);
  return rates;
}

std::vector<std::string> ReadPatterns(const YamlFields& fields, std::string_view key) {
  const YamlField* field = fields.Find(key);
  if (field == nullptr) return {};
  return YamlTexts(field->value, fields.PlaceOf(*field), "op types, like [Conv*, MatMul]");
}

void CheckName(std::string_view name, const YamlPlace& place) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto other = [](char c) { return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == ':'; };
  if (name.size() <= kMaxNameLength && letter(name.front()) &&
      std::ranges::all_of(name, [&](char c) { return letter(c) || other(c); })) {
    return;
  }
  throw place.Fail(fmt::format("'{}' cannot be a name; expected a letter, then letters, digits and _ . - :, {} at most",
                               name.substr(0, kMaxNameLength), kMaxNameLength));
}

// "0", "4-7".
void AddCores(const std::string& text, const YamlPlace& place, std::vector<int>& cores) {
  constexpr int kMostCores = 4096;
  const auto number = [&](std::string_view digits) {
    int value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc() || end != digits.data() + digits.size() || value < 0 || value >= kMostCores) {
      throw place.Fail(
          fmt::format("'{}'; expected numbers of cores from 0 to {}, like [0, 2-3]", text, kMostCores - 1));
    }
    return value;
  };
  const size_t dash = text.find('-', 1);
  const int first = number(std::string_view(text).substr(0, dash));
  const int last = dash == std::string::npos ? first : number(std::string_view(text).substr(dash + 1));
  if (last < first) throw place.Fail(fmt::format("'{}' ends before it begins; expected something like 2-3", text));
  for (int core = first; core <= last; ++core) {
    if (std::ranges::count(cores, core) > 0) throw place.Fail(fmt::format("core {} twice; expected each once", core));
    cores.push_back(core);
  }
}

void ReadPrecision(const YamlFields& fields, Device& device) {
  const YamlField* field = fields.Find("precision");
  if (field == nullptr) return;
  const YamlPlace place = fields.PlaceOf(*field);
  const std::string& text = YamlText(field->value, place, "f32, f16 or bf16");
  if (const std::string mistake = PrecisionMistake(text); !mistake.empty()) throw place.Fail(mistake);
  device.precision = text;
}

void ReadWhereItRuns(const YamlFields& fields, Device& device) {
  constexpr std::string_view kRuntime = "a runtime's name of the device, like CPU, GPU or GPU.1";
  if (const YamlField* field = fields.Find("runs_on")) {
    device.runs_on = YamlText(field->value, fields.PlaceOf(*field), kRuntime);
    CheckName(device.runs_on, fields.PlaceOf(*field));
  }
  if (const YamlField* field = fields.Find("cores")) {
    const YamlPlace place = fields.PlaceOf(*field);
    for (const std::string& text : YamlTexts(field->value, place, "numbers of cores, like [0, 2-3]")) {
      AddCores(text, place, device.cores);
    }
    std::ranges::sort(device.cores);
  }
}

Device ReadDevice(const YamlFields& fields, const Origin& file_origin) {
  const Origin origin = ReadOrigin(fields, file_origin);
  const auto quantity = [&](const YamlFields& in, std::string_view key, Parser parse) {
    const YamlField* field = in.Find(key);
    return field == nullptr ? Quantity{} : ReadQuantity(in, *field, parse, origin);
  };

  Device device;
  const YamlField& kind = fields.Need("kind", "cpu, gpu, igpu, npu or another word");
  device.kind = YamlText(kind.value, fields.PlaceOf(kind), "cpu, gpu, igpu, npu or another word");
  CheckName(device.kind, fields.PlaceOf(kind));
  if (fields.Find("memory") != nullptr) device.memory = quantity(fields, "memory", Memory);
  device.peak = ReadRates(fields, "peak", kDataTypeKeys, Rate, origin);
  if (fields.Find("peak") != nullptr && !device.peak.contains("f32")) {
    throw fields.PlaceOf(*fields.Find("peak"))
        .Fail("no f32; expected `f32: 8.2TFLOP/s`, the rate of every type that has none of its own");
  }
  device.efficiency = ReadRates(fields, "efficiency", kOpClassKeys, Share, origin);
  device.half_rate_outputs = quantity(fields, "half_rate_outputs", Outputs);
  device.memory_bandwidth = quantity(fields, "memory_bandwidth", Bandwidth);
  device.op_overhead = quantity(fields, "op_overhead", Time);
  device.part_overhead = quantity(fields, "part_overhead", Time);
  device.cut_read = ReadRates(fields, "cut_read", kOpClassKeys, Bandwidth, origin);
  device.cut_write = ReadRates(fields, "cut_write", kOpClassKeys, Bandwidth, origin);
  device.supports = ReadPatterns(fields, "supports");
  device.lacks = ReadPatterns(fields, "lacks");
  if (const YamlField* watts = fields.Find("watts")) {
    const YamlFields entries(watts->value, fields.PlaceOf(*watts), {"idle", "busy"});
    device.watts_idle = quantity(entries, "idle", Watts);
    device.watts_busy = quantity(entries, "busy", Watts);
    if (entries.Find("busy") != nullptr && device.watts_busy.value < device.watts_idle.value) {
      throw entries.PlaceOf(*entries.Find("busy"))
          .Fail(fmt::format("{} W is less than the {} W of an idle device; expected what it takes while it works",
                            device.watts_busy.value, device.watts_idle.value));
    }
  }
  ReadPrecision(fields, device);
  ReadWhereItRuns(fields, device);
  const Quantity pace = quantity(fields, "pace", Time);
  if (pace.has_range()) {
    throw fields.PlaceOf(*fields.Find("pace")).Fail("has a range; expected a time alone, since it is measured");
  }
  device.pace = pace.value;
  return device;
}

// How many of a device there are; nothing where the file does not say, which is one without a number in its name.
std::optional<size_t> ReadCount(const YamlFields& fields) {
  const YamlField* field = fields.Find("count");
  if (field == nullptr) return std::nullopt;
  const std::string& text = YamlText(field->value, fields.PlaceOf(*field), "a number, like 4");
  size_t count = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (code != std::errc() || end != text.data() + text.size() || count == 0 || count > kMaxDevices) {
    throw fields.PlaceOf(*field).Fail(fmt::format("'{}'; expected a whole number from 1 to {}", text, kMaxDevices));
  }
  return count;
}

class DeviceFile {
 public:
  DeviceFile(const YAML::Node& root, const std::string& path)
      : path_(path), fields_(root, {&path_, 1, "the cluster"}, {"name", "provenance", "devices", "links"}) {}

  Cluster Read() {
    const YamlField& name = fields_.Need("name", "a name for the cluster");
    std::string cluster_name = YamlText(name.value, fields_.PlaceOf(name), "a name for the cluster");
    origin_ = ReadOrigin(fields_, {});
    ReadDevices();
    std::vector<Link> kinds(1);
    std::vector<uint32_t> kind_of = ReadLinks(kinds);
    return Cluster(std::move(cluster_name), std::move(devices_), std::move(kinds), std::move(kind_of));
  }

 private:
  void ReadDevices() {
    const YamlField& field = fields_.Need("devices", "a mapping from device names to their numbers");
    const YamlFields named(field.value, {&path_, field.line, "devices"});
    for (const YamlField& entry : named.all()) {
      const YamlPlace place{&path_, entry.line, "device " + entry.key};
      CheckName(entry.key, place);
      const YamlFields numbers(entry.value, {&path_, entry.line, entry.key},
                               {"kind", "count", "memory", "peak", "memory_bandwidth", "op_overhead", "efficiency",
                                "half_rate_outputs", "part_overhead", "cut_read", "cut_write", "supports", "lacks",
                                "watts", "precision", "runs_on", "cores", "pace", "provenance"});
      Device device = ReadDevice(numbers, origin_);
      const std::optional<size_t> count = ReadCount(numbers);
      if (count.value_or(1) > 1 && !device.cores.empty()) {
        throw numbers.PlaceOf(*numbers.Find("cores"))
            .Fail("several devices with the same cores; expected an entry each");
      }
      for (size_t i = 0; i < count.value_or(1); ++i) {
        device.name = count ? fmt::format("{}{}", entry.key, i) : entry.key;
        AddDevice(device, place);
      }
    }
    if (devices_.empty()) throw named.place().Fail("is empty; expected at least one device");
  }

  void AddDevice(const Device& device, const YamlPlace& place) {
    if (devices_.size() == kMaxDevices)
      throw place.Fail(fmt::format("one device too many; expected at most {}", kMaxDevices));
    if (!device_numbers_.emplace(device.name, devices_.size()).second) {
      throw place.Fail(fmt::format("there is a {} already; expected another name", device.name));
    }
    devices_.push_back(device);
  }

  // Adds the entries to `entries`, and says which each pair has: every ordered pair takes the last one that fits it.
  std::vector<uint32_t> ReadLinks(std::vector<Link>& entries) {
    const size_t count = devices_.size();
    std::vector<uint32_t> entry_of(count * count, 0);  // 0: none fits
    const YamlField* field = fields_.Find("links");
    if (field != nullptr) {
      if (!field->value.IsSequence())
        throw fields_.PlaceOf(*field).Fail(
            "is no list; expected `- {from: cpu, to: gpu*, latency: 10us, bandwidth: 12GB/s}` lines");
      for (const YAML::Node& node : field->value) {
        ReadLink(node, field->line, entries.size(), entry_of, entries);
      }
    }
    for (size_t pair = 0; pair < entry_of.size(); ++pair) {
      if (entry_of[pair] > 0 || pair / count == pair % count) continue;
      throw Error(
          "{}:{}: links: none from {} to {}; expected an entry that fits the pair, or one without from and to for all",
          path_, field == nullptr ? 1 : field->line, devices_[pair / count].name, devices_[pair % count].name);
    }
    return entry_of;
  }

  void ReadLink(const YAML::Node& node, int links_line, size_t number, std::vector<uint32_t>& entry_of,
                std::vector<Link>& entries) const {
    const int line = node.Mark().is_null() ? links_line : node.Mark().line + 1;
    const YamlFields fields(node, {&path_, line, fmt::format("link {}", number)},
                            {"from", "to", "both", "latency", "bandwidth", "domain", "provenance"});
    const Origin origin = ReadOrigin(fields, origin_);
    Link link;
    link.latency = ReadQuantity(fields, fields.Need("latency", "10us"), Time, origin);
    link.bandwidth = ReadQuantity(fields, fields.Need("bandwidth", "12GB/s"), Bandwidth, origin);
    if (const YamlField* domain = fields.Find("domain")) {
      link.domain = YamlText(domain->value, fields.PlaceOf(*domain), "a name for the medium that these links share");
    }
    entries.push_back(link);

    const std::vector<size_t> from = ReadEnd(fields, "from");
    const std::vector<size_t> to = ReadEnd(fields, "to");
    const bool both = ReadBoth(fields);
    bool fits = false;
    for (const size_t p : from) {
      for (const size_t q : to) {
        if (p == q) continue;
        fits = true;
        entry_of[p * devices_.size() + q] = static_cast<uint32_t>(number);
        if (both) entry_of[q * devices_.size() + p] = static_cast<uint32_t>(number);
      }
    }
    if (!fits && devices_.size() > 1)
      throw fields.place().Fail("joins no two devices; expected different ones under from and to");
  }

  // The devices that one of the patterns fits: by name, or by kind where it fits no name.
  std::vector<size_t> ReadEnd(const YamlFields& fields, std::string_view key) const {
    std::vector<bool> fits(devices_.size(), fields.Find(key) == nullptr);
    if (const YamlField* field = fields.Find(key)) {
      const YamlPlace place = fields.PlaceOf(*field);
      for (const std::string& pattern : YamlTexts(field->value, place, "device names or kinds, like gpu*")) {
        if (!Mark(pattern, &Device::name, fits) && !Mark(pattern, &Device::kind, fits))
          throw place.Fail(NoSuchDevice(pattern));
      }
    }
    std::vector<size_t> ends;
    for (size_t i = 0; i < fits.size(); ++i) {
      if (fits[i]) ends.push_back(i);
    }
    return ends;
  }

  bool Mark(std::string_view pattern, std::string Device::* field, std::vector<bool>& fits) const {
    bool any = false;
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (!GlobMatches(pattern, devices_[i].*field)) continue;
      fits[i] = true;
      any = true;
    }
    return any;
  }

  std::string NoSuchDevice(std::string_view pattern) const {
    std::vector<std::string> names;
    for (const Device& device : devices_) names.push_back(device.name);
    const std::string closest(Closest(pattern, names));
    if (names.size() > 8) names = {names.front(), "...", names.back()};
    return fmt::format("'{}' fits no device{}; expected a name or kind of {}", pattern,
                       closest.empty() ? "" : fmt::format(" (did you mean {}?)", closest), fmt::join(names, ", "));
  }

  static bool ReadBoth(const YamlFields& fields) {
    const YamlField* field = fields.Find("both");
    if (field == nullptr) return false;
    const std::string& text = YamlText(field->value, fields.PlaceOf(*field), "true or false");
    if (text != "true" && text != "false") {
      throw fields.PlaceOf(*field).Fail(fmt::format("'{}'; expected true or false", text));
    }
    return text == "true";
  }

  const std::string& path_;
  YamlFields fields_;
  Origin origin_;
  std::vector<Device> devices_;
  std::map<std::string, size_t> device_numbers_;
};

}  // namespace

Cluster ParseCluster(std::string_view yaml, const std::string& path) {
  try {
    return DeviceFile(ParseYaml(yaml, path, {.what = "cluster", .keys = "`name:`, `devices:` and `links:`"}), path)
        .Read();
  } catch (const YAML::Exception& exception) {
    // The parser hands out nodes lazily; what it finds wrong only then.
    throw Error("{}:{}: not YAML ({})", path, exception.mark.is_null() ? 1 : exception.mark.line + 1, exception.msg);
  }
}

}  // namespace berth
