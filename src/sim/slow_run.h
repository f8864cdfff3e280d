// The rules of docs/semantics.md for `parallel` once more, slow and obvious, for tests: nothing is shared with the
// simulator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "placement/evaluator.h"

namespace berth::testing {

// What is sent: a graph input (io=host) or a tensor, and where to. Inputs come first.
struct Move {
  bool is_tensor;
  int32_t id;
  int32_t to;
  auto operator<=>(const Move&) const = default;
};

class SlowRun {
 public:
  SlowRun(const Problem& problem, const PlanView& plan, Contention contention, std::optional<DeviceId> io_host)
      : problem_(problem), graph_(problem.graph()), plan_(plan), contention_(contention), io_host_(io_host) {
    if (plan.sequence != nullptr) OrderTransfers();
  }

  // False where nothing can start any more and not all is done.
  bool Simulate() {
    start_.assign(graph_.num_ops(), -1);
    end_.assign(graph_.num_ops(), kCannotRun);
    for (const OpId op : graph_.ops()) {
      if (Missing(op) == 0) ready_[Index(op)] = 0;
    }
    if (io_host_) {
      for (const InputId input : graph_.inputs()) Appear(false, static_cast<int32_t>(input));
    }
    while (true) {
      StartTransfers();
      StartOps();
      double next = kCannotRun;
      for (const size_t op : running_) next = std::min(next, end_[op]);
      for (const Move& move : active_)
        next = std::min(next, contention_ == Contention::kLinks ? NextOnMedium(move) : moves_.at(move).second);
      if (next == kCannotRun) break;
      if (contention_ == Contention::kLinks) Advance(next);
      now_ = next;
      EndOps();
      EndTransfers();
    }
    return pending_.empty() && std::ranges::all_of(start_, [](double start) { return start >= 0; });
  }

  double time() const { return now_; }
  const std::vector<double>& starts() const { return start_; }
  const std::map<Move, std::pair<double, double>>& moves() const { return moves_; }

  // Bytes per device, looked at when anything starts.
  std::vector<int64_t> Peaks() const {
    std::set<double> moments{0};
    moments.insert(start_.begin(), start_.end());
    for (const auto& [move, times] : moves_) moments.insert(times.first);
    const std::vector<Held> held = AllHeld();
    std::vector<int64_t> peaks(problem_.num_devices());
    for (const double moment : moments) {
      std::vector<int64_t> bytes(problem_.num_devices());
      for (const Held& h : held) {
        if (h.from <= moment && moment < h.to) bytes[static_cast<size_t>(h.device)] += h.bytes;
      }
      for (size_t d = 0; d < peaks.size(); ++d) peaks[d] = std::max(peaks[d], bytes[d]);
    }
    return peaks;
  }

 private:
  int32_t device(OpId op) const { return static_cast<int32_t>(plan_.device[Index(op)]); }
  std::span<const OpId> Consumers(const Move& move) const {
    return move.is_tensor ? graph_.consumers(TensorId{move.id}) : graph_.input_consumers(InputId{move.id});
  }
  int32_t Home(const Move& move) const {
    return move.is_tensor ? device(graph_.producer(TensorId{move.id})) : static_cast<int32_t>(io_host_.value());
  }
  bool IsResult(const Move& move) const {
    return io_host_ == DeviceId{move.to} && move.is_tensor && graph_.is_output(TensorId{move.id});
  }

  // What passes before the link is used, and what using it alone takes: by the words of docs/semantics.md, from the
  // cluster's links.
  std::pair<double, double> Parts(const Move& move, DeviceId from, DeviceId to) const {
    const TensorId tensor{move.id};
    if (move.is_tensor && problem_.has_explicit_transfers()) return {0, problem_.transfer_time(tensor, from, to)};
    if (move.is_tensor && graph_.is_constant(tensor)) return {0, 0};
    const int64_t bytes = move.is_tensor ? graph_.tensor_bytes(tensor) : graph_.input_bytes(InputId{move.id});
    const Link& link = problem_.cluster().link(from, to);
    const double unit = problem_.seconds_per_unit();
    return {link.latency.value / unit, static_cast<double>(bytes) / (link.bandwidth.value * unit)};
  }

