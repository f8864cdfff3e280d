// The rules of docs/semantics.md, held against a timeline. Written for being right, and for finding what the
// simulators' own code would not: nothing here runs through time.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "placement/evaluator.h"
#include "placement/expected_transfer.h"
#include "placement/placeto_rules.h"
#include "placement/timeline_check.h"
#include "placement/verify_hetero.h"
#include "placement/verify_parts.h"
#include "placement/verify_pipeline.h"

namespace berth {
namespace {

// A tensor or a graph input on its way; graph inputs come first.
struct MoveKey {
  bool is_tensor;
  int32_t id;
  DeviceId to;
  auto operator<=>(const MoveKey&) const = default;
};

class ScheduleVerifier : TimelineCheck {
 public:
  ScheduleVerifier(const Evaluator& evaluator, const PlanView& plan, const Timeline& timeline)
      : TimelineCheck(evaluator, plan, timeline) {}

  std::vector<std::string> Run() {
    if (!facts_.Is<ParallelFacts>() && !facts_.Is<SerialFacts>()) return {};
    if (timeline_.score.time == kNever) {
      CheckInfeasible();
      return faults_;
    }
    CheckOps();
    if (!faults_.empty()) return faults_;  // the rest would speak of ops that are not there
    CheckTransfers();
    if (!faults_.empty()) return faults_;
    CheckArrivals();
    CheckDevices();
    if (facts_.Is<ParallelFacts>()) {
      CheckPorts();
      CheckOrderOfOps();
      CheckPromptness();
      CheckSequence();
    } else {
      CheckOneAfterAnother();
      CheckSubgraphs();
    }
    CheckTime();
    CheckMemory();
    return faults_;
  }

 private:
  const OpRun& run(OpId op) const { return timeline_.ops[Index(op)]; }
  std::string_view name(DeviceId id) const { return problem_.cluster().device(id).name; }
  std::string name(const TransferRun& move) const {
    const std::string_view what =
        move.is_input ? graph_.input_name(MakeId<InputId>(Index(move.tensor))) : graph_.tensor_name(move.tensor);
    return fmt::format("{} to {}", what, name(move.to));
  }
  std::string name(const MoveKey& key) const {
    return name(TransferRun{.tensor = TensorId{key.id}, .to = key.to, .is_input = !key.is_tensor});
  }
  static MoveKey KeyOf(const TransferRun& move) { return {!move.is_input, static_cast<int32_t>(move.tensor), move.to}; }
  DeviceId Home(const MoveKey& key) const {
    return key.is_tensor ? device(graph_.producer(TensorId{key.id})) : facts_.io_host().value();
  }
  std::span<const OpId> Consumers(const MoveKey& key) const {
    return key.is_tensor ? graph_.consumers(TensorId{key.id}) : graph_.input_consumers(InputId{key.id});
  }
  int64_t BytesOf(const MoveKey& key) const {
    return key.is_tensor ? graph_.tensor_bytes(TensorId{key.id}) : graph_.input_bytes(InputId{key.id});
  }
  // When a transfer may start: its producer has ended.
  double RequestTime(const MoveKey& key) const {
    return key.is_tensor ? run(graph_.producer(TensorId{key.id})).end : 0;
  }

  bool has_ports() const {
    return facts_.contention() == Contention::kEgress || facts_.contention() == Contention::kPorts;
  }
  // What it takes alone, and what of that passes before it uses its link.
  ExpectedTransfer Expected(const TransferRun& move) const {
    return move.is_input ? ExpectBytes(problem_, BytesOf(KeyOf(move)), move.from, move.to)
                         : ExpectTensor(problem_, move.tensor, move.from, move.to);
  }
  double Length(const TransferRun& move) const { return Expected(move).total(); }
  double Latency(const TransferRun& move) const { return Expected(move).latency; }

