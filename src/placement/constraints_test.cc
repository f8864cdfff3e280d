#include "placement/constraints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "placement/constraint_file.h"
#include "placement/plan.h"
#include "placement/testing.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// encoder/0 -> encoder/1 -> decoder/0 -> decoder/1 -> out, on cpu, gpu0, gpu1; gpus have 8 GiB.
struct Net {
  Net() {
    GraphBuilder builder("net");
    const std::vector<std::pair<std::string, std::string>> ops = {{"encoder/0", "MatMul"},
                                                                  {"encoder/1", "Softmax"},
                                                                  {"decoder/0", "MatMul"},
                                                                  {"decoder/1", "Softmax"},
                                                                  {"a,b=c", "Add"}};
    builder.AddInput(1, "tokens");
    for (size_t v = 0; v < ops.size(); ++v) {
      builder.AddOp(ops[v].first, ops[v].second, {});
      builder.AddTensor(v, 1, fmt::format("t{}", v), v + 1 == ops.size());
      v == 0 ? builder.UseInput(0, v) : builder.Consume(v - 1, v);
    }
    graph = std::make_shared<const Graph>(builder.Build());
    std::vector<Device> devices(3);
    const char* const names[] = {"cpu", "gpu0", "gpu1"};
    for (size_t d = 0; d < 3; ++d) {
      devices[d] = {.name = names[d], .kind = d == 0 ? "cpu" : "gpu"};
      devices[d].peak["f32"] = {.value = 1};
      devices[d].memory_bandwidth = {.value = 1};
      if (d > 0) devices[d].memory = Quantity{.value = 0x1p33};
    }
    cluster = std::make_shared<const Cluster>(
        "box", std::move(devices), std::vector<Link>(9, Link{.latency = {.value = 0}, .bandwidth = {.value = 1}}));
    times = {.time = std::vector<double>(graph->num_ops() * 3, 1.0), .source = "unit"};
  }

  std::vector<Constraint> Resolve(const std::vector<std::string>& texts) const {
    std::vector<ConstraintText> constraints;
    for (const std::string& text : texts) constraints.push_back(ParseConstraint(text, "here"));
    return ResolveConstraints(constraints, *graph, *cluster, {});
  }

