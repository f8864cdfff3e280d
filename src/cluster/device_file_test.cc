#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "cluster/cluster.h"
#include "cluster/device_numbers.h"
#include "cluster/presets.h"

namespace berth {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kGood = R"(name: box
provenance: vendor (sheet)
devices:
  cpu:
    kind: cpu
    memory: 64GiB
    peak: {f32: 1.5TFLOP/s guess (24 cores), i8: 6TOP/s}
    memory_bandwidth: 80GB/s measured
    op_overhead: 3us
    efficiency:
      conv: 0.5 guess
    lacks: [Loop, Scan*]
    watts: {idle: 10, busy: 125W}
  gpu:
    kind: gpu
    count: 2
    memory: 16 GiB vendor (brief (two pages), 2022)
    supports: Conv*
links:
  - {latency: 20us, bandwidth: 12GB/s, domain: bus}
  - from: gpu
    to: gpu
    latency: 5us
    bandwidth: 50GB/s guess
  - {from: gpu1, to: cpu, latency: 1ms, bandwidth: 1GB/s}
)";

std::string With(std::string_view from, std::string_view to, std::string text = std::string(kGood)) {
  const size_t at = text.find(from);
  BERTH_CHECK(at != std::string::npos, "{} is not in the file", from);
  return text.replace(at, from.size(), to);
}

