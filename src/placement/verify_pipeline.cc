// The rules of `pipeline` and `pieces` in docs/data-sets.md, held against a timeline: sets and definitions, written for
// being right; nothing here is shared with the simulators' code.
#include "placement/verify_pipeline.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "placement/expected_transfer.h"
#include "placement/timeline_check.h"

namespace berth {
namespace {

// Sums of the same numbers in another order.
constexpr double kSame = 1e-9;

// What both models have in common: ops, the set of transfers with their lengths, lanes, static memory.
class LaneVerifier : protected TimelineCheck {
 public:
  LaneVerifier(const Evaluator& evaluator, const PlanView& plan, const Timeline& timeline)
      : TimelineCheck(evaluator, plan, timeline) {}

 protected:
  struct TransferKey {
    TensorId tensor;
    DeviceId from, to;
    TransferPart part;
    int32_t piece;  // of an accelerator, which may send or take in a tensor once per piece; else 0
    auto operator<=>(const TransferKey&) const = default;
  };
  using Needed = std::map<TransferKey, double>;  // with its length

  std::string_view name(DeviceId id) const { return problem_.cluster().device(id).name; }
  static bool Same(double a, double b) { return std::abs(a - b) <= kSame * std::max(std::abs(a), std::abs(b)); }

  // Whose time a transfer takes.
  static DeviceId Payer(DeviceId from, DeviceId to, TransferPart part) {
    return part == TransferPart::kSend ? from : to;
  }

  bool CheckOps() {
    if (timeline_.ops.size() != graph_.num_ops()) {
      Fault("the timeline has {} ops, the graph {}", timeline_.ops.size(), graph_.num_ops());
      return false;
    }
    for (const OpId op : graph_.ops()) {
      const OpRun& run = timeline_.ops[Index(op)];
      if (run.device != device(op))
        Fault("op {} ran on another device than the plan's {}", graph_.op_name(op), name(device(op)));
      if (run.end != run.start + problem_.op_time(op, device(op))) {
        Fault("op {} runs from {} to {}, which is not its time {}", graph_.op_name(op), run.start, run.end,
              problem_.op_time(op, device(op)));
      }
    }
    return faults_.empty();
  }

  // The timeline has these transfers and no others. A device's transfers of one kind are told apart by nothing but
  // their number where several of its pieces make them.
  void CheckTransfers(const Needed& needed) {
    std::map<std::tuple<TensorId, DeviceId, DeviceId, TransferPart>, std::multiset<double>> want, have;
    for (const auto& [key, length] : needed) want[{key.tensor, key.from, key.to, key.part}].insert(length);
    for (const TransferRun& run : timeline_.transfers) {
      const auto key = std::tuple(run.tensor, run.from, run.to, run.part);
      const auto found = want.find(key);
      if (found == want.end() || have[key].size() == found->second.size()) {
        Fault("tensor {} goes from {} to {} for no reason", graph_.tensor_name(run.tensor), name(run.from),
              name(run.to));
        continue;
      }
      const double length = *found->second.begin();
      have[key].insert(length);
      if (run.end != run.start + length) {
        Fault("the transfer of {} from {} to {} runs from {} to {}, which is not its time {}",
              graph_.tensor_name(run.tensor), name(run.from), name(run.to), run.start, run.end, length);
      }
    }
    for (const auto& [key, lengths] : want) {
      if (have[key].size() == lengths.size()) continue;
      Fault("tensor {} goes from {} to {} {} times, not {}", graph_.tensor_name(std::get<0>(key)),
            name(std::get<1>(key)), name(std::get<2>(key)), have[key].size(), lengths.size());
    }
  }

  struct Interval {
    double start, end;
  };

  // What a device does lies one after another.
  void CheckLane(std::vector<Interval> lane, std::string_view what) {
    std::ranges::sort(lane, {}, [](const Interval& i) { return std::pair(i.start, i.end); });
    for (size_t i = 1; i < lane.size(); ++i) {
      if (lane[i].start < lane[i - 1].end) Fault("{} does two things at {}", what, lane[i].start);
    }
  }

