#include "moves/list_scheduler.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "moves/rank.h"

namespace berth {
namespace {

// The optimistic cost table of PEFT (Arabnejad and Barbosa 2014, equation 5): per op and device, the least time from
// the end of the op there to the end of everything, each consumer on its best device. O(edges x devices).
std::vector<double> OptimisticCosts(const Problem& problem) {
  const Graph& graph = problem.graph();
  const size_t devices = problem.num_devices();
  const MeanTransfer transfer(problem);
  std::vector<double> cost(graph.num_ops() * devices, 0);
  for (size_t v = graph.num_ops(); v-- > 0;) {
    const auto op = MakeId<OpId>(v);
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      const auto tensor = MakeId<TensorId>(t);
      for (const OpId consumer : graph.consumers(tensor)) {
        double least = kCannotRun;
        const auto whole = [&](size_t q) {
          return cost[Index(consumer) * devices + q] + problem.op_time(consumer, MakeId<DeviceId>(q));
        };
        for (size_t q = 0; q < devices; ++q) least = std::min(least, whole(q));
        least += transfer(tensor);
        for (size_t p = 0; p < devices; ++p) {
          cost[v * devices + p] = std::max(cost[v * devices + p], std::min(least, whole(p)));
        }
      }
    }
  }
  return cost;
}

}  // namespace

ListScheduler::ListScheduler(const Units& units, Urgency urgency, std::vector<OpId> favourite)
    : units_(units), problem_(units.problem()), urgency_(urgency), favourite_(std::move(favourite)) {
  BERTH_CHECK(favourite_.empty() || urgency == Urgency::kEarliest, "only ETF has favourite children");
  const size_t devices = problem_.num_devices();
  if (urgency == Urgency::kOptimistic) {
    ahead_ = OptimisticCosts(problem_);
    for (size_t v = 0; v < problem_.num_ops(); ++v) {
      rank_.push_back(MeanTime(std::span(ahead_).subspan(v * devices, devices)));
    }
    return;
  }
  rank_ = UpwardRank(problem_);
  if (urgency == Urgency::kCritical) SetCritical();
}

// rank_d of CPOP (Topcuoglu et al. 2002, equation 7), and the ops through which the longest way goes.
void ListScheduler::SetCritical() {
  const Graph& graph = problem_.graph();
  const MeanTransfer transfer(problem_);
  std::vector<double> from_start(graph.num_ops(), 0);
  for (const OpId op : graph.ops()) {
    for (const TensorId tensor : graph.inputs_of(op)) {
      const OpId producer = graph.producer(tensor);
      from_start[Index(op)] =
          std::max(from_start[Index(op)],
                   from_start[Index(producer)] + MeanTime(problem_.op_times(producer)) + transfer(tensor));
    }
  }
  double longest = 0;
  for (const OpId op : graph.ops()) {
    rank_[Index(op)] += from_start[Index(op)];
    longest = std::max(longest, rank_[Index(op)]);
  }
  critical_.assign(graph.num_ops(), 0);
  std::vector<double> time(problem_.num_devices(), 0);
  for (const OpId op : graph.ops()) {
    // Sums in another order differ in their last bits.
    if (rank_[Index(op)] < longest * (1 - 1e-12)) continue;
    critical_[Index(op)] = 1;
    for (const DeviceId device : problem_.cluster().ids()) time[Index(device)] += problem_.op_time(op, device);
  }
  const auto least = std::ranges::min_element(time);
  if (least != time.end() && *least < kCannotRun) {
    critical_device_ = MakeId<DeviceId>(static_cast<size_t>(least - time.begin()));
  }
}

void ListScheduler::Begin(const ListRules& rules, const Clusters* clusters) {
  const Graph& graph = problem_.graph();
  rules_ = rules;
  clusters_ = clusters;
  kept_apart_ = true;
  stopped_ = false;
  placed_ = 0;
  device_.assign(graph.num_ops(), DeviceId{-1});
  device_of_cluster_.assign(clusters == nullptr ? 0 : clusters->size(), DeviceId{-1});
  pending_.assign(problem_.num_devices(), 0);
  given_bytes_.assign(problem_.num_devices(), 0);
  missing_.assign(graph.num_ops(), 0);
  for (const OpId op : graph.ops()) missing_[Index(op)] = graph.inputs_of(op).size();
  waiting_bytes_.assign(problem_.num_devices(), 0);
  if (rules_.mind_memory && own_bytes_.empty()) SetOwnBytes();
}

