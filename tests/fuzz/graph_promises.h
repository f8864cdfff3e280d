// What every reader of models promises of the graph that it makes.
#pragma once

#include <cmath>
#include <string>

#include "graph/graph.h"
#include "import/import.h"
#include "placement/costs.h"
#include "tests/fuzz/reader.h"

namespace berth::fuzz {

// Two unequal devices with all that the roofline asks for.
inline const Cluster& AnyCluster() {
  static const Cluster cluster = ParseCluster(R"(
name: any
devices:
  cpu: {kind: cpu, memory: 8GiB, peak: {f32: 1TFLOP/s}, memory_bandwidth: 40GB/s, op_overhead: 2us}
  gpu: {kind: gpu, count: 2, memory: 4GiB, peak: {f32: 8TFLOP/s, f16: 30TFLOP/s}, memory_bandwidth: 400GB/s, lacks: [Loop]}
links:
  - {latency: 10us, bandwidth: 12GB/s}
)",
                                              "any.yaml");
  return cluster;
}

// A graph is in order, has times that are numbers, and survives Berth's own format to the last byte.
inline void CheckGraph(const Graph& graph) {
  FUZZ_CHECK(graph.num_ops() > 0);
  for (const OpId op : graph.ops()) {
    const OpWork& work = graph.work(op);
    FUZZ_CHECK(std::isfinite(work.flops) && work.flops >= 0, "{} FLOPs of {}", work.flops, graph.op_name(op));
    FUZZ_CHECK(work.bytes_read >= 0 && work.bytes_written >= 0 && work.workspace_bytes >= 0);
    for (const TensorId tensor : graph.inputs_of(op)) FUZZ_CHECK(graph.producer(tensor) < op);
  }
  for (const TensorId tensor : graph.tensors()) FUZZ_CHECK(graph.tensor_bytes(tensor) >= 0);

  Survives(
      graph.name(), [&] { return RooflineTimes(graph, AnyCluster()); },
      [&](const OpTimes& times) {
        FUZZ_CHECK(times.time.size() == graph.num_ops() * AnyCluster().num_devices());
        for (const double time : times.time) FUZZ_CHECK(time >= 0, "an op takes {}", time);
      });

  const std::string written = WriteGraphJson(graph);
  const Graph again = ReadGraphJson(written, "written.json");
  FUZZ_CHECK(again.structural_fingerprint() == graph.structural_fingerprint());
  FUZZ_CHECK(WriteGraphJson(again) == written);
}

}  // namespace berth::fuzz
