#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <queue>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "cluster/presets.h"
#include "import/readers.h"
#include "placement/bound.h"
#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

std::unique_ptr<Evaluator> MakePlaceto(const Problem& problem, std::string_view name = "placeto") {
  EvaluatorCatalog catalog("evaluator");
  RegisterPlaceto(catalog);
  return catalog.Make(name, problem);
}

std::shared_ptr<const Cluster> Machine(size_t devices) {
  ClusterCatalog catalog("cluster");
  RegisterPlacetoCluster(catalog);
  return std::make_shared<const Cluster>(catalog.Make(fmt::format("placeto(devices={})", devices)));
}

std::vector<DeviceId> InFileOrder(const Graph& graph, const std::vector<int32_t>& placement) {
  std::vector<DeviceId> device(graph.num_ops());
  for (size_t p = 0; p < placement.size(); ++p)
    device[Index(graph.op_at_file_position(p))] = static_cast<DeviceId>(placement[p]);
  return device;
}

// Random graphs in the format of the data set: several outputs, zero costs and sizes, ids that are not topological.
std::string RandomFile(Random& random) {
  const size_t n = 1 + random.Below(40);
  std::vector<size_t> order(n);
  for (size_t v = 0; v < n; ++v) order[v] = v;
  if (random.Chance(0.5)) random.Shuffle(std::span(order));
  nlohmann::json nodes = nlohmann::json::array(), edges = nlohmann::json::array();
  for (size_t v = 0; v < n; ++v) {
    nlohmann::json bytes = nlohmann::json::array();
    for (size_t k = random.Below(4); k > 0; --k) bytes.push_back(random.Chance(0.2) ? 0 : 7600 * random.Below(20));
    nodes.push_back({{"id", v},
                     {"name", fmt::format("n{}", v)},
                     {"cost_us", random.Chance(0.2) ? 0 : 10 * random.Below(8)},
                     {"out_bytes", bytes}});
  }
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = a + 1; b < n; ++b) {
      if (random.Chance(2.0 / static_cast<double>(n))) edges.push_back({order[a], order[b], random.Below(3)});
    }
  }
  return nlohmann::json{{"nodes", nodes}, {"edges", edges}}.dump();
}

// The published rules, slowly: one heap of events (time, kind, a, b), queues that are searched.
struct SlowRun {
  double makespan = 0;
  std::vector<double> start;
  std::vector<int64_t> peak;
};

