// The rules of the `placeto` execution model, held against a timeline. Nothing here runs through time.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "placement/expected_transfer.h"
#include "placement/placeto_rules.h"
#include "placement/timeline_check.h"

namespace berth {
namespace {

class PlacetoVerifier : TimelineCheck {
 public:
  PlacetoVerifier(const Evaluator& evaluator, const PlanView& plan, const Timeline& timeline)
      : TimelineCheck(evaluator, plan, timeline) {}

  std::vector<std::string> Run() {
    if (timeline_.score.time == kCannotRun) return {};  // some op is where it cannot run: there is no run
    CheckOps();
    if (faults_.empty()) CheckTransfers();
    if (!faults_.empty()) return faults_;  // the rest would speak of what is not there
    CheckDevices();
    CheckPorts();
    CheckTime();
    CheckMemory();
    return faults_;
  }

 private:
  const OpRun& run(OpId op) const { return timeline_.ops[Index(op)]; }
  double Rest(OpId op) const { return problem_.op_time(op, device(op)) != 0 ? facts_.As<PlacetoFacts>()->op_gap : 0; }

  void CheckOps() {
    if (timeline_.ops.size() != graph_.num_ops()) {
      return Fault("the timeline has {} ops, the graph {}", timeline_.ops.size(), graph_.num_ops());
    }
    for (const OpId op : graph_.ops()) {
      const OpRun& r = run(op);
      if (r.device != device(op)) Fault("op {} did not run on the plan's device", graph_.op_name(op));
      if (!(r.start >= 0) || r.end != r.start + problem_.op_time(op, device(op))) {
        Fault("op {} runs from {} to {}, which is not its time", graph_.op_name(op), r.start, r.end);
      }
    }
  }

  // The one tensor that counts between two ops: the last.
  std::map<OpId, TensorId> CountedInputs(OpId op) const {
    std::map<OpId, TensorId> counted;
    for (const TensorId tensor : graph_.inputs_of(op)) counted[graph_.producer(tensor)] = tensor;
    return counted;
  }

  // All transfers of one tensor are one.
  void CheckTransfers() {
    std::set<std::pair<TensorId, DeviceId>> needed;
    for (const OpId op : graph_.ops()) {
      for (const auto& [producer, tensor] : CountedInputs(op)) {
        if (device(producer) != device(op)) needed.emplace(tensor, device(op));
      }
    }
    for (const TransferRun& move : timeline_.transfers) {
      const std::string_view name = graph_.tensor_name(move.tensor);
      if (needed.erase({move.tensor, move.to}) == 0) Fault("the transfer of {} is not needed, or made twice", name);
      if (move.from != device(graph_.producer(move.tensor)))
        Fault("the transfer of {} leaves from where it is not", name);
      if (move.end != move.start + ExpectTensor(problem_, move.tensor, move.from, move.to).total()) {
        Fault("the transfer of {} runs from {} to {}, which is not its length", name, move.start, move.end);
      }
      const auto [first, is_new] = move_of_.emplace(move.tensor, &move);
      if (!is_new && first->second->start != move.start)
        Fault("{} is sent at {} and at {}", name, first->second->start, move.start);
    }
    for (const auto& [tensor, to] : needed) Fault("the transfer of {} is missing", graph_.tensor_name(tensor));
  }

  double ReadyTime(OpId op) const {
    double ready = 0;
    for (const auto& [producer, tensor] : CountedInputs(op)) {
      ready = std::max(ready, device(producer) == device(op) ? run(producer).end : move_of_.at(tensor)->end);
    }
    return ready;
  }

