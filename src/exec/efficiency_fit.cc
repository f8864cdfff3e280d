#include "exec/efficiency_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "cluster/cluster_numbers.h"
#include "exec/equal_devices.h"
#include "exec/statistics.h"
#include "placement/costs.h"

namespace berth {
namespace {

constexpr int kMostSweeps = 50;

// As `berth cluster detect` writes: profiles tell no more.
double FourDigits(double value) { return std::stod(fmt::format("{:.4g}", value)); }

double EfficiencyIn(const Device& device, size_t op_class) {
  const auto own = device.efficiency.find(kOpClassNames[op_class]);
  if (own != device.efficiency.end()) return own->second.value;
  return DefaultEfficiency(device.kind, static_cast<OpClass>(op_class));
}

// A multiple of a rate at which what is asked for takes no time beside the rest.
constexpr double kAtOnce = 1e30;
// Seconds; what is above them is more than work at that rate.
constexpr double kNothing = 1e-20;

// A device with which a single term is left of the roofline, so that RooflineTimes tells it: the launches where
// `op_overhead` is 1, the bytes at the file's bandwidth, or the ops of one class at the whole peak.
Cluster Probe(const Cluster& cluster, DeviceId id, double op_overhead, bool moves, std::optional<size_t> computes) {
  Device device = cluster.device(id);
  device.op_overhead.value = op_overhead;
  if (!moves) device.memory_bandwidth.value *= kAtOnce;
  for (size_t c = 0; c < kOpClasses; ++c) {
    device.efficiency[std::string(kOpClassNames[c])] = {.value = computes == c ? 1 : kAtOnce};
  }
  return Cluster(cluster.name(), {std::move(device)}, {Link{}});
}

// What ran as one, each other op by itself.
Grouping KernelsIn(const OpMeasurement& profile, const Graph& graph) {
  std::vector<int32_t> label(graph.num_ops());
  std::iota(label.begin(), label.end(), 0);
  for (const std::vector<OpId>& kernel : profile.kernels) {
    for (const OpId op : kernel) label[Index(op)] = static_cast<int32_t>(Index(kernel.front()));
  }
  return Grouping(graph, label);
}

// The smallest value up to which half of the weight lies.
double WeightedMedian(std::vector<std::pair<double, double>> weight_of) {
  std::ranges::sort(weight_of);
  double all = 0, below = 0;
  for (const auto& [value, weight] : weight_of) all += weight;
  for (const auto& [value, weight] : weight_of) {
    below += weight;
    if (2 * below >= all) return value;
  }
  return weight_of.back().first;
}

}  // namespace

double EfficiencyFit::Kernel::Time(double op_overhead, const Efficiencies& efficiency) const {
  double all = 0;
  for (size_t c = 0; c < kOpClasses; ++c) all += computing[c] / efficiency[c];
  return launches * op_overhead + std::max(all, moving);
}

std::vector<EfficiencyFit::Kernel> EfficiencyFit::KernelsOf(const Problem& problem, DeviceId device,
                                                            const OpMeasurement& profile) {
  const Graph& graph = problem.graph();
  const Grouping grouping = KernelsIn(profile, graph);
  std::vector<Kernel> kernels(grouping.num_groups());
  std::vector<bool> counts(grouping.num_groups(), true);
  const auto ask = [&](double op_overhead, bool moves, std::optional<size_t> computes, const auto& term) {
    const OpTimes times =
        RooflineTimes(graph, Probe(problem.cluster(), device, op_overhead, moves, computes), grouping);
    for (const GroupId group : grouping.groups()) {
      double seconds = 0;
      for (const OpId op : grouping.ops_of(group)) seconds += times.time[Index(op)];
      if (seconds == kCannotRun) counts[Index(group)] = false;
      term(kernels[Index(group)]) = seconds > kNothing ? seconds : 0;
    }
  };
  ask(1, false, std::nullopt, [](Kernel& kernel) -> double& { return kernel.launches; });
  ask(0, true, std::nullopt, [](Kernel& kernel) -> double& { return kernel.moving; });
  for (size_t c = 0; c < kOpClasses; ++c) {
    ask(0, false, c, [c](Kernel& kernel) -> double& { return kernel.computing[c]; });
  }

  const auto ran = [&](OpId op) { return profile.kind[Index(op)] != "none" && profile.kind[Index(op)] != "absent"; };
  std::vector<Kernel> kept;
  double all = 0;
  for (const GroupId group : grouping.groups()) {
    const std::span<const OpId> ops = grouping.ops_of(group);
    if (std::ranges::none_of(ops, ran)) continue;
    Kernel kernel = kernels[Index(group)];
    for (const OpId op : ops) kernel.measured += profile.op_seconds[Index(op)];
    all += kernel.measured;
    if (!counts[Index(group)]) continue;
    kernel.op_class = graph.work(HeadOf(graph, ops)).op_class;
    kept.push_back(kernel);
  }
  if (!(all > 0)) return {};
  const double scale = Median(profile.seconds) / all;
  for (Kernel& kernel : kept) kernel.measured *= scale;
  return kept;
}

void EfficiencyFit::Add(const Problem& problem, std::span<const OpMeasurement> profiles) {
  Model model;
  for (size_t device = 0; device < profiles.size(); ++device) {
    const OpMeasurement& profile = profiles[device];
    const bool measured = profile.error.empty() && !profile.seconds.empty();
    model.kernels.push_back(measured ? KernelsOf(problem, MakeId<DeviceId>(device), profile) : std::vector<Kernel>{});
    model.seconds.push_back(measured ? Median(profile.seconds) : 0);
    model.equal_to.push_back(device);
  }
  for (const std::vector<size_t>& equal : EqualDevices(profiles)) {
    for (const size_t device : equal) model.equal_to[device] = equal.front();
  }
  models_.push_back(std::move(model));
}

std::vector<FittedEfficiency> EfficiencyFit::Fit(const Cluster& cluster, std::optional<size_t> without) const {
  std::vector<const Model*> models;
  for (size_t m = 0; m < models_.size(); ++m) {
    if (m != without) models.push_back(&models_[m]);
  }
  if (models.empty()) return {};
  std::map<std::vector<size_t>, std::vector<size_t>> alike;  // devices by what they are equal to in each model
  for (size_t device = 0; device < cluster.num_devices(); ++device) {
    std::vector<size_t> equal_to;
    for (const Model* model : models) equal_to.push_back(model->equal_to[device]);
    alike[equal_to].push_back(device);
  }
  std::vector<FittedEfficiency> all;
  for (const auto& [unused, devices] : alike) {
    std::ranges::move(FitEqual(cluster, models, devices), std::back_inserter(all));
  }
  std::ranges::sort(all, {}, [](const FittedEfficiency& one) { return std::pair(one.device, one.op_class); });
  return all;
}

std::vector<FittedEfficiency> EfficiencyFit::FitEqual(const Cluster& cluster, std::span<const Model* const> models,
                                                      std::span<const size_t> devices) {
  const auto overhead = [&](size_t device) { return cluster.device(MakeId<DeviceId>(device)).op_overhead.value; };
  std::map<size_t, Efficiencies> in_file;
  for (const size_t device : devices) {
    for (size_t c = 0; c < kOpClasses; ++c)
      in_file[device][c] = EfficiencyIn(cluster.device(MakeId<DeviceId>(device)), c);
  }

  // 1. What says something of a class.
  std::array<std::vector<Sample>, kOpClasses> samples;
  std::array<size_t, kOpClasses> in_models{};
  double measured = 0;  // models on devices
  for (const Model* model : models) {
    std::array<bool, kOpClasses> seen{};
    for (const size_t device : devices) {
      if (!model->kernels[device].empty()) ++measured;
      for (const Kernel& kernel : model->kernels[device]) {
        const auto c = static_cast<size_t>(kernel.op_class);
        if (!(kernel.computing[c] > 0) || kernel.measured <= kernel.launches * overhead(device) + kernel.moving)
          continue;
        samples[c].push_back({device, &kernel, kernel.measured / model->seconds[device]});
        seen[c] = true;
      }
    }
    for (size_t c = 0; c < kOpClasses; ++c) in_models[c] += seen[c] ? 1 : 0;
  }
  std::vector<size_t> classes;
  std::array<size_t, kOpClasses> kernels{};
  std::array<double, kOpClasses> share{};
  for (size_t c = 0; c < kOpClasses; ++c) {
    // Equal devices have the same kernels, which are no further evidence.
    kernels[c] = samples[c].size() / devices.size();
    for (const Sample& sample : samples[c]) share[c] += sample.weight / measured;
    if (kernels[c] >= kLeastKernels && share[c] >= kLeastShare) classes.push_back(c);
  }

  // 2. One class after another, with what the others are by then.
  std::map<size_t, Efficiencies> now = in_file;
  std::array<bool, kOpClasses> capped{};
  const auto exact = [&](const Sample& sample, size_t c) {
    const Kernel& kernel = *sample.kernel;
    double left = kernel.measured - kernel.launches * overhead(sample.device);
    for (size_t other = 0; other < kOpClasses; ++other) {
      if (other != c) left -= kernel.computing[other] / now[sample.device][other];
    }
    return left > 0 ? kernel.computing[c] / left : kAtOnce;
  };
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    bool changed = false;
    for (const size_t c : classes) {
      std::vector<std::pair<double, double>> weight_of;
      for (const Sample& sample : samples[c]) weight_of.emplace_back(exact(sample, c), sample.weight);
      const double median = WeightedMedian(std::move(weight_of));
      capped[c] = median > 1;
      const double value = FourDigits(std::min(median, 1.0));
      for (const size_t device : devices) changed |= std::exchange(now[device][c], value) != value;
    }
    if (!changed) break;
  }