SlowRun RunSlowly(const nlohmann::json& file, const std::vector<int32_t>& placement, size_t devices) {
  enum Kind { kRemove, kBus, kDevice };
  const size_t n = file["nodes"].size();
  std::vector<std::vector<int64_t>> bytes(n);
  std::vector<double> cost(n);
  std::vector<std::map<size_t, size_t>> children(n);
  std::vector<size_t> missing(n);
  for (size_t v = 0; v < n; ++v) {
    cost[v] = file["nodes"][v]["cost_us"].get<double>();
    bytes[v] = file["nodes"][v]["out_bytes"].get<std::vector<int64_t>>();
  }
  for (const auto& edge : file["edges"]) {
    const size_t from = edge[0], to = edge[1], output = edge[2];
    if (!children[from].contains(to)) ++missing[to];
    children[from][to] = output;
    if (bytes[from].size() <= output) bytes[from].resize(output + 1);
  }
  using Event = std::tuple<double, int, size_t, size_t>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  std::vector<std::set<std::tuple<double, size_t, size_t>>> ready(devices);
  std::vector<std::set<std::tuple<double, size_t, size_t, size_t>>> bus(devices);
  std::vector<bool> device_on(devices), bus_on(devices);
  size_t sequence = 0;
  SlowRun run{.start = std::vector<double>(n), .peak = std::vector<int64_t>(devices)};
  const auto enqueue = [&](double now, size_t v) {
    const auto d = static_cast<size_t>(placement[v]);
    ready[d].insert({now, sequence++, v});
    if (!device_on[d]) events.push({now, kDevice, d, 0});
    device_on[d] = true;
  };
  for (size_t v = 0; v < n; ++v) {
    if (missing[v] == 0) enqueue(0, v);
  }
  while (!events.empty()) {
    const auto [now, kind, a, b] = events.top();
    events.pop();
    run.makespan = now;
    if (kind == kRemove) {
      if (--missing[b] == 0) enqueue(now, b);
    } else if (kind == kDevice) {
      if (ready[a].empty()) {
        device_on[a] = false;
        continue;
      }
      const size_t v = std::get<2>(*ready[a].begin());
      ready[a].erase(ready[a].begin());
      run.start[v] = now;
      const double end = now + cost[v];
      events.push({end + (cost[v] != 0 ? 5.7 : 0), kDevice, a, 0});
      std::set<size_t> sent;
      for (const auto& [child, output] : children[v]) {
        if (static_cast<size_t>(placement[child]) == a) {
          events.push({end, kRemove, v, child});
        } else if (sent.insert(output).second) {
          bus[a].insert({end, sequence++, v, output});
          if (!bus_on[a]) events.push({end, kBus, a, 0});
          bus_on[a] = true;
        }
      }
    } else {
      if (bus[a].empty()) {
        bus_on[a] = false;
        continue;
      }
      const auto [when, order, v, output] = *bus[a].begin();
      if (when > now) {
        events.push({when, kBus, a, 0});
        continue;
      }
      bus[a].erase(bus[a].begin());
      const double delay = static_cast<double>(bytes[v][output]) / 7600.0;
      for (const auto& [child, of] : children[v]) {
        if (of == output && static_cast<size_t>(placement[child]) != a) events.push({now + delay, kRemove, v, child});
      }
      events.push({now + delay + 25.0, kBus, a, 0});
    }
  }
  std::vector<std::tuple<double, int, int64_t, size_t>> changes;
  for (size_t v = 0; v < n; ++v) {
    int64_t sum = 0;
    for (const int64_t size : bytes[v]) sum += size;
    double release = run.start[v];
    for (const auto& [child, output] : children[v])
      release = std::max(release, std::trunc(run.start[child]) + cost[child] - 1);
    changes.push_back({run.start[v], 0, sum, static_cast<size_t>(placement[v])});
    changes.push_back({release, 1, -sum, static_cast<size_t>(placement[v])});
  }
  std::ranges::sort(changes);
  std::vector<int64_t> level(devices);
  for (const auto& [time, kind, sum, d] : changes) run.peak[d] = std::max(run.peak[d], level[d] += sum);
  return run;
}

TEST(Placeto, AgreesWithASlowSimulatorOnRandomGraphs) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    const std::string text = RandomFile(random);
    const Instance instance = ReadPlaceto(text, "random.json");
    const size_t devices = 1 + random.Below(5);
    const Problem problem = instance.On(Machine(devices));
    const auto evaluator = MakePlaceto(problem);
    const auto workspace = evaluator->NewWorkspace();
    for (int k = 0; k < 3; ++k) {
      std::vector<int32_t> placement(problem.num_ops());
      for (int32_t& d : placement) d = static_cast<int32_t>(random.Below(devices));
      const SlowRun slow = RunSlowly(nlohmann::json::parse(text), placement, devices);
      const std::vector<DeviceId> device = InFileOrder(problem.graph(), placement);
      std::vector<double> starts(problem.num_ops());
      ASSERT_EQ(evaluator->ScorePlan({device}, *workspace, starts).time, slow.makespan) << text;
      for (size_t p = 0; p < starts.size(); ++p)
        ASSERT_EQ(starts[Index(problem.graph().op_at_file_position(p))], slow.start[p]);
      const Timeline timeline = evaluator->Trace({device});
      ASSERT_EQ(timeline.score.time, slow.makespan);
      ASSERT_EQ(Verify(*evaluator, {device}, timeline), std::vector<std::string>());
      ASSERT_LE(LowerBound(*evaluator).time, slow.makespan);
      for (size_t d = 0; d < devices; ++d) ASSERT_EQ(timeline.memory[d].peak_bytes, slow.peak[d]);
    }
  }
}

