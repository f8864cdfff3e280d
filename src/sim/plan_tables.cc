#include "sim/plan_tables.h"

namespace berth {

PlanTables::PlanTables(const FlatProblem& flat, std::span<const DeviceId> device)
    : flat_(flat),
      devices_(static_cast<size_t>(flat.num_devices())),
      first_op_(devices_ + 1, 0),
      edges_(devices_ * devices_, 0),
      users_(flat.problem().graph().num_parameters() * devices_, 0),
      parameter_bytes_(devices_, 0) {
  ops_.reserve(device.size());
  for (int32_t v = 0; v < flat.num_ops(); ++v) {
    const auto d = static_cast<int32_t>(device[static_cast<size_t>(v)]);
    ops_.push_back({flat.op_time(v, d), flat.num_inputs_of(v), d});
    ++first_op_[static_cast<size_t>(d) + 1];
  }
  for (size_t d = 0; d < devices_; ++d) first_op_[d + 1] += first_op_[d];
  for (int32_t t = 0; t < flat.num_inputs(); ++t) {
    for (const int32_t c : flat.consumers(t)) ++EdgesBetween(flat.io_host(), this->device(c));
  }
  for (int32_t v = 0; v < flat.num_ops(); ++v) AddOutputs(v, 1);
  const Graph& graph = flat.problem().graph();
  for (const ParameterId parameter : graph.parameters()) {
    for (const OpId op : graph.parameter_consumers(parameter)) AddUser(parameter, Index(device[Index(op)]));
  }
}

int32_t PlanTables::HomeOf(int32_t tensor) const {
  const int32_t producer = flat_.producer(tensor);
  return producer < 0 ? flat_.io_host() : device(producer);
}

void PlanTables::AddOutputs(int32_t op, int32_t sign) {
  const int32_t from = device(op);
  for (const int32_t c : flat_.users_of(op)) EdgesBetween(from, device(c)) += sign;
  // Any tensor might be a result.
  if (!flat_.has_io_host()) return;
  EdgesBetween(from, flat_.io_host()) += sign * (flat_.first_output(op + 1) - flat_.first_output(op));
}

void PlanTables::AddUser(ParameterId parameter, size_t device) {
  if (users_[Index(parameter) * devices_ + device]++ != 0) return;
  parameter_bytes_[device] += flat_.problem().graph().parameter_bytes(parameter);
}

void PlanTables::RemoveUser(ParameterId parameter, size_t device) {
  if (--users_[Index(parameter) * devices_ + device] != 0) return;
  parameter_bytes_[device] -= flat_.problem().graph().parameter_bytes(parameter);
}

void PlanTables::Move(int32_t op, int32_t to) {
  const int32_t from = device(op);
  // Only the slices between the two devices shift.
  for (int32_t d = from; d < to; ++d) --first_op_[static_cast<size_t>(d) + 1];
  for (int32_t d = to; d < from; ++d) ++first_op_[static_cast<size_t>(d) + 1];
  for (const int32_t t : flat_.inputs_of(op)) {
    --EdgesBetween(HomeOf(t), from);
    ++EdgesBetween(HomeOf(t), to);
  }
  AddOutputs(op, -1);
  OpState& state = ops_[static_cast<size_t>(op)];
  state.device = to;
  state.duration = flat_.op_time(op, to);
  AddOutputs(op, 1);
  for (const ParameterId parameter : flat_.problem().graph().parameters_of(static_cast<OpId>(op))) {
    RemoveUser(parameter, static_cast<size_t>(from));
    AddUser(parameter, static_cast<size_t>(to));
  }
}

}  // namespace berth
