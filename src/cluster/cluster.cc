#include "cluster/cluster.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "cluster/device_numbers.h"

namespace berth {
namespace {

void CheckNumber(const std::string& cluster, const std::string& place, std::string_view what, double value,
                 bool may_be_zero = true) {
  if (value > 0 || (value == 0 && may_be_zero)) return;
  throw Error("cluster {}, {}: {} is {}, expected a number {}", cluster, place, what, value,
              may_be_zero ? "of at least 0" : "above 0");
}

void CheckDevice(const std::string& cluster, const Device& device) {
  const std::string place = "device " + device.name;
  ForEachNumber(device, [&](std::string_view key, std::string_view entry, const Quantity& number) {
    CheckNumber(cluster, place, NumberName(key, entry), number.value, !key.starts_with("cut_"));
  });
}

void AddRates(const std::map<std::string, Quantity, std::less<>>& rates, Hasher& hasher) {
  hasher.Add(uint64_t{rates.size()});
  for (const auto& [name, rate] : rates) hasher.Add(name).Add(rate.value);
}

void AddPatterns(const std::vector<std::string>& patterns, Hasher& hasher) {
  hasher.Add(uint64_t{patterns.size()});
  for (const std::string& pattern : patterns) hasher.Add(pattern);
}

// Of all that makes two devices behave alike.
uint64_t HashOf(const Device& device) {
  Hasher hasher;
  hasher.Add(device.kind).Add(device.memory ? device.memory->value : -1.0);
  AddRates(device.peak, hasher);
  AddRates(device.efficiency, hasher);
  AddPatterns(device.supports, hasher);
  AddPatterns(device.lacks, hasher);
  hasher.Add(device.memory_bandwidth.value).Add(device.op_overhead.value);
  hasher.Add(device.part_overhead.value);
  AddRates(device.cut_read, hasher);
  AddRates(device.cut_write, hasher);
  if (device.precision != "f32") hasher.Add(device.precision);
  if (device.half_rate_outputs.value > 0) hasher.Add("half_rate_outputs").Add(device.half_rate_outputs.value);
  hasher.Add(device.watts_idle.value).Add(device.watts_busy.value);
  return hasher.value();
}

bool SameNumbers(const Link& a, const Link& b) {
  return a.latency.value == b.latency.value && a.bandwidth.value == b.bandwidth.value &&
         a.domain.empty() == b.domain.empty();
}

// Which devices may change places. That is an equivalence: where (a b) and (b c) leave all numbers equal, so does (a
// c), which is (a b)(b c)(a b). So comparing with one device of each class is enough.
class SymmetryFinder {
 public:
  SymmetryFinder(std::span<const Device> devices, std::span<const Link> kinds, std::span<const uint32_t> kind_of)
      : kinds_(kinds), kind_of_(kind_of), count_(devices.size()) {
    for (const Device& device : devices) hashes_.push_back(HashOf(device));
    std::map<std::string_view, size_t> numbers = {{"", kOwn}};
    for (const Link& kind : kinds) domain_.push_back(numbers.emplace(kind.domain, numbers.size()).first->second);
    domain_size_.resize(numbers.size());
    for (size_t from = 0; from < count_; ++from) {
      for (size_t to = 0; to < count_; ++to) {
        if (from != to) ++domain_size_[DomainOf(from, to)];
      }
    }
  }

  std::vector<DeviceId> Classes() const {
    std::vector<DeviceId> class_of;
    std::vector<size_t> representatives;
    for (size_t device = 0; device < count_; ++device) {
      const auto same = std::ranges::find_if(representatives, [&](size_t other) { return MaySwap(other, device); });
      class_of.push_back(MakeId<DeviceId>(same == representatives.end() ? device : *same));
      if (same == representatives.end()) representatives.push_back(device);
    }
    return class_of;
  }

 private:
  const Link& LinkOf(size_t from, size_t to) const { return kinds_[kind_of_[from * count_ + to]]; }
  size_t DomainOf(size_t from, size_t to) const { return domain_[kind_of_[from * count_ + to]]; }

  bool MaySwap(size_t a, size_t b) const {
    if (hashes_[a] != hashes_[b] || !SameNumbers(LinkOf(a, b), LinkOf(b, a))) return false;
    for (size_t other = 0; other < count_; ++other) {
      if (other == a || other == b) continue;
      if (!SameNumbers(LinkOf(a, other), LinkOf(b, other)) || !SameNumbers(LinkOf(other, a), LinkOf(other, b)))
        return false;
    }
    return SwapKeepsDomains(a, b);
  }