std::string Mistake(const std::string& yaml) {
  try {
    ParseCluster(yaml, "box.yaml");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

ClusterCatalog Presets() {
  ClusterCatalog catalog("cluster");
  RegisterClusterPresets(catalog);
  return catalog;
}

TEST(DeviceFile, GivesEachNumberItsUnitAndItsOrigin) {
  const Cluster cluster = ParseCluster(kGood, "box.yaml");
  ASSERT_EQ(cluster.num_devices(), 3u);
  const Device& cpu = cluster.device(DeviceId{0});
  EXPECT_EQ(cluster.name(), "box");
  EXPECT_EQ(cpu.memory->value, 64 * 0x1p30);
  EXPECT_EQ(cpu.memory->provenance, Provenance::kVendor);
  EXPECT_EQ(cpu.memory->source, "sheet");
  EXPECT_EQ(cpu.peak.at("f32").value, 1.5e12);
  EXPECT_EQ(cpu.peak.at("f32").provenance, Provenance::kGuess);
  EXPECT_EQ(cpu.peak.at("f32").source, "24 cores");
  EXPECT_EQ(cpu.peak.at("i8").value, 6e12);
  EXPECT_EQ(cpu.memory_bandwidth.provenance, Provenance::kMeasured);
  EXPECT_EQ(cpu.memory_bandwidth.source, "");
  EXPECT_EQ(cpu.op_overhead.value, 3e-6);
  EXPECT_EQ(cpu.efficiency.at("conv").value, 0.5);
  EXPECT_THAT(cpu.lacks, ElementsAre("Loop", "Scan*"));
  EXPECT_EQ(cpu.watts_idle.value, 10);
  EXPECT_EQ(cpu.watts_busy.value, 125);
  const Device& gpu = cluster.device(DeviceId{2});
  EXPECT_EQ(gpu.name, "gpu1");
  EXPECT_EQ(gpu.memory->source, "brief (two pages), 2022");
  EXPECT_THAT(gpu.supports, ElementsAre("Conv*"));
}

TEST(DeviceFile, SaysHowLargeAnOpMustBeToRunAtHalfTheRate) {
  const auto at = [](std::string_view text) {
    const std::string line = fmt::format("    half_rate_outputs: {}\n    lacks:", text);
    return ParseCluster(With("    lacks:", line), "box.yaml").device(DeviceId{0}).half_rate_outputs;
  };
  EXPECT_EQ(at("350000 measured (convolutions)").value, 350000);
  EXPECT_EQ(at("350000 measured (convolutions)").provenance, Provenance::kMeasured);
  EXPECT_EQ(at("0").value, 0);
  EXPECT_THAT(Mistake(With("    lacks:", "    half_rate_outputs: many\n    lacks:")),
              StartsWith("box.yaml:12: half_rate_outputs of cpu: 'many' is not how many values an op makes"));
  for (const char* wrong : {"-1", "0.3", "1e300"}) {
    const std::string line = fmt::format("    half_rate_outputs: {}\n    lacks:", wrong);
    EXPECT_THAT(Mistake(With("    lacks:", line)), HasSubstr(fmt::format("'{}' is not how many values", wrong)));
  }
}

TEST(DeviceFile, LaterLinksOverrideEarlierOnes) {
  const Cluster cluster = ParseCluster(kGood, "box.yaml");
  const auto bandwidth = [&](int from, int to) { return cluster.link(DeviceId{from}, DeviceId{to}).bandwidth.value; };
  EXPECT_EQ(bandwidth(0, 1), 12e9);
  EXPECT_EQ(bandwidth(1, 0), 12e9);
  EXPECT_EQ(bandwidth(1, 2), 50e9);
  EXPECT_EQ(bandwidth(2, 1), 50e9);
  EXPECT_EQ(bandwidth(2, 0), 1e9);
  EXPECT_EQ(cluster.link(DeviceId{0}, DeviceId{1}).domain, "bus");
  EXPECT_EQ(cluster.link(DeviceId{1}, DeviceId{2}).domain, "");
}

TEST(DeviceFile, BothSetsTheReverseDirectionToo) {
  const Cluster cluster =
      ParseCluster(With("from: gpu1, to: cpu,", "from: [gpu1], to: \"c?u\", both: true,"), "box.yaml");
  EXPECT_EQ(cluster.link(DeviceId{0}, DeviceId{2}).latency.value, 1e-3);
  EXPECT_EQ(cluster.link(DeviceId{2}, DeviceId{0}).latency.value, 1e-3);
}

TEST(DeviceFile, APatternThatFitsANameIsNotAKind) {
  const Cluster cluster = ParseCluster(R"(
name: box
devices:
  gpu: {kind: accelerator}
  big: {kind: gpu}
  cpu: {kind: cpu}
links:
- {latency: 1us, bandwidth: 1GB/s}
- {from: gpu, to: cpu, latency: 2us, bandwidth: 2GB/s}
)",
                                       "box.yaml");
  EXPECT_EQ(cluster.link(DeviceId{0}, DeviceId{2}).latency.value, 2e-6);
  EXPECT_EQ(cluster.link(DeviceId{1}, DeviceId{2}).latency.value, 1e-6);
}

TEST(DeviceFile, AnchorsMayRepeatADevice) {
  const Cluster cluster = ParseCluster(
      "name: two\ndevices:\n  a: &same {kind: cpu, memory: 1GiB}\n  b: *same\nlinks: [{latency: 0s, bandwidth: "
      "1GB/s}]\n",
      "f");
  EXPECT_EQ(cluster.device(DeviceId{1}).memory->value, 0x1p30);
  EXPECT_EQ(cluster.class_of(DeviceId{1}), DeviceId{0});
}

TEST(DeviceFile, TheExampleInTheDocumentationIsOne) {
  const std::string page = ReadFile(BERTH_SOURCE_DIR "/docs/cluster-format.md");
  constexpr std::string_view kFence = "```yaml\n";
  const size_t start = page.find(kFence) + kFence.size();
  const Cluster cluster = ParseCluster(page.substr(start, page.find("```", start) - start), "docs/cluster-format.md");
  EXPECT_EQ(cluster.link(cluster.Find("gpu0"), cluster.Find("gpu1")).domain, "switch");
  EXPECT_EQ(cluster.link(cluster.Find("cpu"), cluster.Find("gpu1")).bandwidth.provenance, Provenance::kMeasured);
}

TEST(DeviceFile, TheFilesOfTheToolsAreDeviceFiles) {
  for (const char* name : {"guess", "h100"}) {
    const std::string path = fmt::format("{}/tools/onnxruntime/{}.yaml", BERTH_SOURCE_DIR, name);
    const Cluster cluster = ParseCluster(ReadFile(path), path);
    EXPECT_EQ(cluster.device(cluster.Find("gpu")).kind, "gpu");
  }
}

TEST(DeviceFile, AGuessMayHaveARange) {
  const std::string yaml = With("op_overhead: 3us", "op_overhead: 3us from 1.5us to 40us guess (a forum)",
                                With("50GB/s guess", "50GB/s from 10GB/s to 60GB/s guess"));
  const Cluster cluster = ParseCluster(yaml, "box.yaml");
  const Quantity& overhead = cluster.device(cluster.Find("cpu")).op_overhead;
  EXPECT_DOUBLE_EQ(overhead.value, 3e-6);
  EXPECT_DOUBLE_EQ(overhead.low, 1.5e-6);
  EXPECT_DOUBLE_EQ(overhead.high, 40e-6);
  EXPECT_EQ(overhead.source, "a forum");
  EXPECT_EQ(cluster.fingerprint(), ParseCluster(kGood, "box.yaml").fingerprint()) << "a range enters no score";
  const Cluster again = ParseCluster(WriteCluster(cluster), "again.yaml");
  EXPECT_EQ(again.device(DeviceId{0}).op_overhead.low, overhead.low);
  EXPECT_EQ(again.link(again.Find("gpu0"), again.Find("gpu1")).bandwidth.high, 60e9);
  EXPECT_FALSE(again.link(again.Find("cpu"), again.Find("gpu0")).bandwidth.has_range());
}

TEST(DeviceFile, OneDeviceNeedsNoLinks) {
  EXPECT_EQ(ParseCluster("name: one\ndevices: {cpu: {kind: cpu}}\n", "f").num_devices(), 1u);
}

TEST(DeviceFile, NamesTheLineOfEachMistake) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {With("kind: cpu", "knid: cpu"),
       "box.yaml:5: cpu: unknown key 'knid' (did you mean kind?); expected kind, count,"},
      {With("    kind: cpu\n", ""), "box.yaml:4: cpu: no kind; expected `kind: cpu, gpu, igpu, npu or another word`"},
      {With("64GiB", "64 Gigs"), "box.yaml:6: memory of cpu: '64 Gigs' is not"},
      {With("64GiB", "64GiB vendro"), "box.yaml:6: memory of cpu: 'vendro' (did you mean vendor?)"},
      {With("64GiB", "64GiB (sheet)"),
       "box.yaml:6: memory of cpu: '64GiB' before '('; expected guess, vendor or measured"},
      {With("64GiB", "-1GiB"), "box.yaml:6: memory of cpu: '-1GiB' is not"},
      {With("64GiB", ".nan"), "box.yaml:6: memory of cpu: '.nan' is not"},
      {With("64GiB", "1e300GiB"), "box.yaml:6: memory of cpu:"},
      {With("64GiB", ""), "box.yaml:6: memory of cpu: is nothing; expected a number with its unit"},
      {With("64GiB", "{value: 64GiB}"), "box.yaml:6: memory of cpu: is a mapping; expected a number with its unit"},
      {With("64GiB", "[64GiB]"), "box.yaml:6: memory of cpu: is a list"},
      {With("f32: 1.5TFLOP/s", "f32: 1.5TB/s"), "box.yaml:7: f32 of peak of cpu: '1.5TB/s' is not"},
      {With("f32: 1.5TFLOP/s", "f32: 0FLOP/s"), "box.yaml:7: f32 of peak of cpu: '0FLOP/s' is zero"},
      {With("f32:", "fp32:"), "box.yaml:7: peak of cpu: unknown key 'fp32' (did you mean f32?)"},
      {With("f32:", "f64:"), "box.yaml:7: peak of cpu: no f32"},
      {With("80GB/s", "nan"), "box.yaml:8: memory_bandwidth of cpu: 'nan' is not"},
      {With("op_overhead: 3us", "op_overhead: 3"), "box.yaml:9: op_overhead of cpu: '3' is not"},
      {With("op_overhead: 3us", "pace: 3us from 1us to 4us guess"), "box.yaml:9: pace of cpu: has a range"},
      {With("op_overhead: 3us", "op_overhead: 3us from 1us guess"),
       "box.yaml:9: op_overhead of cpu: '3us from 1us'; expected a range like `15us from 5us to 40us`"},
      {With("op_overhead: 3us", "op_overhead: 3us from 4us to 8us guess"),
       "box.yaml:9: op_overhead of cpu: '3us from 4us to 8us'; expected a range above 0 that holds the number"},
      {With("op_overhead: 3us", "op_overhead: 3us from 1us to 8us measured"),
       "box.yaml:9: op_overhead of cpu: '3us from 1us to 8us' has a range and is no guess"},
      {With("op_overhead: 3us", "op_overhead: 3us from 1 to 8us guess"), "box.yaml:9: op_overhead of cpu: '1' is not"},
      {With("0.5", "50"), "box.yaml:11: conv of efficiency of cpu: '50' is out of range"},
      {With("idle: 10", "idle: 200"),
       "box.yaml:13: busy of watts of cpu: 125 W is less than the 200 W of an idle device"},
      {With("idle: 10", "idle: lots"), "box.yaml:13: idle of watts of cpu: 'lots' is not watts"},
      {With("[Loop, Scan*]", "[Loop, {}]"), "box.yaml:12: lacks of cpu: is a mapping; expected op types"},
      {With("    lacks: [Loop, Scan*]\n", "    kind: cpu\n"),
       "box.yaml:12: cpu: 'kind' is there twice, first in line 5"},
      {With("  gpu:\n", "  cpu:\n"), "box.yaml:14: devices: 'cpu' is there twice, first in line 4"},
      {With("  cpu:\n", "  gpu0:\n"), "box.yaml:14: device gpu: there is a gpu0 already"},
      {With("  gpu:\n", "  7:\n"), "box.yaml:14: device 7: '7' cannot be a name"},
      {With("count: 2", "count: 0"), "box.yaml:16: count of gpu: '0'; expected a whole number from 1 to 1024"},
      {With("count: 2", "count: 1024"), "box.yaml:14: device gpu: one device too many; expected at most 1024"},
      {With("count: 2", "count: 99999999999999999999"), "box.yaml:16: count of gpu:"},
      {With(", domain: bus", ", medium: bus"), "box.yaml:20: link 1: unknown key 'medium'"},
      {With("bandwidth: 50GB/s guess", "domain: x"), "box.yaml:21: link 2: no bandwidth; expected `bandwidth: 12GB/s`"},
      {With("50GB/s", "0GB/s"), "box.yaml:24: bandwidth of link 2: '0GB/s' is zero"},
      {With("from: gpu1", "from: gpx1"), "box.yaml:25: from of link 3: 'gpx1' fits no device (did you mean gpu1?)"},
      {With("to: cpu", "to: gpu1"), "box.yaml:25: link 3: joins no two devices"},
      {With("to: cpu", "to: cpu, both: maybe"), "box.yaml:25: both of link 3: 'maybe'; expected true or false"},
      {With("{latency: 20us, bandwidth: 12GB/s, domain: bus}", "{from: cpu, latency: 20us, bandwidth: 12GB/s}"),
       "box.yaml:19: links: none from gpu0 to cpu"},
      {With("links:", "link:"), "box.yaml:19: the cluster: unknown key 'link' (did you mean links?)"},
      {With("vendor (sheet)", "seller"), "box.yaml:2: provenance of the cluster: 'seller'"},
      {With("(sheet)", "(" + std::string(1001, 's') + ")"),
       "box.yaml:2: provenance of the cluster: a source of 1001 bytes; expected at most 1000"},
      {With("name: box\n", ""), "box.yaml:1: the cluster: no name"},
      {With("name: box", "name: [box"), "box.yaml:"},
      {With("    kind: cpu\n", "\tkind: cpu\n"), "box.yaml:5: not YAML"},
      {With("64GiB", "*nothing"), "box.yaml:6: not YAML"},
      {std::string(kGood) + "---\nname: other\n", "box.yaml:26: the cluster has ended before this"},
      {"," + std::string(kGood), "box.yaml:1: the cluster has ended before this"},
      {"", "box.yaml:1: the file is empty"},
      {"# nothing but a comment\n", "box.yaml:1: the file is empty"},
      {"- a\n- b\n", "box.yaml:1: the cluster: is a list; expected a mapping"},
      {"name: x\n", "box.yaml:1: the cluster: no devices"},
      {"name: x\ndevices: {}\n", "box.yaml:2: devices: is empty"},
      {"name: x\ndevices:\n", "box.yaml:2: devices: is nothing"},
      {"name: x\ndevices: {a: {kind: cpu}, b: {kind: cpu}}\n", "box.yaml:1: links: none from a to b"},
      {std::string("ELF\n\x7f\0\x01", 7), "box.yaml:2: the byte 0x00; expected a text file"},
      {std::string(kGood.substr(0, kGood.size() / 2)), "box.yaml:"},
  };
  for (const auto& [yaml, expected] : mistakes) {
    EXPECT_THAT(Mistake(yaml), AllOf(StartsWith(expected), testing::Not(HasSubstr("\n")))) << yaml;
  }
}

