#include "moves/move_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "placement/partial_schedule.h"
#include "placement/testing.h"

namespace berth {
namespace {

using Moves = std::vector<std::pair<OpId, DeviceId>>;
using ::testing::DoubleEq;
using ::testing::Pointwise;

double Squash(double x) { return x / (1 + std::abs(x)); }

// The ops one after another, each as soon as it can start.
std::vector<double> StartsOf(const Problem& problem, std::span<const DeviceId> device, Contention contention) {
  PartialSchedule schedule(problem, contention);
  std::vector<double> starts;
  for (const OpId op : problem.graph().ops()) starts.push_back(schedule.Place(op, device[Index(op)]).start);
  return starts;
}

// What the header promises, by looking at all ops, all pairs of neighbours and all tensors for each move.
class SlowFeatures {
 public:
  SlowFeatures(const Problem& problem, std::vector<DeviceId> device, std::vector<double> starts)
      : problem_(problem), device_(std::move(device)), start_(std::move(starts)) {
    for (const OpId op : problem.graph().ops()) {
      end_.push_back(start_[Index(op)] + Time(op));
      makespan_ = std::max(makespan_, end_.back());
    }
    FindLatestEnds();
  }

  std::vector<double> Of(const Moves& moves) const {
    std::vector<DeviceId> after = device_;
    for (const auto& [op, to] : moves) after[Index(op)] = to;
    std::vector<OpId> moved;
    for (const OpId op : problem_.graph().ops()) {
      if (std::ranges::any_of(moves, [&](const auto& move) { return move.first == op; })) moved.push_back(op);
    }
    double critical_before = 0, critical_after = 0, longer = 0, work = 0, begin = makespan_, end = 0;
    for (const OpId op : moved) {
      const double critical = Critical(latest_[Index(op)] - end_[Index(op)]);
      const double time_after = problem_.op_time(op, after[Index(op)]);
      critical_before += critical * Time(op);
      critical_after += critical * time_after;
      longer += time_after - Time(op);
      work += time_after;
      begin = std::min(begin, start_[Index(op)]);
      end = std::max(end, end_[Index(op)]);
    }
    double sending = 0, critical_sending = 0, cuts = 0;
    ForEachEdge([&](TensorId tensor, OpId from, OpId to) {
      const double change = Sending(tensor, from, to, after) - Sending(tensor, from, to, device_);
      const double slack = latest_[Index(to)] - Time(to) - (end_[Index(from)] + Sending(tensor, from, to, device_));
      sending += change;
      critical_sending += Critical(slack) * change;
      cuts += after[Index(from)] != after[Index(to)] ? 1 : 0;
      cuts -= device_[Index(from)] != device_[Index(to)] ? 1 : 0;
    });
    double crowded = work;
    for (const DeviceId device : problem_.cluster().ids()) {
      double comes = 0, busy = 0;
      for (const OpId op : moved) comes += after[Index(op)] == device ? problem_.op_time(op, device) : 0;
      for (const OpId op : problem_.graph().ops()) {
        if (device_[Index(op)] != device) continue;
        busy += std::max(0.0, std::min(end, end_[Index(op)]) - std::max(begin, start_[Index(op)]));
      }
      if (comes > 0) crowded += busy - std::max(0.0, end - begin);
    }
    const double path = critical_after - critical_before + critical_sending;
    return {1,
            Share(critical_before),
            Share(critical_after),
            Share(critical_after - critical_before),
            Share(MostLoad(after) - MostLoad(device_)),
            Share(sending),
            Share(critical_sending),
            Share(std::max(0.0, crowded)),
            Share(path),
            Share(longer),
            Squash(std::log(1.0 + static_cast<double>(moved.size())) / 2),
            Squash(0.3 * cuts),
            Share(std::max(0.0, critical_sending)),
            Share(std::max(0.0, path)),
            Share(work),
            critical_before > 1e-3 * work ? 1.0 : 0.0};
  }

  double makespan() const { return makespan_; }

 private:
  double Time(OpId op) const { return problem_.op_time(op, device_[Index(op)]); }
  double Share(double time) const { return Squash(20 * time / makespan_); }
  double Critical(double slack) const { return std::exp(-std::max(0.0, slack) / makespan_ / 0.02); }
  double Sending(TensorId tensor, OpId from, OpId to, std::span<const DeviceId> device) const {
    const DeviceId a = device[Index(from)], b = device[Index(to)];
    return a == b ? 0 : problem_.transfer_time(tensor, a, b);
  }
  double MostLoad(std::span<const DeviceId> device) const {
    std::vector<double> load(problem_.num_devices(), 0);
    for (const OpId op : problem_.graph().ops()) {
      load[Index(device[Index(op)])] += problem_.op_time(op, device[Index(op)]);
    }
    return std::ranges::max(load);
  }
  template <typename Visit>
  void ForEachEdge(const Visit& visit) const {
    const Graph& graph = problem_.graph();
    for (const TensorId tensor : graph.tensors()) {
      for (const OpId to : graph.consumers(tensor)) visit(tensor, graph.producer(tensor), to);
    }
  }
  // Lowered as long as somebody waits: by consumers, and by all ops that run later on the same device.
  void FindLatestEnds() {
    latest_.assign(end_.size(), makespan_);
    const auto place = [&](OpId op) { return std::tuple(start_[Index(op)], end_[Index(op)], op); };
    for (bool lowered = true; lowered;) {
      lowered = false;
      const auto lower = [&](OpId op, double to) {
        if (to >= latest_[Index(op)]) return;
        latest_[Index(op)] = to;
        lowered = true;
      };
      ForEachEdge([&](TensorId tensor, OpId from, OpId to) {
        lower(from, latest_[Index(to)] - Time(to) - Sending(tensor, from, to, device_));
      });
      for (const OpId a : problem_.graph().ops()) {
        for (const OpId b : problem_.graph().ops()) {
          if (device_[Index(a)] == device_[Index(b)] && place(a) < place(b)) lower(a, latest_[Index(b)] - Time(b));
        }
      }
    }
  }

