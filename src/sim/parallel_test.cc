#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "placement/testing.h"
#include "sim/simulators.h"
#include "sim/slow_run.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Evaluator> Make(const std::string& name, const Problem& problem) {
  EvaluatorCatalog catalog("evaluator");
  RegisterParallel(catalog);
  return catalog.Make(name, problem);
}

std::vector<DeviceId> Devices(std::initializer_list<int> numbers) {
  std::vector<DeviceId> devices;
  for (const int number : numbers) devices.push_back(DeviceId{number});
  return devices;
}

// --- Fast against slow ----------------------------------------------------------------------------------------------

struct Rules {
  Contention contention;
  std::optional<DeviceId> host;  // of graph inputs and outputs

  std::unique_ptr<Evaluator> MakeOn(const Problem& problem) const {
    static constexpr const char* kNames[] = {"none", "egress", "ports", "links"};
    const std::string where = host ? problem.cluster().device(*host).name : "everywhere";
    return Make(fmt::format("parallel(contention={},io={})", kNames[static_cast<size_t>(contention)], where), problem);
  }
};

// Inputs and outputs everywhere, on the first device, and on the last.
std::vector<Rules> AllRules(const Problem& problem, std::initializer_list<Contention> contentions) {
  std::vector<Rules> rules;
  for (const Contention contention : contentions) {
    rules.push_back({contention, {}});
    rules.push_back({contention, DeviceId{0}});
    if (problem.num_devices() > 1) rules.push_back({contention, MakeId<DeviceId>(problem.num_devices() - 1)});
  }
  return rules;
}
std::vector<Rules> AllRules(const Problem& problem) {
  return AllRules(problem, {Contention::kNone, Contention::kEgress, Contention::kPorts});
}

void ExpectSlowAndFastAgree(const Problem& problem, const PlanView& plan, const Rules& rules) {
  const auto evaluator = rules.MakeOn(problem);
  SCOPED_TRACE(evaluator->name());
  const auto workspace = evaluator->NewWorkspace();
  std::vector<double> starts(problem.num_ops());
  const Score score = evaluator->ScorePlan(plan, *workspace, starts);
  const Timeline timeline = evaluator->Trace(plan);
  EXPECT_EQ(score, timeline.score);
  EXPECT_THAT(Verify(*evaluator, plan, timeline), IsEmpty());

  testing::SlowRun slow(problem, plan, rules.contention, rules.host);
  if (!slow.Simulate()) {
    EXPECT_EQ(score, (Score{.time = kCannotRun, .outcome = Outcome::kImpossible}));
    EXPECT_THAT(timeline.infeasible_because, HasSubstr("sequence contradicts itself"));
    return;
  }
  EXPECT_EQ(score.time, slow.time());
  EXPECT_EQ(starts, slow.starts());
  std::map<testing::Move, std::pair<double, double>> moves;
  for (const TransferRun& t : timeline.transfers) {
    moves[{!t.is_input, static_cast<int32_t>(t.tensor), static_cast<int32_t>(t.to)}] = {t.start, t.end};
  }
  EXPECT_EQ(moves.size(), timeline.transfers.size());
  EXPECT_EQ(moves, slow.moves());
  int64_t excess = 0;
  const std::vector<int64_t> peaks = slow.Peaks();
  for (size_t d = 0; d < problem.num_devices(); ++d) {
    EXPECT_EQ(timeline.memory[d].peak_bytes, peaks[d]);
    excess += std::max<int64_t>(0, peaks[d] - problem.memory_limit(MakeId<DeviceId>(d)));
  }
  EXPECT_EQ(score.excess_bytes, excess);
  EXPECT_EQ(score.fits(), excess == 0);
}

void CompareOnRandomProblems(uint64_t seed, bool ties) {
  const Random random(seed);
  for (uint64_t k = 0; k < 100 && !::testing::Test::HasFailure(); ++k) {
    SCOPED_TRACE(k);
    Random draw = random.Fork(k);
    const Problem problem =
        testing::RandomProblem(draw, {.ties = ties, .memory_limits = k % 2 == 1, .constants = k % 3 == 2 ? 0.3 : 0});
    const std::vector<DeviceId> device = testing::RandomPlacement(problem, draw);
    std::vector<double> priority;
    for (size_t v = 0; v < problem.num_ops(); ++v) priority.push_back(static_cast<double>(draw.Below(8)));
    const Sequence sequence = testing::RandomSequence(problem, device, draw);
    Sequence shuffled = sequence;
    draw.Shuffle(std::span(shuffled.transfers));
    for (const Rules& rules : AllRules(problem)) {
      ExpectSlowAndFastAgree(problem, {.device = device}, rules);
      ExpectSlowAndFastAgree(problem, {.device = device, .priority = priority}, rules);
      ExpectSlowAndFastAgree(problem, {.device = device, .sequence = &sequence}, rules);
      ExpectSlowAndFastAgree(problem, {.device = device, .sequence = &shuffled}, rules);
    }
  }
}

