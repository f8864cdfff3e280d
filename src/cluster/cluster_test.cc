#include "cluster/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "cluster/device_numbers.h"
#include "cluster/presets.h"

namespace berth {
namespace {

using testing::HasSubstr;

Cluster Uniform(size_t count) {
  std::vector<Device> devices(count);
  for (size_t i = 0; i < count; ++i) devices[i].name = fmt::format("d{}", i);
  return Cluster("uniform", devices,
                 std::vector<Link>(count * count, {.latency = {}, .bandwidth = {.value = 1e9}, .domain = ""}));
}

std::vector<Device> DevicesOf(const Cluster& cluster) {
  std::vector<Device> devices;
  for (const DeviceId id : cluster.ids()) devices.push_back(cluster.device(id));
  return devices;
}

std::vector<Link> LinksOf(const Cluster& cluster) {
  std::vector<Link> links;
  for (const DeviceId from : cluster.ids()) {
    for (const DeviceId to : cluster.ids()) links.push_back(cluster.link(from, to));
  }
  return links;
}

// The obvious version: swap the two and compare everything; domains by first appearance.
bool SwapChangesNothing(const Cluster& cluster, size_t a, size_t b) {
  const size_t count = cluster.num_devices();
  std::vector<size_t> place(count);
  for (size_t i = 0; i < count; ++i) place[i] = i == a ? b : i == b ? a : i;
  std::vector<Device> devices(count);
  std::vector<Link> links(count * count);
  for (size_t p = 0; p < count; ++p) {
    devices[p] = cluster.device(MakeId<DeviceId>(place[p]));
    devices[p].name = cluster.device(MakeId<DeviceId>(p)).name;
    for (size_t q = 0; q < count; ++q) {
      links[p * count + q] = cluster.link(MakeId<DeviceId>(place[p]), MakeId<DeviceId>(place[q]));
    }
  }
  return Cluster("swapped", devices, links).fingerprint() == cluster.fingerprint();
}

void ExpectClassesAreRight(const Cluster& cluster) {
  for (size_t d = 0; d < cluster.num_devices(); ++d) {
    size_t expected = 0;
    while (expected < d && !SwapChangesNothing(cluster, expected, d)) ++expected;
    EXPECT_EQ(Index(cluster.class_of(MakeId<DeviceId>(d))), expected) << cluster.name() << " device " << d;
  }
}

TEST(Cluster, FindsDevicesByNameAndNumber) {
  const Cluster cluster = Uniform(3);
  EXPECT_EQ(cluster.Find("d2"), DeviceId{2});
  EXPECT_EQ(cluster.Find("1"), DeviceId{1});
  for (const char* wrong : {"3", "", "-1", "d", "1x"}) EXPECT_THROW(cluster.Find(wrong), Error) << wrong;
  try {
    cluster.Find("d22");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean d2?"));
    EXPECT_THAT(error.what(), HasSubstr("d0, d1, d2"));
  }
}

TEST(Cluster, RefusesNumbersThatMakeNoSense) {
  const Cluster good = Uniform(2);
  const auto refuses = [&](const auto& damage) {
    std::vector<Device> devices = DevicesOf(good);
    std::vector<Link> links = LinksOf(good);
    damage(devices, links);
    EXPECT_THROW(Cluster("bad", devices, links), Error);
  };
  refuses([](auto& devices, auto&) { devices[1].name = devices[0].name; });
  refuses([](auto&, auto& links) { links[1].bandwidth.value = 0; });
  refuses([](auto&, auto& links) { links[2].bandwidth.value = std::nan(""); });
  refuses([](auto&, auto& links) { links[2].latency.value = -1; });
  EXPECT_THROW(Cluster("none", {}, {}), Error);
}

TEST(Cluster, DoesNotReadTheDiagonal) {
  std::vector<Link> links = LinksOf(Uniform(2));
  links[0].bandwidth.value = 0;
  EXPECT_EQ(Cluster("same", DevicesOf(Uniform(2)), links).fingerprint(), Uniform(2).fingerprint());
}

TEST(Cluster, FingerprintIsOfNumbersOnly) {
  const Cluster cluster = Uniform(3);
  std::vector<Device> devices = DevicesOf(cluster);
  std::vector<Link> links = LinksOf(cluster);
  devices[0].name = "other";
  devices[0].op_overhead = {.value = 0, .provenance = Provenance::kMeasured, .source = "a command"};
  EXPECT_EQ(Cluster("renamed", devices, links).fingerprint(), cluster.fingerprint());

  links[1].domain = links[2].domain = "bus";
  const uint64_t on_bus = Cluster("bus", devices, links).fingerprint();
  EXPECT_NE(on_bus, cluster.fingerprint());
  links[1].domain = links[2].domain = "medium";
  EXPECT_EQ(Cluster("medium", devices, links).fingerprint(), on_bus);
  links[2].domain = "another";
  EXPECT_NE(Cluster("media", devices, links).fingerprint(), on_bus);

  devices[0].op_overhead.value = 1e-6;
  links = LinksOf(cluster);
  EXPECT_NE(Cluster("slower", devices, links).fingerprint(), cluster.fingerprint());
}

// A device that has every kind of number, all 1.
Device WithAllNumbers() {
  Device device{.name = "all", .memory = Quantity{}};
  device.peak["f32"] = device.efficiency["conv"] = device.cut_read["matmul"] = device.cut_write["other"] = {};
  ForEachNumber(device, [](std::string_view, std::string_view, Quantity& number) { number.value = 1; });
  return device;
}

TEST(Cluster, EveryNumberOfADeviceIsCheckedAndChangesTheFingerprint) {
  const std::vector<Link> links(1);
  const Cluster cluster("one", {WithAllNumbers()}, links);
  std::set<std::string> names;
  ForEachNumber(cluster.device(DeviceId{0}), [&](std::string_view key, std::string_view entry, const Quantity&) {
    const std::string name = NumberName(key, entry);
    EXPECT_TRUE(names.insert(name).second) << name;
    const auto with = [&](double value) {
      Device device = WithAllNumbers();
      ForEachNumber(device, [&](std::string_view other_key, std::string_view other_entry, Quantity& number) {
        if (NumberName(other_key, other_entry) == name) number.value = value;
      });
      return Cluster("one", {device}, links);
    };
    EXPECT_NE(with(2).fingerprint(), cluster.fingerprint()) << name;
    for (const double wrong : {-1.0, std::nan("")}) {
      try {
        with(wrong);
        FAIL() << name << " may be " << wrong;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("cluster one, device all: " + name + " is ")) << error.what();
      }
    }
    if (key.starts_with("cut_")) {
      EXPECT_THROW(with(0), Error) << name;
    } else {
      EXPECT_NO_THROW(with(0)) << name;
    }
  });
  EXPECT_EQ(names.size(), 11u);
}

TEST(Cluster, AnInterchangeableDeviceCanBeSwappedWithoutChangingAnything) {
  ClusterCatalog presets("cluster");
  RegisterClusterPresets(presets);
  for (const std::string& name : presets.Names()) ExpectClassesAreRight(presets.Make(name));
  ExpectClassesAreRight(Uniform(5));

  Random random(3);
  for (int i = 0; i < 300; ++i) {
    const size_t count = 2 + random.Below(4);
    std::vector<Device> devices = DevicesOf(Uniform(count));
    std::vector<Link> links = LinksOf(Uniform(count));
    const size_t changes = random.Below(4);
    for (size_t change = 0; change < changes; ++change) {
      devices[random.Below(count)].op_overhead.value = random.Chance(0.2) ? 1 : 0;
      links[random.Below(count * count)].latency.value = random.Chance(0.5) ? 1 : 0;
      const size_t from = random.Below(count);
      const std::string domain = random.Chance(0.5) ? "a" : "b";
      for (size_t to = 0; to < count; ++to) links[from * count + to].domain = domain;
    }
    ExpectClassesAreRight(Cluster("random", devices, links));
  }
}

TEST(Cluster, GpusOfOneBoardAreInterchangeable) {
  ClusterCatalog presets("cluster");
  RegisterClusterPresets(presets);
  const auto classes = [&](std::string_view name) {
    const Cluster cluster = presets.Make(name);
    std::vector<size_t> all;
    for (const DeviceId id : cluster.ids()) all.push_back(Index(cluster.class_of(id)));
    return all;
  };
  EXPECT_THAT(classes("k80x8"), testing::ElementsAre(0, 0, 2, 2, 4, 4, 6, 6));
  EXPECT_THAT(classes("h100x8"), testing::ElementsAre(0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(classes("v100x4"), testing::ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(classes("cpu_gpu"), testing::ElementsAre(0, 1));
  EXPECT_THAT(classes("edge"), testing::ElementsAre(0, 1, 2, 2));
}

// The obvious version of globs: recursion on the first character.
bool Obvious(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') return Obvious(pattern.substr(1), text) || (!text.empty() && Obvious(pattern, text.substr(1)));
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) && Obvious(pattern.substr(1), text.substr(1));
}

TEST(Glob, MatchesAsTheObviousVersionDoes) {
  EXPECT_TRUE(GlobMatches("Conv*", "ConvTranspose"));
  EXPECT_FALSE(GlobMatches("Conv", "ConvTranspose"));
  Random random(5);
  for (int i = 0; i < 20000; ++i) {
    std::string pattern, text;
    for (size_t n = random.Below(7); n > 0; --n) pattern += "ab*?"[random.Below(4)];
    for (size_t n = random.Below(7); n > 0; --n) text += "ab"[random.Below(2)];
    EXPECT_EQ(GlobMatches(pattern, text), Obvious(pattern, text)) << pattern << " " << text;
  }
}

TEST(Glob, StaysQuickOnManyStars) {
  std::string pattern;
  for (int i = 0; i < 40; ++i) pattern += "a*";
  EXPECT_FALSE(GlobMatches(pattern + "b", std::string(5000, 'a')));
}

TEST(Presets, CarryAPeakABandwidthAndWattsForEachDevice) {
  ClusterCatalog presets("cluster");
  RegisterClusterPresets(presets);
  for (const EntryInfo& info : presets.Infos()) {
    EXPECT_FALSE(info.sentence.empty() || info.source.empty());
    const Cluster cluster = presets.Make(info.name);
    EXPECT_EQ(cluster.name(), info.name);
    for (const DeviceId id : cluster.ids()) {
      const Device& device = cluster.device(id);
      EXPECT_TRUE(device.memory && device.peak.contains("f32") && device.memory_bandwidth.value > 0) << device.name;
      EXPECT_TRUE(device.watts_busy.value > device.watts_idle.value) << device.name;
    }
  }
}

TEST(Presets, AWrongNameNamesWhatThereIs) {
  ClusterCatalog presets("cluster");
  RegisterClusterPresets(presets);
  const auto mistake = [&](std::string_view name) -> std::string {
    try {
      ReadCluster(name, presets);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(mistake("cpu_gup"), HasSubstr("cpu_gpu"));
  EXPECT_THAT(mistake("no/such/file"), HasSubstr("no such file"));
  EXPECT_THAT(mistake("."), HasSubstr(".: is a folder; expected a device file or one of cpu_gpu, "));
  EXPECT_THAT(mistake("no_such_file.yaml"), HasSubstr("no_such_file.yaml"));
  EXPECT_EQ(ReadCluster(BERTH_SOURCE_DIR "/clusters/cpu_gpu.yaml", presets).fingerprint(),
            ReadCluster("cpu_gpu", presets).fingerprint());
}

}  // namespace
}  // namespace berth
