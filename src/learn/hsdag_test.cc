#include "learn/hsdag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/catalog.h"
#include "cluster/presets.h"
#include "import/import.h"
#include "import/model_families.h"
#include "learn/hsdag_parse.h"
#include "learn/learner.h"
#include "learn/linear_critic.h"
#include "learn/planners.h"
#include "learn/testing.h"
#include "placement/costs.h"
#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

// A problem that outlives what refers to it.
struct Case {
  explicit Case(const std::string& model, const std::string& cluster = "cpu_gpu",
                const std::string& evaluator = "serial(io=everywhere)") {
    ModelCatalog models("model");
    RegisterSyntheticModels(models);
    RegisterIrModels(models);
    ClusterCatalog clusters("cluster");
    RegisterClusterPresets(clusters);
    EvaluatorCatalog evaluators("evaluator");
    RegisterSerial(evaluators);
    RegisterParallel(evaluators);
    auto graph = std::make_shared<const Graph>(models.Make(model));
    auto machines = std::make_shared<const Cluster>(clusters.Make(cluster));
    problem = std::make_unique<Problem>(graph, machines, RooflineTimes(*graph, *machines));
    judged = evaluators.Make(evaluator, *problem);
  }
  std::unique_ptr<Problem> problem;
  std::unique_ptr<Evaluator> judged;
};