TEST(Parallel, AgreesWithTheSlowSimulator) { CompareOnRandomProblems(1, false); }
TEST(Parallel, AgreesWithTheSlowSimulatorWhereManyEventsCoincide) { CompareOnRandomProblems(2, true); }

TEST(Parallel, KeepsMoreThanSixtyFourDevicesApart) {
  Random random(3);
  const Problem problem = testing::RandomProblem(random, {.ops = 150, .devices = 70});
  const std::vector<DeviceId> device = testing::RandomPlacement(problem, random);
  for (const Rules& rules : AllRules(problem)) ExpectSlowAndFastAgree(problem, {.device = device}, rules);
}

// The simulator's clocks and the slow one's remainders round differently.
void ExpectNear(double a, double b, double scale) { EXPECT_NEAR(a, b, 1e-9 * scale); }

TEST(Parallel, SharesLinksLikeTheSlowSimulator) {
  const Random random(9);
  for (uint64_t k = 0; k < 200 && !::testing::Test::HasFailure(); ++k) {
    SCOPED_TRACE(k);
    Random draw = random.Fork(k);
    const Problem problem =
        testing::RandomProblem(draw, {.domains = true, .memory_limits = k % 2 == 1, .constants = k % 3 == 2 ? 0.3 : 0});
    const std::vector<DeviceId> device = testing::RandomPlacement(problem, draw);
    const std::vector<Rules> all = AllRules(problem, {Contention::kLinks});
    const Rules& rules = all[draw.Below(all.size())];
    const PlanView plan{.device = device};
    const auto evaluator = rules.MakeOn(problem);
    const auto workspace = evaluator->NewWorkspace();
    std::vector<double> starts(problem.num_ops());
    const Score score = evaluator->ScorePlan(plan, *workspace, starts);
    const Timeline timeline = evaluator->Trace(plan);
    EXPECT_EQ(score, timeline.score);
    EXPECT_THAT(Verify(*evaluator, plan, timeline), IsEmpty());

    testing::SlowRun slow(problem, plan, Contention::kLinks, rules.host);
    ASSERT_TRUE(slow.Simulate());
    ExpectNear(score.time, slow.time(), slow.time());
    for (size_t v = 0; v < starts.size(); ++v) ExpectNear(starts[v], slow.starts()[v], slow.time());
    EXPECT_EQ(timeline.transfers.size(), slow.moves().size());
    for (const TransferRun& t : timeline.transfers) {
      const auto [start, end] =
          slow.moves().at({!t.is_input, static_cast<int32_t>(t.tensor), static_cast<int32_t>(t.to)});
      ExpectNear(t.start, start, slow.time());
      ExpectNear(t.end, end, slow.time());
    }
  }
}

// Verify adds up each transfer's shares anew.
TEST(Parallel, KeepsNineDigitsOverManyTransfersOnOneMedium) {
  Random random(10);
  const Problem problem = testing::RandomProblem(random, {.ops = 4000, .devices = 6, .domains = true});
  const std::vector<DeviceId> device = testing::RandomPlacement(problem, random);
  const auto evaluator = Make("parallel(contention=links,io=everywhere)", problem);
  EXPECT_THAT(Verify(*evaluator, {.device = device}, evaluator->Trace({.device = device})), IsEmpty());
}

// --- One rule at a time ---------------------------------------------------------------------------------------------

TEST(Parallel, RunsAChainOnOneDeviceWithoutTransfers) {
  const Problem problem = testing::Chain(4, 2);
  const Timeline timeline = Make("parallel(io=everywhere)", problem)->Trace({.device = Devices({0, 0, 0, 0})});
  EXPECT_EQ(timeline.score.time, 4);
  EXPECT_THAT(timeline.transfers, IsEmpty());
}