  void CheckMemory(bool otherwise_feasible) {
    int64_t excess = 0;
    if (facts_.tracks_memory) {
      if (timeline_.memory.size() != problem_.num_devices())
        return Fault("memory is reported of {} devices", timeline_.memory.size());
      for (const DeviceId id : problem_.cluster().ids()) {
        int64_t bytes = 0, held = 0;
        for (const ParameterId parameter : graph_.parameters()) {
          if (std::ranges::any_of(graph_.parameter_consumers(parameter), [&](OpId op) { return device(op) == id; })) {
            bytes += graph_.parameter_bytes(parameter);
          }
        }
        const DeviceMemory& memory = timeline_.memory[Index(id)];
        for (const MemoryHolder& holder : memory.holders) held += holder.bytes;
        if (memory.peak_bytes != bytes || held != bytes)
          Fault("{} holds {} bytes, not {} and {}", name(id), bytes, memory.peak_bytes, held);
        excess += std::max<int64_t>(0, bytes - problem_.memory_limit(id));
      }
    } else if (!timeline_.memory.empty()) {
      Fault("memory is reported and was not tracked");
    }
    const bool feasible = otherwise_feasible && excess == 0;
    if (timeline_.score.excess_bytes != excess)
      Fault("the score lacks {} bytes, it should be {}", timeline_.score.excess_bytes, excess);
    if (timeline_.score.fits() != feasible) Fault("the plan is called {}feasible", feasible ? "in" : "");
    if (timeline_.infeasible_because.empty() != feasible)
      Fault("the plan is explained by '{}'", timeline_.infeasible_because);
  }
};

class PipelineVerifier : public LaneVerifier {
 public:
  using LaneVerifier::LaneVerifier;

  std::vector<std::string> Run() {
    if (!CheckOps()) return faults_;
    CheckTransfers(NeededTransfers());
    CheckLanes();
    CheckScore();
    CheckMemory(true);
    return faults_;
  }

 private:
  Needed NeededTransfers() const {
    Needed needed;
    for (const TensorId t : graph_.tensors()) {
      const DeviceId from = device(graph_.producer(t));
      for (const OpId consumer : graph_.consumers(t)) {
        const DeviceId to = device(consumer);
        if (to == from) continue;
        if (!problem_.has_staging()) {
          needed[{t, from, to, TransferPart::kSend, 0}] = ExpectTensor(problem_, t, from, to).total();
          needed[{t, from, to, TransferPart::kReceive, 0}] = ExpectTensor(problem_, t, from, to).total();
          continue;
        }
        if (!problem_.on_host(from)) needed[{t, from, from, TransferPart::kSend, 0}] = problem_.staging(t);
        if (!problem_.on_host(to)) needed[{t, from, to, TransferPart::kReceive, 0}] = problem_.staging(t);
      }
    }
    return needed;
  }

  size_t LaneOf(TransferPart part) const {
    if (!facts_.As<PipelineFacts>()->overlap) return 0;
    return part == TransferPart::kSend ? 1 : 2;
  }

  void CheckLanes() {
    std::map<std::pair<DeviceId, size_t>, std::vector<Interval>> lanes;
    for (const OpId op : graph_.ops())
      lanes[{device(op), 0}].push_back({timeline_.ops[Index(op)].start, timeline_.ops[Index(op)].end});
    for (const TransferRun& run : timeline_.transfers) {
      lanes[{Payer(run.from, run.to, run.part), LaneOf(run.part)}].push_back({run.start, run.end});
    }
    double last = 0;
    for (const auto& [key, lane] : lanes) {
      CheckLane(lane, name(key.first));
      for (const Interval& i : lane) last = std::max(last, i.end);
    }
    if (!Same(last, timeline_.score.time))
      Fault("the score is {}, the last thing ends at {}", timeline_.score.time, last);
  }