TEST(DeviceFile, SaysInWhatADeviceComputes) {
  const std::string two = R"(name: two
devices:
  a: {kind: cpu, peak: {f32: 1TFLOP/s, bf16: 4TFLOP/s}, memory_bandwidth: 1GB/s}
  b: {kind: cpu, peak: {f32: 1TFLOP/s, bf16: 4TFLOP/s}, memory_bandwidth: 1GB/s, precision: bf16}
  c: {kind: cpu, peak: {f32: 1TFLOP/s, bf16: 4TFLOP/s}, memory_bandwidth: 1GB/s, precision: f32}
links:
  - {latency: 20us, bandwidth: 12GB/s}
)";
  const Cluster cluster = ParseCluster(two, "two.yaml");
  EXPECT_EQ(cluster.device(DeviceId{0}).precision, "f32");
  EXPECT_EQ(cluster.device(DeviceId{1}).precision, "bf16");
  // What makes results differ makes devices differ.
  EXPECT_EQ(cluster.class_of(DeviceId{1}), DeviceId{1});
  EXPECT_EQ(cluster.class_of(DeviceId{2}), DeviceId{0});
  const Cluster again = ParseCluster(WriteCluster(cluster), "again.yaml");
  EXPECT_EQ(again.device(DeviceId{1}).precision, "bf16");
  EXPECT_EQ(again.fingerprint(), cluster.fingerprint());
  EXPECT_NE(ParseCluster(With("precision: bf16", "precision: f32", two), "f32.yaml").fingerprint(),
            cluster.fingerprint());
  EXPECT_EQ(Mistake(With("precision: bf16", "precision: bf61", two)),
            "box.yaml:4: precision of b: 'bf61' (did you mean bf16?); expected one of f32, f16, bf16");
  EXPECT_EQ(Mistake(With("precision: bf16", "precision: i8", two)),
            "box.yaml:4: precision of b: 'i8'; expected one of f32, f16, bf16");
}