  void CheckInfeasible() {
    if (timeline_.score.fits()) Fault("a run that never ends is called feasible");
    if (timeline_.infeasible_because.empty()) Fault("a run that never ends gives no reason");
  }

  void CheckOps() {
    if (timeline_.ops.size() != graph_.num_ops()) {
      return Fault("the timeline has {} ops, the graph {}", timeline_.ops.size(), graph_.num_ops());
    }
    for (const OpId op : graph_.ops()) {
      const OpRun& r = run(op);
      if (r.device != device(op))
        Fault("op {} ran on another device than the plan's {}", graph_.op_name(op), name(device(op)));
      if (!(r.start >= 0)) Fault("op {} starts at {}", graph_.op_name(op), r.start);
      if (r.end != r.start + problem_.op_time(op, device(op))) {
        Fault("op {} runs from {} to {}, which is not its time {}", graph_.op_name(op), r.start, r.end,
              problem_.op_time(op, device(op)));
      }
    }
  }

  std::set<MoveKey> NeededMoves() const {
    std::set<MoveKey> needed;
    const auto add = [&](const MoveKey& key) {
      if (key.to != Home(key)) needed.insert(key);
    };
    for (const TensorId t : graph_.tensors()) {
      for (const OpId op : graph_.consumers(t)) add({true, static_cast<int32_t>(t), device(op)});
      if (facts_.io_host() && graph_.is_output(t)) add({true, static_cast<int32_t>(t), *facts_.io_host()});
    }
    if (facts_.io_host()) {
      for (const InputId input : graph_.inputs()) {
        for (const OpId op : graph_.input_consumers(input)) add({false, static_cast<int32_t>(input), device(op)});
      }
    }
    return needed;
  }

  void CheckTransfers() {
    std::set<MoveKey> needed = NeededMoves();
    const TransferRun* before = nullptr;
    for (const TransferRun& move : timeline_.transfers) {
      const MoveKey key = KeyOf(move);
      if (needed.erase(key) == 0) {
        Fault("transfer of {} is not needed, or made twice", Index(move.tensor));
        continue;
      }
      if (move.from != Home(key)) Fault("transfer of {} leaves from a device that did not make it", name(move));
      const double length = Length(move);
      if (facts_.contention() != Contention::kLinks && move.end != move.start + length)
        Fault("transfer of {} takes {}, not {}", name(move), move.end - move.start, length);
      if (move.start < RequestTime(key))
        Fault("transfer of {} starts at {}, before there is anything to send", name(move), move.start);
      if (before != nullptr && std::tuple(before->start, KeyOf(*before)) > std::tuple(move.start, key)) {
        Fault("transfer of {} is listed after one that comes later", name(move));
      }
      before = &move;
      move_of_[key] = &move;
    }
    for (const MoveKey& key : needed) Fault("transfer of {} is missing", name(key));
  }

  // When a tensor or input is on a device that needs it.
  double Arrival(const MoveKey& key) const { return key.to == Home(key) ? RequestTime(key) : move_of_.at(key)->end; }

  double ReadyTime(OpId op) const {
    double ready = 0;
    for (const TensorId t : graph_.inputs_of(op))
      ready = std::max(ready, Arrival({true, static_cast<int32_t>(t), device(op)}));
    if (const auto found = input_ready_.find(op); found != input_ready_.end()) ready = std::max(ready, found->second);
    return ready;
  }

  void CheckArrivals() {
    if (facts_.io_host()) {
      for (const InputId input : graph_.inputs()) {
        for (const OpId op : graph_.input_consumers(input)) {
          double& ready = input_ready_[op];
          ready = std::max(ready, Arrival({false, static_cast<int32_t>(input), device(op)}));
        }
      }
    }
    for (const OpId op : graph_.ops()) {
      ready_.push_back(ReadyTime(op));
      if (run(op).start < ready_.back()) {
        Fault("op {} starts at {}, its last input is there at {}", graph_.op_name(op), run(op).start, ready_.back());
      }
    }
  }