TEST(Parallel, SendsATensorOncePerDestination) {
  // The fork on device 0, all four branches on device 1, the join on 0 again: one transfer there, four back.
  const Problem problem = testing::ForkJoin(4, 2);
  const Timeline timeline = Make("parallel(io=everywhere)", problem)->Trace({.device = Devices({0, 1, 1, 1, 1, 0})});
  ASSERT_EQ(timeline.transfers.size(), 5u);
  EXPECT_EQ(timeline.transfers[0],
            (TransferRun{.tensor = TensorId{0}, .from = DeviceId{0}, .to = DeviceId{1}, .start = 1, .end = 2}));
  // fork 0-1, sent 1-2, branches 2-6, the last arrives at 7.
  EXPECT_EQ(timeline.score.time, 8);
}

TEST(Parallel, QueuesAtTheSendersPortUnderEgress) {
  // Branches on devices 1 and 2: both copies leave device 0.
  const Problem problem = testing::ForkJoin(2, 3);
  const std::vector<DeviceId> device = Devices({0, 1, 2, 0});
  EXPECT_EQ(Make("parallel(contention=none,io=everywhere)", problem)->Trace({.device = device}).score.time, 5);
  EXPECT_EQ(Make("parallel(contention=egress,io=everywhere)", problem)->Trace({.device = device}).score.time, 6);
}

TEST(Parallel, QueuesAtTheReceiversPortUnderPorts) {
  // Two sources on devices 0 and 1 end together and send to device 2.
  GraphBuilder builder("join");
  builder.AddOp("a", "Op", {});
  builder.AddOp("b", "Op", {});
  builder.AddOp("c", "Op", {});
  for (const size_t op : {0, 1}) builder.Consume(builder.AddTensor(op, 1), 2);
  const Problem problem = testing::UnitProblem(builder.Build(), 3);
  const std::vector<DeviceId> device = Devices({0, 1, 2});
  EXPECT_EQ(Make("parallel(contention=egress,io=everywhere)", problem)->Trace({.device = device}).score.time, 3);
  EXPECT_EQ(Make("parallel(contention=ports,io=everywhere)", problem)->Trace({.device = device}).score.time, 4);
}

TEST(Parallel, SharesABusEquallyAndGivesItAllToTheLast) {
  // Four and one units go from device 0 to devices 1 and 2 at time 1, after a latency of 1. Until 4 each has half of
  // the bus and the short one is through; 3 units are left for the whole bus.
  GraphBuilder builder("fork");
  for (const char* name : {"a", "b", "c"}) builder.AddOp(name, "Op", {});
  builder.Consume(builder.AddTensor(0, 4), 1);
  builder.Consume(builder.AddTensor(0, 1), 2);
  const Graph graph = builder.Build();
  const auto end_with = [&](const std::string& domain) {
    const Cluster plain = testing::UniformCluster(3, 1);
    std::vector<Device> devices;
    for (const DeviceId d : plain.ids()) devices.push_back(plain.device(d));
    const Link link{.latency = {.value = 1}, .bandwidth = {.value = 1}, .domain = domain};
    const Problem problem(std::make_shared<const Graph>(graph),
                          std::make_shared<const Cluster>("bus", devices, std::vector<Link>(9, link)),
                          {.time = std::vector<double>(9, 1.0), .measured = {}, .source = "test"});
    return Make("parallel(contention=links,io=everywhere)", problem)->Trace({.device = Devices({0, 1, 2})});
  };
  const Timeline shared = end_with("bus");
  EXPECT_EQ(shared.transfers[0].start, 1);
  EXPECT_EQ(shared.transfers[0].end, 7);
  EXPECT_EQ(shared.transfers[1].end, 4);
  const Timeline apart = end_with("");
  EXPECT_EQ(apart.transfers[0].end, 6);
  EXPECT_EQ(apart.transfers[1].end, 3);
}

TEST(Parallel, StartsTheOpOfLargerPriority) {
  const Problem problem = testing::ForkJoin(2, 1);
  std::vector<double> starts(4);
  const auto evaluator = Make("parallel(io=everywhere)", problem);
  const auto workspace = evaluator->NewWorkspace();
  const std::vector<double> priority{0, 1, 2, 0};
  evaluator->ScorePlan({.device = Devices({0, 0, 0, 0})}, *workspace, starts);
  EXPECT_THAT(starts, ElementsAre(0, 1, 2, 3));
  const std::vector<DeviceId> device = Devices({0, 0, 0, 0});
  evaluator->ScorePlan({.device = device, .priority = priority}, *workspace, starts);
  EXPECT_THAT(starts, ElementsAre(0, 2, 1, 3));
}

