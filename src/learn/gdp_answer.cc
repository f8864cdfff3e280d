#include "learn/gdp_answer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"

namespace berth {
namespace {

constexpr int kSteps = 64;  // of prices
// By which the steps of prices shrink, from the odds' own range to a hundredth of it.
constexpr double kShorter = 0.93;

// Which ops keep something in a device's memory, if they are there: who makes it, and who reads it.
void AddUsers(const Graph& graph, const MemoryHolder& holder, std::vector<OpId>& users) {
  using Kind = MemoryHolder::Kind;
  const auto id = static_cast<size_t>(holder.id);
  const auto add = [&](std::span<const OpId> ops) { users.insert(users.end(), ops.begin(), ops.end()); };
  switch (holder.kind) {
    case Kind::kParameter:
      return add(graph.parameter_consumers(MakeId<ParameterId>(id)));
    case Kind::kTensor:
    case Kind::kCopy:
      users.push_back(graph.producer(MakeId<TensorId>(id)));
      return add(graph.consumers(MakeId<TensorId>(id)));
    case Kind::kWorkspace:
      return users.push_back(MakeId<OpId>(id));
    case Kind::kInput:  // may stay when they leave
      return;
  }
}

}  // namespace

GroupOdds::GroupOdds(const GdpTask& task, std::span<const float> log_odds, std::span<const size_t> coupling)
    : task_(task), log_odds_(log_odds), coupling_(coupling), devices_(task.problem.num_devices()) {
  const size_t nodes = task.order.size();
  const size_t groups = coupling.empty() ? nodes : *std::ranges::max_element(coupling) + 1;
  odds_.resize(groups * devices_);
  time_.resize(groups * devices_);
  bytes_.resize(groups);
  std::vector<uint8_t> runs(groups * devices_, 0);  // whether one of its nodes may be there
  for (size_t node = 0; node < nodes; ++node) {
    const size_t first = GroupOf(node) * devices_;
    bytes_[GroupOf(node)] += task.bytes[node];
    const std::span<const float> own = log_odds.subspan(node * devices_, devices_);
    const size_t likeliest = LikeliestOf(node);
    for (size_t d = 0; d < devices_; ++d) {
      const size_t there = IsAllowed(node, d) ? d : likeliest;
      odds_[first + d] += static_cast<double>(own[there]);
      const double time = task.coarse.quotient.time[static_cast<size_t>(task.order[node]) * devices_ + there];
      if (time < kCannotRun) time_[first + d] += time;
      if (there == d) runs[first + d] = 1;
    }
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i] == 0) odds_[i] = -std::numeric_limits<double>::infinity();
  }
}

size_t GroupOdds::GroupOf(size_t node) const { return coupling_.empty() ? node : coupling_[node]; }

bool GroupOdds::IsAllowed(size_t node, size_t device) const {
  return task_.mask.const_data_ptr<float>()[node * devices_ + device] == 0;
}

size_t GroupOdds::LikeliestOf(size_t node) const {
  const std::span<const float> row = log_odds_.subspan(node * devices_, devices_);
  return static_cast<size_t>(std::ranges::max_element(row) - row.begin());
}

double GroupOdds::Value(size_t group, size_t device, const Prices* prices, double strength) const {
  const size_t at = group * devices_ + device;
  return odds_[at] - (prices != nullptr ? strength * prices->price[device] * prices->loads[at] : 0);
}

std::vector<size_t> GroupOdds::DevicesOf(const Prices* prices, double strength) const {
  std::vector<size_t> device(num_groups(), 0);
  for (size_t group = 0; group < num_groups(); ++group) {
    double best_value = -std::numeric_limits<double>::infinity();
    for (size_t d = 0; d < devices_; ++d) {
      const double value = Value(group, d, prices, strength);
      if (value > best_value) device[group] = d, best_value = value;
    }
  }
  return device;
}

std::vector<double> GroupOdds::Held(std::span<const size_t> device_of_group, std::span<const double> loads) const {
  std::vector<double> held(devices_, 0);
  for (size_t group = 0; group < num_groups(); ++group) {
    held[device_of_group[group]] += loads[group * devices_ + device_of_group[group]];
  }
  return held;
}

std::vector<int64_t> GroupOdds::Spread(std::span<const size_t> device_of_group) const {
  std::vector<int64_t> device;
  for (size_t node = 0; node < task_.order.size(); ++node) {
    const size_t of_group = device_of_group[GroupOf(node)];
    device.push_back(static_cast<int64_t>(IsAllowed(node, of_group) ? of_group : LikeliestOf(node)));
  }
  return device;
}