TEST(Placeto, GivesEveryPublishedReferenceToTheLastBit) {
  const std::string folder = std::string(BERTH_SHARED_DIR) + "/data/placeto/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no data set in " << folder;
  const nlohmann::json references = ReadJson(folder + "reference.json");
  std::map<std::string, Instance> instances;
  size_t count = 0, with_starts = 0;
  for (const nlohmann::json& reference : references["refs"]) {
    const std::string name = reference["graph"];
    const std::string path = folder + "graphs/" + name + ".json";
    if (!instances.contains(name)) instances.emplace(name, ReadPlaceto(ReadFile(path), path));
    const size_t devices = reference["n_devs"];
    const Problem problem = instances.at(name).On(Machine(devices));
    const Graph& graph = problem.graph();
    const std::vector<DeviceId> device = InFileOrder(graph, reference["placement"].get<std::vector<int32_t>>());
    const auto evaluator = MakePlaceto(problem);
    const auto workspace = evaluator->NewWorkspace();
    std::vector<double> starts(graph.num_ops());
    ASSERT_EQ(evaluator->ScorePlan({device}, *workspace, starts).time, reference["run_time_us"].get<double>()) << name;
    double sum = 0;
    for (size_t p = 0; p < starts.size(); ++p) {
      const double start = starts[Index(graph.op_at_file_position(p))];
      sum += start;
      if (reference.contains("start_us")) {
        ASSERT_EQ(start, reference["start_us"][p].get<double>()) << name << " " << p;
      }
    }
    with_starts += reference.contains("start_us") ? 1 : 0;
    ASSERT_EQ(sum, reference["sum_start_us"].get<double>()) << name;
    const Timeline timeline = evaluator->Trace({device});
    for (size_t d = 0; d < devices; ++d) {
      ASSERT_EQ(timeline.memory[d].peak_bytes, reference["peak_mem_bytes"][d].get<int64_t>()) << name << " on " << d;
    }
    ++count;
  }
  EXPECT_EQ(count, 326u);
  EXPECT_GT(with_starts, 100u);
}

TEST(Placeto, SendsAnOutputOnceForAllOtherDevicesAndThenHoldsThePort) {
  const Instance instance = ReadPlaceto(R"({"nodes": [
      {"id": 0, "name": "a", "cost_us": 10, "out_bytes": [76000, 7600]},
      {"id": 1, "name": "b", "cost_us": 20, "out_bytes": []},
      {"id": 2, "name": "c", "cost_us": 20, "out_bytes": []},
      {"id": 3, "name": "d", "cost_us": 20, "out_bytes": []}],
      "edges": [[0, 1, 0], [0, 2, 0], [0, 3, 1]]})",
                                        "small.json");
  const Problem problem = instance.On(Machine(3));
  const auto evaluator = MakePlaceto(problem);
  const std::vector<DeviceId> device = InFileOrder(problem.graph(), {0, 1, 2, 1});
  const Timeline timeline = evaluator->Trace({device});
  ASSERT_EQ(timeline.transfers.size(), 3u);
  EXPECT_EQ(timeline.transfers[0], (TransferRun{TensorId{0}, DeviceId{0}, DeviceId{1}, 10, 20}));
  EXPECT_EQ(timeline.transfers[1], (TransferRun{TensorId{0}, DeviceId{0}, DeviceId{2}, 10, 20}));
  EXPECT_EQ(timeline.transfers[2], (TransferRun{TensorId{1}, DeviceId{0}, DeviceId{1}, 45, 46}));
  EXPECT_EQ(timeline.score.time, 46 + 20 + 5.7);
}

TEST(Placeto, RestsForAGapAfterTheLastOp) {
  const Instance instance =
      ReadPlaceto(R"({"nodes": [{"id": 0, "name": "a", "cost_us": 10, "out_bytes": []}], "edges": []})", "one.json");
  const Problem problem = instance.On(Machine(1));
  const std::vector<DeviceId> device(1);
  EXPECT_EQ(MakePlaceto(problem)->Trace({device}).score.time, 10 + 5.7);
  EXPECT_EQ(MakePlaceto(problem, "placeto(op_gap=0)")->Trace({device}).score.time, 10);
  EXPECT_EQ(MakePlaceto(problem, "placeto(op_gap=0)")->name(), "placeto(op_gap=0)");
}