  // 3. How well it fits.
  std::vector<FittedEfficiency> fitted;
  for (const size_t c : classes) {
    for (const size_t device : devices) {
      std::vector<double> off_before, off_after;
      for (const Sample& sample : samples[c]) {
        if (sample.device != device) continue;
        const auto off = [&](const Efficiencies& efficiency) {
          return std::abs(sample.kernel->Time(overhead(device), efficiency) / sample.kernel->measured - 1);
        };
        off_before.push_back(off(in_file[device]));
        off_after.push_back(off(now[device]));
      }
      fitted.push_back({.device = MakeId<DeviceId>(device),
                        .op_class = static_cast<OpClass>(c),
                        .before = in_file[device][c],
                        .efficiency = now[device][c],
                        .capped = capped[c],
                        .kernels = kernels[c],
                        .models = in_models[c],
                        .share = share[c],
                        .off_before = off_before.empty() ? 0 : Median(off_before),
                        .off_after = off_after.empty() ? 0 : Median(off_after)});
    }
  }
  return fitted;
}

Cluster WithEfficiencies(const Cluster& cluster, std::span<const FittedEfficiency> fitted) {
  ClusterNumbers numbers(cluster);
  for (const FittedEfficiency& one : fitted) {
    const std::string source = fmt::format("{} in profiles of {}; half of their times within {:.0f} %",
                                           Counted(static_cast<int64_t>(one.kernels), "kernel"),
                                           Counted(static_cast<int64_t>(one.models), "model"), 100 * one.off_after);
    numbers.devices[Index(one.device)].efficiency[std::string(kOpClassNames[static_cast<size_t>(one.op_class)])] = {
        .value = one.efficiency, .provenance = Provenance::kMeasured, .source = source};
  }
  return std::move(numbers).Make();
}

}  // namespace berth
