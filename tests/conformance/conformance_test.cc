// What every planner promises, held against every planner of the catalog, on small problems, under every evaluator of
// the catalog. Joining the catalog means joining this test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "cli/catalogs.h"
#include "cli/learning.h"
#include "import/import.h"
#include "placement/bound.h"
#include "placement/search.h"
#include "placement/testing.h"
#include "tests/small_forms.h"

namespace berth {
namespace {

constexpr int64_t kEvaluations = 150;

const Catalogs& All() {
  static const Catalogs catalogs;
  return catalogs;
}

struct NamedProblem {
  std::string name;
  Problem problem;
};

Problem WithOptions(const Problem& problem, Problem::Options options) {
  OpTimes times{.time = {}, .source = "copy"};
  for (const OpId op : problem.graph().ops()) {
    for (const double time : problem.op_times(op)) times.time.push_back(time);
  }
  return Problem(problem.shared_graph(), problem.shared_cluster(), std::move(times), std::move(options));
}

// The same and no tensor from a device to the one before it.
Problem WithoutTransfers(const Problem& problem, Problem::Options options) {
  for (const TensorId tensor : problem.graph().tensors()) {
    for (size_t d = 1; d < problem.num_devices(); ++d) {
      options.constraints.forbidden_transfers.push_back({tensor, MakeId<DeviceId>(d), MakeId<DeviceId>(d - 1)});
    }
  }
  return WithOptions(problem, std::move(options));
}

// Made anew for each test, so that none depends on another.
std::vector<NamedProblem> SmallProblems() {
  std::vector<NamedProblem> problems;
  const auto add = [&](std::string name, Problem problem) {
    problems.push_back({std::move(name), std::move(problem)});
  };
  Random random(2026);
  add("nothing", testing::UnitProblem(GraphBuilder("nothing").Build(), 2));
  add("one op, one device", testing::Chain(1, 1));
  add("chain", testing::Chain(5, 2));
  add("fork and join", testing::ForkJoin(4, 2));
  add("fork and join on three equal devices", testing::ForkJoin(3, 3));
  add("ties", testing::RandomProblem(random, {.ops = 6, .devices = 2, .ties = true}));
  add("no ties", testing::RandomProblem(random, {.ops = 6, .devices = 2}));
  add("three devices", testing::RandomProblem(random, {.ops = 6, .devices = 3, .ties = true, .zero_lengths = false}));
  add("forbidden devices", testing::RandomProblem(random, {.ops = 7, .devices = 2, .forbidden = 0.4}));
  add("little memory", testing::RandomProblem(random, {.ops = 6, .devices = 2, .memory_limits = true}));
  Problem::Options together;
  together.constraints.colocate = {{OpId{0}, OpId{4}}, {OpId{2}, OpId{3}, OpId{5}}};
  add("together", WithOptions(testing::RandomProblem(random, {.ops = 6, .devices = 2}), std::move(together)));
  Problem::Options apart;
  apart.constraints.separate = {{OpId{0}, OpId{1}}, {OpId{1}, OpId{4}}};
  add("apart", WithOptions(testing::RandomProblem(random, {.ops = 6, .devices = 3}), std::move(apart)));
  add("no way back", WithoutTransfers(testing::RandomProblem(random, {.ops = 6, .devices = 2}), {}));
  Problem::Options tied;
  tied.constraints.colocate = {{OpId{1}, OpId{3}}};
  tied.constraints.separate = {{OpId{3}, OpId{4}}, {OpId{0}, OpId{5}}};
  add("tied in every way",
      WithoutTransfers(testing::RandomProblem(random, {.ops = 6, .devices = 3, .forbidden = 0.2}), std::move(tied)));
  Problem::Options microseconds;
  microseconds.seconds_per_unit = 1e-6;
  add("microseconds", WithOptions(testing::RandomProblem(random, {.ops = 5, .devices = 2}), std::move(microseconds)));
  return problems;
}

// The catalog's entries as they stand, and the ways of asking for them that change what they do.
std::vector<std::string> Names(const std::vector<std::string>& known, std::vector<std::string> more) {
  more.insert(more.begin(), known.begin(), known.end());
  return more;
}

std::vector<std::string> PlannerNames() {
  std::vector<std::string> names =
      Names(All().planners.Names(), {"single(device=0)",
                                     "random(bias=true)",
                                     "heft(rank=optimistic)",
                                     "heft(order=first_come)",
                                     "heft(order=priority)",
                                     "heft(order=sequence,insertion=false)",
                                     "heft(contention=none)",
                                     "heft(rank=critical)",
                                     "heft(clusters=always)",
                                     "etf(clusters=always)",
                                     "sct(favourites=heaviest)",
                                     "sct(favourites=heaviest,clusters=always)",
                                     "one_cut(cuts=2)",
                                     "local_search(start=random)",
                                     "annealing(start=random)",
                                     "local_search(order=rank)",
                                     "annealing(order=rank)",
                                     "annealing(order=search,work=0.5)",
                                     "annealing(order=sequence)",
                                     "annealing(order=sequence,moves=order,start=fastest)",
                                     "brkga(start=random,inherit=keys,moves=0)",
                                     "brkga(order=first_come)",
                                     "brkga(start=simple,order=rank)",
                                     "cross_entropy(start=random,keep=false,order=first_come)",
                                     "exhaustive(space=order)",
                                     "best_of(heft,local_search(restarts=3))"});
  if (kCanLearn) names.push_back(All().planners.NameWith(testing::SmallForm("gdp"), "priorities", "3"));
  return names;
}

std::vector<std::string> EvaluatorNames() {
  // Those that run models have tests of their own: these problems have no model.
  std::vector<std::string> known = All().evaluators.Names();
  std::erase_if(known, [](const std::string& name) { return name.starts_with("openvino"); });
  return Names(known, {"parallel(io=everywhere)", "parallel(contention=egress,io=everywhere)",
                       "parallel(contention=ports,io=everywhere)", "parallel(contention=ports,io=host)",
                       "parallel(contention=egress,io=1)", "parallel(contention=links,io=everywhere)",
                       "serial(subgraph_overhead=0.25,io=everywhere)",
                       "serial(subgraph_overhead=0.25,subgraphs=hetero)", "serial(io=host)", "serial(io=1)"});
}

// One problem under one evaluator, with the best plans of each space where trying all is possible.
class Court {
 public:
  Court(const Problem& problem, const std::string& evaluator)
      : problem_(problem), evaluator_(All().evaluators.Make(evaluator, problem)), bound_(LowerBound(*evaluator_)) {}