// Every single change of a time or peak is seen.
TEST(Placeto, VerifyFindsWhatDoesNotHold) {
  Random random(11);
  const Instance instance = ReadPlaceto(RandomFile(random), "random.json");
  const Problem problem = instance.On(Machine(3));
  const auto evaluator = MakePlaceto(problem);
  const std::vector<DeviceId> device = testing::RandomPlacement(problem, random);
  const Timeline good = evaluator->Trace({device});
  ASSERT_TRUE(Verify(*evaluator, {device}, good).empty());
  ASSERT_FALSE(good.transfers.empty());
  const auto is_bad = [&](const auto& change) {
    Timeline timeline = good;
    change(timeline);
    return !Verify(*evaluator, {device}, timeline).empty();
  };
  for (size_t i = 0; i < good.ops.size(); ++i) {
    EXPECT_TRUE(is_bad([&](Timeline& t) { t.ops[i].start += 1, t.ops[i].end += 1; })) << i;
    EXPECT_TRUE(is_bad([&](Timeline& t) { t.ops[i].end += 1; })) << i;
  }
  for (size_t i = 0; i < good.transfers.size(); ++i) {
    EXPECT_TRUE(is_bad([&](Timeline& t) { t.transfers[i].start += 1, t.transfers[i].end += 1; })) << i;
    EXPECT_TRUE(is_bad([&](Timeline& t) { t.transfers.erase(t.transfers.begin() + static_cast<std::ptrdiff_t>(i)); }))
        << i;
  }
  EXPECT_TRUE(is_bad([](Timeline& t) { t.score.time += 1; }));
  EXPECT_TRUE(is_bad([](Timeline& t) { t.memory[1].peak_bytes += 1; }));
}

TEST(Placeto, IsInfeasibleAboveAMemoryLimit) {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    const Instance instance = ReadPlaceto(RandomFile(random), "random.json");
    const auto cluster = Machine(2);
    Problem::Options options = instance.options;
    options.memory_limits = {static_cast<int64_t>(random.Below(400'000)), static_cast<int64_t>(random.Below(400'000))};
    const std::vector<int64_t> limits = options.memory_limits;
    const Problem problem(instance.graph, cluster, instance.TimesOn(*cluster), options);
    const auto evaluator = MakePlaceto(problem);
    const std::vector<DeviceId> device = testing::RandomPlacement(problem, random);
    const Score score = evaluator->ScorePlan({device}, *evaluator->NewWorkspace(), {});
    const Timeline timeline = evaluator->Trace({device});
    int64_t excess = 0;
    for (size_t d = 0; d < 2; ++d) excess += std::max<int64_t>(0, timeline.memory[d].peak_bytes - limits[d]);
    EXPECT_EQ(score.excess_bytes, excess);
    EXPECT_EQ(score.fits(), excess == 0);
    EXPECT_EQ(timeline.infeasible_because.empty(), excess == 0);
    for (const DeviceMemory& memory : timeline.memory) {
      int64_t held = 0;
      for (const MemoryHolder& holder : memory.holders) held += holder.bytes;
      EXPECT_EQ(held, memory.peak_bytes);
    }
  }
}

TEST(Placeto, MeansTheSameInSecondsAsInMicroseconds) {
  Random random(5);
  const Instance instance = ReadPlaceto(RandomFile(random), "random.json");
  const auto cluster = Machine(2);
  OpTimes seconds = instance.TimesOn(*cluster);
  for (double& time : seconds.time) time *= 1e-6;
  const Problem exact = instance.On(cluster), coarse(instance.graph, cluster, seconds);
  const std::vector<DeviceId> device = testing::RandomPlacement(exact, random);
  EXPECT_NEAR(MakePlaceto(coarse)->Trace({device}).score.time * 1e6, MakePlaceto(exact)->Trace({device}).score.time,
              1e-6);
}

TEST(Placeto, RefusesLinksThatTheSimulatorCannotExpress) {
  Random random(1);
  const Problem problem = testing::RandomProblem(random, {.ops = 5, .devices = 3});
  try {
    MakePlaceto(problem);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "placeto: the published simulator has one bandwidth for all links and no latency, and cluster random has "
              "more; use --cluster 'placeto(devices=3)' or --evaluator 'parallel(contention=egress)'");
  }
}

}  // namespace
}  // namespace berth
