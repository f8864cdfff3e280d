#include "tools/measured/tiny_parts.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "cli/plan_runs.h"
#include "cli/problem_strings.h"
#include "cli/runtime.h"
#include "cli/scratch_folder.h"
#include "exec/statistics.h"

namespace berth::measured {
namespace {

constexpr int kOps = 40;
constexpr size_t kRounds = 1000;
constexpr int kChannels = 32;

std::string Port(int id, const std::string& dims) {
  return fmt::format("<port id=\"{}\" precision=\"FP32\">{}</port>", id, dims);
}

std::string Dims(const std::vector<int>& sizes) {
  std::string text;
  for (const int size : sizes) text += fmt::format("<dim>{}</dim>", size);
  return text;
}

std::string Edge(int from, int from_port, int to, int to_port) {
  return fmt::format("<edge from-layer=\"{}\" from-port=\"{}\" to-layer=\"{}\" to-port=\"{}\"/>\n", from, from_port, to,
                     to_port);
}

// OpenVINO's IR of a chain of tanh of 16 values, or of 1x1 convolutions that all have the same weights.
std::string Chain(bool convolutions) {
  const std::string shape = convolutions ? Dims({1, kChannels, 8, 8}) : Dims({1, 16});
  std::string layers = fmt::format(
      "<layer id=\"0\" name=\"input\" type=\"Parameter\" version=\"opset1\"><data element_type=\"f32\" "
      "shape=\"{}\"/><output>{}</output></layer>\n",
      convolutions ? fmt::format("1,{},8,8", kChannels) : "1,16", Port(0, shape));
  std::string edges;
  int last = 0, last_port = 0, next = 1;
  for (int op = 0; op < kOps; ++op) {
    if (convolutions) {
      const std::string dims = Dims({kChannels, kChannels, 1, 1});
      layers += fmt::format(
          "<layer id=\"{}\" name=\"weights{}\" type=\"Const\" version=\"opset1\"><data element_type=\"f32\" "
          "shape=\"{},{},1,1\" offset=\"0\" size=\"{}\"/><output>{}</output></layer>\n",
          next, op, kChannels, kChannels, 4 * kChannels * kChannels, Port(0, dims));
      layers += fmt::format(
          "<layer id=\"{}\" name=\"op{}\" type=\"Convolution\" version=\"opset1\"><data strides=\"1, 1\" "
          "dilations=\"1, 1\" pads_begin=\"0, 0\" pads_end=\"0, 0\" auto_pad=\"explicit\"/><input>{}{}</input>"
          "<output>{}</output></layer>\n",
          next + 1, op, Port(0, shape), Port(1, dims), Port(2, shape));
      edges += Edge(last, last_port, next + 1, 0) + Edge(next, 0, next + 1, 1);
      last = next + 1, last_port = 2, next += 2;
    } else {
      layers += fmt::format(
          "<layer id=\"{}\" name=\"op{}\" type=\"Tanh\" version=\"opset1\"><input>{}</input><output>{}</output>"
          "</layer>\n",
          next, op, Port(0, shape), Port(1, shape));
      edges += Edge(last, last_port, next, 0);
      last = next, last_port = 1, next += 1;
    }
  }
  layers +=
      fmt::format("<layer id=\"{}\" name=\"result\" type=\"Result\" version=\"opset1\"><input>{}</input></layer>\n",
                  next, Port(0, shape));
  edges += Edge(last, last_port, next, 0);
  return fmt::format(
      "<?xml version=\"1.0\"?>\n<net name=\"chain\" version=\"11\">\n<layers>\n{}</layers>\n<edges>\n{}"
      "</edges>\n</net>\n",
      layers, edges);
}

// Microseconds of a part, and their 95 % interval.
std::string PartOf(const Catalogs& catalogs, const Cluster& cluster, const std::string& name, bool convolutions) {
  const ScratchFolder folder("berth_tiny_parts");
  WriteFile(folder.Path(name + ".xml"), Chain(convolutions));
  const std::vector<float> weights(kChannels * kChannels, 1.0F / kChannels);
  WriteFile(folder.Path(name + ".bin"),
            std::string(reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof(float)));
  const std::shared_ptr<Runtime> runtime =
      OpenRuntime(catalogs, {.model = folder.Path(name + ".xml"),
                             .cluster = cluster.name(),
                             .stored_cluster = std::make_shared<const Cluster>(cluster)});
  const Graph& graph = runtime->setup->problem->graph();
  std::vector<DeviceId> device(graph.num_ops());
  for (const OpId op : graph.ops()) {
    // "op7", and "weights7" where constants are ops.
    const std::string_view op_name = graph.op_name(op);
    const size_t digits = op_name.find_first_of("0123456789");
    const bool second = digits != std::string_view::npos && (op_name.back() - '0') % 2 == 1;
    device[Index(op)] = MakeId<DeviceId>(second ? 1 : 0);
  }
  const Measurement measured =
      runtime->openvino.Run({{.how = "parallel", .device = device}}, {.rounds = kRounds, .limit = 120}).front();
  if (!measured.error.empty()) throw Error("a chain of small ops: {}", measured.error);
  BERTH_CHECK(measured.subgraphs == kOps, "{} parts", measured.subgraphs);
  const Interval interval = MedianInterval(measured.seconds);
  const double us = 1e6 / kOps;
  return fmt::format("{:.1f} us ({:.1f} to {:.1f})", us * Median(measured.seconds), us * interval.low,
                     us * interval.high);
}

}  // namespace

void PrintTinyParts(const Catalogs& catalogs, const Cluster& cluster) {
  CheckHasTwoDevices(cluster);
  fmt::print(
      "What a part takes that has next to nothing to compute: {} in a chain of {} tanh of 16 values, {} in one of 1x1 "
      "convolutions of {} channels of 8x8, which bring their tensors into another layout and back; each op is a part, "
      "on the two devices by turns; {} runs.\n\n",
      PartOf(catalogs, cluster, "tanh", false), kOps, PartOf(catalogs, cluster, "convolution", true), kChannels,
      kRounds);
}

}  // namespace berth::measured