  std::string Mistake(const std::string& text) const {
    try {
      Resolve({text});
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }

  Problem With(const std::vector<std::string>& texts) const {
    OpTimes narrowed = times;
    Problem::Options options;
    ApplyConstraints(Resolve(texts), *graph, *cluster, narrowed, options);
    return Problem(graph, cluster, std::move(narrowed), std::move(options));
  }

  std::vector<size_t> Ops(const std::string& list) const {
    std::vector<size_t> ops;
    const std::vector<Constraint> constraints = Resolve({"pin " + list + "=cpu"});
    for (const OpId op : constraints[0].ops[0]) ops.push_back(Index(op));
    return ops;
  }

  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Cluster> cluster;
  OpTimes times;
};

TEST(Constraints, ChooseOpsByNameGlobExpressionAndType) {
  const Net net;
  EXPECT_THAT(net.Ops("encoder/1"), ElementsAre(1));
  EXPECT_THAT(net.Ops("encoder/*"), ElementsAre(0, 1));
  EXPECT_THAT(net.Ops("*coder/?"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(net.Ops("re:(en|de)coder/1"), ElementsAre(1, 3));
  EXPECT_THAT(net.Ops("type:Soft*"), ElementsAre(1, 3));
  EXPECT_THAT(net.Ops("decoder/0, encoder/0,decoder/*"), ElementsAre(0, 2, 3));
  EXPECT_THAT(net.Ops("\"a,b=c\""), ElementsAre(4));
  EXPECT_THAT(net.Ops("\"re:a,.*\""), ElementsAre(4));
}

TEST(Constraints, PinAndForbidNarrowWhereOpsMayBe) {
  const Net net;
  const Problem problem = net.With({"pin encoder/*=gpu*", "forbid type:Softmax=gpu1", "pin decoder/0=1"});
  const auto devices = [&](size_t op) {
    std::vector<size_t> able;
    for (const DeviceId id : problem.cluster().ids()) {
      if (problem.can_run(MakeId<OpId>(op), id)) able.push_back(Index(id));
    }
    return able;
  };
  EXPECT_THAT(devices(0), ElementsAre(1, 2));
  EXPECT_THAT(devices(1), ElementsAre(1));
  EXPECT_THAT(devices(2), ElementsAre(1));
  EXPECT_THAT(devices(3), ElementsAre(0, 1));
  EXPECT_THAT(devices(4), ElementsAre(0, 1, 2));
  EXPECT_THAT(problem.constraints().narrowed, ElementsAre(OpId{0}, OpId{1}, OpId{2}, OpId{3}));
  const std::vector<DeviceId> device = {DeviceId{0}, DeviceId{1}, DeviceId{1}, DeviceId{0}, DeviceId{0}};
  EXPECT_EQ(FindViolation(problem, {.device = device}), "op encoder/0 (MatMul) may not be on cpu");
}

TEST(Constraints, ColocateJoinsAllThatItsListMatches) {
  const Problem problem = Net().With({"colocate encoder/0,type:Softmax"});
  EXPECT_THAT(problem.constraints().colocate, ElementsAre(ElementsAre(OpId{0}, OpId{1}, OpId{3})));
}

TEST(Constraints, SeparateKeepsPatternsApartAndASinglePatternsOpsFromOneAnother) {
  const Net net;
  const auto pair = [](int a, int b) { return std::pair(OpId{a}, OpId{b}); };
  EXPECT_THAT(net.With({"separate encoder/*,decoder/*"}).constraints().separate,
              ElementsAre(pair(0, 2), pair(0, 3), pair(1, 2), pair(1, 3)));
  EXPECT_THAT(net.With({"separate re:.*/.|a.*"}).constraints().separate, SizeIs(10));
  EXPECT_THAT(net.With({"separate encoder/*"}).constraints().separate, ElementsAre(pair(0, 1)));
}

TEST(Constraints, MemoryLimitsAreTheLeastOfAllThatAreStated) {
  const Net net;
  const auto limits = [&](const std::vector<std::string>& texts) {
    const Problem problem = net.With(texts);
    std::vector<int64_t> all;
    for (const DeviceId id : problem.cluster().ids()) all.push_back(problem.memory_limit(id));
    return all;
  };
  constexpr int64_t kGi = int64_t{1} << 30, kNone = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(limits({}), ElementsAre(kNone, 8 * kGi, 8 * kGi));
  EXPECT_THAT(limits({"memory gpu0=4GiB", "memory cpu=1GiB"}), ElementsAre(kGi, 4 * kGi, 8 * kGi));
  EXPECT_THAT(limits({"keep-free 25%"}), ElementsAre(kNone, 6 * kGi, 6 * kGi));
  EXPECT_THAT(limits({"keep-free gpu0,gpu1=50%", "memory gpu0=6GiB"}), ElementsAre(kNone, 4 * kGi, 4 * kGi));
  EXPECT_THAT(limits({"memory gpu*=1GiB", "keep-free gpu1=100 %"}), ElementsAre(kNone, kGi, 0));
}

TEST(Constraints, ForbiddenTransfersNameTensorsAndLinks) {
  const Net net;
  const Problem problem = net.With({"forbid-transfer t0=cpu>gpu*", "forbid-transfer type:Softmax=gpu1>cpu,gpu1"});
  using F = ForbiddenTransfer;
  EXPECT_THAT(problem.constraints().forbidden_transfers,
              ElementsAre(F{TensorId{0}, DeviceId{0}, DeviceId{1}}, F{TensorId{0}, DeviceId{0}, DeviceId{2}},
                          F{TensorId{1}, DeviceId{2}, DeviceId{0}}, F{TensorId{3}, DeviceId{2}, DeviceId{0}}));
  std::vector<DeviceId> device(5, DeviceId{0});
  EXPECT_EQ(FindViolation(problem, {.device = device}), std::nullopt);
  device[1] = DeviceId{2};
  EXPECT_EQ(FindViolation(problem, {.device = device}),
            "tensor t0 must not go from cpu to gpu1 and does, from op encoder/0 to op encoder/1");
  device[0] = device[2] = device[3] = device[4] = DeviceId{2};
  EXPECT_EQ(FindViolation(problem, {.device = device}), std::nullopt);
  EXPECT_NE(net.With({}).fingerprint(), problem.fingerprint());
}

TEST(Constraints, SayHowAPlacementBreaksThem) {
  const Net net;
  const auto breach = [&](const std::string& text, std::vector<int> where) {
    std::vector<DeviceId> device;
    for (const int d : where) device.push_back(DeviceId{d});
    return Breach(net.Resolve({text})[0], *net.graph, *net.cluster, device).value_or("kept");
  };
  EXPECT_EQ(breach("pin encoder/*=gpu*", {1, 2, 0, 0, 0}), "kept");
  EXPECT_EQ(breach("pin encoder/*=gpu1", {1, 2, 0, 0, 0}), "op encoder/0 is on gpu0");
  EXPECT_EQ(breach("forbid *coder*=cpu", {1, 0, 0, 0, 0}), "op encoder/1 is on cpu (the first of 3 such ops)");
  EXPECT_EQ(breach("forbid *coder*=cpu", {1, 1, 1, 1, 0}), "kept");
  EXPECT_EQ(breach("colocate *coder*", {1, 1, 2, 1, 0}), "op encoder/0 is on gpu0, op decoder/0 on gpu1");
  EXPECT_EQ(breach("colocate *coder*", {1, 1, 1, 1, 0}), "kept");
  EXPECT_EQ(breach("separate encoder/*,decoder/*", {0, 1, 2, 1, 0}), "ops encoder/1 and decoder/1 are both on gpu0");
  EXPECT_EQ(breach("separate encoder/*,decoder/*", {0, 0, 2, 1, 0}), "kept");
  EXPECT_EQ(breach("forbid-transfer t1=cpu>gpu0", {0, 0, 1, 0, 0}),
            "tensor t1 goes from op encoder/1 on cpu to op decoder/0 on gpu0");
  EXPECT_EQ(breach("forbid-transfer t1=cpu>gpu0", {0, 1, 0, 0, 1}), "kept");
  EXPECT_EQ(breach("memory gpu0=1B", {1, 1, 1, 1, 1}), "kept") << "memory is the evaluators'";
}

TEST(Constraints, ComeBackFromTheirText) {
  for (const std::string text :
       {"pin encoder/*=gpu0", "keep-free 10%", "forbid-transfer t0=cpu>gpu0", "separate a, b"}) {
    EXPECT_EQ(ParseConstraint(text, "").ToString(), text);
  }
}

TEST(Constraints, NameTheMistakeThePlaceAndTheRemedy) {
  const Net net;
  EXPECT_EQ(net.Mistake("pin encodr/*=gpu0"),
            "here: pin 'encodr/*=gpu0': no op of net matches 'encodr/*', did you mean 'encoder/*'?");
  EXPECT_EQ(net.Mistake("pin decoder/7=gpu0"),
            "here: pin 'decoder/7=gpu0': no op of net matches 'decoder/7', did you mean 'decoder/0'?");
  EXPECT_EQ(net.Mistake("forbid type:Sofmax=gpu0"),
            "here: forbid 'type:Sofmax=gpu0': no op of net matches 'type:Sofmax', did you mean 'type:Softmax'?");
  EXPECT_THAT(net.Mistake("forbid type:Convolution=gpu0"), HasSubstr("; there are: MatMul, Softmax, Add"));
  EXPECT_THAT(net.Mistake("pin re:x.*=gpu0"), HasSubstr("no op of net matches 're:x.*'; the first is 'encoder/0'"));
  EXPECT_THAT(net.Mistake("pin re:(=gpu0"), HasSubstr("is no regular expression that Berth can use"));
  EXPECT_THAT(net.Mistake("pin re:(a)\\1=gpu0"), HasSubstr("is no regular expression that Berth can use"));
  EXPECT_THAT(net.Mistake("pin re:a{1001}=gpu0"), HasSubstr("is no regular expression that Berth can use"));
  EXPECT_THAT(net.Mistake("pin re:((a{100}){100}){100}=gpu0"),
              HasSubstr("is no regular expression that Berth can use"));
  EXPECT_THAT(net.Mistake("pin encoder/*=gpu7"), HasSubstr("gpu7"));
  EXPECT_THAT(net.Mistake("pin encoder/*=npu*"), HasSubstr("no device matches 'npu*'; there are: cpu, gpu0, gpu1"));
  EXPECT_THAT(net.Mistake("pin encoder/*"), HasSubstr("expected something like encoder/*=gpu0"));
  EXPECT_THAT(net.Mistake("pin =gpu0"), HasSubstr("expected something like"));
  EXPECT_THAT(net.Mistake("pin encoder/*="), HasSubstr("expected something like"));
  EXPECT_THAT(net.Mistake("pin encoder/0,,x=gpu0"), HasSubstr("expected something like"));
  EXPECT_THAT(net.Mistake("pin \"encoder/0=gpu0"), HasSubstr("a double quote is not closed"));
  EXPECT_THAT(net.Mistake("colocate encoder/0"), HasSubstr("matches op encoder/0 alone; name at least two"));
  EXPECT_THAT(net.Mistake("separate encoder/0"), HasSubstr("matches op encoder/0 alone; name at least two"));
  EXPECT_THAT(net.Mistake("separate encoder/0,enc*"), HasSubstr("encoder/0 matches two of its patterns"));
  EXPECT_THAT(net.Mistake("memory gpu0=4GiBB"), HasSubstr("4GiBB"));
  EXPECT_THAT(net.Mistake("memory gpu0=-4GiB"), HasSubstr("-4GiB"));
  EXPECT_THAT(net.Mistake("memory gpu0=9GiB"),
              HasSubstr("gpu0 has only 8.00 GiB; a budget can lower that, not raise it"));
  EXPECT_THAT(net.Mistake("keep-free cpu=10%"), HasSubstr("the size of cpu's memory is not known"));
  for (const char* text : {"10", "-1%", "101%", "nan%", "inf%", "%", "ten%", "1 0%"}) {
    EXPECT_THAT(net.Mistake(std::string("keep-free ") + text), HasSubstr("is no share")) << text;
  }
  EXPECT_THAT(net.Mistake("forbid-transfer t0=cpu>cpu"), HasSubstr("from a device to itself"));
  EXPECT_THAT(net.Mistake("forbid-transfer t0=cpu"), HasSubstr("expected something like hidden=cpu>gpu0"));
  EXPECT_THAT(net.Mistake("forbid-transfer tokens=cpu>gpu0"), HasSubstr("is an input of the model"));
  EXPECT_THAT(net.Mistake("forbid-transfer encoder/0=cpu>gpu0"), HasSubstr("is an op; its tensor is called 't0'"));
  EXPECT_THAT(net.Mistake("nail a=b"), HasSubstr("here: 'nail a=b' is no constraint; expected one of pin, forbid"));
}

TEST(Constraints, RefuseMorePairsThanAnybodyMeans) {
  GraphBuilder builder("wide");
  for (int v = 0; v < 2000; ++v) builder.AddOp(fmt::format("op{}", v), "T", {});
  const Graph graph = builder.Build();
  const ConstraintText text = ParseConstraint("separate op*", "");
  EXPECT_THROW(ResolveConstraints({&text, 1}, graph, testing::UniformCluster(2), {}), Error);
}

TEST(Constraints, RegularExpressionsThatExplodeElsewhereEndSoon) {
  GraphBuilder builder("long");
  builder.AddOp(std::string(60, 'a') + "!", "T", {});
  builder.AddOp("b", "T", {});
  const Graph graph = builder.Build();
  const ConstraintText text = ParseConstraint("pin re:(a*)*b=0", "");
  const auto constraints = ResolveConstraints({&text, 1}, graph, testing::UniformCluster(1), {});
  EXPECT_THAT(constraints[0].ops[0], ElementsAre(OpId{1}));
}

TEST(ConstraintFile, HoldsTheSameTextsAsTheCommandLine) {
  const auto constraints = ParseConstraintFile(
      "# comment\n"
      "pin:\n"
      "  - encoder/*=gpu0\n"
      "  - \"*/1=cpu\"\n"
      "keep-free: 10%\n"
      "forbid-transfer: [t0=cpu>gpu0]\n",
      "rules.yaml");
  EXPECT_THAT(constraints, ElementsAre(ConstraintText{ConstraintKind::kPin, "encoder/*=gpu0", "rules.yaml:3"},
                                       ConstraintText{ConstraintKind::kPin, "*/1=cpu", "rules.yaml:4"},
                                       ConstraintText{ConstraintKind::kKeepFree, "10%", "rules.yaml:5"},
                                       ConstraintText{ConstraintKind::kForbidTransfer, "t0=cpu>gpu0", "rules.yaml:6"}));
}

TEST(ConstraintFile, NamesFileAndLineOfAMistake) {
  const auto mistake = [](std::string_view yaml) -> std::string {
    try {
      ParseConstraintFile(yaml, "rules.yaml");
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(mistake("pin: a=b\npni: a=b\n"),
              HasSubstr("rules.yaml:2: list of constraints: unknown key 'pni' (did you mean pin?)"));
  EXPECT_THAT(mistake("pin: a=b\npin: c=d\n"), HasSubstr("'pin' is there twice, first in line 1"));
  EXPECT_THAT(mistake("pin:\n - {a: b}\n"), HasSubstr("rules.yaml:2"));
  EXPECT_THAT(mistake("pin:\n"), HasSubstr("rules.yaml:1"));
  EXPECT_THAT(mistake("pin:\n - *x=gpu0\n"), HasSubstr("quotes around a text that begins with *"));
  EXPECT_THAT(mistake("- a\n"), HasSubstr("expected a mapping"));
  EXPECT_THAT(mistake(""), HasSubstr("expected pin:, forbid:"));
  EXPECT_THAT(mistake("pin: [a"), HasSubstr("rules.yaml:1"));
  EXPECT_THAT(mistake(std::string_view("pin: \0a=b", 9)), HasSubstr("rules.yaml:1"));
  EXPECT_THROW(ReadConstraintFile("nowhere.yaml"), Error);
}

}  // namespace
}  // namespace berth
