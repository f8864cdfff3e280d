// Small problems for tests: random ones that reach the corners (ties, lengths of zero, several tensors per op, unused
// tensors, shared parameters), and regular ones with unit costs whose answers can be worked out by hand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cluster/cluster.h"
#include "graph/graph.h"
#include "placement/plan.h"
#include "placement/problem.h"

namespace berth::testing {

// Devices with equal links. Rates are there for cost models that want them; tests give op times themselves.
inline Cluster UniformCluster(size_t devices, double latency = 0, double bandwidth = 1, double memory = 0) {
  std::vector<Device> list(devices);
  for (size_t d = 0; d < devices; ++d) {
    list[d].name = fmt::format("d{}", d);
    list[d].kind = "cpu";
    list[d].peak["f32"] = {.value = 1};
    list[d].memory_bandwidth = {.value = 1};
    if (memory > 0) list[d].memory = Quantity{.value = memory};
  }
  const Link link{.latency = {.value = latency}, .bandwidth = {.value = bandwidth}};
  return Cluster("uniform", std::move(list), std::vector<Link>(devices * devices, link));
}

// Every op takes one time unit on every device, every tensor of one byte takes one to be sent.
inline Problem UnitProblem(Graph graph, size_t devices, Problem::Options options = {}) {
  OpTimes times{.time = std::vector<double>(graph.num_ops() * devices, 1.0), .source = "unit"};
  return Problem(std::make_shared<const Graph>(std::move(graph)),
                 std::make_shared<const Cluster>(UniformCluster(devices)), std::move(times), std::move(options));
}

// op0 -> op1 -> ... ; the last tensor is the output.
inline Problem Chain(size_t ops, size_t devices) {
  GraphBuilder builder("chain");
  for (size_t v = 0; v < ops; ++v) {
    builder.AddOp("op" + std::to_string(v), "Unit", {});
    builder.AddTensor(v, 1, {}, v + 1 == ops);
    if (v > 0) builder.Consume(v - 1, v);
  }
  return UnitProblem(builder.Build(), devices);
}

// op0's one tensor goes to `width` ops, whose tensors all go to the last op.
inline Problem ForkJoin(size_t width, size_t devices) {
  GraphBuilder builder("fork_join");
  builder.AddOp("fork", "Unit", {});
  builder.AddTensor(0, 1);
  for (size_t i = 0; i < width; ++i) {
    const size_t op = builder.AddOp("branch" + std::to_string(i), "Unit", {});
    builder.AddTensor(op, 1);
    builder.Consume(0, op);
  }
  const size_t join = builder.AddOp("join", "Unit", {});
  builder.AddTensor(join, 1, {}, true);
  for (size_t i = 0; i < width; ++i) builder.Consume(1 + i, join);
  return UnitProblem(builder.Build(), devices);
}

struct RandomProblemOptions {
  size_t ops = 0;              // 0: a random number up to 60
  size_t devices = 0;          // 0: a random number up to 8
  bool ties = false;           // times are multiples of 1/64, so that many events coincide
  bool zero_lengths = true;    // some ops and tensors take no time
  bool inputs = true;          // the graph has inputs
  bool domains = false;        // some links share a medium
  bool memory_limits = false;  // devices hold about as much as a random placement needs, or less
  double constants = 0;        // the share of tensors that are made of weights alone
  double forbidden = 0;        // the share of (op, device) pairs that cannot run; device 0 runs everything
};

// Bytes, latencies and bandwidths are such that transfers and ops are of about the same length.
inline Problem RandomProblem(Random& random, const RandomProblemOptions& options = {}) {
  const auto pick = [&](auto... values) {
    using T = std::common_type_t<decltype(values)...>;
    const T all[] = {values...};
    return all[random.Below(sizeof...(values))];
  };
  const auto time = [&](double low, double high) {
    if (!options.ties) return random.Uniform(low, high);
    const auto first = static_cast<size_t>(low * 64), last = static_cast<size_t>(high * 64);
    return static_cast<double>(first + random.Below(last - first + 1)) / 64;
  };
  // Ascending, without repetition, at most `count` of first .. end - 1.
  const auto some = [&](size_t first, size_t end, size_t count) {
    std::vector<size_t> chosen;
    for (size_t v = first; v < end; ++v) chosen.push_back(v);
    random.Shuffle(std::span(chosen));
    chosen.resize(std::min(count, chosen.size()));
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  };
  const size_t n = options.ops > 0 ? options.ops : pick(1, 2, 5, 12, 30, 60);
  const size_t devices = options.devices > 0 ? options.devices : pick(1, 2, 3, 4, 8);
  const int64_t smallest = options.zero_lengths ? 0 : 16;

  GraphBuilder builder("random");
  for (size_t v = 0; v < n; ++v) {
    builder.AddOp("op" + std::to_string(v), pick("A", "B", "C"),
                  {.flops = 1, .bytes_read = 64, .bytes_written = 64, .workspace_bytes = pick(0, 0, 77, 3000)});
  }
  for (size_t v = 0; v < n; ++v) {
    for (size_t k = pick(0, 1, 1, 1, 2); k > 0; --k) {
      const size_t reach = pick(3, 8, 60);
      const std::vector<size_t> consumers = some(v + 1, std::min(n, v + 1 + reach), pick(0, 1, 1, 2, 3, 5));
      const size_t tensor = builder.AddTensor(v, std::max<int64_t>(smallest, pick(0, 64, 1024, 4096, 65536)), {},
                                              consumers.empty() || random.Chance(0.05));
      for (const size_t c : consumers) builder.Consume(tensor, c);
      if (options.constants > 0 && random.Chance(options.constants)) builder.MarkConstant(tensor);
    }
  }
  for (size_t k = 0; k < n / 3; ++k) {
    const size_t parameter = builder.AddParameter(pick(100, 5000));
    for (const size_t c : some(0, n, pick(1, 1, 2, 4))) builder.UseParameter(parameter, c);
  }
  for (size_t k = options.inputs ? pick(0, 1, 2) : 0; k > 0; --k) {
    const size_t input = builder.AddInput(std::max<int64_t>(smallest, pick(0, 512, 8192)));
    for (const size_t c : some(0, std::min<size_t>(n, 8), pick(1, 2, 4))) builder.UseInput(input, c);
  }

  std::vector<Device> list(devices);
  for (size_t d = 0; d < devices; ++d) {
    list[d].name = "d" + std::to_string(d);
    list[d].kind = pick("cpu", "gpu");
    list[d].peak["f32"] = {.value = 1e12};
    list[d].memory_bandwidth = {.value = 1e11};
    list[d].op_overhead = {.value =
                               1e-6 * static_cast<double>(d)};  // no two are interchangeable: their op times differ
    if (options.memory_limits) list[d].memory = Quantity{.value = static_cast<double>(pick(20000, 100000, 400000))};
  }
  std::vector<Link> links(devices * devices);
  for (Link& link : links) {
    link.latency.value = options.zero_lengths && random.Chance(0.2) ? 0 : time(1.0 / 64, 0.5);
    link.bandwidth.value = pick(2048.0, 8192.0, 32768.0);
    if (options.domains) link.domain = pick("", "bus", "bus", "switch");
  }
  OpTimes times{.time = {}, .source = "random"};
  for (size_t v = 0; v < n; ++v) {
    for (size_t d = 0; d < devices; ++d) {
      const bool zero = options.zero_lengths && random.Chance(0.25);
      const bool forbidden = d > 0 && random.Chance(options.forbidden);
      times.time.push_back(forbidden ? kCannotRun : zero ? 0.0 : time(0.25, 2));
    }
  }
  return Problem(std::make_shared<const Graph>(builder.Build()),
                 std::make_shared<const Cluster>("random", std::move(list), std::move(links)), std::move(times));
}

// Each op on any device that can run it.
inline std::vector<DeviceId> RandomPlacement(const Problem& problem, Random& random) {
  std::vector<DeviceId> device;
  for (const OpId op : problem.graph().ops()) {
    std::vector<DeviceId> able;
    for (const DeviceId d : problem.cluster().ids()) {
      if (problem.can_run(op, d)) able.push_back(d);
    }
    device.push_back(able[random.Below(able.size())]);
  }
  return device;
}

// A random topological order of the ops, and the transfers in the order in which it makes them: a sequence that can be
// kept.
inline Sequence RandomSequence(const Problem& problem, std::span<const DeviceId> device, Random& random) {
  const Graph& graph = problem.graph();
  Sequence sequence;
  std::vector<size_t> missing;
  std::vector<OpId> ready;
  for (const OpId op : graph.ops()) {
    missing.push_back(graph.inputs_of(op).size());
    if (missing.back() == 0) ready.push_back(op);
  }
  while (!ready.empty()) {
    std::swap(ready[random.Below(ready.size())], ready.back());
    const OpId op = ready.back();
    ready.pop_back();
    sequence.ops.push_back(op);
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      const auto tensor = MakeId<TensorId>(t);
      std::vector<DeviceId> destinations;
      for (const OpId c : graph.consumers(tensor)) {
        destinations.push_back(device[Index(c)]);
        if (--missing[Index(c)] == 0) ready.push_back(c);
      }
      std::sort(destinations.begin(), destinations.end());
      destinations.erase(std::unique(destinations.begin(), destinations.end()), destinations.end());
      for (const DeviceId d : destinations) {
        if (d != device[Index(op)]) sequence.transfers.emplace_back(tensor, d);
      }
    }
  }
  return sequence;
}

}  // namespace berth::testing