  PlanResult Run(Planner& planner, uint64_t seed, int64_t evaluations = kEvaluations) const {
    std::optional<Progress> before;
    // What a person sees while it runs only gets better.
    const auto watch = [&](const Progress& now) {
      if (before) {
        EXPECT_FALSE(Better(before->best, now.best));
        EXPECT_GE(now.evaluations, before->evaluations);
        EXPECT_GE(now.seconds, before->seconds);
      }
      before = now;
    };
    return planner.MakePlan(
        {.evaluator = *evaluator_, .budget = {.evaluations = evaluations}, .random = Random(seed), .progress = watch});
  }

  // Judges a planner; returns false when it refused.
  bool Judge(const std::string& name) {
    const auto planner = All().planners.MakePlanner(name);
    if (const auto refused = planner->Refuses(problem_, *evaluator_)) {
      EXPECT_FALSE(refused->empty()) << "it refuses without a reason";
      return false;
    }
    // A few updates of a learned planner draw as they all do.
    const int64_t evaluations = planner->facts().learned ? 41 : kEvaluations;
    const PlanResult result = Run(*planner, 7, evaluations);
    JudgePlan(result);
    JudgeSpace(planner->facts(), result);
    EXPECT_GE(result.evaluations, 1);
    EXPECT_LE(result.evaluations, evaluations) << "it overran its budget";
    EXPECT_EQ(Run(*planner, 7, 1).evaluations, 1) << "it overran a budget of one";

    const PlanResult again = Run(*All().planners.MakePlanner(name), 7, evaluations);
    EXPECT_EQ(again.plan, result.plan) << "the same seed gave another plan";
    EXPECT_EQ(again.score, result.score);
    EXPECT_EQ(again.evaluations, result.evaluations);
    EXPECT_EQ(again.note, result.note);
    if (planner->facts().deterministic_without_seed) {
      EXPECT_EQ(Run(*planner, 8).plan, result.plan) << "it depends on the seed";
    }
    return true;
  }

