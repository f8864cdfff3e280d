#include "placement/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "placement/plan.h"
#include "placement/testing.h"

namespace berth {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A chain of ops "a", "b", ... of one parameter each; the cluster d0, d1, ...
struct Case {
  Case(size_t ops, size_t devices, int64_t weight = 0, double memory = 0) {
    GraphBuilder builder("case");
    for (size_t v = 0; v < ops; ++v) {
      builder.AddOp(std::string(1, static_cast<char>('a' + v)), "T", {});
      builder.AddTensor(v, 10);
      if (v > 0) builder.Consume(v - 1, v);
      if (weight > 0) builder.UseParameter(builder.AddParameter(weight), v);
    }
    graph = std::make_shared<const Graph>(builder.Build());
    cluster = std::make_shared<const Cluster>(testing::UniformCluster(devices, 0, 1, memory));
    times = {.time = std::vector<double>(ops * devices, 1.0), .source = "unit"};
  }

  std::vector<Constraint> Resolve(const std::vector<std::string>& texts) const {
    std::vector<ConstraintText> constraints;
    for (const std::string& text : texts) constraints.push_back(ParseConstraint(text, "here"));
    return ResolveConstraints(constraints, *graph, *cluster, options);
  }

  std::optional<Diagnosis> Diagnose(const std::vector<std::string>& texts, std::string_view rule = "none") const {
    return ConstraintCheck(graph, cluster, times, options, Resolve(texts)).Diagnose(rule);
  }

  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Cluster> cluster;
  OpTimes times;
  Problem::Options options;
};

std::vector<std::string> Texts(const Diagnosis& diagnosis) {
  std::vector<std::string> texts;
  for (const ConstraintText& constraint : diagnosis.constraints) texts.push_back(constraint.ToString());
  return texts;
}

TEST(Diagnosis, HasNothingToSayOfWhatCanBeKept) {
  EXPECT_EQ(Case(4, 3).Diagnose({"pin a=d0", "separate a,b,c", "colocate c,d", "forbid-transfer *=d0>d1"}),
            std::nullopt);
}

TEST(Diagnosis, NamesAPinToADeviceThatCannotRunTheOp) {
  Case one(3, 2);
  one.times.time[1 * 2 + 1] = kCannotRun;
  const auto diagnosis = one.Diagnose({"pin a=d0", "pin *=d1", "forbid c=d0"});
  ASSERT_TRUE(diagnosis);
  EXPECT_EQ(diagnosis->kind, Diagnosis::Kind::kPlacement);
  EXPECT_THAT(Texts(*diagnosis), ElementsAre("pin *=d1"));
  EXPECT_THAT(diagnosis->ops, ElementsAre("b"));
  EXPECT_EQ(diagnosis->summary, "op b (T) may be on no device");
  EXPECT_THAT(diagnosis->reasons, ElementsAre("b: not on d0: `pin *=d1`; not on d1: cannot run T"));
}

TEST(Diagnosis, NamesTwoPinsOfOneOp) {
  const auto diagnosis = Case(3, 3).Diagnose({"separate b,c", "pin a=d0", "forbid a=d2", "pin a,b=d1"});
  ASSERT_TRUE(diagnosis);
  EXPECT_THAT(Texts(*diagnosis), ElementsAre("pin a=d0", "pin a,b=d1"));
  EXPECT_THAT(diagnosis->ops, ElementsAre("a"));
}

TEST(Diagnosis, NamesWhatMustAndMustNotShareADevice) {
  const auto diagnosis = Case(4, 3).Diagnose({"colocate a,d", "separate b,d", "colocate b,c", "colocate c,d"});
  ASSERT_TRUE(diagnosis);
  EXPECT_THAT(Texts(*diagnosis), ElementsAre("separate b,d", "colocate b,c", "colocate c,d"));
  const auto direct = Case(4, 3).Diagnose({"colocate a*,d", "separate a,d"});
  ASSERT_TRUE(direct);
  EXPECT_EQ(direct->summary, "ops a, d must and must not share a device");
}

TEST(Diagnosis, NamesColocatedOpsWithoutACommonDevice) {
  const auto diagnosis = Case(4, 3).Diagnose({"forbid a=d2", "colocate *", "pin b=d2", "separate a,b"});
  ASSERT_TRUE(diagnosis);
  EXPECT_THAT(Texts(*diagnosis), ElementsAre("colocate *", "separate a,b"));  // two are fewer than three
  const auto without = Case(4, 3).Diagnose({"forbid a=d2", "colocate *", "pin b=d2"});
  ASSERT_TRUE(without);
  EXPECT_THAT(Texts(*without), ElementsAre("forbid a=d2", "colocate *", "pin b=d2"));
  EXPECT_EQ(without->summary, "ops a, b must share a device, and there is none that all of them may be on");
  EXPECT_THAT(without->reasons, ElementsAre("a may only be on d0, d1", "b may only be on d2"));
}

TEST(Diagnosis, CountsDevicesForOpsThatMustAllDiffer) {
  const auto diagnosis = Case(12, 3).Diagnose({"pin l=d0", "separate *"});
  ASSERT_TRUE(diagnosis);
  EXPECT_THAT(Texts(*diagnosis), ElementsAre("separate *"));
  EXPECT_THAT(diagnosis->ops, SizeIs(4));
  EXPECT_THAT(diagnosis->summary, HasSubstr("must be on 4 different devices; there are 3 for them"));
}

TEST(Diagnosis, FollowsTransfersThatMustNotHappen) {
  const auto diagnosis = Case(4, 2).Diagnose({"pin a=d0", "forbid-transfer *=d0>d1", "pin d=d1"});
  ASSERT_TRUE(diagnosis);
  EXPECT_THAT(Texts(*diagnosis), SizeIs(3));
  EXPECT_THAT(diagnosis->ops, ElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(Case(4, 3).Diagnose({"pin a=d0", "forbid-transfer *=d0>d1", "pin d=d1"}), std::nullopt) << "by way of d2";
}

TEST(Diagnosis, CountsTheModelsOwnConstraints) {
  Case own(3, 2);
  own.options.constraints.colocate = {{OpId{0}, OpId{2}}};
  const auto diagnosis = own.Diagnose({"separate a,c"});
  ASSERT_TRUE(diagnosis);
  EXPECT_THAT(Texts(*diagnosis), ElementsAre("separate a,c", "colocate a, c"));
  EXPECT_EQ(diagnosis->constraints[1].place, "the model's own");
  EXPECT_THAT(diagnosis->remedies, Contains(HasSubstr("separate a,c")));
  EXPECT_THAT(diagnosis->remedies, Not(Contains(HasSubstr("colocate"))));
}

TEST(Diagnosis, WeighsAllWeightsAgainstAllMemory) {
  const auto diagnosis = Case(4, 2, 1000, 1500).Diagnose({"pin a=d0"}, "berth");
  ASSERT_TRUE(diagnosis);
  EXPECT_EQ(diagnosis->kind, Diagnosis::Kind::kMemory);
  EXPECT_THAT(diagnosis->constraints, IsEmpty());
  EXPECT_EQ(diagnosis->needed_bytes, 4000);
  EXPECT_EQ(diagnosis->available_bytes, 3000);
  EXPECT_THAT(diagnosis->summary, HasSubstr("the weights of the model need"));
  EXPECT_EQ(Case(4, 2, 1000, 1500).Diagnose({"pin a=d0"}, "placeto"), std::nullopt) << "it does not count weights";
  EXPECT_EQ(Case(4, 2, 1000, 1500).Diagnose({"pin a=d0"}, "none"), std::nullopt);
}

TEST(Diagnosis, WeighsWhatSharesADevice) {
  const auto diagnosis = Case(4, 2, 1000, 2500).Diagnose({"colocate a,b,c", "pin d=d0"}, "msr");
  ASSERT_TRUE(diagnosis);
  EXPECT_THAT(Texts(*diagnosis), ElementsAre("colocate a,b,c"));
  EXPECT_EQ(diagnosis->needed_bytes, 3000);
  EXPECT_EQ(diagnosis->available_bytes, 2500);
  EXPECT_THAT(diagnosis->ops, ElementsAre("a", "b", "c"));
}

TEST(Diagnosis, WeighsWhatIsPinnedAgainstABudget) {
  const auto diagnosis = Case(4, 2, 1000, 5000).Diagnose({"keep-free 10%", "memory d1=2500B", "pin a,b,c=d1"}, "msr");
  ASSERT_TRUE(diagnosis);
  EXPECT_THAT(Texts(*diagnosis), ElementsAre("memory d1=2500B", "pin a,b,c=d1"));
  EXPECT_EQ(diagnosis->summary, "the weights of the 3 ops that may only be on d1 need 2.93 KiB; it has 2.44 KiB");
  EXPECT_THAT(diagnosis->remedies, Contains("raise `memory d1=2500B`: d1 needs at least 3000B"));
}

TEST(Diagnosis, WeighsWhatAnOpReadsAndWritesUnderBerthsRuleOnly) {
  // 1000 of weights, 10 in, 10 out.
  const Case tight(3, 2, 1000, 1015);
  EXPECT_EQ(tight.Diagnose({"forbid c=d0"}, "msr")->constraints.size(), 0u) << "3000 on 2030";
  const Case single(1, 1, 1000, 1005);
  EXPECT_EQ(single.Diagnose({}, "msr"), std::nullopt);
  const auto diagnosis = single.Diagnose({}, "berth");
  ASSERT_TRUE(diagnosis);
  EXPECT_EQ(diagnosis->needed_bytes, 1010);
  EXPECT_THAT(diagnosis->summary, HasSubstr("the weights, inputs and outputs of op a need"));
}

TEST(Diagnosis, SaysWhatTheOpThatLacksTheMostNeeds) {
  // Op b reads and writes, so it lacks more than a; the weights alone fit.
  const auto diagnosis = Case(3, 3, 1000, 1005).Diagnose({}, "berth");
  ASSERT_TRUE(diagnosis);
  EXPECT_EQ(diagnosis->needed_bytes, 1020);
  EXPECT_THAT(diagnosis->summary, HasSubstr("the weights, inputs and outputs of op b need"));
}

TEST(Diagnosis, SaysWhatAnOpNeedsWhereThatIsMoreThanTheShareOfEachDeviceInWhatAllLack) {
  // All lack 920 on four devices, 230 each; op b, with what it reads and writes, lacks 500.
  const auto diagnosis = Case(3, 4, 1000, 520).Diagnose({}, "berth");
  ASSERT_TRUE(diagnosis);
  EXPECT_EQ(diagnosis->needed_bytes, 1020);
}

TEST(Diagnosis, SaysWhatAllWeightsNeedWhereTheyLackMoreThanAnyOp) {
  const auto diagnosis = Case(3, 1, 1000, 500).Diagnose({}, "berth");
  ASSERT_TRUE(diagnosis);
  EXPECT_EQ(diagnosis->needed_bytes, 3000);
  EXPECT_EQ(diagnosis->summary, "the weights of the model need 2.93 KiB; all devices together have 500 B");
}

// Every placement of a tiny problem.
bool AnyPlacementKeeps(const Problem& problem) {
  std::vector<DeviceId> device(problem.num_ops(), DeviceId{0});
  while (true) {
    if (!FindViolation(problem, {.device = device})) return true;
    size_t v = 0;
    for (; v < device.size(); ++v) {
      device[v] = MakeId<DeviceId>(Index(device[v]) + 1);
      if (Index(device[v]) < problem.num_devices()) break;
      device[v] = DeviceId{0};
    }
    if (v == device.size()) return false;
  }
}

std::vector<std::string> RandomConstraints(Random& random, size_t ops, size_t devices) {
  const auto op = [&] { return std::string(1, static_cast<char>('a' + random.Below(ops))); };
  const auto device = [&] { return fmt::format("d{}", random.Below(devices)); };
  std::vector<std::string> texts;
  for (size_t k = 1 + random.Below(6); k > 0; --k) {
    const std::string a = op(), b = op(), p = device(), q = device();
    switch (random.Below(5)) {
      case 0:
        texts.push_back(fmt::format("pin {}={}", a, p));
        break;
      case 1:
        texts.push_back(fmt::format("forbid {},{}={}", a, b, p));
        break;
      case 2:
        if (a != b) texts.push_back(fmt::format("colocate {},{}", a, b));
        break;
      case 3:
        if (a != b) texts.push_back(fmt::format("separate {},{}", a, b));
        break;
      case 4:
        if (p != q) texts.push_back(fmt::format("forbid-transfer *={}>{}", p, q));
        break;
    }
  }
  return texts;
}

// Whether some placement keeps these constraints; an op without a device makes no Problem.
bool CanBeKept(const Case& one, const std::vector<std::string>& texts) {
  OpTimes times = one.times;
  Problem::Options options = one.options;
  ApplyConstraints(one.Resolve(texts), *one.graph, *one.cluster, times, options);
  try {
    return AnyPlacementKeeps(Problem(one.graph, one.cluster, times, options));
  } catch (const Error&) {
    return false;
  }
}

TEST(Diagnosis, AgreesWithTryingEverythingAndIsMinimal) {
  Random random(3);
  int impossible = 0;
  for (int round = 0; round < 400; ++round) {
    const size_t ops = 2 + random.Below(4), devices = 1 + random.Below(3);
    const Case one(ops, devices);
    const std::vector<std::string> texts = RandomConstraints(random, ops, devices);
    const auto diagnosis = one.Diagnose(texts);
    ASSERT_EQ(!diagnosis, CanBeKept(one, texts)) << fmt::format("{}", fmt::join(texts, "; "));
    if (!diagnosis) continue;
    ++impossible;
    const std::vector<std::string> conflict = Texts(*diagnosis);
    EXPECT_FALSE(CanBeKept(one, conflict));
    for (size_t leave = 0; leave < conflict.size(); ++leave) {
      std::vector<std::string> rest = conflict;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(leave));
      EXPECT_TRUE(CanBeKept(one, rest)) << "without " << conflict[leave];
    }
    // No set of fewer is impossible either.
    for (size_t bits = 0; bits < size_t{1} << texts.size(); ++bits) {
      std::vector<std::string> some;
      for (size_t i = 0; i < texts.size(); ++i) {
        if ((bits >> i & 1) != 0) some.push_back(texts[i]);
      }
      if (some.size() >= std::min<size_t>(conflict.size(), 3)) continue;
      EXPECT_TRUE(CanBeKept(one, some));
    }
    EXPECT_FALSE(diagnosis->summary.empty());
    EXPECT_FALSE(diagnosis->ops.empty());
    EXPECT_FALSE(diagnosis->remedies.empty());
  }
  EXPECT_GT(impossible, 100);
  EXPECT_LT(impossible, 350);
}

TEST(Diagnosis, NeverCallsImpossibleWhatFits) {
  // Each parameter once on each device that uses it: the least that any rule counts.
  Random random(4);
  int impossible = 0;
  for (int round = 0; round < 300; ++round) {
    const Problem base =
        testing::RandomProblem(random, {.ops = 4, .devices = 2, .memory_limits = true, .forbidden = 0.3});
    const Graph& graph = base.graph();
    OpTimes times{.time = {}, .source = "copy"};
    for (const OpId op : graph.ops()) {
      const auto row = base.op_times(op);
      times.time.insert(times.time.end(), row.begin(), row.end());
    }
    Problem::Options options;
    options.constraints.colocate = {{OpId{0}, OpId{3}}};
    for (size_t d = 0; d < 2; ++d) options.memory_limits.push_back(static_cast<int64_t>(random.Below(8000)));
    bool fits = false;
    for (size_t bits = 0; bits < 16; ++bits) {
      std::vector<DeviceId> device;
      for (size_t v = 0; v < 4; ++v) device.push_back(MakeId<DeviceId>(bits >> v & 1));
      if (FindViolation(Problem(base.shared_graph(), base.shared_cluster(), times, options), {.device = device}))
        continue;
      std::vector<int64_t> bytes(2, 0);
      for (const ParameterId parameter : graph.parameters()) {
        std::set<DeviceId> there;
        for (const OpId op : graph.parameter_consumers(parameter)) there.insert(device[Index(op)]);
        for (const DeviceId id : there) bytes[Index(id)] += graph.parameter_bytes(parameter);
      }
      fits |= bytes[0] <= options.memory_limits[0] && bytes[1] <= options.memory_limits[1];
    }
    const auto diagnosis =
        ConstraintCheck(base.shared_graph(), base.shared_cluster(), times, options, {}).Diagnose("msr");
    if (fits) {
      EXPECT_EQ(diagnosis, std::nullopt);
    }
    impossible += diagnosis ? 1 : 0;
  }
  EXPECT_GT(impossible, 20);
}

}  // namespace
}  // namespace berth
