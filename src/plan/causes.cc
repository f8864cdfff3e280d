#include "plan/causes.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/units.h"

namespace berth {
namespace {

// Two digits are as many as a reader takes in, and keep the number of different causes small.
double TwoDigits(double value) {
  if (value <= 0 || !std::isfinite(value)) return value;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return std::round(value / unit) * unit;
}

class CauseFinder {
 public:
  CauseFinder(const Problem& problem, std::span<const DeviceId> device, const std::string& otherwise)
      : problem_(problem),
        device_(device),
        otherwise_(otherwise),
        bound_(problem.num_ops(), Tie::kNone),
        consumers_(problem.graph().num_tensors() * problem.num_devices(), 0) {
    for (const TensorId tensor : problem.graph().tensors()) {
      for (const OpId op : problem.graph().consumers(tensor)) {
        ++consumers_[Index(tensor) * problem.num_devices() + Index(device[Index(op)])];
      }
    }
    for (const std::vector<OpId>& group : problem.constraints().colocate) {
      for (const OpId op : group) {
        if (group.size() > 1) bound_[Index(op)] = Tie::kTogether;
      }
    }
    for (const Kernel& kernel : problem.kernels()) {
      // Where nothing else ties it, the op that has the kernel's time has its reasons.
      if (!std::ranges::binary_search(problem.constraints().colocate, kernel.ops)) continue;
      const auto time = [&](OpId op) { return problem.op_time(op, device[Index(op)]); };
      const OpId head = *std::ranges::max_element(kernel.ops, {}, time);
      for (const OpId op : kernel.ops) bound_[Index(op)] = op == head ? Tie::kNone : Tie::kFused;
    }
    for (const auto& [a, b] : problem.constraints().separate) bound_[Index(a)] = bound_[Index(b)] = Tie::kApart;
    for (const auto& [tensor, from, to] : problem.constraints().forbidden_transfers) {
      const OpId producer = problem.graph().producer(tensor);
      if (Consumers(tensor, to) > 0) bound_[Index(producer)] = Tie::kOffLink;
      if (device[Index(producer)] != from) continue;
      for (const OpId op : problem.graph().consumers(tensor)) bound_[Index(op)] = Tie::kOffLink;
    }
  }

  std::string Cause(OpId op) const {
    const DeviceId here = device_[Index(op)];
    const double time = problem_.op_time(op, here);
    double best_other = kCannotRun;
    DeviceId other{-1};
    for (const DeviceId d : problem_.cluster().ids()) {
      if (d == here || problem_.op_time(op, d) >= best_other) continue;
      best_other = problem_.op_time(op, d);
      other = d;
    }
    if (best_other == kCannotRun) {
      const bool narrowed = std::ranges::binary_search(problem_.constraints().narrowed, op);
      return narrowed ? "the constraints leave it no other device" : "no other device can run it";
    }
    if (bound_[Index(op)] == Tie::kFused) return "one kernel with ops beside it";
    if (bound_[Index(op)] == Tie::kTogether) return "shares a device with the ops that it must be with";
    if (bound_[Index(op)] == Tie::kApart) return "keeps away from an op that it must be apart from";
    if (bound_[Index(op)] == Tie::kOffLink) return "keeps a tensor off a link that it must not take";
    const double saved = Saved(op, here, other);
    if (best_other > time * 1.05) {
      return time > 0 ? fmt::format("fastest there by {:.2g}x", TwoDigits(best_other / time)) : "takes no time there";
    }
    if (saved > 0) {
      const std::string amount = ToString(problem_.ToSeconds(TwoDigits(saved)));
      const bool producers = AnyProducer(op, here);
      return fmt::format("with its {}: saves {} of transfer", producers ? "producers" : "consumers", amount);
    }
    return otherwise_;
  }

 private:
  enum class Tie : uint8_t { kNone, kFused, kTogether, kApart, kOffLink };

  bool AnyProducer(OpId op, DeviceId here) const {
    return std::ranges::any_of(problem_.graph().inputs_of(op), [&](TensorId tensor) {
      return device_[Index(problem_.graph().producer(tensor))] == here;
    });
  }

  // Transfer time that being here and not on `other` saves, tensor by tensor, the rest of the placement as it is.
  double Saved(OpId op, DeviceId here, DeviceId other) const {
    const Graph& graph = problem_.graph();
    double saved = 0;
    for (const TensorId tensor : graph.inputs_of(op)) {
      const DeviceId from = device_[Index(graph.producer(tensor))];
      if (from != other && Consumers(tensor, other) == 0) saved += problem_.transfer_time(tensor, from, other);
      if (from != here && Consumers(tensor, here) == 1) saved -= problem_.transfer_time(tensor, from, here);
    }
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      saved += Sent(MakeId<TensorId>(t), other) - Sent(MakeId<TensorId>(t), here);
    }
    return saved;
  }

  double Sent(TensorId tensor, DeviceId from) const {
    double sum = 0;
    for (const DeviceId to : problem_.cluster().ids()) {
      if (to != from && Consumers(tensor, to) > 0) sum += problem_.transfer_time(tensor, from, to);
    }
    return sum;
  }

  int32_t Consumers(TensorId tensor, DeviceId device) const {
    return consumers_[Index(tensor) * problem_.num_devices() + Index(device)];
  }

  const Problem& problem_;
  std::span<const DeviceId> device_;
  const std::string& otherwise_;
  std::vector<Tie> bound_;
  std::vector<int32_t> consumers_;  // tensor x device
};

}  // namespace

void GiveCauses(const PlanRequest& request, PlanResult& result, const std::string& otherwise) {
  if (request.causes) GiveCauses(request.problem(), result.plan, otherwise);
}

void GiveCauses(const Problem& problem, Plan& plan, const std::string& otherwise) {
  const CauseFinder finder(problem, plan.device, otherwise);
  std::unordered_map<std::string, uint16_t> known;
  plan.cause_texts.clear();
  plan.cause.assign(problem.num_ops(), 0);
  for (const OpId op : problem.graph().ops()) {
    std::string text = finder.Cause(op);
    const auto [found, added] = known.try_emplace(text, static_cast<uint16_t>(plan.cause_texts.size()));
    if (added) plan.cause_texts.push_back(std::move(text));
    plan.cause[Index(op)] = found->second;
  }
}

}  // namespace berth