TEST(DeviceFile, SaysAtWhichPaceADeviceWasMeasured) {
  const std::string two = R"(name: two
devices:
  a: {kind: cpu, pace: 405.6us}
  b: {kind: cpu}
links:
  - {latency: 20us, bandwidth: 12GB/s}
)";
  const Cluster cluster = ParseCluster(two, "two.yaml");
  EXPECT_DOUBLE_EQ(cluster.device(DeviceId{0}).pace, 405.6e-6);
  EXPECT_EQ(cluster.device(DeviceId{1}).pace, 0);
  EXPECT_EQ(ParseCluster(WriteCluster(cluster), "again.yaml").device(DeviceId{0}).pace,
            cluster.device(DeviceId{0}).pace);
  // It says of later runs what they compare with, and enters no score.
  EXPECT_EQ(cluster.class_of(DeviceId{1}), DeviceId{0});
  EXPECT_EQ(ParseCluster(With("pace: 405.6us", "pace: 1ms", two), "two.yaml").fingerprint(), cluster.fingerprint());
  EXPECT_THAT(Mistake(With("405.6us", "-4us", two)), HasSubstr("box.yaml:3: pace of a: "));
}

TEST(DeviceFile, SaysWhereADeviceRuns) {
  const std::string two = R"(name: two
devices:
  a: {kind: cpu, runs_on: CPU, cores: [4-6, 0]}
  b: {kind: gpu, runs_on: GPU.1}
  c: {kind: cpu, cores: 3}
links:
  - {latency: 20us, bandwidth: 12GB/s}
)";
  const Cluster cluster = ParseCluster(two, "two.yaml");
  EXPECT_EQ(cluster.device(DeviceId{0}).runs_on, "CPU");
  EXPECT_THAT(cluster.device(DeviceId{0}).cores, ElementsAre(0, 4, 5, 6));
  EXPECT_EQ(cluster.device(DeviceId{1}).runs_on, "GPU.1");
  EXPECT_THAT(cluster.device(DeviceId{2}).cores, ElementsAre(3));
  const Cluster again = ParseCluster(WriteCluster(cluster), "again.yaml");
  for (const DeviceId id : cluster.ids()) {
    EXPECT_EQ(again.device(id).runs_on, cluster.device(id).runs_on);
    EXPECT_EQ(again.device(id).cores, cluster.device(id).cores);
  }
  EXPECT_EQ(Mistake(With("[4-6, 0]", "[x]", two)),
            "box.yaml:3: cores of a: 'x'; expected numbers of cores from 0 to 4095, like [0, 2-3]");
  EXPECT_EQ(Mistake(With("[4-6, 0]", "6-4", two)),
            "box.yaml:3: cores of a: '6-4' ends before it begins; expected something like 2-3");
  EXPECT_EQ(Mistake(With("[4-6, 0]", "[4-6, 5]", two)), "box.yaml:3: cores of a: core 5 twice; expected each once");
  EXPECT_EQ(Mistake(With("cores: 3", "cores: 3, count: 2", two)),
            "box.yaml:5: cores of c: several devices with the same cores; expected an entry each");
}