std::vector<ScoredEdge> RandomEdges(Random& random, int32_t nodes, bool symmetric) {
  std::vector<ScoredEdge> edges;
  std::set<std::pair<int32_t, int32_t>> taken;
  for (int i = 0; i < 2 * nodes; ++i) {
    const auto u = static_cast<int32_t>(random.Below(static_cast<size_t>(nodes)));
    const auto v = static_cast<int32_t>(random.Below(static_cast<size_t>(nodes)));
    if (u == v || !taken.emplace(std::min(u, v), std::max(u, v)).second) continue;
    const auto there = static_cast<float>(random.Uniform());
    edges.push_back({u, v, there});
    edges.push_back({v, u, symmetric ? there : static_cast<float>(random.Uniform())});
  }
  std::ranges::sort(edges, [](const ScoredEdge& a, const ScoredEdge& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  return edges;
}

TEST(HsdagParse, BothFormsAgreeWhenScoresAreSymmetric) {
  Random random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const auto nodes = static_cast<int32_t>(1 + random.Below(30));
    const auto edges = RandomEdges(random, nodes, true);
    const ParsedClusters a = ParseInSequence(nodes, edges), b = ParseByUnion(nodes, edges);
    EXPECT_EQ(a.of, b.of);
    EXPECT_EQ(a.count, b.count);
  }
}

TEST(HsdagParse, EveryClusterOfANodeWithEdgesHasTwoNodesAtLeast) {
  Random random(2);
  for (int trial = 0; trial < 50; ++trial) {
    const auto edges = RandomEdges(random, 20, true);
    const ParsedClusters clusters = ParseByUnion(20, edges);
    for (const ScoredEdge& edge : edges) {
      EXPECT_GE(std::ranges::count(clusters.of, clusters.of[static_cast<size_t>(edge.from)]), 2);
    }
  }
}

TEST(HsdagParse, AnAsymmetricScoreTakesANodeIntoALaterCluster) {
  // 0 <-> 1 joins first; the dominant edge of 1 points to 2 and, processed later, takes 1 along with 2.
  const std::vector<ScoredEdge> edges{{0, 1, 0.9F}, {1, 0, 0.1F}, {1, 2, 0.5F},
                                      {2, 1, 0.2F}, {2, 3, 0.3F}, {3, 2, 0.4F}};
  const ParsedClusters clusters = ParseInSequence(4, edges);
  EXPECT_EQ(clusters.of[1], clusters.of[2]);
  EXPECT_NE(clusters.of[0], clusters.of[1]);
  EXPECT_EQ(ParseByUnion(4, edges).count, 1);
}

TEST(Hsdag, CoarsensThePublishedGraphsToThePublishedSizes) {
  const Case resnet("ir_resnet50"), inception("ir_inception_v3");
  for (const auto* rule : {"paper", "code"}) {
    const CoarseGraph graph = MakeCoarseGraph(*resnet.problem, rule);
    EXPECT_EQ(graph.size(), 237U) << rule;
    EXPECT_EQ(graph.quotient.edges.size(), 252U) << rule;
  }
  EXPECT_EQ(MakeCoarseGraph(*inception.problem, "paper").size(), 435U);
  EXPECT_EQ(MakeCoarseGraph(*inception.problem, "code").size(), 424U);
}

TEST(Hsdag, HasTheReleasedNetworksNumberOfParameters) {
  const Case inception("ir_inception_v3");
  HsdagOptions options;
  options.colocation = "code";
  // Sixteen op types and the number of the node: 17 columns, as the released code sets by hand.
  options.features = {.in_degree = false, .out_degree = false, .fractal = false, .position = 1, .shape = false};
  const HsdagPolicy policy(*inception.problem, options, Random(1));
  int64_t count = 0;
  for (const at::Tensor& parameter : policy.parameters()) count += parameter.numel();
  EXPECT_EQ(count, 141076);
}

// The slope of log N over log r from a table of distances, made the slow way.
double SlowFractal(const CoarseGraph& graph, size_t from) {
  const size_t n = graph.size();
  std::vector<double> distance(n, 1e9);
  distance[from] = 0;
  for (size_t round = 0; round < n; ++round) {
    for (size_t v = 0; v < n; ++v) {
      for (const int32_t child : graph.children[v]) {
        distance[static_cast<size_t>(child)] = std::min(distance[static_cast<size_t>(child)], distance[v] + 1);
      }
    }
  }
  std::set<double> radii;
  for (const double d : distance) {
    if (d > 0 && d < 1e9) radii.insert(d);
  }
  if (radii.size() < 2) return 0;
  double x = 0, y = 0, xx = 0, xy = 0;
  const auto count = static_cast<double>(radii.size());
  for (const double r : radii) {
    const auto within = static_cast<double>(std::ranges::count_if(distance, [&](double d) { return d > 0 && d <= r; }));
    x += std::log(r), y += std::log(within), xx += std::log(r) * std::log(r), xy += std::log(r) * std::log(within);
  }
  return (count * xy - x * y) / (count * xx - x * x);
}

// With the clusters of the first pass: which edges join is no smooth function.
TEST(HsdagNetwork, HasTheGradientThatDifferencesSay) {
  for (const Encoder encoder : {Encoder::kGcn, Encoder::kGat, Encoder::kGin}) {
    for (const bool symmetric : {true, false}) {
      const HsdagShape shape{
          .features = 3, .devices = 3, .hidden = 4, .encoder = encoder, .directed = !symmetric, .symmetric = symmetric};
      HsdagNetwork network(shape, Random(1));
      Random random(2);
      const LevelGraph graph(8, {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {4, 5}, {5, 6}, {6, 7}}, shape);  // two parts
      const at::Tensor features = testing::NormalTensor(random, {8, 3});
      const std::vector<ParsedClusters> parsed =
          network.Forward(graph, features.to(torch::kFloat32), nullptr, nullptr).parsed;
      network.to(torch::kFloat64);
      const int64_t groups = network.Forward(graph, features, nullptr, &parsed).logits.size(0);
      ASSERT_GT(groups, 1);
      const at::Tensor of_logits = testing::NormalTensor(random, {groups, 3}),
                       of_embedding = testing::NormalTensor(random, {groups, 3});
      HsdagOutput kept;  // the backward pass refers to it
      const auto sum = [&] {
        kept = network.Forward(graph, features, nullptr, &parsed);
        return (torch::log_softmax(kept.logits, 1) * of_logits).sum() + (kept.embedding * of_embedding).sum();
      };
      testing::ExpectTheGradientThatDifferencesSay(network, sum, 1e-6,
                                                   fmt::format("encoder {} {}", static_cast<int>(encoder), symmetric));
    }
  }
}

TEST(HsdagNetwork, AttendsAlsoWhereSomeNodesAreMuchLouderThanOthers) {
  const HsdagShape shape{.features = 3, .devices = 2, .hidden = 4, .encoder = Encoder::kGat, .levels = 2};
  const HsdagNetwork network(shape, Random(1));
  {
    const torch::NoGradGuard no_gradient;
    for (const auto& parameter : network.named_parameters()) {
      if (parameter.key().find("attend") != std::string::npos) parameter.value().mul_(1e4);
    }
  }
  Random random(2);
  const LevelGraph graph(8, {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {4, 5}, {5, 6}, {6, 7}}, shape);
  const at::Tensor features = testing::NormalTensor(random, {8, 3}).to(torch::kFloat32);
  EXPECT_TRUE(torch::isfinite(network.Forward(graph, features, nullptr, nullptr).logits).all().item<bool>());
}

TEST(HsdagFeatures, FractalDimensionIsTheSlopeOfReachableNodesOverDistance) {
  for (const auto* model : {"layered(ops=40,seed=3)", "fork_join(width=4,depth=3)", "chain(ops=9)"}) {
    const Case test(model);
    const CoarseGraph graph = MakeCoarseGraph(*test.problem, "none");
    const std::vector<double> dimension = FractalDimensions(graph);
    for (size_t v = 0; v < graph.size(); ++v) EXPECT_NEAR(dimension[v], SlowFractal(graph, v), 1e-9) << model;
  }
}

TEST(HsdagFeatures, BlocksCanBeSwitchedOff) {
  const Case test("ir_resnet50");
  const CoarseGraph graph = MakeCoarseGraph(*test.problem, "paper");
  const FeatureTable all = MakeHsdagFeatures(*test.problem, graph, {});
  // Eleven op types (Duan et al. 2024, section 2.2), {0, 2} ingoing, {0, 1, 2} outgoing edges, fractal, 16, 4.
  EXPECT_EQ(all.columns, 11U + 2 + 3 + 1 + 16 + 4);
  EXPECT_EQ(all.value.size(), all.columns * graph.size());
  const FeatureTable few = MakeHsdagFeatures(
      *test.problem, graph, {.in_degree = false, .out_degree = false, .fractal = false, .position = 1, .shape = false});
  EXPECT_EQ(few.names.back(), "position");
  EXPECT_EQ(few.columns, 12U);
}

TEST(HsdagFeatures, FixedColumnsAreTheSameForEveryGraph) {
  std::set<std::vector<std::string>> names;
  for (const auto* model : {"ir_resnet50", "ir_bert_base", "layered(ops=40,seed=3)", "chain(ops=3)"}) {
    const Case test(model);
    const CoarseGraph graph = MakeCoarseGraph(*test.problem, "paper");
    const FeatureTable table = MakeHsdagFeatures(*test.problem, graph, {.fixed = true});
    names.insert(table.names);
    ASSERT_EQ(table.columns, kTypeColumns + 8 + 8 + 1 + 16 + 4);
    for (size_t v = 0; v < graph.size(); ++v) {
      const float* row = table.value.data() + v * table.columns;
      const auto sum = [&](size_t first, size_t count) {
        return std::accumulate(row + first, row + first + count, 0.0);
      };
      EXPECT_NEAR(sum(0, kTypeColumns), 1, 1e-5) << "shares of op types";
      EXPECT_EQ(sum(kTypeColumns, 8), 1) << "one range of in-degrees";
      EXPECT_EQ(sum(kTypeColumns + 8, 8), 1) << "one range of out-degrees";
    }
  }
  EXPECT_EQ(names.size(), 1U);
}

TEST(Hsdag, APolicyThatReadsCostsServesDevicesOfOtherNames) {
  const Case test("layered(ops=30,seed=5)");
  HsdagOptions options;
  options.features.costs = true;
  const HsdagPolicy policy(*test.problem, options, Random(7));
  const Cluster& cluster = test.problem->cluster();
  std::vector<Device> devices;
  std::vector<Link> links;
  for (const DeviceId from : cluster.ids()) {
    devices.push_back(cluster.device(from));
    devices.back().name += " of another";
    for (const DeviceId to : cluster.ids()) links.push_back(cluster.link(from, to));
  }
  const auto renamed = std::make_shared<const Cluster>("renamed", std::move(devices), std::move(links));
  const Problem problem(test.problem->shared_graph(), renamed, RooflineTimes(test.problem->graph(), *renamed));
  EXPECT_NE(policy.Prepare(problem), nullptr);
}

TEST(Hsdag, RecallsTheProbabilitiesWithWhichItPlayed) {
  const Case test("layered(ops=30,seed=5)");
  for (const bool faithful : {true, false}) {
    for (const auto encoder : {Encoder::kGcn, Encoder::kGat, Encoder::kGin}) {
      for (const int64_t levels : {0, 1, 2, -1}) {
        HsdagOptions options;
        options.shape.encoder = encoder;
        options.shape.levels = levels;
        options.shape.hidden = 16;
        options.shape.dropout = faithful ? 0.2 : 0;
        options.shape.symmetric = !faithful;
        options.state_update = faithful;
        options.steps = 3;
        const HsdagPolicy policy(*test.problem, options, Random(7));
        const auto task = policy.Prepare(*test.problem);
        testing::OpenSearch search(*test.judged);
        std::vector<Random> randoms{Random(1), Random(2)};
        for (const auto& episode : policy.Play(*task, search, randoms, {})) {
          const auto likelihood = testing::RecallOne(policy, *task, *episode);
          ASSERT_EQ(likelihood->log_prob.size(0), std::ssize(episode->log_prob));
          for (size_t i = 0; i < episode->log_prob.size(); ++i) {
            EXPECT_NEAR(likelihood->log_prob[static_cast<int64_t>(i)].item<float>(), episode->log_prob[i], 1e-5);
          }
        }
      }
    }
  }
}

TEST(Hsdag, AnOpGoesOnlyWhereItCanRun) {
  Case test("layered(ops=30,seed=5)");
  OpTimes times = RooflineTimes(test.problem->graph(), test.problem->cluster());
  for (size_t op = 0; op < 30; op += 3) times.time[2 * op + 1] = kCannotRun;
  const Problem narrow(test.problem->shared_graph(), test.problem->shared_cluster(), times);
  const auto judged = testing::EvaluatorNamed("serial(io=everywhere)", RegisterSerial, narrow);
  for (const int64_t levels : {0, 1}) {
    HsdagOptions options;
    options.shape.levels = levels;
    const HsdagPolicy policy(narrow, options, Random(7));
    const auto task = policy.Prepare(narrow);
    testing::OpenSearch search(*judged);
    std::vector<Random> randoms{Random(1)};
    policy.Play(*task, search, randoms, {});
    EXPECT_EQ(FindViolation(narrow, search.best().view()), std::nullopt);
  }
}

// The critic's expectation, by going through all placements.
double SlowExpected(const LinearCritic& critic, const std::vector<std::vector<double>>& p,
                    const std::vector<int32_t>& of) {
  double sum = 0;
  std::vector<int32_t> choice(p.size(), 0), device(of.size());
  for (;;) {
    double weight = 1;
    for (size_t i = 0; i < p.size(); ++i) weight *= p[i][static_cast<size_t>(choice[i])];
    for (size_t v = 0; v < of.size(); ++v) device[v] = choice[static_cast<size_t>(of[v])];
    sum += weight * critic.Predict(device);
    size_t i = 0;
    while (i < p.size() && ++choice[i] == static_cast<int32_t>(p[i].size())) choice[i++] = 0;
    if (i == p.size()) return sum;
  }
}

TEST(LinearCritic, ExpectsTheMeanOverAllPlacements) {
  for (const auto* cluster : {"cpu_gpu", "cpu_igpu_gpu"}) {
    const Case test("layered(ops=9,seed=5)", cluster);
    const CoarseGraph graph = MakeCoarseGraph(*test.problem, "none");
    const LinearCritic critic(*test.problem, graph, true);
    Random random(3);
    const size_t devices = test.problem->num_devices(), decisions = 6;
    std::vector<int32_t> of;
    for (size_t v = 0; v < graph.size(); ++v)
      of.push_back(static_cast<int32_t>(v < decisions ? v : random.Below(decisions)));
    std::vector<std::vector<double>> p(decisions, std::vector<double>(devices));
    at::Tensor probability = torch::empty({static_cast<int64_t>(decisions), static_cast<int64_t>(devices)});
    for (size_t i = 0; i < decisions; ++i) {
      double sum = 0;
      for (double& x : p[i]) sum += x = random.Uniform(0.1, 1);
      for (size_t d = 0; d < devices; ++d) {
        p[i][d] /= sum;
        probability[static_cast<int64_t>(i)][static_cast<int64_t>(d)] = p[i][d];
      }
    }
    const double expected = critic.Expected(probability, of).item<double>();
    EXPECT_NEAR(expected / SlowExpected(critic, p, of), 1, 1e-4);
  }
}

TEST(LinearCritic, KnowsSerialFromTheStartAndLearnsItFromNothing) {
  const Case test("layered(ops=20,seed=8)");
  const CoarseGraph graph = MakeCoarseGraph(*test.problem, "none");
  const NodePlacer placer(*test.problem, graph);
  const auto workspace = test.judged->NewWorkspace();
  LinearCritic informed(*test.problem, graph, true), blank(*test.problem, graph, false);
  Random random(4);
  std::vector<int32_t> device(graph.size());
  std::vector<DeviceId> placement(test.problem->num_ops());
  double informed_error = 0, blank_error = 0, cost = 0;
  for (int trial = 0; trial < 400; ++trial) {
    for (int32_t& each : device) each = static_cast<int32_t>(random.Below(2));
    placer.Place(device, placement);
    cost = test.judged->ScorePlan({.device = placement}, *workspace).value();
    informed_error = std::abs(informed.Predict(device) - cost);
    blank_error = std::abs(blank.Predict(device) - cost);
    EXPECT_LT(informed_error, 1e-6 * cost) << "in trial " << trial;
    blank.Learn(device, cost);
  }
  EXPECT_LT(blank_error, 0.01 * cost);
}

// Where ops run side by side no sum of prices is what a placement costs, and the model must not take each cost for what
// its weights alone explain.
TEST(LinearCritic, LearnsHowWrongItIs) {
  const auto noise_on = [](const char* evaluator) {
    const Case test("layered(ops=30,width=4,seed=8)", "cpu_gpu", evaluator);
    const CoarseGraph graph = MakeCoarseGraph(*test.problem, "none");
    const NodePlacer placer(*test.problem, graph);
    const auto workspace = test.judged->NewWorkspace();
    LinearCritic critic(*test.problem, graph, true);
    Random random(4);
    std::vector<int32_t> device(graph.size());
    std::vector<DeviceId> placement(test.problem->num_ops());
    double squares = 0;
    for (int trial = 0; trial < 600; ++trial) {
      for (int32_t& each : device) each = static_cast<int32_t>(random.Below(2));
      placer.Place(device, placement);
      const double cost = test.judged->ScorePlan({.device = placement}, *workspace).value();
      if (trial >= 400) squares += std::pow(critic.Predict(device) - cost, 2) / 200;
      critic.Learn(device, cost);
    }
    return std::pair(std::sqrt(critic.State().back().item<double>()), std::sqrt(squares));
  };
  const auto [serial, serial_error] = noise_on("serial(io=everywhere)");
  const auto [parallel, parallel_error] = noise_on("parallel(contention=ports,io=everywhere)");
  EXPECT_LT(serial_error, 1e-6 * serial);
  EXPECT_GT(parallel, 5 * serial);
  // Weights are uncertain too, so that its errors are somewhat larger.
  EXPECT_GT(parallel, 0.5 * parallel_error);
  EXPECT_LT(parallel, 1.2 * parallel_error);
}

TEST(Hsdag, DrawsNearTheBestPlacementAndFindsABetterOneThere) {
  const Case test("layered(ops=60,width=6,seed=3)", "k80x2", "parallel(contention=ports)");
  PlannerCatalog planners;
  RegisterLearned(planners);
  const auto found = [&](const char* name, uint64_t seed) {
    const PlanResult result = planners.MakePlanner(name)->MakePlan(
        {.evaluator = *test.judged, .budget = {.evaluations = 300}, .random = Random(seed)});
    EXPECT_EQ(result.evaluations, 300) << name;
    return result.score.value();
  };
  for (const uint64_t seed : {1, 2, 3}) {
    EXPECT_LT(found("hsdag(hidden=8)", seed), found("hsdag(hidden=8,near=0)", seed)) << "with seed " << seed;
  }
}

// Its policy learns next to nothing here: what is left is the choice of moves.
TEST(Hsdag, LearnsWhichMovesNearTheBestAreWorthAScore) {
  const Case test("layered(ops=200,width=8,seed=5)", "k80x4", "parallel(contention=ports)");
  PlannerCatalog planners;
  RegisterLearned(planners);
  const auto found = [&](const char* name) {
    double sum = 0;
    for (const uint64_t seed : {1, 2, 3, 4}) {
      sum += planners.MakePlanner(name)
                 ->MakePlan({.evaluator = *test.judged, .budget = {.evaluations = 1000}, .random = Random(seed)})
                 .score.value();
    }
    return sum;
  };
  const double untrained = found("hsdag(hidden=8,imagined=0,learning_rate=0)");
  EXPECT_LT(found("hsdag(hidden=8,imagined=0,learning_rate=1e-9,learning_rate_end=1e-9)"), 0.98 * untrained);
  // Without costs there is nothing to choose by.
  EXPECT_NEAR(found("hsdag(hidden=8,imagined=0,costs=false,critic=blank,learning_rate=1e-9,learning_rate_end=1e-9)"),
              found("hsdag(hidden=8,imagined=0,costs=false,critic=blank,learning_rate=0)"), 1e-3 * untrained);
}

// What it learns is more than what it would have drawn anyway: of the last update the mean.
TEST(Hsdag, DrawsBetterPlacementsThanItsUntrainedTwin) {
  Random random(5);
  double trained = 0, untrained = 0;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const Problem problem = testing::RandomProblem(random, {.ops = 12, .devices = 2});
    const auto evaluator =
        testing::EvaluatorNamed("parallel(contention=none,io=everywhere)", RegisterParallel, problem);
    const auto drawn = [&](const char* rate) {
      const Method method = testing::MethodNamed(fmt::format("hsdag(hidden=8,imagined=3,learning_rate={})", rate));
      const std::vector<double> costs = testing::CostsOfTraining(method, *evaluator, Random(seed), 10, 1);
      return costs[costs.size() - 2];
    };
    trained += std::log(drawn("0.02"));
    untrained += std::log(drawn("0"));
  }
  EXPECT_LT(std::exp((trained - untrained) / 2), 0.8);
}

