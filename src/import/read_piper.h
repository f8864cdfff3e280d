// All that a Piper file says, for planners that choose replicas, tensor degrees and configurations.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "import/instance.h"
#include "import/readers.h"

namespace berth {

// How a layer may run at one tensor degree (a TMPC: tensor-model-parallelism configuration). Piper, section 3.
struct PiperVariant {
  std::string name{};           // "vanilla", "activation recomp"
  double time = 0;              // p: per sample, forward and backward, in the file's unit
  double weight_bytes = 0;      // w
  double bytes_per_sample = 0;  // a: for each sample in flight
  double bytes_fixed = 0;       // b
  // By the id of the layer at the other end of an edge: bytes that the edge costs more at this degree.
  std::map<int64_t, double> sync_forward{}, sync_backward{};
};

struct PiperLayer {
  int64_t id;
  std::string name{};
  std::map<int64_t, std::vector<PiperVariant>> by_degree{};  // tensor degree -> variants, in the file's order
};

struct PiperEdge {
  size_t source, target;  // positions in layers
  double bytes;           // c: of the activation; its gradient is as large
};

struct PiperModel {
  std::string path{};
  int64_t devices = 0;
  double bytes_per_device = 0;
  double bandwidth = 0;  // bytes per time unit, of each device
  int64_t microbatches = 0;
  std::vector<PiperLayer> layers{};
  std::vector<PiperEdge> edges{};
};

PiperModel ParsePiper(std::string_view content, const std::string& path);

// Tensor degree 1, no replicas, one of the two configurations for all layers. A stage's load under `pipeline` is then
// Piper's time per sample (section 3): sum of p + 2c / B for each edge that enters or leaves it. Memory is a + b, one
// sample in flight.
Instance MakeInstance(const PiperModel& model, PiperConfiguration configuration);

}  // namespace berth
