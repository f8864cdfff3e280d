#include "exec/cut_fit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cluster/cluster_numbers.h"

namespace berth {
namespace {

// Seconds of a part's time that are noise, whatever its length.
constexpr double kNoise = 50e-6;
// A class counts as if so many bytes of it had been seen at the mean cost, in one part of a millisecond.
constexpr double kPriorBytes = 300e3;
// Errors count relative to a part's time. Where they were divided by its square root, long parts decided, and the
// overhead of short ones vanished among the bytes (docs/decisions/0010-running-models.md).
constexpr double WeightOf(double seconds) { return 1 / ((seconds + kNoise) * (seconds + kNoise)); }
constexpr int kSweeps = 5000;

// The least squares solution without negative numbers, by going through the unknowns again and again: the sum is convex
// in each, so that every step is the best for its unknown (Franc, Hlavac and Navara 2005).
template <size_t n>
void Descend(const std::array<std::array<double, n>, n>& products, const std::array<double, n>& targets,
             std::array<double, n>& unknowns) {
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (size_t i = 0; i < n; ++i) {
      if (!(products[i][i] > 0)) continue;
      double rest = targets[i];
      for (size_t k = 0; k < n; ++k) rest -= k == i ? 0 : products[i][k] * unknowns[k];
      unknowns[i] = std::max(0.0, rest / products[i][i]);
    }
  }
}

// Bytes in units in which the numbers of a fit are of one size.
constexpr double kBytes = 1e6;

}  // namespace

void CutFit::Add(const Problem& problem, const Measurement& measurement, double speed) {
  if (!measurement.error.empty()) return;
  // Time slices of other programs lengthen a whole run, by which `speed` is told, more than they lengthen most of its
  // parts: cuts would come out free.
  constexpr double kMostStolen = 0.05;
  Sums& sums = measurement.stolen > kMostStolen ? disturbed_ : at_rest_;
  const Graph& graph = problem.graph();
  constexpr int32_t kNowhere = -1;
  std::vector<int32_t> part_of(graph.num_ops(), kNowhere);
  for (size_t part = 0; part < measurement.parts.size(); ++part) {
    for (const OpId op : measurement.parts[part].ops) {
      if (part_of[Index(op)] == kNowhere) part_of[Index(op)] = static_cast<int32_t>(part);
    }
  }
  std::vector<Row> rows(measurement.parts.size(), Row{});
  const auto class_of = [&](OpId op) { return static_cast<size_t>(graph.work(op).op_class); };
  std::vector<int32_t> readers;
  for (const TensorId tensor : graph.tensors()) {
    const int32_t maker = part_of[Index(graph.producer(tensor))];
    if (graph.is_constant(tensor) || maker == kNowhere) continue;
    const double bytes = static_cast<double>(graph.tensor_bytes(tensor)) / kBytes;
    readers.clear();
    for (const OpId op : graph.consumers(tensor)) {
      const int32_t reader = part_of[Index(op)];
      if (reader == kNowhere || reader == maker || std::ranges::count(readers, reader) > 0) continue;
      readers.push_back(reader);
      rows[static_cast<size_t>(reader)][1 + class_of(op)] += bytes;
    }
    if (!readers.empty()) {
      rows[static_cast<size_t>(maker)][1 + kOpClasses + class_of(graph.producer(tensor))] += bytes;
    }
  }
  for (size_t part = 0; part < rows.size(); ++part) {
    const MeasuredPart& measured = measurement.parts[part];
    double work = 0;
    for (const OpId op : measured.ops) work += problem.ToSeconds(problem.op_time(op, measured.device)).value;
    if (!std::isfinite(work)) continue;
    const double seconds = measured.seconds / speed, above = seconds - work;
    const double weight = WeightOf(seconds);
    Row& row = rows[part];
    row[0] = 1;
    for (size_t i = 0; i < kUnknowns; ++i) {
      for (size_t k = 0; k < kUnknowns; ++k) sums.products[i][k] += weight * row[i] * row[k];
      sums.targets[i] += weight * row[i] * above;
    }
    ++sums.parts;
  }
}