 private:
  void JudgePlan(const PlanResult& result) const {
    const PlanView view = result.plan.view();
    EXPECT_EQ(FindViolation(problem_, view), std::nullopt);
    if (evaluator_->facts().deterministic) {
      EXPECT_EQ(evaluator_->ScorePlan(view, *evaluator_->NewWorkspace()), result.score) << "it reports another score";
      const Timeline timeline = evaluator_->Trace(view);
      EXPECT_EQ(timeline.score, result.score);
      EXPECT_THAT(Verify(*evaluator_, view, timeline), ::testing::IsEmpty());
    } else {
      EXPECT_FALSE(result.optimal) << "what is proven of noise?";
    }
    EXPECT_GE(result.score.time, bound_.time) << "below the bound: " << bound_.reason;
    for (const OpId op : problem_.graph().ops()) {
      EXPECT_FALSE(result.plan.cause_of(op).empty()) << "no cause for op " << Index(op);
    }
  }

  void JudgeSpace(const PlannerFacts& facts, const PlanResult& result) {
    if (facts.space == PlannerFacts::Space::kPlacement) {
      EXPECT_TRUE(result.plan.priority.empty()) << "its facts promise no priorities";
    }
    if (facts.space != PlannerFacts::Space::kSequence) {
      EXPECT_FALSE(result.plan.sequence.has_value()) << "its facts promise no sequence";
    }
    const bool ordered = !result.plan.priority.empty() || result.plan.sequence.has_value();
    // Where inputs and outputs queue too, priorities can beat every sequence, which keeps these in fixed places.
    const EvaluatorFacts& judged = evaluator_->facts();
    if (!result.plan.priority.empty() && judged.io_host() && judged.contention() != Contention::kNone) return;
    const PlanResult* oracle = Oracle(ordered ? "exhaustive(space=order)" : "exhaustive");
    if (oracle == nullptr || !oracle->optimal || !result.score.fits() || !judged.deterministic) return;
    EXPECT_GE(result.score.time, oracle->score.time * (1 - 1e-12)) << "it beats its oracle";
    if (result.optimal) {
      EXPECT_LE(result.score.time, oracle->score.time * (1 + 1e-12)) << "it promises an optimum and misses it";
    }
  }

  // Null when it refuses.
  const PlanResult* Oracle(const std::string& name) {
    auto& found = oracles_[name];
    if (found.empty()) {
      const auto planner = All().planners.MakePlanner(name);
      found.resize(1);
      if (!planner->Refuses(problem_, *evaluator_)) found.front() = Run(*planner, 1, 1'000'000);
    }
    return found.front() ? &*found.front() : nullptr;
  }

  const Problem& problem_;
  std::unique_ptr<Evaluator> evaluator_;
  Bound bound_;
  std::map<std::string, std::vector<std::optional<PlanResult>>> oracles_;
};

class Conformance : public ::testing::TestWithParam<std::string> {
 protected:
  // `fixed` wants a file, `best_of` names.
  std::string NameFor(const std::string& planner, const Problem& problem) {
    if (planner == "best_of") return "best_of(one_cut,random)";
    if (planner != "fixed") return testing::SmallForm(planner);
    std::string list;
    for (size_t v = 0; v < problem.num_ops(); ++v) list += "0 ";
    path_ = std::filesystem::temp_directory_path() / fmt::format("berth-conformance-{}.txt", ::getpid());
    WriteFile(path_, list);
    return fmt::format("fixed(file=\"{}\")", path_);
  }
  ~Conformance() override {
    if (!path_.empty()) std::filesystem::remove(path_);
  }