void ListScheduler::SetOwnBytes() {
  const Graph& graph = problem_.graph();
  own_bytes_.assign(graph.num_ops(), 0);
  for (const TensorId tensor : graph.tensors()) own_bytes_[Index(graph.producer(tensor))] += graph.tensor_bytes(tensor);
  std::vector<ParameterId> last(units_.size(), ParameterId{-1});  // by unit: which of its parameters was counted last
  for (const ParameterId parameter : graph.parameters()) {
    for (const OpId op : graph.parameter_consumers(parameter)) {
      const size_t unit = units_.unit_of(op);
      if (std::exchange(last[unit], parameter) == parameter) continue;
      own_bytes_[Index(op)] += graph.parameter_bytes(parameter);
    }
  }
}

int64_t ListScheduler::OwnBytes(size_t unit) const {
  int64_t bytes = 0;
  for (const OpId op : units_.ops(unit)) bytes += own_bytes_[Index(op)];
  return bytes;
}

void ListScheduler::Put(size_t unit, DeviceId device) {
  units_.Put(device_, unit, device);
  if (rules_.mind_memory) waiting_bytes_[Index(device)] += OwnBytes(unit);
}

PartialSchedule ListScheduler::Run(const ListRules& rules, const Clusters* clusters) {
  Begin(rules, clusters);
  const bool insertion = rules.insertion && urgency_ != Urgency::kEarliest;
  PartialSchedule schedule(problem_, rules.contention, insertion, rules.io_host);
  urgency_ == Urgency::kEarliest ? RunByStart(schedule) : RunByRank(schedule);
  return schedule;
}

PartialSchedule ListScheduler::Order(const ListRules& rules, std::span<const DeviceId> device) {
  Begin(rules, nullptr);
  device_.assign(device.begin(), device.end());
  rank_ = PlacedRank(problem_, device);
  PartialSchedule schedule(problem_, rules.contention, rules.insertion, rules.io_host);
  RunByRank(schedule);
  return schedule;
}

void ListScheduler::RunByRank(PartialSchedule& schedule) {
  const Graph& graph = problem_.graph();
  using Entry = std::pair<double, OpId>;
  const auto later = [](const Entry& a, const Entry& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  };
  std::priority_queue<Entry, std::vector<Entry>, decltype(later)> ready(later);
  for (const OpId op : graph.ops()) {
    if (missing_[Index(op)] == 0) ready.emplace(rank_[Index(op)], op);
  }
  while (!ready.empty() && !Stopped()) {
    const OpId op = ready.top().second;
    ready.pop();
    if (device_[Index(op)] == DeviceId{-1}) PutWithOthers(op, schedule);
    schedule.Place(op, device_[Index(op)]);
    Placed(op);
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      for (const OpId consumer : graph.consumers(MakeId<TensorId>(t))) {
        if (--missing_[Index(consumer)] == 0) ready.emplace(rank_[Index(consumer)], consumer);
      }
    }
  }
}

// Pairs of a ready op and a device that could be next.
class ListScheduler::Offers {
 public:
  struct Choice {
    double start, rank;
    OpId op;
    size_t place;  // of three rows of devices: for the favourite that it is kept for, for all, for others than that
    bool operator<(const Choice& other) const {
      return std::tuple(start, -rank, op, place) < std::tuple(other.start, -other.rank, other.op, other.place);
    }
  };

  Offers(const ListScheduler& scheduler, PartialSchedule& schedule)
      : scheduler_(scheduler),
        schedule_(schedule),
        queues_(scheduler.problem_.num_devices()),
        kept_for_(scheduler.favourite_.empty() ? 0 : queues_.size(), OpId{-1}),
        last_(kept_for_.size(), OpId{-1}),
        everywhere_(scheduler.favourite_.empty() ? 0 : scheduler.problem_.num_ops(), 0),
        on_its_device_(scheduler.problem_.num_ops(), 0) {}