  // The loads by definition: a device's ops, and the transfers that it pays.
  void CheckScore() {
    std::vector<std::map<std::pair<size_t, size_t>, double>> load(2);  // by pass, then (device, lane)
    for (const OpId op : graph_.ops()) {
      load[graph_.is_backward(op) ? 1 : 0][{Index(device(op)), 0}] += problem_.op_time(op, device(op));
    }
    for (const auto& [key, length] : NeededTransfers()) {
      const size_t pass = graph_.is_backward(graph_.producer(key.tensor)) ? 1 : 0;
      load[pass][{Index(Payer(key.from, key.to, key.part)), LaneOf(key.part)}] += length;
    }
    double largest[2] = {0, 0}, largest_sum = 0;
    for (size_t pass = 0; pass < 2; ++pass) {
      for (const auto& [where, sum] : load[pass]) {
        largest[pass] = std::max(largest[pass], sum);
        const auto other = load[1 - pass].find(where);
        largest_sum = std::max(largest_sum, sum + (other == load[1 - pass].end() ? 0 : other->second));
      }
    }
    const double time = facts_.As<PipelineFacts>()->separate_passes ? largest[0] + largest[1] : largest_sum;
    if (!Same(time, timeline_.score.time)) Fault("the score is {}, the largest load {}", timeline_.score.time, time);
  }
};

class PiecesVerifier : public LaneVerifier {
 public:
  using LaneVerifier::LaneVerifier;

  std::vector<std::string> Run() {
    if (!CheckOps()) return faults_;
    FindPieces();
    CheckTransfers(NeededTransfers());
    CheckAccelerators();
    CheckTimes();
    CheckMemory(CountsAreAllowed());
    return faults_;
  }

 private:
  // On an accelerator its number there, on the host the op's own.
  using Piece = std::pair<int32_t, int32_t>;  // device or -1, number

  Piece piece(OpId op) const { return piece_of_.at(op); }

  std::vector<OpId> Producers(OpId op) const {
    std::vector<OpId> producers;
    for (const TensorId t : graph_.inputs_of(op)) producers.push_back(graph_.producer(t));
    return producers;
  }

  // How often a path to `op` has entered the set of `owner`'s ops.
  int32_t Entries(DeviceId owner, OpId op) {
    if (const auto known = entries_.find({owner, op}); known != entries_.end()) return known->second;
    int32_t entries = device(op) == owner ? 1 : 0;
    for (const OpId u : Producers(op))
      entries = std::max(entries, Entries(owner, u) + (device(op) == owner && device(u) != owner ? 1 : 0));
    return entries_[{owner, op}] = entries;
  }

  void FindPieces() {
    for (const OpId op : graph_.ops()) {
      piece_of_[op] = problem_.on_host(device(op)) ? Piece{-1, static_cast<int32_t>(op)}
                                                   : Piece{static_cast<int32_t>(device(op)), Entries(device(op), op)};
    }
    if (!WaitInACircle()) return;
    std::map<OpId, int32_t> phase;
    for (const OpId op : graph_.ops()) {
      for (const OpId u : Producers(op)) {
        const bool same = device(u) == device(op) || (problem_.on_host(device(u)) && problem_.on_host(device(op)));
        phase[op] = std::max(phase[op], phase[u] + (same ? 0 : 1));
      }
      if (!problem_.on_host(device(op))) piece_of_[op].second = phase[op];
    }
  }

  std::map<Piece, std::set<Piece>> Waits() const {
    std::map<Piece, std::set<Piece>> waits;
    for (const OpId op : graph_.ops()) {
      waits[piece(op)];
      for (const OpId u : Producers(op)) {
        if (piece(u) != piece(op)) waits[piece(op)].insert(piece(u));
      }
    }
    return waits;
  }

  bool WaitInACircle() const {
    std::map<Piece, std::set<Piece>> waits = Waits();
    while (!waits.empty()) {
      const auto free = std::ranges::find_if(waits, [](const auto& entry) { return entry.second.empty(); });
      if (free == waits.end()) return true;
      const Piece ended = free->first;
      waits.erase(free);
      for (auto& [piece, others] : waits) others.erase(ended);
    }
    return false;
  }