  // Something that holds a device, a port or everything.
  struct Busy {
    double start, end;
    int32_t op;  // or -1
    const TransferRun* move;
    bool operator<(const Busy& other) const { return std::tuple(start, end) < std::tuple(other.start, other.end); }
  };
  std::string name(const Busy& busy) const {
    return busy.op >= 0 ? fmt::format("op {}", graph_.op_name(OpId{busy.op}))
                        : fmt::format("transfer of {}", name(*busy.move));
  }

  void CheckNoOverlap(std::vector<Busy> list, const std::string& where) {
    std::stable_sort(list.begin(), list.end());
    for (size_t i = 1; i < list.size(); ++i) {
      if (list[i].start < list[i - 1].end) {
        Fault("{}: {} starts at {}, while {} runs until {}", where, name(list[i]), list[i].start, name(list[i - 1]),
              list[i - 1].end);
      }
    }
  }

  void CheckDevices() {
    by_device_.resize(problem_.num_devices());
    for (const OpId op : graph_.ops()) {
      by_device_[Index(device(op))].push_back({run(op).start, run(op).end, static_cast<int32_t>(op), nullptr});
    }
    for (size_t d = 0; d < by_device_.size(); ++d) {
      CheckNoOverlap(by_device_[d], fmt::format("device {}", name(MakeId<DeviceId>(d))));
      std::stable_sort(by_device_[d].begin(), by_device_[d].end());
    }
  }

  void CheckPorts() {
    leaving_.resize(problem_.num_devices());
    entering_.resize(problem_.num_devices());
    if (!has_ports()) {
      for (const TransferRun& move : timeline_.transfers) {
        if (move.start != RequestTime(KeyOf(move))) Fault("transfer of {} waits, with nothing to wait for", name(move));
      }
      if (facts_.contention() == Contention::kLinks) CheckMedia();
      return;
    }
    for (const TransferRun& move : timeline_.transfers) {
      leaving_[Index(move.from)].push_back({move.start, move.end, -1, &move});
      entering_[Index(move.to)].push_back({move.start, move.end, -1, &move});
    }
    for (size_t d = 0; d < leaving_.size(); ++d) {
      CheckNoOverlap(leaving_[d], fmt::format("outgoing port of {}", name(MakeId<DeviceId>(d))));
      if (facts_.contention() == Contention::kPorts) {
        CheckNoOverlap(entering_[d], fmt::format("incoming port of {}", name(MakeId<DeviceId>(d))));
      }
    }
  }

  // links: a transfer is through when its share of its medium's time, added up from the end of its latency, is what it
  // takes alone. Simulated to nine digits.
  void CheckMedia() {
    std::map<std::tuple<std::string_view, DeviceId, DeviceId>, std::vector<const TransferRun*>> media;
    for (const TransferRun& move : timeline_.transfers) {
      const std::string_view domain = problem_.cluster().link(move.from, move.to).domain;
      media[domain.empty() ? std::tuple(domain, move.from, move.to) : std::tuple(domain, DeviceId{}, DeviceId{})]
          .push_back(&move);
    }
    for (const auto& [medium, moves] : media) CheckMedium(moves);
  }

  void CheckMedium(const std::vector<const TransferRun*>& moves) {
    const double tolerance = 1e-9 * timeline_.score.time;
    std::vector<double> begins;
    std::map<double, int> change;  // of how many share the medium
    for (const TransferRun* move : moves) {
      begins.push_back(move->start + Latency(*move));
      if (move->end < begins.back()) return Fault("transfer of {} ends before its latency is over", name(*move));
      ++change[begins.back()];
      --change[move->end];
    }
    std::map<double, double> share;  // of the medium's time that each has had, from the beginning to a moment
    double before = 0, sum = 0;
    int sharing = 0;
    for (const auto& [time, by] : change) {
      if (sharing > 0) sum += (time - before) / sharing;
      share[time] = sum;
      sharing += by;
      before = time;
    }
    for (size_t i = 0; i < moves.size(); ++i) {
      const TransferRun& move = *moves[i];
      const double had = share[move.end] - share[begins[i]];
      const double needed = Expected(move).sending;
      if (std::abs(had - needed) > tolerance) {
        Fault("transfer of {} has had its medium for {}, and needs {}", name(move), had, needed);
      }
    }
  }