std::vector<int64_t> GroupOdds::Likeliest() const { return Spread(DevicesOf(nullptr, 0)); }

std::vector<int64_t> GroupOdds::Likeliest(const Prices& prices, double strength) const {
  return Spread(DevicesOf(&prices, strength));
}

std::vector<int64_t> GroupOdds::OnOneDevice() const {
  const std::vector<double> busy = Held(DevicesOf(nullptr, 0), time_);
  const auto most = static_cast<size_t>(std::ranges::max_element(busy) - busy.begin());
  return Spread(std::vector<size_t>(num_groups(), most));
}

std::vector<double> GroupOdds::LoadsOf(Load load) const {
  std::vector<double> loads = time_;
  const double time = std::reduce(time_.begin(), time_.end()) / static_cast<double>(devices_);
  const double bytes = std::reduce(bytes_.begin(), bytes_.end());
  if (load == Load::kTime || !(bytes > 0) || !(time > 0)) return loads;
  for (size_t i = 0; i < loads.size(); ++i) loads[i] = loads[i] / time + bytes_[i / devices_] / bytes;
  return loads;
}

Prices GroupOdds::Balance(Load load) const {
  Prices prices{.price = std::vector<double>(devices_, 0), .loads = LoadsOf(load)};
  double range = 0;  // of the odds
  for (size_t group = 0; group < num_groups(); ++group) {
    const std::span<const double> of_group = std::span(odds_).subspan(group * devices_, devices_);
    const double most = std::ranges::max(of_group);
    if (!std::isfinite(most)) continue;  // a number of the coupling that no node has
    double least = most;
    for (const double each : of_group) {
      if (std::isfinite(each)) least = std::min(least, each);
    }
    range += most - least;
  }
  std::vector<double> best(devices_, 0);
  double least_busy = std::numeric_limits<double>::infinity(), rate = 1;
  for (int step = 0; step < kSteps; ++step, rate *= kShorter) {
    const std::vector<double> held = Held(DevicesOf(&prices, 1), prices.loads);
    const double busiest = std::ranges::max(held), whole = std::reduce(held.begin(), held.end());
    if (busiest < least_busy) least_busy = busiest, best = prices.price;
    if (!(whole > 0)) break;
    // Nats for the whole load, per unit of it.
    const double unit = rate * range / whole;
    for (size_t d = 0; d < devices_; ++d) {
      prices.price[d] += unit * (held[d] * static_cast<double>(devices_) / whole - 1);
    }
  }
  prices.price = std::move(best);
  return prices;
}

std::vector<int64_t> GroupOdds::BytesAtPeak(std::span<const int64_t> device, std::span<const DeviceId> placement,
                                            std::span<const DeviceMemory> memory) const {
  std::vector<size_t> node_of(task_.problem.num_ops());  // by op, as the task orders nodes
  for (size_t node = 0; node < task_.order.size(); ++node) {
    for (const OpId op : task_.coarse.grouping.ops_of(MakeId<GroupId>(static_cast<size_t>(task_.order[node])))) {
      node_of[Index(op)] = node;
    }
  }
  std::vector<int64_t> bytes(num_groups() * devices_, 0);
  std::vector<OpId> users;
  for (size_t d = 0; d < devices_; ++d) {
    if (memory[d].peak_bytes <= task_.problem.memory_limit(MakeId<DeviceId>(d))) continue;
    for (const MemoryHolder& holder : memory[d].holders) {
      users.clear();
      AddUsers(task_.problem.graph(), holder, users);
      std::optional<size_t> group;
      bool shared = false;
      for (const OpId op : users) {
        if (placement[Index(op)] != MakeId<DeviceId>(d)) continue;
        const size_t node = node_of[Index(op)];
        // An op that is not where its node was sent stays when the node moves.
        shared = shared || (group && *group != GroupOf(node)) || device[node] != static_cast<int64_t>(d);
        group = GroupOf(node);
      }
      if (group && !shared) bytes[*group * devices_ + d] += holder.bytes;
    }
  }
  return bytes;
}

std::unordered_map<size_t, std::vector<uint8_t>> GroupOdds::MayMove(std::span<const int64_t> device,
                                                                    std::span<const int64_t> bytes) const {
  std::unordered_map<size_t, std::vector<uint8_t>> may_move;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != 0) may_move.emplace(i, std::vector<uint8_t>(devices_, 1));
  }
  for (size_t node = 0; node < device.size(); ++node) {
    const auto part = may_move.find(GroupOf(node) * devices_ + static_cast<size_t>(device[node]));
    if (part == may_move.end()) continue;
    for (size_t to = 0; to < devices_; ++to) {
      if (!IsAllowed(node, to)) part->second[to] = 0;
    }
  }
  return may_move;
}

