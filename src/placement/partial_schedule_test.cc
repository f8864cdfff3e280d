#include "placement/partial_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/testing.h"

namespace berth {
namespace {

using testing::Chain;
using testing::ForkJoin;
using testing::RandomProblem;

// The calendar as one would write it first: all bookings, and every instant at which a gap could begin.
class SlowCalendar {
 public:
  double FirstGap(double from, double length) const {
    std::vector<double> starts = {from};
    for (const auto& [start, end] : bookings_) starts.push_back(end);
    std::ranges::sort(starts);
    for (const double start : starts) {
      if (start >= from && Free(start, start + length)) return start;
    }
    return -1;
  }
  void Book(double start, double end) { bookings_.emplace_back(start, end); }

 private:
  bool Free(double start, double end) const {
    return std::ranges::none_of(bookings_, [&](const auto& b) { return start < b.second && b.first < end; });
  }
  std::vector<std::pair<double, double>> bookings_;
};

TEST(Calendar, FindsTheSameGapsAsAListOfBookings) {
  Random random(1);
  for (int round = 0; round < 20; ++round) {
    Calendar calendar;
    SlowCalendar slow;
    for (int i = 0; i < 400; ++i) {
      const double from = static_cast<double>(random.Below(800)), length = static_cast<double>(random.Below(6));
      const double start = calendar.FirstGap(from, length);
      ASSERT_EQ(start, slow.FirstGap(from, length)) << "round " << round << " booking " << i;
      if (random.Chance(0.8)) {
        calendar.Book(start, start + length);
        slow.Book(start, start + length);
      }
    }
  }
}

TEST(Calendar, ForgetsGapsThatNoRequestFits) {
  Calendar calendar(2);
  for (int i = 0; i < 1000; ++i) calendar.Book(3 * i, 3 * i + 2);
  EXPECT_EQ(calendar.num_gaps(), 1u);
  EXPECT_EQ(calendar.FirstGap(0, 2), 2999);
  EXPECT_EQ(calendar.end(), 2999);
}

// 0.4 + 0.1 is 0.5 in doubles, and 0.5 - 0.4 is less than 0.1.
TEST(Calendar, KeepsAPlaceThatItHasPromised) {
  Calendar calendar(0.1);
  calendar.Book(0.5, 0.6);
  const double first = calendar.FirstGap(0.3, 0.1), second = calendar.FirstGap(first + 0.1, 0.1);
  EXPECT_EQ(second + 0.1, 0.5);
  calendar.Book(first, first + 0.1);
  calendar.Book(second, second + 0.1);
  EXPECT_EQ(calendar.FirstGap(0.3, 0.1), 0.6);
}

TEST(Calendar, SplitsItsBlocksAsItFills) {
  Calendar calendar;
  for (int i = 0; i < 2000; ++i) calendar.Book(2 * i, 2 * i + 1);
  EXPECT_EQ(calendar.FirstGap(1001, 1), 1001);
  EXPECT_EQ(calendar.FirstGap(1001, 1.5), 3999);
  for (int i = 0; i < 1999; ++i) calendar.Book(2 * i + 1, 2 * i + 2);
  EXPECT_EQ(calendar.FirstGap(0, 0.5), 3999);
}

TEST(PartialSchedule, RunsAChainWhereItsTensorsAre) {
  const Problem problem = Chain(3, 2);
  PartialSchedule schedule(problem, Contention::kNone);
  EXPECT_EQ(schedule.Place(OpId{0}, DeviceId{0}).end, 1);
  EXPECT_EQ(schedule.Find(OpId{1}, DeviceId{0}).start, 1);
  EXPECT_EQ(schedule.Find(OpId{1}, DeviceId{1}).start, 2);
  schedule.Place(OpId{1}, DeviceId{1});
  EXPECT_EQ(schedule.Place(OpId{2}, DeviceId{1}).end, 4);
  EXPECT_EQ(schedule.makespan(), 4);
}

TEST(PartialSchedule, SendsATensorOncePerDestination) {
  const Problem problem = ForkJoin(3, 2);
  PartialSchedule schedule(problem, Contention::kPorts);
  schedule.Place(OpId{0}, DeviceId{0});
  EXPECT_EQ(schedule.Place(OpId{1}, DeviceId{1}).start, 2);
  EXPECT_EQ(schedule.Place(OpId{2}, DeviceId{1}).start, 3);
  EXPECT_EQ(schedule.Place(OpId{3}, DeviceId{0}).start, 1);
  // Two tensors come back, one after another.
  EXPECT_EQ(schedule.Place(OpId{4}, DeviceId{0}).start, 5);
  EXPECT_EQ(schedule.InOrder().transfers.size(), 3u);
}

TEST(PartialSchedule, QueuesTransfersOnlyUnderContention) {
  // Two branches elsewhere, whose tensors end at the same time.
  const Problem problem = ForkJoin(2, 3);
  for (const auto& [contention, start] :
       {std::pair(Contention::kNone, 4.0), std::pair(Contention::kEgress, 5.0), std::pair(Contention::kPorts, 5.0)}) {
    PartialSchedule schedule(problem, contention);
    schedule.Place(OpId{0}, DeviceId{0});
    schedule.Place(OpId{1}, DeviceId{1});
    schedule.Place(OpId{2}, DeviceId{2});
    EXPECT_EQ(schedule.Place(OpId{3}, DeviceId{0}).start, start);
  }
}

TEST(PartialSchedule, KnowsThatAStartMayBecomeEarlier) {
  // Ops 0, 1 and 2 end at 1, 1 and 4.5; op 3 has the port of device 0 from 4.5 to 10.5. Before that there is room for
  // the tensor of op 0 (1 long) or that of op 1 (3 long), and op 4, which wants both, asks for that of op 0 first.
  GraphBuilder builder("earlier");
  for (int v = 0; v < 6; ++v) builder.AddOp("", "Op", {});
  builder.Consume(builder.AddTensor(0, 1), 4);
  const size_t long_tensor = builder.AddTensor(1, 3);
  builder.Consume(long_tensor, 4);
  builder.Consume(long_tensor, 5);
  builder.Consume(builder.AddTensor(2, 6), 3);
  for (int v = 3; v < 6; ++v) builder.AddTensor(static_cast<size_t>(v), 0);
  std::vector<double> times(6 * 4, 1);
  std::fill_n(times.begin() + 2 * 4, 4, 4.5);
  const Problem problem(std::make_shared<const Graph>(builder.Build()),
                        std::make_shared<const Cluster>(testing::UniformCluster(4)),
                        {.time = std::move(times), .source = "test"});
  PartialSchedule schedule(problem, Contention::kPorts, false);
  schedule.Place(OpId{0}, DeviceId{1});
  schedule.Place(OpId{1}, DeviceId{2});
  schedule.Place(OpId{2}, DeviceId{3});
  EXPECT_EQ(schedule.Place(OpId{3}, DeviceId{0}).start, 10.5);
  EXPECT_EQ(schedule.free_from(DeviceId{0}), 11.5);
  const PartialSchedule::Slot before = schedule.Find(OpId{4}, DeviceId{0});
  EXPECT_EQ(before.start, 13.5);
  EXPECT_EQ(before.least_arrival, 5);
  // Op 5 has the long one sent first.
  EXPECT_EQ(schedule.Place(OpId{5}, DeviceId{0}).start, 11.5);
  EXPECT_EQ(schedule.Find(OpId{4}, DeviceId{0}).start, 12.5);
}

TEST(PartialSchedule, KnowsHowEarlyInputsCanBeThereAtBest) {
  Random random(6);
  for (int round = 0; round < 60; ++round) {
    const Problem problem = RandomProblem(random, {.ops = 30, .devices = 3, .ties = round % 2 == 0});
    const std::vector<DeviceId> device = testing::RandomPlacement(problem, random);
    for (const Contention contention : {Contention::kNone, Contention::kEgress, Contention::kPorts}) {
      PartialSchedule schedule(problem, contention, false, round % 3 == 0 ? std::optional(DeviceId{0}) : std::nullopt);
      std::vector<double> least(problem.num_ops() * problem.num_devices(), 0);
      for (const OpId op : testing::RandomSequence(problem, device, random).ops) {
        for (const OpId other : problem.graph().ops()) {
          const bool ready =
              !schedule.placed(other) && std::ranges::all_of(problem.graph().inputs_of(other), [&](TensorId tensor) {
                return schedule.placed(problem.graph().producer(tensor));
              });
          if (!ready) continue;
          for (const DeviceId d : problem.cluster().ids()) {
            double& known = least[Index(other) * problem.num_devices() + Index(d)];
            const PartialSchedule::Slot slot = schedule.Find(other, d);
            // Sums in another order differ in their last bits.
            ASSERT_GE(slot.start, known * (1 - 1e-12));
            ASSERT_GE(slot.start, slot.least_arrival);
            known = std::max(known, slot.least_arrival);
          }
        }
        schedule.Place(op, device[Index(op)]);
      }
    }
  }
}

TEST(PartialSchedule, FillsGapsWhenInsertionIsOn) {
  GraphBuilder builder("gap");
  for (int v = 0; v < 3; ++v) builder.AddOp("", "Unit", {});
  builder.Consume(builder.AddTensor(0, 5), 1);
  const Problem problem = testing::UnitProblem(builder.Build(), 2);
  for (const bool insertion : {true, false}) {
    PartialSchedule schedule(problem, Contention::kNone, insertion);
    schedule.Place(OpId{0}, DeviceId{0});
    schedule.Place(OpId{1}, DeviceId{1});
    EXPECT_EQ(schedule.Place(OpId{2}, DeviceId{1}).start, insertion ? 0 : 7);
  }
}

TEST(PartialSchedule, KnowsWhatLiesOnADevice) {
  GraphBuilder builder("memory");
  for (int v = 0; v < 2; ++v) builder.AddOp("", "Unit", {});
  builder.Consume(builder.AddTensor(0, 10), 1);
  builder.AddTensor(1, 3);
  const size_t weight = builder.AddParameter(100);
  builder.UseParameter(weight, 0);
  builder.UseParameter(weight, 1);
  const Problem problem = testing::UnitProblem(builder.Build(), 2);
  PartialSchedule schedule(problem, Contention::kNone);
  schedule.Place(OpId{0}, DeviceId{0});
  EXPECT_EQ(schedule.resident_bytes(DeviceId{0}), 110);
  EXPECT_EQ(schedule.added_bytes(OpId{1}, DeviceId{0}), 3);
  EXPECT_EQ(schedule.added_bytes(OpId{1}, DeviceId{1}), 113);
  schedule.Place(OpId{1}, DeviceId{1});
  EXPECT_EQ(schedule.resident_bytes(DeviceId{1}), 113);
}

struct Busy {
  double start, end;
};

bool Overlap(std::vector<Busy> busy) {
  std::ranges::sort(busy, {}, [](const Busy& b) { return std::pair(b.start, b.end); });
  for (size_t i = 1; i < busy.size(); ++i) {
    if (busy[i].start < busy[i - 1].end) return true;
  }
  return false;
}

TEST(PartialSchedule, MakesSchedulesThatKeepTheRules) {
  Random random(2);
  for (int round = 0; round < 60; ++round) {
    const Problem problem = RandomProblem(random, {.ties = round % 2 == 0});
    const std::vector<DeviceId> device = testing::RandomPlacement(problem, random);
    for (const Contention contention : {Contention::kNone, Contention::kEgress, Contention::kPorts}) {
      PartialSchedule schedule(problem, contention, round % 3 != 0);
      for (const OpId op : problem.graph().ops()) {
        const auto found = schedule.Find(op, device[Index(op)]);
        const auto placed = schedule.Place(op, device[Index(op)]);
        ASSERT_EQ(found.start, placed.start);
      }
      for (const DeviceId d : problem.cluster().ids()) {
        std::vector<Busy> busy;
        for (const OpId op : problem.graph().ops()) {
          if (device[Index(op)] == d) busy.push_back({schedule.start(op), schedule.end(op)});
        }
        EXPECT_FALSE(Overlap(busy));
      }
      for (const TensorId tensor : problem.graph().tensors()) {
        const OpId producer = problem.graph().producer(tensor);
        for (const OpId op : problem.graph().consumers(tensor)) {
          const DeviceId from = device[Index(producer)], to = device[Index(op)];
          const double sent = from == to ? 0 : problem.transfer_time(tensor, from, to);
          EXPECT_GE(schedule.start(op), schedule.end(producer) + sent);
        }
      }
      const Sequence sequence = schedule.InOrder();
      EXPECT_EQ(FindViolation(problem, {.device = device, .sequence = &sequence}), std::nullopt);
    }
  }
}

}  // namespace
}  // namespace berth