  void Add(OpId op, DeviceId device) {
    const double arrival = schedule_.Find(op, device).least_arrival;
    queues_[Index(device)].coming.push({arrival, scheduler_.rank_[Index(op)], op});
    if (!everywhere_.empty()) everywhere_[Index(op)] = std::max(everywhere_[Index(op)], arrival);
  }

  // The op that starts first, and takes it out; nothing where there is none. `elsewhere`: called with ops that have
  // gone to another device than that for which they were kept here.
  template <typename Elsewhere>
  std::optional<std::pair<OpId, DeviceId>> Take(const Elsewhere& elsewhere) {
    KeepForFavourites();
    std::optional<Choice> best;
    asked_.clear();
    for (;;) {
      const std::optional<Choice> next = Next();
      if (!next || (best && !(*next < *best))) break;
      const DeviceId device = DeviceOf(next->place);
      Entry entry = queues_[Index(device)].there.empty() ? queues_[Index(device)].coming.top()
                                                         : queues_[Index(device)].there.top();
      queues_[Index(device)].Pop();
      if (schedule_.placed(entry.op)) continue;
      if (const DeviceId own = scheduler_.device_[Index(entry.op)]; own != DeviceId{-1} && own != device) {
        if (on_its_device_[Index(entry.op)] == 0) {
          on_its_device_[Index(entry.op)] = 1;
          elsewhere(entry.op);
        }
        continue;
      }
      const PartialSchedule::Slot slot = schedule_.Find(entry.op, device);
      entry.arrival = std::max(entry.arrival, slot.least_arrival);
      const bool turned_away = IsTurnedAway(next->place);
      const Choice found{.start = turned_away ? std::max(slot.start, everywhere_[Index(entry.op)]) : slot.start,
                         .rank = entry.rank,
                         .op = entry.op,
                         .place = next->place};
      if (!best || found < *best) best = found;
      asked_.emplace_back(device, entry);
    }
    for (const auto& [device, entry] : asked_) {
      if (entry.op != best->op || device != DeviceOf(best->place)) queues_[Index(device)].coming.push(entry);
    }
    if (!best) return std::nullopt;
    return std::pair(best->op, DeviceOf(best->place));
  }

  void Placed(OpId op, DeviceId device) {
    if (!last_.empty()) last_[Index(device)] = op;
  }

 private:
  struct Entry {
    double arrival, rank;  // arrival: at best
    OpId op;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return std::tuple(a.arrival, -a.rank, a.op) > std::tuple(b.arrival, -b.rank, b.op);
    }
  };
  struct LessUrgent {
    bool operator()(const Entry& a, const Entry& b) const {
      return std::tuple(-a.rank, a.op) > std::tuple(-b.rank, b.op);
    }
  };
  // Of one device. What is there could start when the device is free, which is the same for all.
  struct Queue {
    std::priority_queue<Entry, std::vector<Entry>, Later> coming;
    std::priority_queue<Entry, std::vector<Entry>, LessUrgent> there;

    void Pop() { there.empty() ? coming.pop() : there.pop(); }
  };

  size_t PlaceOf(OpId op, size_t device) const {
    const OpId kept_for = kept_for_.empty() ? OpId{-1} : kept_for_[device];
    const size_t row = kept_for == OpId{-1} ? 1 : kept_for == op ? 0 : 2;
    return row * queues_.size() + device;
  }
  bool IsTurnedAway(size_t place) const { return place >= 2 * queues_.size(); }
  DeviceId DeviceOf(size_t place) const { return MakeId<DeviceId>(place % queues_.size()); }

  // The earliest start that any pair could have.
  std::optional<Choice> Next() {
    std::optional<Choice> next;
    for (size_t d = 0; d < queues_.size(); ++d) {
      Queue& queue = queues_[d];
      const auto device = MakeId<DeviceId>(d);
      const double free = schedule_.free_from(device);
      while (!queue.coming.empty() && queue.coming.top().arrival <= free) {
        queue.there.push(queue.coming.top());
        queue.coming.pop();
      }
      if (queue.there.empty() && queue.coming.empty()) continue;
      const Entry& top = queue.there.empty() ? queue.coming.top() : queue.there.top();
      const Choice choice{
          .start = std::max(free, top.arrival), .rank = top.rank, .op = top.op, .place = PlaceOf(top.op, d)};
      if (!next || choice < *next) next = choice;
    }
    return next;
  }

  // SCT: which devices are kept ("awake"), and for whom.
  void KeepForFavourites() {
    for (size_t d = 0; d < kept_for_.size(); ++d) {
      kept_for_[d] = OpId{-1};
      const OpId child = last_[d] == OpId{-1} ? OpId{-1} : scheduler_.favourite_[Index(last_[d])];
      if (child == OpId{-1} || scheduler_.missing_[Index(child)] > 0 || schedule_.placed(child)) continue;
      const auto device = MakeId<DeviceId>(d);
      if (!scheduler_.MayBe(child, device)) continue;
      const double here = schedule_.Find(child, device).start;
      const bool sooner = std::ranges::any_of(scheduler_.problem_.cluster().ids(), [&](DeviceId other) {
        return other != device && scheduler_.MayBe(child, other) && schedule_.Find(child, other).start < here;
      });
      if (!sooner) kept_for_[d] = child;
    }
  }

  const ListScheduler& scheduler_;
  PartialSchedule& schedule_;
  std::vector<Queue> queues_;          // by device
  std::vector<OpId> kept_for_, last_;  // by device; empty without favourites
  std::vector<double> everywhere_;     // by op: when its inputs could be on all devices, as it was when it became ready
  std::vector<uint8_t> on_its_device_;
  std::vector<std::pair<DeviceId, Entry>> asked_;
};