TEST(Hsdag, FindsTheOptimumOfASmallProblemInEveryMode) {
  const Case test("fork_join(width=3,depth=2)");
  PlannerCatalog planners;
  RegisterLearned(planners);
  // All placements.
  const size_t ops = test.problem->num_ops();
  ASSERT_LE(ops, 14U);
  const auto workspace = test.judged->NewWorkspace();
  double best = 1e300;
  for (size_t bits = 0; bits < size_t{1} << ops; ++bits) {
    std::vector<DeviceId> placement;
    for (size_t op = 0; op < ops; ++op) placement.push_back(DeviceId{static_cast<int32_t>(bits >> op & 1)});
    best = std::min(best, test.judged->ScorePlan({.device = placement}, *workspace).value());
  }
  for (const auto* name :
       {"hsdag(hidden=16)", "hsdag(hidden=16,critic=none,entropy=0)", "hsdag(mode=paper,hidden=16)"}) {
    const auto planner = planners.MakePlanner(name);
    const PlanResult result =
        planner->MakePlan({.evaluator = *test.judged, .budget = {.evaluations = 400}, .random = Random(1)});
    EXPECT_LE(result.score.value(), best * 1.05) << name;
    EXPECT_EQ(result.evaluations, 400) << name;
  }
}

// Each of twelve ops is a little faster where the others are not; to send a tensor costs more than all of that
// together.
TEST(Hsdag, AnswersWithWhatManyOpsMustDoTogether) {
  GraphBuilder builder("together");
  for (size_t v = 0; v < 16; ++v) {
    builder.AddOp("op" + std::to_string(v), "Unit", {});
    builder.AddTensor(v, 1, {}, v + 1 == 16);
    if (v > 0) builder.Consume(v - 1, v);
  }
  OpTimes times{.time = {}, .source = "test"};
  for (size_t v = 0; v < 16; ++v) {
    const bool middle = v >= 2 && v < 14;  // 0.15 s faster on the first device, in all 1.8 s: less than two transfers
    times.time.push_back(middle ? 1 : 4);
    times.time.push_back(middle ? 1.15 : 1);
  }
  const auto graph = std::make_shared<const Graph>(builder.Build());
  const auto cluster = std::make_shared<const Cluster>(testing::UniformCluster(2));
  const Problem problem(graph, cluster, std::move(times));
  const auto evaluator = testing::EvaluatorNamed("serial(io=everywhere)", RegisterSerial, problem);
  testing::OpenLearner learner(testing::MethodNamed("hsdag(hidden=16,colocation=none)"), {*evaluator}, Random(1), 8);
  for (int i = 0; i < 8; ++i) learner.Update(1'000'000, 1);
  EXPECT_EQ(learner.Greedy(0, 1).result.plan.device, std::vector<DeviceId>(16, DeviceId{1}));
}