  // The swap moves links from one contention domain to another. That changes nothing when whole domains move: each goes
  // to one other, and one that is moved has no link that stays where it is.
  bool SwapKeepsDomains(size_t a, size_t b) const {
    std::map<size_t, size_t> image, touched;
    const auto move = [&](size_t from, size_t to, size_t new_from, size_t new_to) {
      const size_t domain = DomainOf(from, to), target = DomainOf(new_from, new_to);
      if (domain == kOwn) return target == kOwn;
      ++touched[domain];
      return image.emplace(domain, target).first->second == target;
    };
    bool one_image = move(a, b, b, a) && move(b, a, a, b);
    for (size_t other = 0; other < count_ && one_image; ++other) {
      if (other == a || other == b) continue;
      one_image =
          move(a, other, b, other) && move(b, other, a, other) && move(other, a, other, b) && move(other, b, other, a);
    }
    // One-to-one by itself: the swap is its own inverse.
    return one_image && std::ranges::all_of(image, [&](const auto& entry) {
             return entry.first == entry.second || touched.at(entry.first) == domain_size_[entry.first];
           });
  }

  static constexpr size_t kOwn = 0;  // of links that share no medium

  std::span<const Link> kinds_;
  std::span<const uint32_t> kind_of_;
  size_t count_;
  std::vector<uint64_t> hashes_;
  std::vector<size_t> domain_;       // by kind of link: the number of its contention domain
  std::vector<size_t> domain_size_;  // in links
};

}  // namespace

std::string PrecisionMistake(std::string_view name) {
  const std::vector<std::string> known(kPrecisionNames.begin(), kPrecisionNames.end());
  if (std::ranges::count(known, name) > 0) return {};
  const std::string_view closest = Closest(name, known);
  return fmt::format("'{}'{}; expected one of {}", name,
                     closest.empty() ? "" : fmt::format(" (did you mean {}?)", closest), fmt::join(known, ", "));
}

Cluster::Cluster(std::string name, std::vector<Device> devices, std::vector<Link> links)
    : name_(std::move(name)),
      devices_(std::move(devices)),
      link_kinds_(std::move(links)),
      kind_of_link_(link_kinds_.size()) {
  std::iota(kind_of_link_.begin(), kind_of_link_.end(), uint32_t{0});
  CheckAndFindClasses();
}

Cluster::Cluster(std::string name, std::vector<Device> devices, std::vector<Link> kinds, std::vector<uint32_t> kind_of)
    : name_(std::move(name)),
      devices_(std::move(devices)),
      link_kinds_(std::move(kinds)),
      kind_of_link_(std::move(kind_of)) {
  CheckAndFindClasses();
}

void Cluster::CheckAndFindClasses() {
  if (devices_.empty()) throw Error("cluster {} has no devices: expected at least one", name_);
  BERTH_CHECK(kind_of_link_.size() == devices_.size() * devices_.size(), "{} links for {} devices",
              kind_of_link_.size(), devices_.size());
  for (const uint32_t kind : kind_of_link_) BERTH_CHECK(kind < link_kinds_.size(), "no link is of kind {}", kind);
  std::set<std::string_view> names;
  for (const Device& device : devices_) {
    if (!names.insert(device.name).second) throw Error("cluster {} has two devices named {}", name_, device.name);
    CheckDevice(name_, device);
  }
  for (const DeviceId from : ids()) {
    for (const DeviceId to : ids()) {
      if (from == to) continue;
      const auto& [latency, bandwidth, unused] = link(from, to);
      if (latency.value >= 0 && bandwidth.value > 0) continue;
      const std::string place = fmt::format("link {} -> {}", device(from).name, device(to).name);
      CheckNumber(name_, place, "latency", latency.value);
      throw Error("cluster {}, {}: bandwidth is {}, expected more than 0", name_, place, bandwidth.value);
    }
  }
  class_of_ = SymmetryFinder(devices_, link_kinds_, kind_of_link_).Classes();
}

DeviceId Cluster::Find(std::string_view name) const {
  for (const DeviceId id : ids()) {
    if (device(id).name == name) return id;
  }
  size_t number = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (code == std::errc() && end == name.data() + name.size() && number < num_devices())
    return MakeId<DeviceId>(number);
  std::vector<std::string> names;
  for (const Device& device : devices_) names.push_back(device.name);
  const std::string_view closest = Closest(name, names);
  throw Error("cluster {} has no device '{}'{}; it has {}", name_, name,
              closest.empty() ? "" : fmt::format(" (did you mean {}?)", closest), fmt::join(names, ", "));
}

uint64_t Cluster::fingerprint() const {
  Hasher hasher;
  hasher.Add(uint64_t{num_devices()});
  for (const Device& device : devices_) hasher.Add(HashOf(device));
  // Domains by first appearance, so that their names do not matter.
  std::map<std::string_view, uint64_t> domain_number = {{"", 0}};
  for (const DeviceId from : ids()) {
    for (const DeviceId to : ids()) {
      if (from == to) continue;
      const Link& route = link(from, to);
      const uint64_t domain = domain_number.emplace(route.domain, domain_number.size()).first->second;
      hasher.Add(route.latency.value).Add(route.bandwidth.value).Add(domain);
    }
  }
  return hasher.value();
}

bool GlobMatches(std::string_view pattern, std::string_view text) {
  // Backtracks to the last star only: O(pattern * text).
  size_t p = 0, t = 0;
  size_t star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace berth
