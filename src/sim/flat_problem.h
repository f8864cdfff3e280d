// What the simulators' inner loops read, packed by how they read it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "placement/problem.h"

namespace berth {

// A Problem with 32-bit indices in few arrays. With a host for inputs and outputs, graph inputs are tensors too, which
// the host holds from the start: they come first in the numbering, and the tensors of the graph follow.
class FlatProblem {
 public:
  // What sending a tensor takes: latency and bytes, nothing (a constant), or a time that a data set gives.
  enum class Sending : uint8_t { kByLinks, kFree, kGiven };

  struct Tensor {
    int64_t bytes;
    int32_t first_consumer;  // in consumers(), up to the next tensor's
    bool is_output;
    Sending sending;
  };

  FlatProblem(const Problem& problem, std::optional<DeviceId> io_host);

  const Problem& problem() const { return *problem_; }
  int32_t num_ops() const { return num_ops_; }
  int32_t num_devices() const { return num_devices_; }
  int32_t num_tensors() const { return static_cast<int32_t>(tensors_.size()) - 1; }
  // How many of the tensors, the first ones, are graph inputs.
  int32_t num_inputs() const { return num_inputs_; }
  size_t num_edges() const { return consumers_.size(); }
  // The device where graph inputs start and outputs return to; -1 where they are everywhere.
  int32_t io_host() const { return io_host_; }
  bool has_io_host() const { return io_host_ >= 0; }

  const Tensor& tensor(int32_t t) const { return tensors_[static_cast<size_t>(t)]; }
  std::span<const int32_t> consumers(int32_t t) const {
    const auto first = static_cast<size_t>(tensor(t).first_consumer);
    return {consumers_.data() + first, static_cast<size_t>(tensor(t + 1).first_consumer) - first};
  }
  // An op's outputs are first_output(op) .. first_output(op + 1) - 1.
  int32_t first_output(int32_t op) const { return ops_[static_cast<size_t>(op)].first_output; }
  std::span<const int32_t> inputs_of(int32_t op) const {
    const Op* const v = ops_.data() + op;
    return {inputs_.data() + v[0].first_input, inputs_.data() + v[1].first_input};
  }
  int32_t num_inputs_of(int32_t op) const {
    const Op* const v = ops_.data() + op;
    return v[1].first_input - v[0].first_input;
  }
  // The consumers of all outputs of an op.
  std::span<const int32_t> users_of(int32_t op) const {
    const Op* const v = ops_.data() + op;
    return {consumers_.data() + v[0].first_user, consumers_.data() + v[1].first_user};
  }
  // -1 for a graph input.
  int32_t producer(int32_t t) const { return producer_[static_cast<size_t>(t)]; }
  // Where a tensor is made, or a graph input lies.
  int32_t HomeOf(int32_t t, std::span<const DeviceId> device) const {
    const int32_t u = producer(t);
    return u < 0 ? io_host_ : static_cast<int32_t>(device[static_cast<size_t>(u)]);
  }

  // Memory that an op takes when it starts, its workspace and its outputs, and the workspace that it gives back at its
  // end.
  struct OpBytes {
    int64_t taken;
    int64_t workspace;
  };
  OpBytes op_bytes(int32_t op) const { return op_bytes_[static_cast<size_t>(op)]; }

  // False when everything at once fits everywhere: then no plan needs its memory counted to be known as feasible.
  bool memory_may_lack() const { return memory_may_lack_; }

  double op_time(int32_t op, int32_t device) const {
    return problem_->op_time(static_cast<OpId>(op), static_cast<DeviceId>(device));
  }
  // latency + bytes / bandwidth, as Problem::transfer_time has it.
  double transfer_time(int32_t t, int32_t from, int32_t to) const {
    if (tensor(t).sending != Sending::kByLinks) [[unlikely]]
      return exceptional_time(t, from, to);
    const size_t route = Route(from, to);
    return latency_[route] + static_cast<double>(tensor(t).bytes) / bandwidth_[route];
  }

  // The two parts of a transfer's time under contention=links: what passes first and uses nothing, and what using the
  // whole medium takes. Times that a data set gives for whole transfers are all of the second kind.
  double latency(int32_t t, int32_t from, int32_t to) const {
    return tensor(t).sending == Sending::kByLinks ? latency_[Route(from, to)] : 0;
  }
  double sending_time(int32_t t, int32_t from, int32_t to) const {
    if (tensor(t).sending != Sending::kByLinks) [[unlikely]]
      return exceptional_time(t, from, to);
    return static_cast<double>(tensor(t).bytes) / bandwidth_[Route(from, to)];
  }
  // Links of one contention domain share a medium, any other link has one of its own.
  int32_t medium(int32_t from, int32_t to) const { return medium_[Route(from, to)]; }
  size_t num_media() const { return num_media_; }

  // The number of a tensor of the graph, which is no input, in the Graph's own numbering.
  TensorId tensor_id(int32_t t) const { return static_cast<TensorId>(t - num_inputs_); }

 private:
  size_t Route(int32_t from, int32_t to) const {
    return static_cast<size_t>(from) * static_cast<size_t>(num_devices_) + static_cast<size_t>(to);
  }
  double exceptional_time(int32_t t, int32_t from, int32_t to) const {
    return problem_->transfer_time(tensor_id(t), static_cast<DeviceId>(from), static_cast<DeviceId>(to));
  }
  void NumberMedia();

  const Problem* problem_;
  int32_t io_host_;
  bool memory_may_lack_ = false;
  int32_t num_ops_, num_devices_, num_inputs_;
  std::vector<Tensor> tensors_;  // one more than there are
  struct Op {
    int32_t first_output;  // in tensors_
    int32_t first_input;   // in inputs_
    int32_t first_user;    // in consumers_
  };
  std::vector<Op> ops_;  // one more than there are
  std::vector<int32_t> consumers_, producer_, inputs_;
  std::vector<OpBytes> op_bytes_;
  std::vector<int32_t> medium_;  // devices x devices
  size_t num_media_ = 0;
  const double* latency_;
  const double* bandwidth_;
};

}  // namespace berth