TEST(Hsdag, KeepsToAnyBudget) {
  const Case test("chain(ops=5)");
  PlannerCatalog planners;
  RegisterLearned(planners);
  for (const int64_t evaluations : {1, 2, 3, 4, 5, 62, 63, 64}) {
    const auto result =
        planners.MakePlanner("hsdag(hidden=8)")
            ->MakePlan({.evaluator = *test.judged, .budget = {.evaluations = evaluations}, .random = Random(1)});
    EXPECT_EQ(result.evaluations, evaluations);
  }
}

TEST(Hsdag, ItsDefaultsAreThoseThatItLists) {
  const Case test("chain(ops=5)");
  const auto learned = [&](const std::string& parameters) {
    testing::OpenLearner learner(testing::MethodNamed(fmt::format("hsdag(hidden=8,steps=4{})", parameters)),
                                 {*test.judged}, Random(1), 2);
    learner.Update(1'000'000, 1);
    const CurvePoint point = *learner.Update(1'000'000, 1);
    return std::tuple(point.loss, point.gradient_norm, point.entropy, point.mean_cost, point.evaluations);
  };
  const auto expected = learned(",imagined=2");
  MethodCatalog methods;
  RegisterHsdag(methods);
  for (const Parameter& parameter : methods.Find("hsdag")->info.parameters) {
    if (parameter.default_value.empty() || parameter.name == "hidden" || parameter.name == "steps") continue;
    // Where only one of the two rates is given, the other follows it.
    if (parameter.name.starts_with("learning_rate") || parameter.name == "imagined") continue;
    EXPECT_EQ(learned(fmt::format(",imagined=2,{}={}", parameter.name, parameter.default_value)), expected)
        << parameter.name;
  }
  EXPECT_EQ(learned(",imagined=2,learning_rate=0.001,learning_rate_end=0.0003"), expected);
  EXPECT_EQ(learned(",imagined=30"), learned(""));
  EXPECT_NE(learned(""), expected);
}