  // The transfers of one tensor or input.
  std::set<Move> MovesOf(bool is_tensor, int32_t id) const {
    std::set<Move> moves;
    for (const OpId op : Consumers({is_tensor, id, 0})) moves.insert({is_tensor, id, device(op)});
    if (const Move back{is_tensor, id, static_cast<int32_t>(io_host_.value_or(DeviceId{-1}))}; IsResult(back)) {
      moves.insert(back);
    }
    moves.erase({is_tensor, id, Home({is_tensor, id, 0})});
    return moves;
  }

  // The order that ports keep: what no sequence can name goes first (inputs) and last (outputs that only the host
  // wants).
  void OrderTransfers() {
    if (io_host_) {
      for (const InputId input : graph_.inputs()) {
        for (const Move& move : MovesOf(false, static_cast<int32_t>(input))) order_.push_back(move);
      }
    }
    for (const auto& [tensor, to] : plan_.sequence->transfers) {
      order_.push_back({true, static_cast<int32_t>(tensor), static_cast<int32_t>(to)});
    }
    for (const TensorId tensor : graph_.tensors()) {
      for (const Move& move : MovesOf(true, static_cast<int32_t>(tensor))) {
        if (std::ranges::find(order_, move) == order_.end()) order_.push_back(move);
      }
    }
  }

  int Missing(OpId op) const {
    int missing = 0;
    for (const TensorId t : graph_.inputs_of(op))
      missing += !there_.contains({true, static_cast<int32_t>(t), device(op)});
    if (!io_host_) return missing;
    for (const InputId input : graph_.inputs()) {
      for (const OpId c : graph_.input_consumers(input)) {
        missing += c == op && !there_.contains({false, static_cast<int32_t>(input), device(op)});
      }
    }
    return missing;
  }

  void Arrive(const Move& move) {
    there_.insert(move);
    for (const OpId op : Consumers(move)) {
      if (device(op) == move.to && Missing(op) == 0) ready_[Index(op)] = now_;
    }
  }

  void Appear(bool is_tensor, int32_t id) {
    Arrive({is_tensor, id, Home({is_tensor, id, 0})});
    for (const Move& move : MovesOf(is_tensor, id)) pending_.insert({now_, move});
  }

  bool SharesPort(const Move& a, const Move& b) const {
    if (contention_ == Contention::kNone || contention_ == Contention::kLinks) return false;
    return Home(a) == Home(b) || (contention_ == Contention::kPorts && a.to == b.to);
  }

  bool CanStart(const Move& move) const {
    if (std::ranges::any_of(active_, [&](const Move& other) { return SharesPort(move, other); })) return false;
    if (plan_.sequence == nullptr) return true;
    for (const Move& before : order_) {
      if (before == move) return true;
      if (!moves_.contains(before) && SharesPort(before, move)) return false;
    }
    return false;
  }

  void StartTransfers() {
    for (bool again = true; again;) {
      again = false;
      for (auto it = pending_.begin(); it != pending_.end(); ++it) {
        const Move move = it->second;
        if (!CanStart(move)) continue;
        const DeviceId from{Home(move)}, to{move.to};
        const auto [latency, sending] = Parts(move, from, to);
        moves_[move] = {now_, now_ + (latency + sending)};
        if (contention_ == Contention::kLinks) sent_[move] = {now_ + latency, sending};
        active_.insert(move);
        pending_.erase(it);
        again = true;
        break;
      }
    }
  }

  void StartOps() {
    for (int32_t d = 0; d < static_cast<int32_t>(problem_.num_devices()); ++d) {
      if (std::ranges::any_of(running_, [&](size_t op) { return device(MakeId<OpId>(op)) == d; })) continue;
      std::optional<size_t> next;
      const auto rank = [&](size_t op) {
        const double first = plan_.priority.empty() ? ready_.at(op) : -plan_.priority[op];
        return std::pair(first, op);
      };
      for (const auto& [op, time] : ready_) {
        if (device(MakeId<OpId>(op)) == d && (!next || rank(op) < rank(*next))) next = op;
      }
      if (plan_.sequence != nullptr) {
        const auto due = std::ranges::find_if(plan_.sequence->ops,
                                              [&](OpId op) { return device(op) == d && start_[Index(op)] < 0; });
        next.reset();
        if (due != plan_.sequence->ops.end() && ready_.contains(Index(*due))) next = Index(*due);
      }
      if (!next) continue;
      ready_.erase(*next);
      running_.insert(*next);
      start_[*next] = now_;
      end_[*next] = now_ + problem_.op_time(MakeId<OpId>(*next), DeviceId{d});
    }
  }

