// The rules of `parts`, held against a timeline: parts from their definition, by sets.
#include "placement/verify_parts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "placement/timeline_check.h"

namespace berth {
namespace {

class PartsVerifier : TimelineCheck {
 public:
  PartsVerifier(const Evaluator& evaluator, const PlanView& plan, const Timeline& timeline)
      : TimelineCheck(evaluator, plan, timeline) {}

  std::vector<std::string> Run() {
    if (timeline_.score.time == kCannotRun) return {};  // some op is where it cannot run: there is no run
    if (timeline_.ops.size() != graph_.num_ops()) {
      Fault("the timeline has {} ops, the graph {}", timeline_.ops.size(), graph_.num_ops());
      return faults_;
    }
    FindParts();
    CheckOps();
    CheckParts();
    CheckTransfers();
    return faults_;
  }

 private:
  struct Group {
    std::set<OpId> ops;
    std::set<size_t> before;
    DeviceId device{};
    double begin = 0, first = 0, last = 0, end = 0;
  };

  bool LeavesItsDevice(OpId op) const {
    for (size_t t = graph_.first_output(op); t < graph_.end_output(op); ++t) {
      if (graph_.is_constant(MakeId<TensorId>(t))) continue;
      for (const OpId reader : graph_.consumers(MakeId<TensorId>(t))) {
        if (device(reader) != device(op)) return true;
      }
    }
    return false;
  }

  bool MakesConstants(OpId op) const {
    size_t constants = 0;
    for (size_t t = graph_.first_output(op); t < graph_.end_output(op); ++t) {
      constants += graph_.is_constant(MakeId<TensorId>(t)) ? 1 : 0;
    }
    return constants > 0 && constants == graph_.end_output(op) - graph_.first_output(op);
  }

  void FindParts() {
    std::map<OpId, int> phase;
    std::map<OpId, std::set<OpId>> near;  // of one device and phase
    for (const OpId op : graph_.ops()) {
      for (const TensorId tensor : graph_.inputs_of(op)) {
        if (graph_.is_constant(tensor)) continue;
        const OpId from = graph_.producer(tensor);
        phase[op] = std::max(phase[op], phase[from] + (LeavesItsDevice(from) || device(from) != device(op) ? 1 : 0));
      }
      for (const TensorId tensor : graph_.inputs_of(op)) {
        const OpId from = graph_.producer(tensor);
        if (graph_.is_constant(tensor) || phase[from] != phase[op] || device(from) != device(op)) continue;
        near[op].insert(from);
        near[from].insert(op);
      }
    }
    std::set<OpId> seen;
    for (const OpId op : graph_.ops()) {
      if (seen.contains(op)) continue;
      Group group{.ops = {}, .before = {}, .device = device(op)};
      std::vector<OpId> next = {op};
      while (!next.empty()) {
        const OpId one = next.back();
        next.pop_back();
        if (!seen.insert(one).second) continue;
        group.ops.insert(one);
        part_of_[one] = parts_.size();
        next.insert(next.end(), near[one].begin(), near[one].end());
      }
      parts_.push_back(std::move(group));
    }
    for (const OpId op : graph_.ops()) {
      for (const TensorId tensor : graph_.inputs_of(op)) {
        if (graph_.is_constant(tensor)) continue;
        const size_t from = part_of_.at(graph_.producer(tensor));
        if (from != part_of_.at(op)) parts_[part_of_.at(op)].before.insert(from);
      }
    }
    if (timeline_.subgraphs != parts_.size()) {
      Fault("the timeline has {} parts, the plan {}", timeline_.subgraphs, parts_.size());
    }
  }

  double CutTime(const std::map<std::string, Quantity, std::less<>>& rates, OpId op, TensorId tensor) const {
    const auto rate = rates.find(kOpClassNames[static_cast<size_t>(graph_.work(op).op_class)]);
    if (rate == rates.end() || graph_.is_constant(tensor)) return 0;
    return static_cast<double>(graph_.tensor_bytes(tensor)) / rate->second.value / problem_.seconds_per_unit();
  }

