// A problem for what is read to be used on: two branches with a shared weight, on two kinds of devices.
#pragma once

#include <memory>
#include <vector>

#include "placement/problem.h"
#include "tests/fuzz/reader.h"

namespace berth::fuzz {

inline const Problem& SmallProblem() {
  static const Problem problem = [] {
    GraphBuilder builder("small");
    const size_t input = builder.AddInput(64, "tokens");
    const size_t weight = builder.AddParameter(4096, "embedding.weight");
    const auto op = [&](const char* name, const char* type, std::vector<size_t> consumes) {
      const size_t added = builder.AddOp(name, type, {.flops = 1e6, .bytes_read = 128, .bytes_written = 64});
      for (const size_t tensor : consumes) builder.Consume(tensor, added);
      builder.AddTensor(added, 64, std::string(name) + ":0");
      return added;
    };
    const size_t embedding = op("embedding", "Gather", {});
    builder.UseInput(input, embedding);
    builder.UseParameter(weight, embedding);
    op("encoder/0/MatMul", "MatMul", {0});
    op("encoder/0/Softmax", "Softmax", {1});
    op("encoder/1/MatMul", "MatMul", {0});
    op("encoder/1/Softmax", "Softmax", {3});
    builder.UseParameter(weight, op("decoder", "Gemm", {2, 4}));
    builder.MarkOutput(5);

    std::vector<Device> devices(3);
    for (size_t d = 0; d < devices.size(); ++d) {
      devices[d].name = d == 0 ? "cpu" : d == 1 ? "gpu0" : "gpu1";
      devices[d].kind = d == 0 ? "cpu" : "gpu";
      devices[d].peak["f32"] = {.value = 1e12};
      devices[d].memory_bandwidth = {.value = 1e11};
      if (d > 0) devices[d].memory = Quantity{.value = 4e9};
    }
    std::vector<Link> links(9, Link{.latency = {.value = 1e-5}, .bandwidth = {.value = 1e10}});
    OpTimes times{.time = std::vector<double>(6 * 3, 1e-3), .source = "small"};
    return Problem(std::make_shared<const Graph>(builder.Build()),
                   std::make_shared<const Cluster>("small", std::move(devices), std::move(links)), std::move(times));
  }();
  return problem;
}

inline OpTimes TimesOf(const Problem& problem) {
  OpTimes times{.source = problem.cost_source()};
  for (const OpId op : problem.graph().ops()) {
    for (const double time : problem.op_times(op)) times.time.push_back(time);
  }
  return times;
}

}  // namespace berth::fuzz