TEST(DeviceFile, HostileNestingEndsInAnError) {
  // Each list holds the one before nine times.
  std::string bomb = "name: x\na: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c <= 'k'; ++c) {
    const std::string earlier = fmt::format("*{}", static_cast<char>(c - 1));
    bomb += fmt::format("{}: &{} [{}", c, c, earlier);
    for (int i = 0; i < 8; ++i) bomb += ", " + earlier;
    bomb += "]\n";
  }
  EXPECT_THAT(Mistake(bomb), StartsWith("box.yaml:2: the cluster: unknown key 'a'"));
  EXPECT_THAT(Mistake("name: x\ndevices: &d {a: *d}\n"), StartsWith("box.yaml:2:"));
  EXPECT_THAT(Mistake("name: x\ndevices: {a: {kind: cpu, lacks: &l [*l]}}\n"), StartsWith("box.yaml:2: lacks of a"));
  EXPECT_THAT(Mistake(std::string(100000, '[')), StartsWith("box.yaml:1: not YAML"));
  EXPECT_THAT(Mistake(std::string(100000, '{')), StartsWith("box.yaml:1: not YAML"));
  EXPECT_THAT(Mistake(std::string(5 << 20, 'a')), HasSubstr("at most 4 MiB"));
}

TEST(DeviceFile, WritesWhatItReadsBackEqual) {
  const auto equal_after_round_trip = [](const Cluster& cluster) {
    const std::string text = WriteCluster(cluster);
    const Cluster again = ParseCluster(text, "written.yaml");
    EXPECT_EQ(again.fingerprint(), cluster.fingerprint()) << text;
    EXPECT_EQ(WriteCluster(again), text);
    for (const DeviceId id : cluster.ids()) EXPECT_EQ(again.device(id).name, cluster.device(id).name);
  };
  equal_after_round_trip(ParseCluster(kGood, "box.yaml"));
  for (const std::string& name : Presets().Names()) equal_after_round_trip(Presets().Make(name));

  Random random(7);
  for (int i = 0; i < 50; ++i) {
    std::vector<Device> devices(3);
    const auto quantity = [&] {
      return Quantity{.value = std::exp(random.Uniform(-20, 30)),
                      .provenance = static_cast<Provenance>(random.Below(3)),
                      .source = random.Chance(0.5) ? "a \"quoted\": source, {with} #all" : ""};
    };
    for (Device& device : devices) {
      device.name = fmt::format("d{}", &device - devices.data());
      device.kind = "cpu";
      device.memory = Quantity{};
      device.peak["f32"] = device.peak["i8"] = device.efficiency["conv"] = {};
      device.cut_read["matmul"] = device.cut_write["other"] = {};
      ForEachNumber(device, [&](std::string_view key, std::string_view, Quantity& number) {
        number = quantity();
        if (key == "memory") number.value = std::floor(number.value);
        if (key == "efficiency") number.value = std::min(number.value, 1.0);
        if (key == "half_rate_outputs") number.value += 1;  // the least that a file may say
      });
      device.watts_busy.value += device.watts_idle.value;
    }
    std::vector<Link> links(9);
    for (Link& link : links)
      link = {.latency = quantity(), .bandwidth = quantity(), .domain = random.Chance(0.5) ? "a: b" : ""};
    equal_after_round_trip(Cluster("random: #1", devices, links));
  }
}