CutFit::Sums CutFit::used() const {
  Sums sums = at_rest_;
  if (sums.parts >= kLeastParts) return sums;
  sums.parts += disturbed_.parts;
  for (size_t i = 0; i < kUnknowns; ++i) {
    for (size_t k = 0; k < kUnknowns; ++k) sums.products[i][k] += disturbed_.products[i][k];
    sums.targets[i] += disturbed_.targets[i];
  }
  return sums;
}

CutCosts CutFit::Fit() const {
  Sums sums = used();
  Row unknowns{};
  Descend(sums.products, sums.targets, unknowns);
  // The mean cost of a byte that is read, and of one that is written, over the classes that were seen.
  const auto mean_of = [&](size_t first) {
    double bytes = 0, cost = 0;
    for (size_t i = first; i < first + kOpClasses; ++i)
      bytes += sums.products[0][i], cost += sums.products[0][i] * unknowns[i];
    return bytes > 0 ? cost / bytes : 0;
  };
  const double read = mean_of(1), write = mean_of(1 + kOpClasses);
  const auto expected = [&](size_t i) {
    if (!known_) return i <= kOpClasses ? read : write;
    return kBytes * (i <= kOpClasses ? known_->read[i - 1] : known_->write[i - 1 - kOpClasses]);
  };
  CutCosts costs;
  for (size_t op_class = 0; op_class < kOpClasses; ++op_class) {
    const auto seen = [&](size_t first) { return sums.products[0][first + op_class] > 0; };
    costs.read_guessed[op_class] = !seen(1) && (!known_ || known_->read_guessed[op_class]);
    costs.write_guessed[op_class] = !seen(1 + kOpClasses) && (!known_ || known_->write_guessed[op_class]);
  }
  const double prior = WeightOf(1e-3) * (kPriorBytes / kBytes) * (kPriorBytes / kBytes);
  for (size_t i = 1; i < kUnknowns; ++i) {
    sums.products[i][i] += prior;
    sums.targets[i] += prior * expected(i);
  }
  Descend(sums.products, sums.targets, unknowns);
  costs.part_overhead = unknowns[0];
  for (size_t op_class = 0; op_class < kOpClasses; ++op_class) {
    costs.read[op_class] = unknowns[1 + op_class] / kBytes;
    costs.write[op_class] = unknowns[1 + kOpClasses + op_class] / kBytes;
  }
  return costs;
}

std::optional<CutCosts> CutCostsOf(const Cluster& cluster) {
  for (const DeviceId id : cluster.ids()) {
    const Device& device = cluster.device(id);
    if (!(device.part_overhead.value > 0) && device.cut_read.empty() && device.cut_write.empty()) continue;
    CutCosts costs{.part_overhead = device.part_overhead.value};
    const auto take = [](const auto& rates, size_t op_class, auto& cost, auto& guessed) {
      const auto rate = rates.find(kOpClassNames[op_class]);
      cost[op_class] = rate == rates.end() ? 0.0 : 1 / rate->second.value;
      guessed[op_class] = rate != rates.end() && rate->second.provenance == Provenance::kGuess;
    };
    for (size_t op_class = 0; op_class < kOpClasses; ++op_class) {
      take(device.cut_read, op_class, costs.read, costs.read_guessed);
      take(device.cut_write, op_class, costs.write, costs.write_guessed);
    }
    return costs;
  }
  return std::nullopt;
}

Cluster WithCutCosts(const Cluster& cluster, const CutCosts& costs, const std::string& source) {
  const auto quantity = [&](double value, bool guessed) {
    return Quantity{.value = value,
                    .provenance = guessed ? Provenance::kGuess : Provenance::kMeasured,
                    .source = guessed ? "the mean of the classes that were measured" : source};
  };
  ClusterNumbers numbers(cluster);
  for (Device& device : numbers.devices) {
    device.part_overhead = quantity(costs.part_overhead, false);
    device.cut_read.clear();
    device.cut_write.clear();
    for (size_t op_class = 0; op_class < kOpClasses; ++op_class) {
      const std::string name(kOpClassNames[op_class]);
      if (costs.read[op_class] > 0) {
        device.cut_read[name] = quantity(1 / costs.read[op_class], costs.read_guessed[op_class]);
      }
      if (costs.write[op_class] > 0) {
        device.cut_write[name] = quantity(1 / costs.write[op_class], costs.write_guessed[op_class]);
      }
    }
  }
  return std::move(numbers).Make();
}

}  // namespace berth
