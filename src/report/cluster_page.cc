#include "report/cluster_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "cluster/device_numbers.h"
#include "report/guesses.h"
#include "report/notes.h"
#include "report/table.h"

namespace berth {
namespace {

// "?" a guess, nothing a vendor's number, "!" a measured one.
std::string Marked(std::string text, const Quantity& quantity) {
  return text + (quantity.provenance == Provenance::kGuess      ? " ?"
                 : quantity.provenance == Provenance::kMeasured ? " !"
                                                                : "  ");
}

std::string Rate(const Quantity& quantity, std::string_view unit) {
  return quantity.value > 0 ? Marked(WithPrefix(quantity.value, unit), quantity) : "-  ";
}

std::string Names(const std::vector<std::string>& names) { return Legible(fmt::format("{}", fmt::join(names, " "))); }

std::string DeviceRows(const Cluster& cluster) {
  using enum Table::Align;
  std::set<std::string> types;
  for (const DeviceId id : cluster.ids()) {
    for (const auto& [type, peak] : cluster.device(id).peak) types.insert(type);
  }
  std::vector<Table::Column> columns = {{"device"}, {"kind", kLeft, 6}, {"memory", kRight}};
  for (const std::string& type : types) columns.push_back({type, kRight, type == "f32" ? 0 : 5});
  columns.insert(columns.end(),
                 {{"bandwidth", kRight}, {"per op", kRight, 1}, {"idle", kRight, 3}, {"busy", kRight, 3}});
  const auto in_f32 = [&](DeviceId id) { return cluster.device(id).precision == "f32"; };
  const bool says_precision = !std::ranges::all_of(cluster.ids(), in_f32);
  if (says_precision) columns.push_back({"f32 in"});
  const auto same_rate = [&](DeviceId id) { return !(cluster.device(id).half_rate_outputs.value > 0); };
  const bool says_half_rate = !std::ranges::all_of(cluster.ids(), same_rate);
  if (says_half_rate) columns.push_back({"half rate at", kRight, 4});
  columns.push_back({"ops", kLeft, 2});
  Table table(std::move(columns));
  for (const DeviceId id : cluster.ids()) {
    const Device& device = cluster.device(id);
    std::vector<std::string> row = {
        Legible(device.name), Legible(device.kind),
        device.memory ? Marked(ToString(Bytes{static_cast<int64_t>(device.memory->value)}), *device.memory)
                      : "unlimited  "};
    for (const std::string& type : types) {
      const auto peak = device.peak.find(type);
      row.push_back(peak == device.peak.end() ? "-  " : Rate(peak->second, "FLOP/s"));
    }
    row.push_back(Rate(device.memory_bandwidth, "B/s"));
    row.push_back(Marked(ToString(Seconds{device.op_overhead.value}), device.op_overhead));
    row.push_back(Rate(device.watts_idle, "W"));
    row.push_back(Rate(device.watts_busy, "W"));
    if (says_precision) row.push_back(device.precision);
    if (says_half_rate) {
      const Quantity& outputs = device.half_rate_outputs;
      row.push_back(outputs.value > 0 ? Marked(Count(std::llround(outputs.value)), outputs) : "-  ");
    }
    row.push_back((device.supports.empty() ? "all" : "only " + Names(device.supports)) +
                  (device.lacks.empty() ? "" : " but " + Names(device.lacks)));
    table.Add(std::move(row));
  }
  return table.ToString();
}

std::string RouteOf(const Cluster& cluster, DeviceId from, DeviceId to) {
  return cluster.device(from).name + " → " + cluster.device(to).name;
}

// Of at least one route.
std::string InShort(const std::vector<std::string>& routes) {
  if (routes.size() == 2) return routes.front() + ", " + routes.back();
  return routes.front() + (routes.size() > 2 ? fmt::format(" and {} more", routes.size() - 1) : "");
}

// One row per kind of link: eight equal GPUs have 56 of them.
std::string LinkRows(const Cluster& cluster) {
  struct Kind {
    const Link* link;
    std::vector<std::string> routes;
  };
  std::map<std::tuple<double, double, std::string>, size_t> numbers;
  std::vector<Kind> kinds;
  for (const DeviceId from : cluster.ids()) {
    for (const DeviceId to : cluster.ids()) {
      if (from == to) continue;
      const Link& link = cluster.link(from, to);
      const auto [at, fresh] =
          numbers.emplace(std::tuple(link.latency.value, link.bandwidth.value, link.domain), kinds.size());
      if (fresh) kinds.push_back({.link = &link, .routes = {}});
      kinds[at->second].routes.push_back(Legible(RouteOf(cluster, from, to)));
    }
  }
  using enum Table::Align;
  Table table({{"link"}, {"latency", kRight}, {"bandwidth", kRight}, {"shares its medium", kLeft, 1}});
  for (const Kind& kind : kinds) {
    table.Add({InShort(kind.routes), Marked(ToString(Seconds{kind.link->latency.value}), kind.link->latency),
               Rate(kind.link->bandwidth, "B/s"), Legible(kind.link->domain)});
  }
  return table.empty() ? std::string() : "\n" + table.ToString();
}

// What a number of a device says, in words: "per op", "efficiency at conv".
std::string InWords(std::string_view key, std::string_view entry) {
  if (key == "peak") return std::string(entry);
  if (key == "memory_bandwidth") return "bandwidth";
  if (key == "op_overhead") return "per op";
  if (key == "efficiency") return fmt::format("efficiency at {}", entry);
  if (key == "half_rate_outputs") return "outputs at half rate";
  if (key == "part_overhead") return "per part";
  if (key == "cut_read") return fmt::format("reads at cuts, {}", entry);
  if (key == "cut_write") return fmt::format("writes at cuts, {}", entry);
  if (key == "watts") return fmt::format("{} watts", entry);
  return NumberName(key, entry);
}

// What the sources say of links: of all of them, or, where sources differ, of which.
void AddLinkSources(const Cluster& cluster, std::map<std::string, std::vector<std::string>>& sources) {
  using Routes = std::vector<std::string>;
  std::map<std::string, Routes> of_latency, of_bandwidth;
  size_t links = 0;
  for (const DeviceId from : cluster.ids()) {
    for (const DeviceId to : cluster.ids()) {
      if (from == to) continue;
      const Link& link = cluster.link(from, to);
      of_latency[link.latency.source].push_back(RouteOf(cluster, from, to));
      of_bandwidth[link.bandwidth.source].push_back(RouteOf(cluster, from, to));
      ++links;
    }
  }
  std::map<std::pair<std::string, Routes>, std::vector<std::string>> said;  // "latency", "bandwidth"
  for (const auto& [source, routes] : of_latency) said[{source, routes}].push_back("latency");
  for (const auto& [source, routes] : of_bandwidth) said[{source, routes}].push_back("bandwidth");
  for (const auto& [of, numbers] : said) {
    const auto& [source, routes] = of;
    sources[source].push_back(routes.size() == links ? "link " + JoinAnd(numbers)
                                                     : fmt::format("{} of {}", JoinAnd(numbers), InShort(routes)));
  }
}

// Every source once, with what it says.
std::string SourceLines(const Cluster& cluster) {
  std::map<std::string, std::vector<std::string>> sources;
  for (const DeviceId id : cluster.ids()) {
    const Device& device = cluster.device(id);
    if (cluster.class_of(id) != id) continue;
    ForEachNumber(device, [&](std::string_view key, std::string_view entry, const Quantity& number) {
      sources[number.source].push_back(fmt::format("{} {}", device.name, InWords(key, entry)));
    });
  }
  AddLinkSources(cluster, sources);
  sources.erase("");
  std::string text = sources.empty() ? "" : "\nSources:\n";
  for (const auto& [source, whats] : sources) text += Item(Legible(fmt::format("{}: {}", JoinAnd(whats), source)));
  return text;
}

// The guesses whose range the file states.
std::string RangeLines(const Cluster& cluster) {
  std::string items;
  for (const Guess& guess : FindGuesses(cluster, {.energy = true, .cuts = true})) {
    if (!guess.stated) continue;
    items += Item(
        Legible(fmt::format("{}: {}, from {} to {}", guess.what, guess.value_text, guess.low_text, guess.high_text)));
  }
  return items.empty() ? items : "\nGuesses with a range of their own (all others: from half to double):\n" + items;
}

}  // namespace

std::string ClusterPage(const Cluster& cluster) {
  const ProvenanceCount count = CountProvenance(cluster);
  std::string text = Legible(cluster.name()) + "\n\n" + DeviceRows(cluster) + LinkRows(cluster);
  text += "\n" + Wrap(fmt::format("Of {}: {} measured (!), {} from vendors, {} {} (?).",
                                  Counted(static_cast<int64_t>(count.all()), "number"), count.measured, count.vendor,
                                  count.guess, count.guess == 1 ? "guess" : "guesses"));
  std::vector<std::string> interchangeable;
  for (const DeviceId id : cluster.ids()) {
    if (cluster.class_of(id) != id) interchangeable.push_back(LegibleName(cluster, id));
  }
  if (!interchangeable.empty()) {
    text += Wrap(fmt::format("{} {} the same as a device above, in all numbers: planners use that to search less.",
                             JoinAnd(interchangeable), interchangeable.size() == 1 ? "is" : "are"));
  }
  return text + RangeLines(cluster) + SourceLines(cluster);
}

}  // namespace berth