TEST(Parallel, WaitsForTheNextOfASequence) {
  const Problem problem = testing::Chain(2, 1);
  const std::vector<DeviceId> device = Devices({0, 0});
  const Sequence backwards{.ops = {OpId{1}, OpId{0}}, .transfers = {}};
  const Timeline timeline = Make("parallel(io=everywhere)", problem)->Trace({.device = device, .sequence = &backwards});
  EXPECT_FALSE(timeline.score.fits());
  EXPECT_EQ(timeline.score.time, kCannotRun);
  EXPECT_EQ(timeline.infeasible_because, "the sequence contradicts itself at op op1: it can never start");
}

TEST(Parallel, NamesTheOpThatADeviceCannotRun) {
  const Problem unit = testing::Chain(2, 2);
  const Problem problem(unit.shared_graph(), unit.shared_cluster(),
                        {.time = {1, 1, 1, kCannotRun}, .measured = {}, .source = "test"});
  const Timeline timeline = Make("parallel(io=everywhere)", problem)->Trace({.device = Devices({0, 1})});
  EXPECT_FALSE(timeline.score.fits());
  EXPECT_EQ(timeline.infeasible_because, "op op1 cannot run on d1");
}

TEST(Parallel, FetchesInputsFromAndReturnsOutputsToTheHost) {
  GraphBuilder builder("one");
  builder.AddOp("op", "Op", {});
  builder.AddTensor(0, 3, "y", true);
  builder.UseInput(builder.AddInput(2, "x"), 0);
  const Problem problem = testing::UnitProblem(builder.Build(), 2);
  EXPECT_EQ(Make("parallel(io=everywhere)", problem)->Trace({.device = Devices({1})}).score.time, 1);
  EXPECT_EQ(Make("parallel(io=host)", problem)->Trace({.device = Devices({0})}).score.time, 1);
  EXPECT_EQ(Make("parallel(io=d1)", problem)->Trace({.device = Devices({1})}).score.time, 1);
  EXPECT_EQ(Make("parallel(io=d1)", problem)->Trace({.device = Devices({0})}).score.time, 2 + 1 + 3);
  const Timeline timeline = Make("parallel(io=host)", problem)->Trace({.device = Devices({1})});
  EXPECT_EQ(timeline.score.time, 2 + 1 + 3);
  ASSERT_EQ(timeline.transfers.size(), 2u);
  EXPECT_TRUE(timeline.transfers[0].is_input);
  EXPECT_FALSE(timeline.transfers[1].is_input);
}

TEST(Parallel, SaysWhatFillsADeviceThatIsTooSmall) {
  GraphBuilder builder("big");
  builder.AddOp("first", "Op", {.workspace_bytes = 10});
  builder.AddOp("second", "Op", {.workspace_bytes = 1});
  builder.Consume(builder.AddTensor(0, 40, "t"), 1);
  builder.UseParameter(builder.AddParameter(100, "w"), 0);
  const Problem problem = testing::UnitProblem(builder.Build(), 2, {.memory_limits = {120, 1000}});
  const auto evaluator = Make("parallel(io=everywhere)", problem);
  const Timeline timeline = evaluator->Trace({.device = Devices({0, 1})});
  EXPECT_EQ(timeline.score, (Score{.time = 42, .outcome = Outcome::kTooBig, .excess_bytes = 30}));
  EXPECT_EQ(timeline.infeasible_because,
            "d0 would hold 150 B of its 120 B at 0 s: parameter w (100 B), tensor t (40 B), workspace of first (10 B)");
  EXPECT_EQ(timeline.memory[0].peak_time, 0);
  EXPECT_THAT(timeline.memory[0].steps, ElementsAre(MemoryStep{0, 150}, MemoryStep{1, 140}, MemoryStep{41, 100}));
  EXPECT_THAT(timeline.memory[1].steps, ElementsAre(MemoryStep{1, 40}, MemoryStep{41, 41}, MemoryStep{42, 0}));
  EXPECT_TRUE(Make("parallel(memory=false,io=everywhere)", problem)->Trace({.device = Devices({0, 1})}).score.fits());
}

TEST(Parallel, RefusesWhatItDoesNotKnow) {
  const Problem problem = testing::Chain(2, 2);
  EXPECT_THROW(Make("parallel(contention=magic)", problem), Error);
  EXPECT_THROW(Make("parallel(contenton=ports)", problem), Error);
}