TEST(Hsdag, RefusesACriticOfOtherRewards) {
  PlannerCatalog planners;
  RegisterLearned(planners);
  for (const char* const wrong :
       {"hsdag(reward=log)", "hsdag(mode=paper,critic=costs)", "hsdag(critic=none,hold=0.1)"}) {
    EXPECT_THROW(planners.MakePlanner(wrong), Error) << wrong;
  }
  EXPECT_NO_THROW(planners.MakePlanner("hsdag(reward=log,critic=none)"));
}

TEST(Hsdag, KeepsOpsTogetherThatMustBeWhereNoDeviceRunsTheirNode) {
  // a runs on device 0 only, b on 1 only, c is fastest on 0 but must be with b.
  GraphBuilder builder("chain");
  for (size_t v = 0; v < 3; ++v) {
    builder.AddOp(std::string(1, static_cast<char>('a' + v)), "Unit", {});
    builder.AddTensor(v, 1, {}, v == 2);
    if (v > 0) builder.Consume(v - 1, v);
  }
  const auto graph = std::make_shared<const Graph>(builder.Build());
  const auto cluster = std::make_shared<const Cluster>(testing::UniformCluster(2));
  OpTimes times{.time = {1, kCannotRun, kCannotRun, 1, 1, 2}, .source = "test"};
  Problem::Options options;
  options.constraints.colocate = {{OpId{1}, OpId{2}}};
  const Problem problem(graph, cluster, std::move(times), std::move(options));
  const CoarseGraph coarse = MakeCoarseGraph(problem, "paper");
  ASSERT_EQ(coarse.size(), 1U);
  std::vector<DeviceId> placement(3);
  for (const int32_t device : {0, 1}) {
    NodePlacer(problem, coarse).Place(std::vector<int32_t>{device}, placement);
    EXPECT_EQ(placement, (std::vector<DeviceId>{DeviceId{0}, DeviceId{1}, DeviceId{1}}));
  }
}