  // Without a sequence: whatever starts does so as soon as it may, or when what it waited for is free.
  void CheckPromptness() {
    if (plan_.sequence != nullptr) return;
    for (const std::vector<Busy>& list : by_device_) {
      std::set<double> ends;
      for (const Busy& busy : list) ends.insert(busy.end);
      for (const Busy& busy : list) {
        if (busy.start != ready_[static_cast<size_t>(busy.op)] && !ends.contains(busy.start)) {
          Fault("{} starts at {}, when nothing happens on its device", name(busy), busy.start);
        }
      }
      CheckNoIdling(list);
    }
    if (!has_ports()) return;
    std::vector<std::set<double>> freed_out(leaving_.size()), freed_in(leaving_.size());
    for (const TransferRun& move : timeline_.transfers) {
      freed_out[Index(move.from)].insert(move.end);
      freed_in[Index(move.to)].insert(move.end);
    }
    for (const TransferRun& move : timeline_.transfers) {
      if (move.start == RequestTime(KeyOf(move)) || freed_out[Index(move.from)].contains(move.start)) continue;
      if (facts_.contention() == Contention::kPorts && freed_in[Index(move.to)].contains(move.start)) continue;
      Fault("transfer of {} starts at {}, when none of its ports is freed", name(move), move.start);
    }
    CheckOrderOfTransfers();
  }

  // A device that is free does not wait while an op is ready.
  void CheckNoIdling(const std::vector<Busy>& list) {
    double least_ready = kNever;  // of this op and the later ones
    for (size_t i = list.size(); i-- > 0;) {
      least_ready = std::min(least_ready, ready_[static_cast<size_t>(list[i].op)]);
      const double could = std::max(least_ready, i == 0 ? 0 : list[i - 1].end);
      if (could < list[i].start)
        Fault("{} starts at {}, its device is free and has something to do from {} on", name(list[i]), list[i].start,
              could);
    }
  }

  // Of two waiting for one port, the first by (request, tensor, destination) goes first. Looked at per outgoing port,
  // for transfers to the same destination, or to any under `egress`.
  void CheckOrderOfTransfers() {
    std::map<std::pair<size_t, size_t>, std::vector<const TransferRun*>> queues;
    for (const TransferRun& move : timeline_.transfers) {
      queues[{Index(move.from), facts_.contention() == Contention::kPorts ? Index(move.to) : 0}].push_back(&move);
    }
    for (auto& [route, moves] : queues) {
      std::ranges::stable_sort(moves, {}, [](const TransferRun* move) { return std::tuple(move->start, move->end); });
      for (size_t i = 1; i < moves.size(); ++i) {
        const MoveKey a = KeyOf(*moves[i - 1]), b = KeyOf(*moves[i]);
        // The later one may have been requested in a later round of the same instant; rounds are not in a timeline.
        if (RequestTime(b) == moves[i - 1]->start || moves[i]->start == moves[i - 1]->start) continue;
        if (std::tuple(RequestTime(b), b) < std::tuple(RequestTime(a), a)) {
          Fault("transfer of {} goes before {}, which was requested first", name(*moves[i - 1]), name(*moves[i]));
        }
      }
    }
  }