TEST(DeviceFile, StoresLinksThatRepeatOnce) {
  const Cluster cluster = ParseCluster(
      "name: many\ndevices:\n  gpu: {count: 1024, kind: gpu, peak: {f32: 1TFLOP/s}, memory_bandwidth: 1GB/s}\n"
      "links:\n  - {latency: 8us, bandwidth: 45GB/s, provenance: guess (" +
          std::string(1000, 's') + ")}\n  - {from: gpu7, to: gpu9, latency: 1us, bandwidth: 45GB/s}\n",
      "many.yaml");
  const auto link = [&](size_t from, size_t to) { return &cluster.link(MakeId<DeviceId>(from), MakeId<DeviceId>(to)); };
  EXPECT_EQ(link(0, 1), link(1023, 5));
  EXPECT_NE(link(0, 1), link(7, 9));
  EXPECT_EQ(cluster.class_of(DeviceId{1023}), DeviceId{0});
  EXPECT_EQ(cluster.class_of(DeviceId{9}), DeviceId{9});
  const std::string text = WriteCluster(cluster);
  EXPECT_THAT(text, HasSubstr("{from: gpu7, to: gpu9, latency: 1us guess, bandwidth: 45GB/s guess}"));
  EXPECT_LT(text.size(), 4096u);
}