std::vector<int64_t> GroupOdds::Relieve(std::span<const int64_t> device, std::span<const DeviceId> placement,
                                        std::span<const DeviceMemory> memory, const Prices& prices) const {
  BERTH_CHECK(device.size() == task_.order.size() && placement.size() == task_.problem.num_ops());
  BERTH_CHECK(memory.size() == devices_ && prices.loads.size() == odds_.size());
  std::vector<int64_t> room;  // by device; below 0: what it lacks
  for (size_t d = 0; d < devices_; ++d) {
    room.push_back(task_.problem.memory_limit(MakeId<DeviceId>(d)) - memory[d].peak_bytes);
  }
  const std::vector<int64_t> bytes = BytesAtPeak(device, placement, memory);
  const auto may_move = MayMove(device, bytes);
  struct Move {
    double loss_per_byte;
    size_t group, from, to;
  };
  std::vector<Move> moves;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0) continue;
    const size_t group = i / devices_, from = i % devices_;
    // More than is lacking is worth no more.
    const auto freed = static_cast<double>(std::min(bytes[i], -room[from]));
    const double value = Value(group, from, &prices, 1);
    const std::vector<uint8_t>& may_go = may_move.at(i);
    for (size_t to = 0; to < devices_; ++to) {
      if (to == from || may_go[to] == 0) continue;
      moves.push_back({(value - Value(group, to, &prices, 1)) / freed, group, from, to});
    }
  }
  std::ranges::stable_sort(moves, {}, &Move::loss_per_byte);
  std::vector<size_t> now(num_groups() * devices_);  // where the part of a group that was on a device is
  for (size_t i = 0; i < now.size(); ++i) now[i] = i % devices_;
  bool moved = false;
  for (const Move& move : moves) {
    const size_t at = move.group * devices_ + move.from;
    if (room[move.from] >= 0 || room[move.to] < bytes[at] || now[at] != move.from) continue;
    now[at] = move.to;
    room[move.from] += bytes[at];
    room[move.to] -= bytes[at];
    moved = true;
  }
  if (!moved) return {};
  std::vector<int64_t> relieved(device.begin(), device.end());
  for (size_t node = 0; node < relieved.size(); ++node) {
    relieved[node] = static_cast<int64_t>(now[GroupOf(node) * devices_ + static_cast<size_t>(device[node])]);
  }
  return relieved;
}

GdpAnswers::GdpAnswers(const GdpTask& task, std::span<const float> log_odds)
    : task_(task),
      ops_(task, log_odds, {}),
      groups_(task, log_odds, task.colocated),
      layers_(task, log_odds, task.layers) {}

std::vector<std::vector<int64_t>> GdpAnswers::Placements(size_t most) const {
  std::vector<std::vector<int64_t>> placements;
  const auto add = [&](std::vector<int64_t> device) {
    if (placements.size() < most) placements.push_back(std::move(device));
  };
  add(ops_.Likeliest());
  if (!task_.coupled()) return placements;
  add(groups_.Likeliest());
  add(layers_.Likeliest());
  if (placements.size() == most) return placements;  // prices take longer
  const Prices of_groups = groups_.Balance(Load::kTime), of_layers = layers_.Balance(Load::kTimeAndBytes);
  add(groups_.Likeliest(of_groups, 0.5));
  add(layers_.Likeliest(of_layers, 0.5));
  add(groups_.Likeliest(of_groups, 1));
  add(layers_.Likeliest(layers_.Balance(Load::kTime), 1));
  add(ops_.Likeliest(ops_.Balance(Load::kTime), 1));
  BERTH_CHECK(most <= kMemoryShared || placements.size() == kMemoryShared);
  add(layers_.Likeliest(of_layers, 1));
  add(layers_.OnOneDevice());
  return placements;
}

std::vector<int64_t> GdpAnswers::Relieve(std::span<const int64_t> device, std::span<const DeviceId> placement,
                                         std::span<const DeviceMemory> memory) const {
  for (const GroupOdds* level : {&layers_, &groups_, &ops_}) {
    std::vector<int64_t> relieved = level->Relieve(device, placement, memory, level->Balance(Load::kTimeAndBytes));
    if (!relieved.empty()) return relieved;
  }
  return {};
}

}  // namespace berth