  // Of two ops that wait for a device, the first by the plan's rule starts first.
  void CheckOrderOfOps() {
    if (plan_.sequence != nullptr) return;
    for (const std::vector<Busy>& list : by_device_) {
      for (size_t i = 1; i < list.size(); ++i) {
        const auto a = static_cast<size_t>(list[i - 1].op), b = static_cast<size_t>(list[i].op);
        // It was not there yet, or came in a later round of the same instant; rounds are not in a timeline.
        if (ready_[b] >= list[i - 1].start || list[i].start == list[i - 1].start) continue;
        const auto rank = [&](size_t v) {
          return plan_.priority.empty() ? std::pair(ready_[v], v) : std::pair(-plan_.priority[v], v);
        };
        if (rank(b) < rank(a)) Fault("{} starts before {}, which comes first", name(list[i - 1]), name(list[i]));
      }
    }
  }

  void CheckSequence() {
    if (plan_.sequence == nullptr) return;
    std::vector<const OpRun*> last(problem_.num_devices());
    for (const OpId op : plan_.sequence->ops) {
      const OpRun*& before = last[Index(device(op))];
      if (before != nullptr && run(op).start < before->end)
        Fault("op {} starts before its predecessor in the sequence ends", graph_.op_name(op));
      before = &run(op);
    }
    if (!has_ports()) return;
    std::vector<const TransferRun*> out(problem_.num_devices()), in(problem_.num_devices());
    for (const auto& [tensor, to] : plan_.sequence->transfers) {
      const TransferRun* const move = move_of_.at({true, static_cast<int32_t>(tensor), to});
      const auto check = [&](const TransferRun*& before) {
        if (before != nullptr && move->start < before->end)
          Fault("transfer of {} starts before its predecessor in the sequence ends", name(*move));
        before = move;
      };
      check(out[Index(move->from)]);
      if (facts_.contention() == Contention::kPorts) check(in[Index(move->to)]);
    }
  }

  // serial: nothing overlaps, ops in number order.
  void CheckOneAfterAnother() {
    std::vector<Busy> all;
    for (const OpId op : graph_.ops()) {
      all.push_back({run(op).start, run(op).end, static_cast<int32_t>(op), nullptr});
      if (all.size() > 1 && all.back().start < all[all.size() - 2].end)
        Fault("{} starts before the op before it ends", name(all.back()));
    }
    for (const TransferRun& move : timeline_.transfers) all.push_back({move.start, move.end, -1, &move});
    CheckNoOverlap(std::move(all), "everything");
  }

  // serial: subgraphs are the connected parts among ops of one device and one phase.
  void CheckSubgraphs() {
    if (facts_.As<SerialFacts>()->hetero_subgraphs) {
      const size_t hetero = CountHeteroSubgraphs(graph_, plan_.device);
      if (timeline_.subgraphs != hetero) Fault("{} subgraphs are counted, there are {}", timeline_.subgraphs, hetero);
      return;
    }
    std::vector<size_t> phase(graph_.num_ops());
    std::vector<std::vector<OpId>> near(graph_.num_ops());
    // What makes weights alone takes no part in it.
    std::vector<size_t> made(graph_.num_ops()), constant(graph_.num_ops());
    for (const TensorId t : graph_.tensors()) {
      ++made[Index(graph_.producer(t))];
      if (graph_.is_constant(t)) ++constant[Index(graph_.producer(t))];
    }
    std::vector<bool> weight;
    for (const OpId op : graph_.ops()) weight.push_back(made[Index(op)] > 0 && made[Index(op)] == constant[Index(op)]);
    for (const OpId op : graph_.ops()) {
      if (weight[Index(op)]) continue;
      for (const TensorId t : graph_.inputs_of(op)) {
        const OpId u = graph_.producer(t);
        if (weight[Index(u)]) continue;
        phase[Index(op)] = std::max(phase[Index(op)], phase[Index(u)] + (device(u) != device(op) ? 1 : 0));
      }
      for (const TensorId t : graph_.inputs_of(op)) {
        const OpId u = graph_.producer(t);
        if (weight[Index(u)] || device(u) != device(op) || phase[Index(u)] != phase[Index(op)]) continue;
        near[Index(u)].push_back(op);
        near[Index(op)].push_back(u);
      }
    }
    size_t subgraphs = 0;
    std::vector<bool> seen(graph_.num_ops());
    for (const OpId root : graph_.ops()) {
      if (seen[Index(root)] || weight[Index(root)]) continue;
      ++subgraphs;
      std::vector<OpId> open{root};
      seen[Index(root)] = true;
      while (!open.empty()) {
        const OpId op = open.back();
        open.pop_back();
        for (const OpId other : near[Index(op)]) {
          if (seen[Index(other)]) continue;
          seen[Index(other)] = true;
          open.push_back(other);
        }
      }
    }
    if (timeline_.subgraphs != subgraphs)
      Fault("{} subgraphs are counted, there are {}", timeline_.subgraphs, subgraphs);
  }