// Devices of these kinds, named like them with their number; one op that reads an input and makes an output.
Problem OneOpOn(const std::vector<std::string>& kinds) {
  GraphBuilder builder("one");
  builder.AddOp("op", "Op", {});
  builder.AddTensor(0, 3, "y", true);
  builder.UseInput(builder.AddInput(2, "x"), 0);
  const Problem unit = testing::UnitProblem(builder.Build(), kinds.size());
  std::vector<Device> devices;
  std::vector<Link> links;
  for (const DeviceId id : unit.cluster().ids()) {
    devices.push_back(unit.cluster().device(id));
    devices.back().kind = kinds[Index(id)];
    devices.back().name = fmt::format("{}{}", kinds[Index(id)], Index(id));
    for (const DeviceId to : unit.cluster().ids()) links.push_back(unit.cluster().link(id, to));
  }
  return Problem(unit.shared_graph(), std::make_shared<const Cluster>("some", std::move(devices), std::move(links)),
                 {.time = std::vector<double>(kinds.size(), 1), .measured = {}, .source = "test"});
}

TEST(Parallel, NamesItselfWithoutDefaultsButSaysWhereInputsAre) {
  const Problem problem = testing::Chain(2, 2);
  EXPECT_EQ(Make("parallel(memory=true, contention=ports,io=everywhere)", problem)->name(),
            "parallel(contention=ports,io=everywhere)");
  EXPECT_EQ(Make("parallel(memory=false,contention=ports)", problem)->name(),
            "parallel(contention=ports,io=host,memory=false)");
}

TEST(Io, IsOnTheFirstCpuWhereThereIsOne) {
  const Problem gpus = OneOpOn({"gpu", "gpu"}), mixed = OneOpOn({"gpu", "npu", "cpu", "cpu"});
  EXPECT_EQ(Make("parallel", gpus)->name(), "parallel(io=everywhere)");
  EXPECT_EQ(Make("parallel(io=auto)", gpus)->facts().io_host(), std::nullopt);
  for (const char* name : {"parallel", "parallel(io=auto)", "parallel(io=host)"}) {
    EXPECT_EQ(Make(name, mixed)->name(), "parallel(io=host)");
    EXPECT_EQ(Make(name, mixed)->facts().io_host(), DeviceId{2});
  }
  EXPECT_EQ(Make("parallel(io=everywhere)", mixed)->facts().io_host(), std::nullopt);
}

TEST(Io, IsOnTheDeviceThatIsNamed) {
  const Problem mixed = OneOpOn({"gpu", "gpu", "cpu"});
  EXPECT_EQ(Make("parallel(io=gpu1)", mixed)->facts().io_host(), DeviceId{1});
  EXPECT_EQ(Make("parallel(io=gpu1)", mixed)->name(), "parallel(io=gpu1)");
  EXPECT_EQ(Make("parallel(io=1)", mixed)->name(), "parallel(io=gpu1)");
  const Problem spaced = OneOpOn({"my gpu", "gpu"});
  const std::string name = Make("parallel(io=0)", spaced)->name();
  EXPECT_EQ(name, "parallel(io=\"my gpu0\")");
  EXPECT_EQ(Make(name, spaced)->facts().io_host(), DeviceId{0});
}

