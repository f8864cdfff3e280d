#include "learn/linear_critic.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "placement/mean_transfer.h"

namespace berth {

LinearCritic::LinearCritic(const Problem& problem, const CoarseGraph& graph, bool costs)
    : nodes_(graph.size()), devices_(graph.num_devices) {
  const Graph& ops = problem.graph();
  const MeanTransfer sending(problem);
  std::vector<double> price;
  std::vector<GroupId> readers;
  for (const TensorId tensor : ops.tensors()) {
    OtherReaders(ops, graph.grouping, tensor, readers);
    if (readers.empty()) continue;
    Sent sent{.producer = static_cast<int32_t>(graph.grouping.group_of(ops.producer(tensor))), .consumers = {}};
    for (const GroupId reader : readers) sent.consumers.push_back(static_cast<int32_t>(reader));
    price.push_back(sending(tensor));
    sent_.push_back(std::move(sent));
  }

  weight_.assign(1 + nodes_ * (devices_ - 1) + sent_.size(), 0);
  std::vector<double> deviation(weight_.size(), 0);
  double whole = 0;
  const auto time = [&](size_t node, size_t device) {
    const double t = graph.quotient.time[node * devices_ + device];
    return t < kCannotRun ? t : 0;
  };
  for (size_t node = 0; node < nodes_; ++node) {
    whole += time(node, 0);
    for (size_t d = 1; d < devices_; ++d) {
      const double difference = time(node, d) - time(node, 0);
      if (costs) weight_[node_at(node, d)] = difference;
      deviation[node_at(node, d)] = 0.2 * std::abs(difference);
    }
  }
  whole = std::max(whole, 1e-300);
  const double share = whole / static_cast<double>(nodes_);
  weight_[0] = whole;
  deviation[0] = whole;
  for (size_t t = 0; t < sent_.size(); ++t) {
    const size_t at = weight_.size() - sent_.size() + t;
    if (costs) weight_[at] = price[t];
    deviation[at] = 0.2 * price[t];
  }
  for (size_t i = 1; i < deviation.size(); ++i) deviation[i] = costs ? deviation[i] + 0.01 * share : 2 * share;

  least_noise_ = std::pow(1e-3 * whole, 2);
  noise_ = {least_noise_};
  dense_ = weight_.size() <= kDense;
  const size_t n = weight_.size();
  covariance_.assign(dense_ ? n * n : n, 0);
  for (size_t i = 0; i < n; ++i) covariance_[dense_ ? i * n + i : i] = deviation[i] * deviation[i];
}

std::vector<LinearCritic::Feature> LinearCritic::Features(std::span<const int32_t> device_of_node) const {
  std::vector<Feature> features{{0, 1}};
  for (size_t node = 0; node < nodes_; ++node) {
    const auto device = static_cast<size_t>(device_of_node[node]);
    if (device > 0) features.push_back({node_at(node, device), 1});
  }
  std::vector<uint8_t> reached(devices_);
  for (size_t t = 0; t < sent_.size(); ++t) {
    std::ranges::fill(reached, 0);
    reached[static_cast<size_t>(device_of_node[static_cast<size_t>(sent_[t].producer)])] = 1;
    int count = 0;
    for (const int32_t consumer : sent_[t].consumers) {
      uint8_t& there = reached[static_cast<size_t>(device_of_node[static_cast<size_t>(consumer)])];
      count += there == 0 ? 1 : 0;
      there = 1;
    }
    if (count > 0) features.push_back({weight_.size() - sent_.size() + t, static_cast<double>(count)});
  }
  return features;
}

double LinearCritic::Predict(std::span<const int32_t> device_of_node) const {
  double cost = 0;
  for (const Feature& feature : Features(device_of_node)) cost += weight_[feature.at] * feature.value;
  return cost;
}

void LinearCritic::Learn(std::span<const int32_t> device_of_node, double cost) {
  const std::vector<Feature> features = Features(device_of_node);
  const size_t n = weight_.size();
  // gain = covariance * features / (features^T covariance features + noise)
  std::vector<double> gain(n, 0);
  double error = cost, explained = 0;
  for (const Feature& feature : features) {
    error -= weight_[feature.at] * feature.value;
    if (dense_) {
      const double* row = covariance_.data() + feature.at * n;
      for (size_t i = 0; i < n; ++i) gain[i] += row[i] * feature.value;
    } else {
      gain[feature.at] += covariance_[feature.at] * feature.value;
    }
  }
  for (const Feature& feature : features) explained += gain[feature.at] * feature.value;
  // What an error has above the variance that the weights account for, on average over the last errors.
  constexpr double kShare = 0.02;
  noise_[0] = std::max((1 - kShare) * noise_[0] + kShare * (error * error - explained), least_noise_);
  const double variance = explained + noise_[0];
  for (size_t i = 0; i < n; ++i) weight_[i] += gain[i] * (error / variance);
  if (!dense_) {
    for (const Feature& feature : features) {
      covariance_[feature.at] -= gain[feature.at] * gain[feature.at] / variance;
    }
    return;
  }
  for (size_t r = 0; r < n; ++r) {
    if (gain[r] == 0) continue;
    const double factor = gain[r] / variance;
    double* row = covariance_.data() + r * n;
    for (size_t i = 0; i < n; ++i) row[i] -= factor * gain[i];
  }
}

at::Tensor LinearCritic::Expected(const at::Tensor& probability, std::span<const int32_t> decision_of_node) const {
  const auto devices = static_cast<int64_t>(devices_);
  const int64_t decisions = probability.size(0);
  const size_t n = weight_.size();
  // What each decision's devices cost its nodes together.
  at::Tensor price = torch::zeros({decisions, devices});
  float* prices = price.data_ptr<float>();
  for (size_t node = 0; node < nodes_; ++node) {
    for (size_t d = 1; d < devices_; ++d) {
      prices[static_cast<size_t>(decision_of_node[node]) * devices_ + d] +=
          static_cast<float>(weight_[node_at(node, d)]);
    }
  }
  at::Tensor cost = (probability * price).sum() + weight_[0];

  // Tensors between decisions: sent to a device when one of its consumers is there and its producer is not.
  std::vector<int64_t> producer, consumer, tensor_of;
  std::vector<float> weight;
  for (size_t t = 0; t < sent_.size(); ++t) {
    const int32_t from = decision_of_node[static_cast<size_t>(sent_[t].producer)];
    std::vector<int32_t> to;
    for (const int32_t node : sent_[t].consumers) {
      const int32_t decision = decision_of_node[static_cast<size_t>(node)];
      if (decision != from && std::ranges::find(to, decision) == to.end()) to.push_back(decision);
    }
    if (to.empty()) continue;
    for (const int32_t decision : to) {
      consumer.push_back(decision);
      tensor_of.push_back(static_cast<int64_t>(producer.size()));
    }
    producer.push_back(from);
    weight.push_back(static_cast<float>(weight_[n - sent_.size() + t]));
  }
  if (producer.empty()) return cost;
  const auto index = [](const std::vector<int64_t>& values) { return torch::tensor(values, torch::kInt64); };
  const at::Tensor absent = torch::log((1 - probability.index_select(0, index(consumer))).clamp_min(1e-6));
  const at::Tensor all_absent =
      torch::exp(torch::zeros({static_cast<int64_t>(producer.size()), devices}).index_add(0, index(tensor_of), absent));
  const at::Tensor sends = ((1 - all_absent) * (1 - probability.index_select(0, index(producer)))).sum(1);
  return cost + (sends * torch::tensor(weight)).sum();
}

std::vector<at::Tensor> LinearCritic::State() {
  const auto view = [](std::vector<double>& values) {
    return torch::from_blob(values.data(), {static_cast<int64_t>(values.size())}, torch::kFloat64);
  };
  return {view(weight_), view(covariance_), view(noise_)};
}

}  // namespace berth