// Whether the op may still go to this device.
bool ListScheduler::MayBe(OpId op, DeviceId device) const {
  const DeviceId own = device_[Index(op)];
  return own != DeviceId{-1} ? own == device : units_.Fits(device_, units_.unit_of(op), device);
}

void ListScheduler::RunByStart(PartialSchedule& schedule) {
  const Graph& graph = problem_.graph();
  Offers offers(*this, schedule);
  const auto offer_all = [&](OpId op) {
    size_t able = 0;
    for (const DeviceId device : problem_.cluster().ids()) {
      if (!MayBe(op, device)) continue;
      ++able;
      offers.Add(op, device);
    }
    if (able == 0) {
      PutWithOthers(op, schedule);
      offers.Add(op, device_[Index(op)]);
    }
  };
  for (const OpId op : graph.ops()) {
    if (missing_[Index(op)] == 0) offer_all(op);
  }
  while (!Stopped()) {
    const auto next = offers.Take([&](OpId op) { offers.Add(op, device_[Index(op)]); });
    if (!next) return;
    const auto [op, device] = *next;
    if (device_[Index(op)] == DeviceId{-1}) {
      if (rules_.mind_memory || clusters_ != nullptr || !MayBe(op, device)) {
        PutWithOthers(op, schedule);
        if (device_[Index(op)] != device) {
          offers.Add(op, device_[Index(op)]);
          continue;
        }
      } else {
        Put(units_.unit_of(op), device);
      }
    }
    schedule.Place(op, device);
    Placed(op);
    offers.Placed(op, device);
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      for (const OpId consumer : graph.consumers(MakeId<TensorId>(t))) {
        if (--missing_[Index(consumer)] == 0) offer_all(consumer);
      }
    }
  }
}

void ListScheduler::PutWithOthers(OpId op, PartialSchedule& schedule) {
  if (clusters_ == nullptr) {
    Put(units_.unit_of(op), Choose(op, schedule));
    return;
  }
  // What is placed takes its work off its device's.
  const auto put_alone = [&] {
    const size_t unit = units_.unit_of(op);
    const DeviceId device = Choose(op, schedule);
    Put(unit, device);
    if (const double time = units_.time(unit, device); time < kCannotRun) pending_[Index(device)] += time;
  };
  const size_t cluster = clusters_->cluster_of(op);
  const DeviceId chosen = ChooseForCluster(op, cluster, schedule);
  if (chosen == DeviceId{-1}) {
    // No device can run all of it: units on their own.
    put_alone();
    return;
  }
  device_of_cluster_[cluster] = chosen;
  given_bytes_[Index(chosen)] += clusters_->bytes(cluster);
  for (const size_t unit : clusters_->units_of(cluster)) {
    if (device_[Index(units_.ops(unit).front())] != DeviceId{-1} || !units_.Fits(device_, unit, chosen)) continue;
    Put(unit, chosen);
    pending_[Index(chosen)] += units_.time(unit, chosen);
  }
  // Rules between units may keep the op itself away.
  if (device_[Index(op)] == DeviceId{-1}) put_alone();
}