  // First come, first served: in the order of starts, each starts when it is ready and the rest before it is over.
  struct Served {
    double start, ready, rest_ends;
    std::string_view name;
  };
  void CheckQueue(std::vector<Served> queue, std::string_view where) {
    std::ranges::stable_sort(queue, {}, [](const Served& s) { return std::tuple(s.start, s.rest_ends, s.ready); });
    double free = 0, ready = 0;
    for (const Served& served : queue) {
      if (served.start != std::max(served.ready, free)) {
        Fault("{}: {} starts at {}, it is ready at {} and the rest before it ends at {}", where, served.name,
              served.start, served.ready, free);
      }
      if (served.ready < ready) Fault("{}: {} was ready before the one that went before it", where, served.name);
      free = served.rest_ends;
      ready = served.ready;
    }
    last_ = std::max(last_, free);
  }

  void CheckDevices() {
    for (const DeviceId id : problem_.cluster().ids()) {
      std::vector<Served> queue;
      for (const OpId op : graph_.ops()) {
        if (device(op) == id)
          queue.push_back({run(op).start, ReadyTime(op), run(op).end + Rest(op), graph_.op_name(op)});
      }
      CheckQueue(std::move(queue), problem_.cluster().device(id).name);
    }
  }

  void CheckPorts() {
    for (const DeviceId id : problem_.cluster().ids()) {
      std::vector<Served> queue;
      for (const auto& [tensor, move] : move_of_) {
        if (move->from != id) continue;
        queue.push_back({move->start, run(graph_.producer(tensor)).end, move->end + facts_.As<PlacetoFacts>()->bus_hold,
                         graph_.tensor_name(tensor)});
      }
      CheckQueue(std::move(queue), "port of " + problem_.cluster().device(id).name);
    }
  }

  void CheckTime() {
    if (timeline_.score.time != last_) Fault("the score is {}, the last rest ends at {}", timeline_.score.time, last_);
  }

  int64_t HeldBytes(OpId op) const {
    int64_t bytes = 0;
    for (size_t t = graph_.first_output(op); t < graph_.end_output(op); ++t)
      bytes += graph_.tensor_bytes(MakeId<TensorId>(t));
    return bytes;
  }

  void CheckMemory() {
    if (timeline_.memory.size() != problem_.num_devices())
      return Fault("memory is given for {} devices", timeline_.memory.size());
    const double us = problem_.seconds_per_unit() * 1e6;
    std::vector<double> until(graph_.num_ops());
    for (const OpId op : graph_.ops()) until[Index(op)] = run(op).start * us;
    for (const OpId op : graph_.ops()) {
      const double last = std::trunc(run(op).start * us) + std::trunc(problem_.op_time(op, device(op)) * us) - 1;
      for (const auto& [producer, tensor] : CountedInputs(op))
        until[Index(producer)] = std::max(until[Index(producer)], last);
    }
    int64_t excess = 0;
    for (const DeviceId id : problem_.cluster().ids()) {
      std::vector<std::tuple<double, bool, int64_t>> changes;  // (time, goes, bytes)
      for (const OpId op : graph_.ops()) {
        if (device(op) != id) continue;
        changes.emplace_back(run(op).start * us, false, HeldBytes(op));
        changes.emplace_back(until[Index(op)], true, -HeldBytes(op));
      }
      std::ranges::sort(changes);
      int64_t level = 0, peak = 0;
      for (const auto& [time, goes, bytes] : changes) peak = std::max(peak, level += bytes);
      const int64_t said = timeline_.memory[Index(id)].peak_bytes;
      if (said != peak) Fault("the peak of {} is {} bytes, not {}", problem_.cluster().device(id).name, peak, said);
      excess += std::max<int64_t>(0, peak - problem_.memory_limit(id));
    }
    if (timeline_.score.excess_bytes != excess)
      Fault("the excess is {} bytes, not {}", excess, timeline_.score.excess_bytes);
    if (timeline_.score.fits() != (excess == 0)) Fault("feasible is wrong for an excess of {} bytes", excess);
  }

  std::map<TensorId, const TransferRun*> move_of_;
  double last_ = 0;
};

}  // namespace

std::vector<std::string> VerifyPlaceto(const Evaluator& evaluator, const PlanView& plan, const Timeline& timeline) {
  return PlacetoVerifier(evaluator, plan, timeline).Run();
}

}  // namespace berth