TEST(Io, RefusesWhatIsNotThere) {
  const auto message = [](const char* name, const Problem& problem) {
    try {
      Make(name, problem);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message("parallel(io=host)", OneOpOn({"gpu", "gpu"})),
            "io=host: cluster some has no device of kind cpu; name the device where inputs start among the evaluator's "
            "parameters, like io=gpu0, or write io=everywhere");
  EXPECT_EQ(
      message("parallel(io=gpu9)", OneOpOn({"gpu", "cpu"})),
      "io=gpu9: cluster some has no device 'gpu9' (did you mean gpu0?); it has gpu0, cpu1; or write io=everywhere, "
      "io=host or io=auto");
}

TEST(Session, TriesWithoutChangingAndCommitsTheLastTry) {
  const Problem problem = testing::Chain(3, 2);
  const auto evaluator = Make("parallel(io=everywhere)", problem);
  const auto workspace_of_session = evaluator->NewWorkspace();
  const auto session = evaluator->NewSession({.device = Devices({0, 1, 0})}, *workspace_of_session);
  EXPECT_EQ(session->score().time, 5);
  EXPECT_EQ(session->Try(OpId{0}, DeviceId{1}).time, 4);
  EXPECT_EQ(session->score().time, 5);
  const std::vector<std::pair<OpId, DeviceId>> moves{{OpId{1}, DeviceId{1}}, {OpId{1}, DeviceId{0}}};
  EXPECT_EQ(session->Try(moves).time, 3);
  EXPECT_EQ(session->device()[1], DeviceId{1});
  session->Commit();
  EXPECT_EQ(session->score().time, 3);
  EXPECT_EQ(session->device()[1], DeviceId{0});
}

// Sessions of random moves, of one op and of many, and of priorities, committed or not, against full scores.
void CompareSessions(uint64_t seed, const testing::RandomProblemOptions& options, bool priorities) {
  const Random random(seed);
  for (uint64_t k = 0; k < 8 && !::testing::Test::HasFailure(); ++k) {
    SCOPED_TRACE(k);
    Random draw = random.Fork(k);
    testing::RandomProblemOptions some = options;
    some.memory_limits = k % 2 == 1;
    some.domains = k % 3 == 1;
    const Problem problem = testing::RandomProblem(draw, some);
    std::vector<double> priority;
    for (size_t v = 0; priorities && v < problem.num_ops(); ++v) priority.push_back(static_cast<double>(draw.Below(8)));
    for (const Rules& rules :
         AllRules(problem, {Contention::kNone, Contention::kEgress, Contention::kPorts, Contention::kLinks})) {
      const auto evaluator = rules.MakeOn(problem);
      SCOPED_TRACE(evaluator->name());
      const auto workspace = evaluator->NewWorkspace();
      std::vector<DeviceId> device = testing::RandomPlacement(problem, draw);
      const auto workspace_of_session = evaluator->NewWorkspace();
      const auto session = evaluator->NewSession({.device = device, .priority = priority}, *workspace_of_session);
      EXPECT_EQ(session->score(), evaluator->ScorePlan({.device = device, .priority = priority}, *workspace));
      for (int tries = 0; tries < 40; ++tries) {
        std::vector<std::pair<OpId, DeviceId>> moves;
        const size_t first = draw.Below(problem.num_ops());
        for (size_t left = draw.Chance(0.7) ? 1 : 1 + draw.Below(10); left > 0; --left) {
          const size_t op = draw.Chance(0.5) ? first : first + draw.Below(problem.num_ops() - first);
          moves.emplace_back(MakeId<OpId>(op), MakeId<DeviceId>(draw.Below(problem.num_devices())));
        }
        std::vector<std::pair<OpId, double>> changed;
        if (!priority.empty() && draw.Chance(0.5)) {
          if (draw.Chance(0.5)) moves.clear();
          for (size_t left = 1 + draw.Below(3); left > 0; --left) {
            changed.emplace_back(MakeId<OpId>(draw.Below(problem.num_ops())), static_cast<double>(draw.Below(8)));
          }
        }
        std::vector<DeviceId> moved = device;
        for (const auto& [op, to] : moves) moved[Index(op)] = to;
        std::vector<double> reordered = priority;
        for (const auto& [op, to] : changed) reordered[Index(op)] = to;
        const Score expected = evaluator->ScorePlan({.device = moved, .priority = reordered}, *workspace);
        ASSERT_EQ(session->TryChange({.moves = moves, .priorities = changed}), expected);
        if (!draw.Chance(0.4)) continue;
        session->Commit();
        device = moved;
        priority = reordered;
        ASSERT_EQ(session->score(), expected);
        ASSERT_TRUE(std::ranges::equal(session->device(), device));
      }
    }
  }
}

TEST(Session, GivesTheScoresOfWholeRuns) { CompareSessions(4, {.ops = 300}, false); }
TEST(Session, GivesTheScoresOfWholeRunsWhereManyEventsCoincide) {
  CompareSessions(5, {.ops = 300, .ties = true}, false);
}
TEST(Session, GivesTheScoresOfWholeRunsByPriority) { CompareSessions(6, {.ops = 200, .ties = true}, true); }
TEST(Session, GivesTheScoresOfWholeRunsWhereSomeOpsCannotRun) {
  CompareSessions(7, {.ops = 100, .forbidden = 0.02}, false);
}
TEST(Session, GivesTheScoresOfWholeRunsOnManyDevices) { CompareSessions(10, {.ops = 150, .devices = 70}, false); }
TEST(Session, GivesTheScoresOfWholeRunsOfSmallGraphs) { CompareSessions(8, {}, false); }

}  // namespace
}  // namespace berth