  const Problem& problem_;
  std::vector<DeviceId> device_;
  std::vector<double> start_, end_, latest_;
  double makespan_ = 0;
};

TEST(MoveFeatures, AreWhatAllOpsAndTensorsSay) {
  Random random(1);
  int compared = 0;
  for (int i = 0; i < 150; ++i) {
    const Problem problem = testing::RandomProblem(random, {.ties = i % 3 == 0, .forbidden = 0.2});
    MoveFeatures features(problem);
    // One after the other, so that nothing of the plan before is left.
    for (const Contention contention : {Contention::kNone, Contention::kPorts}) {
      const std::vector<DeviceId> device = testing::RandomPlacement(problem, random);
      const std::vector<double> starts = StartsOf(problem, device, contention);
      const SlowFeatures slow(problem, device, starts);
      if (slow.makespan() == 0) continue;
      features.Know(device, starts);
      for (int k = 0; k < 10; ++k) {
        const std::vector<DeviceId> to = testing::RandomPlacement(problem, random);
        Moves moves;
        for (size_t left = 1 + random.Below(6); left > 0; --left) {
          const auto op = MakeId<OpId>(random.Below(problem.num_ops()));
          moves.emplace_back(op, random.Chance(0.2) ? device[Index(op)] : to[Index(op)]);
        }
        const MoveFeatures::Row row = features.Of(moves);
        const std::vector<double> expected = slow.Of(moves);
        ASSERT_EQ(row.size(), expected.size());
        for (size_t f = 0; f < row.size(); ++f) {
          ASSERT_NEAR(row[f], expected[f], 1e-9) << "problem " << i << ", feature " << f;
          EXPECT_LE(std::abs(row[f]), 1);
        }
        EXPECT_EQ(row[0], 1);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 2000);
}

TEST(MoveFeatures, SayWhatAMoveOfHalfAChainCosts) {
  const Problem problem = testing::Chain(4, 2);
  MoveFeatures features(problem);
  features.Know(std::vector<DeviceId>(4, DeviceId{0}), std::vector<double>{0, 1, 2, 3});
  const MoveFeatures::Row row = features.Of(Moves{{OpId{2}, DeviceId{1}}, {OpId{3}, DeviceId{1}}});
  // All of it is critical; a twentieth of the makespan is 1/5.
  const std::vector<double> expected = {1,
                                        Squash(10),
                                        Squash(10),
                                        0,
                                        Squash(-10),
                                        Squash(5),
                                        Squash(5),
                                        0,
                                        Squash(5),
                                        0,
                                        Squash(std::log(3) / 2),
                                        Squash(0.3),
                                        Squash(5),
                                        Squash(5),
                                        Squash(10),
                                        1};
  EXPECT_THAT(row, Pointwise(DoubleEq(), expected));
}

TEST(MoveFeatures, TellWhatTheEndWaitsFor) {
  // Twenty ops in a row on the first device, one beside them that nobody needs.
  GraphBuilder builder("beside");
  for (size_t v = 0; v < 21; ++v) {
    builder.AddOp("", "Unit", {});
    builder.AddTensor(v, 1, {}, v >= 19);
    if (v > 0 && v < 20) builder.Consume(v - 1, v);
  }
  const Problem problem = testing::UnitProblem(builder.Build(), 3);
  std::vector<DeviceId> device(21, DeviceId{0});
  device[20] = DeviceId{1};
  MoveFeatures features(problem);
  features.Know(device, StartsOf(problem, device, Contention::kNone));
  const MoveFeatures::Row beside = features.Of(Moves{{OpId{20}, DeviceId{2}}});
  const MoveFeatures::Row within = features.Of(Moves{{OpId{10}, DeviceId{2}}});
  EXPECT_EQ(beside.back(), 0);
  EXPECT_EQ(within.back(), 1);
  EXPECT_LT(beside[1], 1e-12);
  EXPECT_EQ(within[1], Squash(1));
}

TEST(MoveFeatures, AreNumbersWhereNothingTakesTime) {
  const Problem unit = testing::Chain(2, 2);
  const Problem problem(unit.shared_graph(), unit.shared_cluster(), {.time = {0, 1, 0, 1}, .source = "test"});
  MoveFeatures features(problem);
  features.Know(std::vector<DeviceId>(2, DeviceId{0}), std::vector<double>(2, 0));
  for (const double each : features.Of(Moves{{OpId{1}, DeviceId{1}}})) {
    EXPECT_GE(each, -1);
    EXPECT_LE(each, 1);
  }
}

}  // namespace
}  // namespace berth
