#include "placement/costs.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "base/error.h"

namespace berth {
namespace {

using ClassShares = std::array<double, kOpClasses>;

struct KindShares {
  std::string_view kind;
  ClassShares share;
};

// Guesses, in the order of OpClass: matmul, conv, elementwise, normalization, reduction, data movement, recurrent,
// other. cpu: what ONNX Runtime reached on one core of a server, a third less for matmul and conv, whose cores share
// caches and clock (docs/costs.md has the measurements). gpu: dense kernels of vendor libraries reach about half of the
// peak at the sizes of inference; the rest is bound by memory, and its arithmetic seldom counts. igpu: as gpu, a little
// less. npu: built for convolutions.
constexpr std::array kShares = {
    KindShares{"cpu", {0.5, 0.5, 0.03, 0.05, 0.03, 0.05, 0.25, 0.03}},
    KindShares{"gpu", {0.5, 0.45, 0.05, 0.05, 0.03, 0.05, 0.15, 0.03}},
    KindShares{"igpu", {0.4, 0.4, 0.05, 0.05, 0.03, 0.05, 0.15, 0.03}},
    KindShares{"npu", {0.35, 0.5, 0.03, 0.03, 0.02, 0.03, 0.1, 0.01}},
};
constexpr ClassShares kUnknownKind = {0.4, 0.4, 0.03, 0.05, 0.03, 0.05, 0.15, 0.03};

// One device's part of the roofline, looked up instead of computed: per op only two divisions remain.
struct Roof {
  std::array<std::array<double, kOpClasses>, kDataTypes> flops_per_second;
  std::array<double, kDataTypes> bytes_per_second;  // of the model's bytes
  double overhead;
  double step_overhead;  // of each step after an op's first
  double half_rate_outputs;
  std::vector<uint8_t> runs;  // by op type
};

double Share(const Device& device, OpClass op_class) {
  const auto own = device.efficiency.find(kOpClassNames[static_cast<size_t>(op_class)]);
  return own != device.efficiency.end() ? own->second.value : DefaultEfficiency(device.kind, op_class);
}

bool Runs(const Device& device, std::string_view op_type) {
  const auto fits = [&](const std::string& pattern) { return GlobMatches(pattern, op_type); };
  return (device.supports.empty() || std::ranges::any_of(device.supports, fits)) &&
         std::ranges::none_of(device.lacks, fits);
}

// Where kernels are launched from outside each step of a recurrent layer is at least one (docs/gpu.md); on a processor
// the steps are a loop within one.
bool LaunchesEachStep(const Device& device) { return device.kind == "gpu" || device.kind == "igpu"; }

Roof RoofOf(const Device& device, const Graph& graph, const std::string& cluster) {
  const auto f32 = device.peak.find("f32");
  const auto missing = [&](std::string_view what) {
    return Error(
        "cluster {}, device {}: no {}; the roofline needs it: add it to the device file, or name other op "
        "times with --costs",
        cluster, device.name, what);
  };
  if (f32 == device.peak.end() || !(f32->second.value > 0)) throw missing("peak f32 rate");
  if (!(device.memory_bandwidth.value > 0)) throw missing("memory_bandwidth");

  Roof roof{.flops_per_second = {},
            .bytes_per_second = {},
            .overhead = device.op_overhead.value,
            .step_overhead = LaunchesEachStep(device) ? device.op_overhead.value : 0,
            .half_rate_outputs = device.half_rate_outputs.value,
            .runs = {}};
  for (size_t type = 0; type < kDataTypes; ++type) {
    const bool narrowed = type == static_cast<size_t>(DataType::kF32) && device.precision != "f32";
    const auto own = device.peak.find(narrowed ? std::string_view(device.precision) : kDataTypeNames[type]);
    const double peak = own != device.peak.end() ? own->second.value : f32->second.value;
    // f16 and bf16 have half the bytes of the f32 that they stand for.
    roof.bytes_per_second[type] = device.memory_bandwidth.value * (narrowed ? 2 : 1);
    for (size_t c = 0; c < kOpClasses; ++c)
      roof.flops_per_second[type][c] = peak * Share(device, static_cast<OpClass>(c));
  }
  for (const std::string& op_type : graph.op_types()) roof.runs.push_back(Runs(device, op_type) ? 1 : 0);
  return roof;
}

double RateOf(const Roof& roof, const OpWork& work) {
  return roof.flops_per_second[static_cast<size_t>(work.data_type)][static_cast<size_t>(work.op_class)];
}

// How many values the op makes that a device computes side by side; 0: not known, or of no matter to its time.
double ValuesAtOnce(const OpWork& work) {
  // Libraries divide the long sums of a product among several that are added up in the end (docs/gpu.md), not those of
  // a convolution.
  constexpr double kLongSum = 768;
  const auto values = static_cast<double>(work.bytes_written / BytesPerValue(work.data_type));
  if (work.op_class == OpClass::kConv) return values;
  if (work.op_class == OpClass::kMatMul && values > 0) return std::max(values, work.flops / (2 * kLongSum));
  return 0;
}

// Seconds of an op's arithmetic alone.
double ComputeTime(const Roof& roof, const OpWork& work) {
  // 0 / 0 for a class that the device cannot do and an op without arithmetic; its bytes count then.
  if (work.flops == 0) return 0;
  const double at_full_rate = work.flops / RateOf(roof, work);
  const double values = ValuesAtOnce(work);
  return values > 0 ? at_full_rate * (1 + roof.half_rate_outputs / values) : at_full_rate;
}

// Of the steps after its first.
double StepOverhead(const Roof& roof, const OpWork& work) {
  return static_cast<double>(work.steps - 1) * roof.step_overhead;
}

double TimeUnder(const Roof& roof, const OpWork& work) {
  const double bytes = static_cast<double>(work.bytes_read) + static_cast<double>(work.bytes_written);
  if (work.flops == 0 && bytes == 0) return 0;
  return roof.overhead + StepOverhead(roof, work) +
         std::max(ComputeTime(roof, work), bytes / roof.bytes_per_second[static_cast<size_t>(work.data_type)]);
}

// A kernel's bytes: each tensor, input and parameter once, and nothing of what stays inside.
double BytesOf(const Graph& graph, std::span<const OpId> ops) {
  const auto inside = [&](OpId op) { return std::ranges::binary_search(ops, op); };
  double bytes = 0;
  std::map<TensorId, size_t> readers;
  std::map<InputId, size_t> input_readers;
  std::map<ParameterId, size_t> parameter_readers;
  for (const OpId op : ops) {
    const OpWork& work = graph.work(op);
    // A view moves nothing, so nothing of it can be saved.
    if (work.bytes_read == 0 && work.bytes_written == 0) continue;
    bytes += static_cast<double>(work.bytes_read) + static_cast<double>(work.bytes_written);
    for (const TensorId tensor : graph.inputs_of(op)) ++readers[tensor];
    for (const InputId input : graph.graph_inputs_of(op)) ++input_readers[input];
    for (const ParameterId parameter : graph.parameters_of(op)) ++parameter_readers[parameter];
    for (size_t i = graph.first_output(op); i < graph.end_output(op); ++i) {
      const auto tensor = MakeId<TensorId>(i);
      const auto consumers = graph.consumers(tensor);
      const bool leaves = graph.is_output(tensor) || consumers.empty() || !std::ranges::all_of(consumers, inside);
      if (!leaves) bytes -= static_cast<double>(graph.tensor_bytes(tensor));
    }
  }
  for (const auto& [tensor, count] : readers) {
    const size_t repeated = inside(graph.producer(tensor)) ? count : count - 1;
    bytes -= static_cast<double>(repeated) * static_cast<double>(graph.tensor_bytes(tensor));
  }
  for (const auto& [input, count] : input_readers) {
    bytes -= static_cast<double>(count - 1) * static_cast<double>(graph.input_bytes(input));
  }
  for (const auto& [parameter, count] : parameter_readers) {
    bytes -= static_cast<double>(count - 1) * static_cast<double>(graph.parameter_bytes(parameter));
  }
  // Ops that read only a part of a tensor count less for it.
  return std::max(bytes, 0.0);
}

double TimeUnder(const Roof& roof, const Graph& graph, std::span<const OpId> ops) {
  double compute = 0, overhead = roof.overhead;
  for (const OpId op : ops) {
    compute += ComputeTime(roof, graph.work(op));
    overhead += StepOverhead(roof, graph.work(op));
  }
  const double bytes = BytesOf(graph, ops);
  if (compute == 0 && bytes == 0) return 0;
  const auto type = static_cast<size_t>(graph.work(ops.front()).data_type);
  return overhead + std::max(compute, bytes / roof.bytes_per_second[type]);
}

}  // namespace

double DefaultEfficiency(std::string_view device_kind, OpClass op_class) {
  const auto known = std::ranges::find(kShares, device_kind, &KindShares::kind);
  return (known != kShares.end() ? known->share : kUnknownKind)[static_cast<size_t>(op_class)];
}

OpTimes RooflineTimes(const Graph& graph, const Cluster& cluster) {
  std::vector<Roof> roofs;
  for (const DeviceId id : cluster.ids()) roofs.push_back(RoofOf(cluster.device(id), graph, cluster.name()));

  OpTimes times{.time = {}, .measured = {}, .source = "roofline"};
  times.time.reserve(graph.num_ops() * cluster.num_devices());
  for (const OpId op : graph.ops()) {
    for (const DeviceId id : cluster.ids()) {
      const Roof& roof = roofs[Index(id)];
      const OpWork& work = graph.work(op);
      const bool runs = roof.runs[graph.op_type_index(op)] != 0 && (work.flops == 0 || RateOf(roof, work) > 0);
      times.time.push_back(runs ? TimeUnder(roof, work) : kCannotRun);
      // Infinity says that a device cannot do it at all.
      if (runs && times.time.back() == kCannotRun) {
        throw Error("{} on {}: op {} takes longer than a number can hold; correct its work, or the rates of {}",
                    graph.name(), cluster.name(), graph.op_name(op), cluster.device(id).name);
      }
    }
  }
  return times;
}

OpTimes RooflineTimes(const Graph& graph, const Cluster& cluster, const Grouping& kernels) {
  OpTimes times = RooflineTimes(graph, cluster);
  const size_t devices = cluster.num_devices();
  std::vector<Roof> roofs;
  for (const DeviceId id : cluster.ids()) roofs.push_back(RoofOf(cluster.device(id), graph, cluster.name()));
  for (const GroupId group : kernels.groups()) {
    const std::span<const OpId> ops = kernels.ops_of(group);
    if (ops.size() < 2) continue;
    Kernel& kernel = times.kernels.emplace_back(Kernel{.ops = {ops.begin(), ops.end()}, .apart = {}});
    for (const OpId op : ops) {
      const double* const row = times.time.data() + Index(op) * devices;
      kernel.apart.insert(kernel.apart.end(), row, row + devices);
    }
    const OpId head = HeadOf(graph, ops);
    for (const DeviceId id : cluster.ids()) {
      const auto time = [&](OpId op) -> double& { return times.time[Index(op) * devices + Index(id)]; };
      const bool runs = std::ranges::all_of(ops, [&](OpId op) { return time(op) < kCannotRun; });
      if (!runs) continue;
      for (const OpId op : ops) time(op) = 0;
      time(head) = TimeUnder(roofs[Index(id)], graph, ops);
    }
  }
  return times;
}

OpId HeadOf(const Graph& graph, std::span<const OpId> kernel) {
  return *std::ranges::max_element(kernel, {}, [&](OpId op) { return graph.work(op).flops; });
}

void SplitKernel(const Kernel& kernel, size_t devices, OpTimes& times) {
  for (size_t i = 0; i < kernel.ops.size(); ++i) {
    for (size_t device = 0; device < devices; ++device) {
      double& time = times.time[Index(kernel.ops[i]) * devices + device];
      if (time < kCannotRun) time = kernel.apart[i * devices + device];
    }
  }
}

void JoinKernels(const Graph& graph, const Grouping& groups, OpTimes& times) {
  if (graph.num_ops() == 0) return;
  const size_t devices = times.time.size() / graph.num_ops();
  std::vector<int32_t> label(graph.num_ops());
  std::iota(label.begin(), label.end(), 0);
  std::vector<double> apart = times.time;
  for (const Kernel& kernel : times.kernels) {
    for (size_t i = 0; i < kernel.ops.size(); ++i) {
      label[Index(kernel.ops[i])] = static_cast<int32_t>(kernel.ops.front());
      std::copy_n(kernel.apart.begin() + static_cast<std::ptrdiff_t>(i * devices), devices,
                  apart.begin() + static_cast<std::ptrdiff_t>(Index(kernel.ops[i]) * devices));
    }
  }
  times.kernels.clear();
  const Grouping joined = Joined(graph, Grouping(graph, label), groups);
  for (const GroupId group : joined.groups()) {
    const std::span<const OpId> ops = joined.ops_of(group);
    if (ops.size() < 2) continue;
    Kernel& kernel = times.kernels.emplace_back(Kernel{.ops = {ops.begin(), ops.end()}, .apart = {}});
    for (const OpId op : ops) {
      const double* const row = apart.data() + Index(op) * devices;
      kernel.apart.insert(kernel.apart.end(), row, row + devices);
    }
    const OpId head = HeadOf(graph, ops);
    for (size_t device = 0; device < devices; ++device) {
      const auto time = [&](OpId op) -> double& { return times.time[Index(op) * devices + device]; };
      double whole = 0;
      for (const OpId op : ops) whole += time(op);
      if (!(whole < kCannotRun)) continue;
      for (const OpId op : ops) time(op) = 0;
      time(head) = whole;
    }
  }
}

void LoosenKernels(size_t devices, OpTimes& times) {
  for (const Kernel& kernel : times.kernels) {
    for (size_t i = 0; i < kernel.ops.size(); ++i) {
      for (size_t device = 0; device < devices; ++device) {
        double& time = times.time[Index(kernel.ops[i]) * devices + device];
        time = std::min(time, kernel.apart[i * devices + device]);
      }
    }
  }
  times.kernels.clear();
}

void SplitKernels(std::span<const DeviceId> placement, size_t devices, OpTimes& times) {
  std::erase_if(times.kernels, [&](const Kernel& kernel) {
    const auto device = [&](OpId op) { return placement[Index(op)]; };
    if (std::ranges::all_of(kernel.ops, [&](OpId op) { return device(op) == device(kernel.ops.front()); })) {
      return false;
    }
    SplitKernel(kernel, devices, times);
    return true;
  });
}

}  // namespace berth
