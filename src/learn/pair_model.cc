#include "learn/pair_model.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"

namespace berth {
namespace {

std::vector<size_t> Kinds(std::span<const DeviceId> class_of) {
  const std::set<DeviceId> kinds(class_of.begin(), class_of.end());
  if (kinds.size() < 2) return {};
  std::vector<size_t> kind;
  for (const DeviceId each : class_of) {
    kind.push_back(static_cast<size_t>(std::distance(kinds.begin(), kinds.find(each))));
  }
  return kind;
}

}  // namespace

size_t PairModel::NumFeatures(size_t nodes, std::span<const DeviceId> class_of) {
  const std::vector<size_t> kind = Kinds(class_of);
  const size_t kinds = kind.empty() ? 1 : *std::ranges::max_element(kind) + 1;
  return 1 + nodes * (nodes - 1) / 2 + nodes * (kinds - 1);
}

PairModel::PairModel(size_t nodes, std::span<const DeviceId> class_of)
    : nodes_(nodes), kind_(Kinds(class_of)), features_(NumFeatures(nodes, class_of)) {
  if (!kind_.empty()) kinds_ = *std::ranges::max_element(kind_) + 1;
  state_.assign(1 + features_ + features_ * features_, 0);
  for (size_t i = 0; i < features_; ++i) state_[1 + features_ + i * features_ + i] = 1;
}

// visit(feature, whether it is 1 rather than -1).
template <typename Visit>
void PairModel::ForEachFeature(std::span<const int64_t> device, Visit visit) const {
  size_t feature = 0;
  visit(feature++, true);
  for (size_t i = 0; i < nodes_; ++i) {
    for (size_t k = i + 1; k < nodes_; ++k) visit(feature++, device[i] == device[k]);
    for (size_t kind = 1; kind < kinds_; ++kind) visit(feature++, kind_[static_cast<size_t>(device[i])] == kind);
  }
}

double PairModel::Guess(std::span<const int64_t> device) const {
  BERTH_CHECK(device.size() == nodes_);
  const double* const weight = state_.data() + 1;
  double guess = 0;
  ForEachFeature(device, [&](size_t feature, bool set) { guess += set ? weight[feature] : -weight[feature]; });
  return guess;
}

void PairModel::Learn(std::span<const int64_t> device, double cost) {
  BERTH_CHECK(device.size() == nodes_ && std::isfinite(cost) && cost > 0);
  if (state_[0] == 0) state_[0] = cost;
  const double error = std::log(cost / state_[0]) - Guess(device);
  std::vector<double> sign(features_), gain(features_, 0);
  ForEachFeature(device, [&](size_t feature, bool set) { sign[feature] = set ? 1 : -1; });
  double* const weight = state_.data() + 1;
  double* const covariance = weight + features_;
  double explained = 0;
  for (size_t a = 0; a < features_; ++a) {
    for (size_t b = 0; b < features_; ++b) gain[a] += covariance[a * features_ + b] * sign[b];
    explained += gain[a] * sign[a];
  }
  const double variance = 1 + explained;
  for (size_t a = 0; a < features_; ++a) {
    weight[a] += gain[a] * error / variance;
    for (size_t b = 0; b < features_; ++b) covariance[a * features_ + b] -= gain[a] * gain[b] / variance;
  }
}

}  // namespace berth