  Needed NeededTransfers() const {
    Needed needed;
    for (const TensorId t : graph_.tensors()) {
      const OpId u = graph_.producer(t);
      const DeviceId from = device(u);
      for (const OpId v : graph_.consumers(t)) {
        const DeviceId to = device(v);
        if (piece(u) == piece(v)) continue;
        if (problem_.has_staging()) {
          if (!problem_.on_host(from))
            needed[{t, from, from, TransferPart::kSend, piece(u).second}] = problem_.staging(t);
          if (!problem_.on_host(to))
            needed[{t, from, to, TransferPart::kReceive, piece(v).second}] = problem_.staging(t);
        } else if (from != to) {
          if (!problem_.on_host(from))
            needed[{t, from, to, TransferPart::kSend, piece(u).second}] = ExpectTensor(problem_, t, from, to).total();
          if (!problem_.on_host(to))
            needed[{t, from, to, TransferPart::kReceive, piece(v).second}] =
                ExpectTensor(problem_, t, from, to).total();
        }
      }
    }
    return needed;
  }

  void CheckAccelerators() {
    std::map<DeviceId, std::vector<Interval>> lanes;
    for (const OpId op : graph_.ops()) {
      if (!problem_.on_host(device(op)))
        lanes[device(op)].push_back({timeline_.ops[Index(op)].start, timeline_.ops[Index(op)].end});
    }
    for (const TransferRun& run : timeline_.transfers)
      lanes[Payer(run.from, run.to, run.part)].push_back({run.start, run.end});
    for (const auto& [id, lane] : lanes) CheckLane(lane, name(id));
  }

  // A piece starts when all that it waits for, and the one before it on its accelerator, has ended, and lasts as long
  // as what it does.
  void CheckTimes() {
    std::map<Piece, std::set<Piece>> waits = Waits();
    std::map<Piece, double> length, end;
    for (const OpId op : graph_.ops()) length[piece(op)] += problem_.op_time(op, device(op));
    for (const auto& [key, time] : NeededTransfers()) {
      length[{static_cast<int32_t>(Payer(key.from, key.to, key.part)), key.piece}] += time;
    }
    for (auto it = waits.begin(); it != waits.end(); ++it) {
      if (it != waits.begin() && it->first.first >= 0 && std::prev(it)->first.first == it->first.first)
        it->second.insert(std::prev(it)->first);
    }
    std::map<Piece, double> start;
    const std::function<double(Piece)> end_of = [&](Piece p) {
      if (const auto known = end.find(p); known != end.end()) return known->second;
      double ready = 0;
      for (const Piece& other : waits.at(p)) ready = std::max(ready, end_of(other));
      start[p] = ready;
      return end[p] = ready + length[p];
    };
    double last = 0;
    for (const auto& [p, others] : waits) last = std::max(last, end_of(p));
    if (!Same(last, timeline_.score.time))
      Fault("the score is {}, the last piece ends at {}", timeline_.score.time, last);
    for (const OpId op : graph_.ops()) {
      const OpRun& run = timeline_.ops[Index(op)];
      const double slack = kSame * last;
      if (run.start < start[piece(op)] - slack || run.end > end[piece(op)] + slack) {
        Fault("op {} runs from {} to {}, its piece from {} to {}", graph_.op_name(op), run.start, run.end,
              start[piece(op)], end[piece(op)]);
      }
    }
  }

  bool CountsAreAllowed() const {
    std::map<int32_t, std::set<Piece>> pieces;
    for (const auto& [op, p] : piece_of_) {
      if (p.first >= 0) pieces[p.first].insert(p);
    }
    const size_t most = facts_.As<PiecesFacts>()->most;
    return most == 0 || std::ranges::all_of(pieces, [&](const auto& entry) { return entry.second.size() <= most; });
  }

  std::map<OpId, Piece> piece_of_;
  std::map<std::pair<DeviceId, OpId>, int32_t> entries_;
};

}  // namespace

std::vector<std::string> VerifyPipeline(const Evaluator& evaluator, const PlanView& plan, const Timeline& timeline) {
  return PipelineVerifier(evaluator, plan, timeline).Run();
}

std::vector<std::string> VerifyPieces(const Evaluator& evaluator, const PlanView& plan, const Timeline& timeline) {
  return PiecesVerifier(evaluator, plan, timeline).Run();
}

}  // namespace berth