  double LastEnd() const {
    double last = 0;
    for (const OpRun& r : timeline_.ops) last = std::max(last, r.end);
    for (const TransferRun& move : timeline_.transfers) last = std::max(last, move.end);
    return last;
  }

  void CheckTime() {
    const double last = LastEnd();
    if (facts_.Is<ParallelFacts>()) {
      if (timeline_.score.time != last) Fault("the score is {}, the last thing ends at {}", timeline_.score.time, last);
      return;
    }
    double sum = 0;
    for (const OpId op : graph_.ops()) sum += problem_.op_time(op, device(op));
    std::vector<const TransferRun*> moves;
    for (const TransferRun& move : timeline_.transfers) moves.push_back(&move);
    std::ranges::sort(moves, {}, [](const TransferRun* move) { return KeyOf(*move); });
    for (const TransferRun* move : moves) sum += Length(*move);
    sum += facts_.As<SerialFacts>()->subgraph_overhead * static_cast<double>(timeline_.subgraphs);
    if (timeline_.score.time != sum) Fault("the score is {}, the sum of all is {}", timeline_.score.time, sum);
    // The same numbers in another order.
    if (std::abs(last - sum) > 1e-9 * sum) Fault("the score is {}, the last thing ends at {}", sum, last);
  }

  // --- Memory ---

  using Changes = std::map<double, int64_t>;

  void Hold(std::vector<Changes>& changes, DeviceId where, double from, double to, int64_t bytes) {
    if (!(from < to)) return;
    changes[Index(where)][from] += bytes;
    if (to < kNever) changes[Index(where)][to] -= bytes;
  }

  double LastUse(const MoveKey& key) const {
    double last = 0;
    for (const OpId op : Consumers(key)) {
      if (device(op) == key.to) last = std::max(last, run(op).end);
    }
    return last;
  }

  std::vector<Changes> MemoryChanges() {
    std::vector<Changes> changes(problem_.num_devices());
    for (const ParameterId parameter : graph_.parameters()) {
      std::set<DeviceId> devices;
      for (const OpId op : graph_.parameter_consumers(parameter)) devices.insert(device(op));
      for (const DeviceId d : devices) Hold(changes, d, 0, kNever, graph_.parameter_bytes(parameter));
    }
    for (const OpId op : graph_.ops())
      Hold(changes, device(op), run(op).start, run(op).end, graph_.work(op).workspace_bytes);
    const double finish = LastEnd();
    const auto hold_all = [&](bool is_tensor, int32_t id, double from, double to, bool is_output) {
      const DeviceId home = Home({is_tensor, id, DeviceId{0}});
      to = std::max(to, LastUse({is_tensor, id, home}));
      for (auto it = move_of_.lower_bound({is_tensor, id, DeviceId{0}});
           it != move_of_.end() && it->first.is_tensor == is_tensor && it->first.id == id; ++it) {
        to = std::max(to, it->second->end);
        const bool is_result = is_output && it->first.to == facts_.io_host();
        Hold(changes, it->first.to, it->second->start, is_result ? finish : LastUse(it->first), BytesOf(it->first));
      }
      Hold(changes, home, from, is_output ? finish : to, BytesOf({is_tensor, id, home}));
    };
    for (const TensorId t : graph_.tensors()) {
      const OpRun& made = run(graph_.producer(t));
      hold_all(true, static_cast<int32_t>(t), made.start, made.end, graph_.is_output(t));
    }
    if (facts_.io_host()) {
      for (const InputId input : graph_.inputs()) hold_all(false, static_cast<int32_t>(input), 0, 0, false);
    }
    return changes;
  }