 private:
  std::string path_;
};

TEST_P(Conformance, HoldsForEveryPlannerOnEverySmallProblem) {
  std::map<std::string, int> answered;
  for (const auto& [problem_name, problem] : SmallProblems()) {
    SCOPED_TRACE("problem " + problem_name);
    std::unique_ptr<Court> court;
    try {
      court = std::make_unique<Court>(problem, GetParam());
    } catch (const Error& error) {
      EXPECT_STRNE(error.what(), "") << "the evaluator refuses without a reason";
      continue;
    }
    for (const std::string& planner : PlannerNames()) {
      SCOPED_TRACE("planner " + planner);
      // With ops that must be apart no plain list of one device will do.
      if (planner == "fixed" && !problem.constraints().separate.empty()) continue;
      answered[planner] += court->Judge(NameFor(planner, problem)) ? 1 : 0;
    }
  }
  for (const auto& [planner, count] : answered) {
    // Some combinations are never possible; a planner that cannot do anything as it stands in the catalog is broken.
    if (All().planners.Find(planner) != nullptr) {
      EXPECT_GT(count, 0) << planner << " refused every problem";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Evaluators, Conformance, ::testing::ValuesIn(EvaluatorNames()), [](const auto& test) {
  std::string name = test.param;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
});

// Where libtorch is missing these names say so; where it is there, they are all that learn.
TEST(LearnedPlanners, AreThoseThatAreNamedWhereTheyAreMissing) {
  std::vector<std::string> learned;
  for (const std::string& name : All().planners.Names()) {
    if (name != "fixed" && name != "best_of" && All().planners.MakePlanner(name)->facts().learned)
      learned.push_back(name);
  }
  if (kCanLearn) {
    EXPECT_THAT(learned, ::testing::UnorderedElementsAreArray(kLearnedPlanners));
  } else {
    EXPECT_THAT([] { All().planners.MakePlanner("on(planner=hsdag)"); },
                ::testing::ThrowsMessage<Error>("hsdag needs libtorch, which is not in this build: ./dev build "
                                                "./dev build"));
  }
}

// Bounds, traces and their rules on what no planner would make.
TEST(RandomPlans, AreScoredAsTheyAreTraced) {
  Random random(11);
  for (int round = 0; round < 25; ++round) {
    const Problem problem = testing::RandomProblem(random, {.ties = round % 2 == 0, .memory_limits = round % 3 == 0});
    const std::vector<DeviceId> device = testing::RandomPlacement(problem, random);
    for (const std::string& name : EvaluatorNames()) {
      SCOPED_TRACE(name);
      std::unique_ptr<Evaluator> evaluator;
      try {
        evaluator = All().evaluators.Make(name, problem);
      } catch (const Error&) {
        continue;
      }
      const Score score = evaluator->ScorePlan({.device = device}, *evaluator->NewWorkspace());
      const Timeline timeline = evaluator->Trace({.device = device});
      EXPECT_THAT(Verify(*evaluator, {.device = device}, timeline), ::testing::IsEmpty());
      if (!evaluator->facts().deterministic) continue;
      EXPECT_EQ(timeline.score, score);
      EXPECT_GE(score.time, LowerBound(*evaluator).time);
    }
  }
}

// --- Constants ------------------------------------------------------------------------------------------------------

// The same problem with two more ops, the last ones, that take no time: one makes a constant, the other wants it.
Problem WithUnrelatedConstant(const Problem& problem) {
  nlohmann::json graph = nlohmann::json::parse(WriteGraphJson(problem.graph()));
  nlohmann::json op = {{"name", "making"},
                       {"type", "Constant"},
                       {"class", "other"},
                       {"data_type", "f32"},
                       {"flops", 0},
                       {"bytes_read", 0},
                       {"bytes_written", 0},
                       {"consumes", nlohmann::json::array()},
                       {"outputs", {{{"name", "made"}, {"bytes", 4096}, {"constant", true}}}}};
  graph["ops"].push_back(op);
  op["name"] = "wanting";
  op["consumes"] = {"made"};
  op["outputs"] = nlohmann::json::array();
  graph["ops"].push_back(op);
  OpTimes times{.time = {}, .source = "copy"};
  for (const OpId v : problem.graph().ops()) {
    for (const double time : problem.op_times(v)) times.time.push_back(time);
  }
  times.time.resize(times.time.size() + 2 * problem.num_devices(), 0);
  return Problem(std::make_shared<const Graph>(ReadGraphJson(graph.dump(), "graph.json")), problem.shared_cluster(),
                 std::move(times));
}

// The score, and when each op starts.
std::pair<Score, std::vector<double>> Traced(const Evaluator& evaluator, const PlanView& plan) {
  std::vector<double> starts(evaluator.problem().num_ops());
  const Score score = evaluator.ScorePlan(plan, *evaluator.NewWorkspace(), starts);
  EXPECT_THAT(Verify(evaluator, plan, evaluator.Trace(plan)), ::testing::IsEmpty());
  return {score, starts};
}

TEST(AnUnrelatedConstant, ChangesNoTimeUnderAnyEvaluator) {
  Random random(23);
  std::map<std::string, int> compared;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    // Placeto's simulator knows one bandwidth and no latency.
    Problem problem = testing::RandomProblem(random, {.inputs = round % 3 != 0, .domains = true});
    if (round % 3 == 0) {
      OpTimes times{.time = {}, .source = "copy"};
      for (const OpId op : problem.graph().ops()) {
        for (const double time : problem.op_times(op)) times.time.push_back(time);
      }
      problem = Problem(problem.shared_graph(),
                        std::make_shared<const Cluster>(testing::UniformCluster(problem.num_devices(), 0, 4096)),
                        std::move(times));
    }
    const Problem more = WithUnrelatedConstant(problem);
    const std::vector<DeviceId> device = testing::RandomPlacement(problem, random);
    std::vector<DeviceId> more_device = device;
    more_device.push_back(MakeId<DeviceId>(random.Below(problem.num_devices())));
    more_device.push_back(MakeId<DeviceId>(random.Below(problem.num_devices())));
    for (const std::string& name : EvaluatorNames()) {
      SCOPED_TRACE(name);
      // Here whatever starts a subgraph or uses a port pays for that alone, however little it is.
      if (name.find("subgraph_overhead") != std::string::npos) continue;
      if (name == "placeto") more_device.back() = more_device[device.size()];
      std::unique_ptr<Evaluator> evaluator, other;
      try {
        evaluator = All().evaluators.Make(name, problem);
        other = All().evaluators.Make(name, more);
      } catch (const Error&) {
        continue;
      }
      ++compared[name];
      const auto [score, starts] = Traced(*evaluator, {.device = device});
      auto [more_score, more_starts] = Traced(*other, {.device = more_device});
      more_starts.resize(starts.size());
      // Under `links` a clock is read once more, and rounds once more (docs/semantics.md).
      const double tolerance = evaluator->facts().contention() == Contention::kLinks ? 1e-12 * score.time : 0;
      EXPECT_NEAR(more_score.time, score.time, tolerance);
      for (size_t v = 0; v < starts.size(); ++v) EXPECT_NEAR(more_starts[v], starts[v], tolerance) << "op " << v;
      EXPECT_NEAR(LowerBound(*other).time, LowerBound(*evaluator).time, 1e-12 * score.time);
    }
  }
  for (const std::string& name : EvaluatorNames()) {
    if (name.find("subgraph_overhead") != std::string::npos) continue;
    if (name == "deadline") continue;  // refuses what cannot be stopped
    EXPECT_GT(compared[name], 5) << name;
  }
}

}  // namespace
}  // namespace berth
