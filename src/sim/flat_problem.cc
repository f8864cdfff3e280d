#include "sim/flat_problem.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

#include "base/error.h"

namespace berth {

FlatProblem::FlatProblem(const Problem& problem, std::optional<DeviceId> io_host)
    : problem_(&problem),
      io_host_(io_host ? static_cast<int32_t>(*io_host) : -1),
      num_ops_(static_cast<int32_t>(problem.num_ops())),
      num_devices_(static_cast<int32_t>(problem.num_devices())),
      num_inputs_(io_host ? static_cast<int32_t>(problem.graph().num_inputs()) : 0),
      latency_(problem.latency().data()),
      bandwidth_(problem.bandwidth().data()) {
  const Graph& graph = problem.graph();
  size_t edges = graph.num_edges();
  if (io_host) {
    for (const InputId input : graph.inputs()) edges += graph.input_consumers(input).size();
  }
  constexpr size_t kMost = std::numeric_limits<int32_t>::max();
  if (edges >= kMost || graph.num_tensors() + graph.num_inputs() >= kMost) {
    throw Error("{}: {} edges are more than the {} that a simulator can hold", graph.name(), edges, kMost);
  }

  const auto add = [&](int32_t producer, int64_t bytes, bool is_output, Sending sending,
                       std::span<const OpId> consumers) {
    producer_.push_back(producer);
    tensors_.push_back({bytes, static_cast<int32_t>(consumers_.size()), is_output, sending});
    for (const OpId op : consumers) consumers_.push_back(static_cast<int32_t>(op));
  };
  consumers_.reserve(edges);
  if (io_host) {
    for (const InputId input : graph.inputs()) {
      add(-1, graph.input_bytes(input), false, Sending::kByLinks, graph.input_consumers(input));
    }
  }
  for (const TensorId t : graph.tensors()) {
    const Sending sending = problem.has_explicit_transfers() ? Sending::kGiven
                            : graph.is_constant(t)           ? Sending::kFree
                                                             : Sending::kByLinks;
    add(static_cast<int32_t>(graph.producer(t)), graph.tensor_bytes(t), graph.is_output(t), sending,
        graph.consumers(t));
  }
  tensors_.push_back({0, static_cast<int32_t>(consumers_.size()), false, Sending::kByLinks});

  for (const OpId op : graph.ops()) {
    OpBytes bytes{.taken = graph.work(op).workspace_bytes, .workspace = graph.work(op).workspace_bytes};
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      bytes.taken += graph.tensor_bytes(MakeId<TensorId>(t));
    }
    op_bytes_.push_back(bytes);
    const int32_t first_output = num_inputs_ + static_cast<int32_t>(graph.first_output(op));
    ops_.push_back({.first_output = first_output, .first_input = 0, .first_user = tensor(first_output).first_consumer});
  }
  ops_.push_back(
      {.first_output = num_tensors(), .first_input = 0, .first_user = static_cast<int32_t>(consumers_.size())});

  // A device holds a parameter or a tensor at most once, and runs one op at a time.
  double most = static_cast<double>(graph.total_parameter_bytes());
  int64_t most_workspace = 0;
  for (const OpBytes& bytes : op_bytes_) most_workspace = std::max(most_workspace, bytes.workspace);
  most += static_cast<double>(most_workspace);
  for (const Tensor& tensor : tensors_) most += static_cast<double>(tensor.bytes);
  constexpr double kRounding = 1 + 1e-9;
  for (const DeviceId device : problem.cluster().ids()) {
    memory_may_lack_ |= static_cast<double>(problem.memory_limit(device)) < most * kRounding;
  }

  NumberMedia();

  // The transpose of the consumers: ascending tensors per op.
  for (const int32_t op : consumers_) ++ops_[static_cast<size_t>(op) + 1].first_input;
  for (size_t v = 1; v < ops_.size(); ++v) ops_[v].first_input += ops_[v - 1].first_input;
  std::vector<int32_t> next;
  for (const Op& op : ops_) next.push_back(op.first_input);
  inputs_.resize(consumers_.size());
  for (int32_t t = 0; t < num_tensors(); ++t) {
    for (const int32_t op : consumers(t)) inputs_[static_cast<size_t>(next[static_cast<size_t>(op)]++)] = t;
  }
}

void FlatProblem::NumberMedia() {
  const Cluster& cluster = problem_->cluster();
  std::map<std::string_view, int32_t> of_domain;
  medium_.assign(static_cast<size_t>(num_devices_) * static_cast<size_t>(num_devices_), 0);
  for (const DeviceId from : cluster.ids()) {
    for (const DeviceId to : cluster.ids()) {
      if (from == to) continue;
      auto number = static_cast<int32_t>(num_media_);
      if (const std::string& domain = cluster.link(from, to).domain; !domain.empty()) {
        number = of_domain.try_emplace(domain, number).first->second;
      }
      medium_[Route(static_cast<int32_t>(from), static_cast<int32_t>(to))] = number;
      num_media_ = std::max(num_media_, static_cast<size_t>(number) + 1);
    }
  }
}

}  // namespace berth