TEST(Hsdag, ItsNameKeepsWhatOverrulesAMode) {
  PlannerCatalog planners;
  RegisterLearned(planners);
  EXPECT_EQ(planners.MakePlanner("hsdag(mode=code,shape=true)")->name(), "hsdag(mode=code,shape=true)");
  EXPECT_EQ(planners.MakePlanner("hsdag(mode=best)")->name(), "hsdag");
}

TEST(Hsdag, TheReleasedRewardRefusesSingleDevices) {
  const Case test("chain(ops=3)");
  PlannerCatalog planners;
  RegisterLearned(planners);
  const PlanResult result =
      planners.MakePlanner("hsdag(mode=code,hidden=16,levels=0,colocation=none)")
          ->MakePlan({.evaluator = *test.judged, .budget = {.evaluations = 60}, .random = Random(1)});
  EXPECT_NE(std::set<DeviceId>(result.plan.device.begin(), result.plan.device.end()).size(), 1U);
}

TEST(Hsdag, SaysWhenNoPlacementCanBeScored) {
  const Case test("chain(ops=3)");
  PlannerCatalog planners;
  RegisterLearned(planners);
  // One group is one device, which the released reward never measures.
  const auto planner = planners.MakePlanner("hsdag(mode=code,levels=-1,hidden=16)");
  try {
    planner->MakePlan({.evaluator = *test.judged, .budget = {.evaluations = 40}, .random = Random(1)});
    FAIL() << "it found a plan";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("none of 20 placements could be scored"));
  }
}

}  // namespace
}  // namespace berth