  // What a part pays before and after its ops.
  std::pair<double, double> Paid(size_t number) const {
    const Group& part = parts_[number];
    const Device& where = problem_.cluster().device(part.device);
    const bool computes = std::ranges::any_of(part.ops, [&](OpId op) { return !MakesConstants(op); });
    double before = computes ? where.part_overhead.value / problem_.seconds_per_unit() : 0, after = 0;
    std::set<TensorId> read;
    for (const OpId op : part.ops) {
      for (const TensorId tensor : graph_.inputs_of(op)) {
        if (part.ops.contains(graph_.producer(tensor)) || !read.insert(tensor).second) continue;
        before += CutTime(where.cut_read, op, tensor);
      }
      for (size_t t = graph_.first_output(op); t < graph_.end_output(op); ++t) {
        const auto tensor = MakeId<TensorId>(t);
        const auto elsewhere = [&](OpId reader) { return !part.ops.contains(reader); };
        if (std::ranges::any_of(graph_.consumers(tensor), elsewhere)) after += CutTime(where.cut_write, op, tensor);
      }
    }
    return {before, after};
  }

  bool Same(double a, double b) const { return std::abs(a - b) <= 1e-9 * std::max(1e-12, timeline_.score.time); }

  void CheckOps() {
    for (const OpId op : graph_.ops()) {
      const OpRun& run = timeline_.ops[Index(op)];
      if (run.device != device(op)) Fault("op {} did not run on the plan's device", graph_.op_name(op));
      if (!Same(run.end, run.start + problem_.op_time(op, device(op)))) {
        Fault("op {} runs from {} to {}, which is not its time", graph_.op_name(op), run.start, run.end);
      }
    }
    for (Group& part : parts_) {
      double at = part.first = timeline_.ops[Index(*part.ops.begin())].start;
      for (const OpId op : part.ops) {
        if (!Same(timeline_.ops[Index(op)].start, at)) Fault("op {} is not next in its part", graph_.op_name(op));
        at = timeline_.ops[Index(op)].end;
      }
      part.last = at;
    }
  }

  // Each part as soon as its device is free of earlier ones and all that it reads is there; of those that could be
  // next, the one with the earliest first op.
  void CheckParts() {
    std::set<size_t> done;
    std::map<DeviceId, double> free;
    double makespan = 0;
    while (done.size() < parts_.size()) {
      size_t next = parts_.size();
      for (size_t part = parts_.size(); part-- > 0;) {
        const auto ran = [&](size_t before) { return done.contains(before); };
        if (!done.contains(part) && std::ranges::all_of(parts_[part].before, ran)) next = part;
      }
      if (next == parts_.size()) return Fault("parts wait for each other");
      Group& part = parts_[next];
      part.begin = free[part.device];
      for (const size_t before : part.before) {
        const DeviceId from = parts_[before].device;
        const size_t route = Index(from) * problem_.num_devices() + Index(part.device);
        part.begin = std::max(part.begin, parts_[before].end + (from == part.device ? 0 : problem_.latency()[route]));
      }
      const auto [before, after] = Paid(next);
      if (!Same(part.first, part.begin + before)) {
        Fault("the part of op {} computes from {} on, not from {}", graph_.op_name(*part.ops.begin()), part.first,
              part.begin + before);
      }
      part.end = free[part.device] = part.last + after;
      makespan = std::max(makespan, part.end);
      done.insert(next);
    }
    if (!Same(makespan, timeline_.score.time)) {
      Fault("the score is {}, but the last part ends at {}", timeline_.score.time, makespan);
    }
  }

  void CheckTransfers() {
    std::set<std::pair<TensorId, DeviceId>> needed;
    for (const TensorId tensor : graph_.tensors()) {
      for (const OpId reader : graph_.consumers(tensor)) {
        if (device(reader) != device(graph_.producer(tensor)) && !graph_.is_constant(tensor)) {
          needed.emplace(tensor, device(reader));
        }
      }
    }
    for (const TransferRun& run : timeline_.transfers) {
      if (needed.erase({run.tensor, run.to}) == 0) {
        Fault("tensor {} is sent for nothing", graph_.tensor_name(run.tensor));
      }
      if (!Same(run.start, parts_[part_of_.at(graph_.producer(run.tensor))].end)) {
        Fault("tensor {} is sent before its part ends", graph_.tensor_name(run.tensor));
      }
    }
    if (!needed.empty()) Fault("tensor {} is not sent", graph_.tensor_name(needed.begin()->first));
  }

  std::vector<Group> parts_;
  std::map<OpId, size_t> part_of_;
};

}  // namespace

std::vector<std::string> VerifyParts(const Evaluator& evaluator, const PlanView& plan, const Timeline& timeline) {
  return PartsVerifier(evaluator, plan, timeline).Run();
}

}  // namespace berth