  void CheckMemory() {
    if (!facts_.tracks_memory) {
      if (!timeline_.memory.empty()) Fault("memory is reported and was not tracked");
      return;
    }
    if (timeline_.memory.size() != problem_.num_devices())
      return Fault("memory is reported of {} devices", timeline_.memory.size());
    const std::vector<Changes> changes = MemoryChanges();
    int64_t excess = 0;
    for (const DeviceId id : problem_.cluster().ids()) {
      CheckDeviceMemory(id, changes[Index(id)]);
      excess += std::max<int64_t>(0, timeline_.memory[Index(id)].peak_bytes - problem_.memory_limit(id));
    }
    if (timeline_.score.excess_bytes != excess)
      Fault("the score lacks {} bytes, the timeline {}", timeline_.score.excess_bytes, excess);
    if (timeline_.score.fits() != (excess == 0))
      Fault("a plan that lacks {} bytes is called {}feasible", excess, timeline_.score.fits() ? "" : "in");
    if (timeline_.infeasible_because.empty() != (excess == 0))
      Fault("a plan that lacks {} bytes is explained by '{}'", excess, timeline_.infeasible_because);
  }

  void CheckDeviceMemory(DeviceId id, const Changes& changes) {
    const DeviceMemory& memory = timeline_.memory[Index(id)];
    int64_t level = 0, peak = 0;
    double peak_time = 0;
    std::vector<MemoryStep> steps;
    for (const auto& [time, change] : changes) {
      level += change;
      if (level > peak) {
        peak = level;
        peak_time = time;
      }
      if (change != 0) steps.push_back({time, level});
    }
    if (memory.peak_bytes != peak || memory.peak_time != peak_time) {
      Fault("{} has a peak of {} bytes at {}, not {} at {}", name(id), peak, peak_time, memory.peak_bytes,
            memory.peak_time);
    }
    if (memory.steps != steps) Fault("the memory over time of {} does not add up", name(id));
    int64_t held = 0;
    for (const MemoryHolder& holder : memory.holders) held += holder.bytes;
    if (held != peak) Fault("what fills {} at its peak is {} bytes, not {}", name(id), held, peak);
    if (!std::ranges::is_sorted(memory.holders, std::ranges::greater(), &MemoryHolder::bytes))
      Fault("what fills {} is not sorted", name(id));
  }

  std::map<MoveKey, const TransferRun*> move_of_;
  std::map<OpId, double> input_ready_;
  std::vector<double> ready_;                          // per op
  std::vector<std::vector<Busy>> by_device_;           // ops, by start
  std::vector<std::vector<Busy>> leaving_, entering_;  // transfers, in the timeline's order
};

}  // namespace

std::vector<std::string> Verify(const Evaluator& evaluator, const PlanView& plan, const Timeline& timeline) {
  const EvaluatorFacts& facts = evaluator.facts();
  if (facts.Is<PipelineFacts>()) return VerifyPipeline(evaluator, plan, timeline);
  if (facts.Is<PiecesFacts>()) return VerifyPieces(evaluator, plan, timeline);
  if (facts.Is<PlacetoFacts>()) return VerifyPlaceto(evaluator, plan, timeline);
  if (facts.Is<PartsFacts>()) return VerifyParts(evaluator, plan, timeline);
  return ScheduleVerifier(evaluator, plan, timeline).Run();
}

}  // namespace berth