// Each op may be looked for in all gaps of all devices, and large schedules have many.
bool ListScheduler::Stopped() {
  constexpr size_t kOften = 256;
  stopped_ = stopped_ || (rules_.stop && placed_ % kOften == 0 && rules_.stop());
  return stopped_;
}

void ListScheduler::Placed(OpId op) {
  ++placed_;
  const DeviceId device = device_[Index(op)];
  if (rules_.mind_memory) waiting_bytes_[Index(device)] -= own_bytes_[Index(op)];
  if (clusters_ == nullptr) return;
  pending_[Index(device)] = std::max(0.0, pending_[Index(device)] - problem_.op_time(op, device));
}

DeviceId ListScheduler::ChooseForCluster(OpId op, size_t cluster, PartialSchedule& schedule) {
  DeviceId best{-1};
  std::pair<int64_t, double> least;  // bytes over the limit, then time
  for (const DeviceId device : problem_.cluster().ids()) {
    const double time = clusters_->time(cluster, device);
    if (time == kCannotRun) continue;
    std::pair<int64_t, double> cost{0, schedule.Find(op, device).end + pending_[Index(device)] + time -
                                           problem_.op_time(op, device) + ReturnTime(op, device)};
    for (const Clusters::Tie& tie : clusters_->ties(cluster)) {
      const DeviceId other = device_of_cluster_[tie.cluster];
      if (other != DeviceId{-1} && other != device) cost.second += tie.time;
    }
    if (rules_.mind_memory) {
      const int64_t needed = given_bytes_[Index(device)] + clusters_->bytes(cluster);
      cost.first = std::max<int64_t>(0, needed - problem_.memory_limit(device));
    }
    if (best == DeviceId{-1} || cost < least) {
      best = device;
      least = cost;
    }
  }
  return best;
}

DeviceId ListScheduler::Choose(OpId op, PartialSchedule& schedule) {
  const size_t unit = units_.unit_of(op);
  if (critical_device_ && critical_[Index(op)] != 0 && units_.Fits(device_, unit, *critical_device_)) {
    return *critical_device_;
  }
  DeviceId best{-1};
  std::pair<int64_t, double> least;  // bytes over the limit, then time
  for (const DeviceId device : problem_.cluster().ids()) {
    if (!units_.Fits(device_, unit, device)) continue;
    const PartialSchedule::Slot slot = schedule.Find(op, device);
    std::pair<int64_t, double> cost{0, urgency_ == Urgency::kEarliest ? slot.start : slot.end};
    cost.second += ReturnTime(op, device);
    if (!ahead_.empty()) cost.second += ahead_[Index(op) * problem_.num_devices() + Index(device)];
    if (rules_.mind_memory) {
      const int64_t others = waiting_bytes_[Index(device)] + OwnBytes(unit) - own_bytes_[Index(op)];
      const int64_t needed = schedule.resident_bytes(device) + schedule.added_bytes(op, device) + others;
      cost.first = std::max<int64_t>(0, needed - problem_.memory_limit(device));
    }
    if (best == DeviceId{-1} || cost < least) {
      best = device;
      least = cost;
    }
  }
  if (best != DeviceId{-1}) return best;
  kept_apart_ = false;
  return units_.fastest(unit);
}

// Until its outputs are back on the host, if there is one.
double ListScheduler::ReturnTime(OpId op, DeviceId device) const {
  if (!rules_.io_host || device == *rules_.io_host) return 0;
  double time = 0;
  for (size_t t = problem_.graph().first_output(op); t < problem_.graph().end_output(op); ++t) {
    const auto tensor = MakeId<TensorId>(t);
    if (problem_.graph().is_output(tensor)) {
      time = std::max(time, problem_.transfer_time(tensor, device, *rules_.io_host));
    }
  }
  return time;
}

}  // namespace berth