TEST(DeviceFile, FoldsEqualDevicesWhenWritten) {
  const std::string text = WriteCluster(ParseCluster(kGood, "box.yaml"));
  EXPECT_THAT(text, HasSubstr("  gpu:\n    count: 2\n    kind: gpu\n"));
  EXPECT_THAT(text, HasSubstr("memory: 64GiB\n"));
  EXPECT_THAT(text, HasSubstr("f32: 1.5TFLOP/s guess (24 cores)\n"));
}

// What people's editors and disks do to files: a byte changed, a piece lost, doubled or moved.
std::string Mutated(std::string text, Random& random) {
  constexpr std::string_view kBytes = " \n\t:-{}[]&*!|>'\"#%@,?0123456789abcxyz.\\\0\xff\xc3";
  for (size_t changes = 1 + random.Below(4); changes > 0 && !text.empty(); --changes) {
    const size_t at = random.Below(text.size());
    const size_t length = std::min(text.size() - at, 1 + random.Below(40));
    switch (random.Below(6)) {
      case 0:
        text[at] = kBytes[random.Below(kBytes.size())];
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(random.Below(text.size()), text.substr(at, length));
        break;
      case 3:
        text.insert(at, 1, kBytes[random.Below(kBytes.size())]);
        break;
      case 4:
        text[at] = static_cast<char>(text[at] ^ (1 << random.Below(8)));
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

TEST(DeviceFile, DamagedFilesAreReadOrRefused) {
  Random random(20);
  const ClusterCatalog presets = Presets();
  std::vector<std::string> originals = {std::string(kGood)};
  for (const std::string& name : presets.Names()) originals.push_back(WriteCluster(presets.Make(name)));
  size_t refused = 0;
  for (int i = 0; i < 1500; ++i) {
    const std::string yaml = Mutated(originals[random.Below(originals.size())], random);
    try {
      EXPECT_GE(ParseCluster(yaml, "f").num_devices(), 1u);
    } catch (const Error& error) {
      ++refused;
      EXPECT_THAT(error.what(), StartsWith("f:")) << yaml;
    }
  }
  EXPECT_GT(refused, 300u);
}

}  // namespace
}  // namespace berth