  void EndOps() {
    for (const size_t op : std::set<size_t>(running_)) {
      if (end_[op] != now_) continue;
      running_.erase(op);
      for (size_t t = graph_.first_output(MakeId<OpId>(op)); t < graph_.end_output(MakeId<OpId>(op)); ++t)
        Appear(true, static_cast<int32_t>(t));
    }
  }

  // --- links: how much of each transfer is left, and how fast that goes at the moment -------------------------------

  struct Sending {
    double begin;  // when its latency is over
    double left;   // in time alone on its medium
  };

  std::string Medium(const Move& move) const {
    const std::string& domain = problem_.cluster().link(DeviceId{Home(move)}, DeviceId{move.to}).domain;
    return domain.empty() ? std::to_string(Home(move)) + ">" + std::to_string(move.to) : "domain " + domain;
  }

  double Sharing(const Move& move) const {
    return static_cast<double>(std::ranges::count_if(
        active_, [&](const Move& other) { return sent_.at(other).begin <= now_ && Medium(other) == Medium(move); }));
  }

  double NextOnMedium(const Move& move) const {
    const Sending& sending = sent_.at(move);
    return sending.begin > now_ ? sending.begin : now_ + sending.left * Sharing(move);
  }

  void Advance(double to) {
    std::map<Move, Sending> after;
    for (const Move& move : active_) {
      Sending sending = sent_.at(move);
      moves_.at(move).second = sending.begin > now_ ? kCannotRun : NextOnMedium(move);
      if (sending.begin <= now_) sending.left = std::max(0.0, sending.left - (to - now_) / Sharing(move));
      after[move] = sending;
    }
    sent_ = after;
  }

  void EndTransfers() {
    for (const Move& move : std::set<Move>(active_)) {
      if (moves_.at(move).second != now_) continue;
      active_.erase(move);
      Arrive(move);
    }
  }

  // The last moment at which something is wanted on move.to.
  double LastUse(const Move& move) const {
    double last = 0;
    for (const OpId op : Consumers(move)) {
      if (device(op) == move.to) last = std::max(last, end_[Index(op)]);
    }
    return last;
  }

  struct Held {
    int32_t device;
    double from, to;
    int64_t bytes;
  };

  std::vector<Held> AllHeld() const {
    std::vector<Held> held;
    for (const ParameterId p : graph_.parameters()) {
      std::set<int32_t> devices;
      for (const OpId op : graph_.parameter_consumers(p)) devices.insert(device(op));
      for (const int32_t d : devices) held.push_back({d, 0, kCannotRun, graph_.parameter_bytes(p)});
    }
    for (const OpId op : graph_.ops()) {
      held.push_back({device(op), start_[Index(op)], end_[Index(op)], graph_.work(op).workspace_bytes});
    }
    const auto add_source = [&](const Move& source, double from, double to, int64_t bytes) {
      to = std::max(to, LastUse(source));
      for (const Move& move : MovesOf(source.is_tensor, source.id)) {
        to = std::max(to, moves_.at(move).second);
        held.push_back({move.to, moves_.at(move).first, IsResult(move) ? now_ : LastUse(move), bytes});
      }
      if (source.is_tensor && graph_.is_output(TensorId{source.id})) to = now_;
      held.push_back({source.to, from, to, bytes});
    };
    for (const TensorId t : graph_.tensors()) {
      const size_t u = Index(graph_.producer(t));
      add_source({true, static_cast<int32_t>(t), device(MakeId<OpId>(u))}, start_[u], end_[u], graph_.tensor_bytes(t));
    }
    if (io_host_) {
      for (const InputId i : graph_.inputs()) {
        add_source({false, static_cast<int32_t>(i), static_cast<int32_t>(*io_host_)}, 0, 0, graph_.input_bytes(i));
      }
    }
    return held;
  }

  const Problem& problem_;
  const Graph& graph_;
  const PlanView& plan_;
  Contention contention_;
  std::optional<DeviceId> io_host_;
  std::vector<Move> order_;
  double now_ = 0;
  std::vector<double> start_, end_;
  std::map<size_t, double> ready_;
  std::set<size_t> running_;
  std::set<Move> there_;
  std::set<std::pair<double, Move>> pending_;
  std::set<Move> active_;
  std::map<Move, std::pair<double, double>> moves_;
  std::map<Move, Sending> sent_;
};

}  // namespace berth::testing
