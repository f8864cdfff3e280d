// Objectives, limits, published instances and training steps, on the built program.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cli/run_berth.h"

namespace berth::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kModel = "fork_join(width=6,depth=2)";
const std::string kSamples = std::string(BERTH_SOURCE_DIR) + "/samples/";
const std::string kShared = std::string(BERTH_SHARED_DIR) + "/data/";

#define BERTH_SKIP_WITHOUT(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there"

void ExpectMistake(const std::vector<std::string>& arguments, const std::string& part) {
  const Outcome outcome = RunBerth(arguments);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(part));
}

// One limit's entry of a check.
json LimitOf(const json& check, const std::string& limit, const std::string& device = "") {
  for (const json& entry : check.at("limits")) {
    if (entry.at("limit") == limit && entry.value("device", "") == device) return entry;
  }
  ADD_FAILURE() << "no limit " << limit;
  return {};
}

TEST(Objectives, EveryReportHasTimeEnergyAndObjective) {
  for (const char* objective : {"latency", "energy", "weighted(latency=1,energy=0.2)"}) {
    const json plan =
        Answer({"plan", kModel, "--objective", objective, "--budget", "300evals", "--evaluator", "serial"});
    EXPECT_EQ(plan.at("objective"), objective);
    EXPECT_GT(plan.at("score_seconds"), 0);
    EXPECT_GT(plan.at("energy_joules"), 0);
    EXPECT_LE(plan.at("objective_bound").get<double>(), plan.at("objective_value").get<double>());
    const double gap = plan.at("objective_value").get<double>() / plan.at("objective_bound").get<double>() - 1;
    EXPECT_NEAR(plan.at("gap").get<double>(), gap, 1e-9);
    if (plan.at("objective") == "latency") {
      EXPECT_EQ(plan.at("objective_value"), plan.at("score_seconds"));
    }
    if (plan.at("objective") == "energy") {
      EXPECT_NEAR(plan.at("objective_value").get<double>(), plan.at("energy_joules").get<double>(), 1e-9);
    }
  }
}

TEST(Objectives, DecideWhatCompareCallsBest) {
  const auto of = [](const std::string& objective) {
    return Answer({"compare", "resnet50", "--planners", "mincut", "--evaluator", "serial", "--objective", objective,
                   "--budget", "300evals"});
  };
  const json fast = of("latency"), thrifty = of("energy"), mean = of("weighted(latency=1,energy=1)");
  EXPECT_LE(fast.at("score_seconds"), mean.at("score_seconds"));
  EXPECT_LE(mean.at("score_seconds"), thrifty.at("score_seconds"));
  EXPECT_GE(fast.at("energy_joules"), mean.at("energy_joules"));
  EXPECT_GE(mean.at("energy_joules"), thrifty.at("energy_joules"));
  EXPECT_EQ(thrifty.at("gap"), 0.0);
  EXPECT_THAT(RunBerth({"compare", "resnet50", "--planners", "mincut", "--evaluator", "serial", "--objective", "energy",
                        "--budget", "300evals"})
                  .out,
              HasSubstr("of objective energy"));
}

TEST(Objectives, ThroughputTakesThePipeline) {
  const json plan = Answer({"plan", kModel, "--objective", "throughput", "--budget", "300evals"});
  EXPECT_EQ(plan.at("evaluator"), "pipeline");
  EXPECT_EQ(plan.at("objective"), "throughput");
  EXPECT_EQ(plan.at("memory_rule"), "msr");
  ExpectMistake({"plan", kModel, "--objective", "throughput", "--evaluator", "serial"}, "gives no throughput");
  ExpectMistake({"plan", kModel, "--objective", "latency", "--evaluator", "pipeline"}, "no latency");
  ExpectMistake({"plan", kModel, "--objective", "speed"}, "latency, throughput, energy, weighted");
  ExpectMistake({"plan", kModel, "--objective", "weighted(speed=1)"}, "latency");
}

TEST(Objectives, AreInThePlanFile) {
  const Folder folder;
  const std::string plan = folder / "plan.json";
  Answer({"plan", kModel, "--objective", "energy", "--budget", "300evals", "-o", plan});
  EXPECT_EQ(Answer({"simulate", "--plan", plan}).at("objective"), "energy");
  EXPECT_EQ(Answer({"simulate", "--plan", plan, "--objective", "latency"}).at("objective"), "latency");
  EXPECT_THAT(RunBerth({"explain", plan}).out, HasSubstr("objective    energy"));
}

TEST(Check, ExitsByWhetherLimitsAreHeld) {
  const Folder folder;
  const std::string plan = folder / "plan.json";
  const json made = Answer({"plan", kModel, "--budget", "300evals", "-o", plan});
  const auto seconds = [&](double factor) {
    return fmt::format("{}s", factor * made.at("score_seconds").get<double>());
  };
  EXPECT_EQ(RunBerth({"check", plan}).code, 0);
  EXPECT_EQ(RunBerth({"check", plan, "--max-latency", seconds(1)}).code, 0);
  EXPECT_EQ(RunBerth({"check", plan, "--max-latency", seconds(1.5), "--max-memory", "8GiB", "--max-energy", "1kJ",
                      "--max-gap", "99%", "--max-transfers", "100"})
                .code,
            0);
  const Outcome late = RunBerth({"check", plan, "--max-latency", seconds(0.5)});
  EXPECT_EQ(late.code, 1);
  EXPECT_THAT(late.out, AllOf(HasSubstr("MISSED  latency"), HasSubstr("limited by"), HasSubstr("held    fits")));
  EXPECT_EQ(late.err, "");

  const json full =
      Answer({"check", plan, "--max-memory", "cpu=1B,gpu=1B", "--max-energy", "1uJ", "--max-latency", seconds(2)}, 1);
  EXPECT_EQ(full.at("passed"), false);
  EXPECT_EQ(LimitOf(full, "latency").at("held"), true);
  EXPECT_EQ(LimitOf(full, "energy").at("held"), false);
  EXPECT_THAT(LimitOf(full, "energy").at("reason").get<std::string>(), HasSubstr("computing"));
  bool named = false;
  for (const char* device : {"cpu", "gpu"}) {
    const json limit = LimitOf(full, "memory", device);
    if (limit.at("held") == true) continue;
    EXPECT_THAT(limit.at("text").get<std::string>(), HasSubstr(" above 1 B"));
    named = limit.at("reason").get<std::string>().find("it holds") != std::string::npos;
  }
  EXPECT_TRUE(named);
}

TEST(Check, TakesAListOfDevices) {
  const Folder folder;
  Write(folder / "place.txt", "0 0 0 1\n");
  const std::vector<std::string> call = {"check", "--model", "chain(ops=4)", "--placement",
                                         "@" + (folder / "place.txt")};
  std::vector<std::string> enough = call, none = call;
  enough.insert(enough.end(), {"--max-transfers", "2"});  // to the gpu, and the result back to the host
  none.insert(none.end(), {"--max-transfers", "0"});
  EXPECT_EQ(RunBerth(enough).code, 0);
  const Outcome missed = RunBerth(none);
  EXPECT_EQ(missed.code, 1);
  EXPECT_THAT(missed.out, HasSubstr("MISSED  transfers: 2, 2 above 0: the largest are"));
}

TEST(Check, TakesASplitWithItsInstance) {
  const std::vector<std::string> call = {"check", kSamples + "msr_training.split.json", "--model",
                                         kSamples + "msr_training.json"};
  std::vector<std::string> exact = call, less = call;
  exact.insert(exact.end(), {"--max-latency", "14.875ms"});
  less.insert(less.end(), {"--max-latency", "14.8ms"});
  const json check = Answer(exact);
  EXPECT_EQ(check.at("evaluator"), "pipeline");
  EXPECT_NEAR(check.at("score_seconds").get<double>(), 0.014875, 1e-15);
  EXPECT_EQ(check.at("memory_rule"), "msr");
  const Outcome missed = RunBerth(less);
  EXPECT_EQ(missed.code, 1);
  EXPECT_THAT(missed.out, HasSubstr("per sample of a full pipeline"));
  ExpectMistake({"check", kSamples + "msr_training.split.json"}, "--model");
  ExpectMistake({"check", kSamples + "msr_training.split.json", "--model", "resnet50"}, "MSR");
}

TEST(Check, AgreesWithThePublishedSplits) {
  const std::string data = kShared + "msr-dnn-partitioning/";
  BERTH_SKIP_WITHOUT(data);
  const json known = json::parse(Content(data + "best_known.json")).at("throughput");
  for (const char* name : {"bert24_inference", "gnmt_inference"}) {
    const json check = Answer({"check", fmt::format("{}best_splits/LayerGraphs_{}.contig.json", data, name), "--model",
                               fmt::format("{}throughput-inputs/LayerGraphs/{}.json", data, name), "--max-gap", "90%"});
    const double published = known.at(fmt::format("LayerGraphs/{}", name)).at("contig_opt_exact").get<double>() * 1e-3;
    EXPECT_NEAR(check.at("score_seconds").get<double>(), published, 1e-5 * published) << name;
  }
}

TEST(Check, MistakesAreOneLineAndSayWhatToDo) {
  const Folder folder;
  const std::string plan = folder / "plan.json";
  Answer({"plan", kModel, "--budget", "50evals", "-o", plan});
  ExpectMistake({"check"}, "give a plan file");
  ExpectMistake({"check", "--placement", "0,0"}, "--model");
  ExpectMistake({"check", plan, "--max-latency", "soon"}, "--max-latency: 'soon' is not a time");
  ExpectMistake({"check", plan, "--max-memory", "tpu=1GiB"}, "tpu");
  ExpectMistake({"check", plan, "--max-memory", "gpu=much"}, "--max-memory: 'much'");
  ExpectMistake({"check", plan, "--max-transfers", "-1"}, "--max-transfers");
  ExpectMistake({"check", plan, "--max-energy", "2kWh"}, "2J");
  ExpectMistake({"check", plan, "--max-gap", "small"}, "5%");
  ExpectMistake({"check", plan, "--max-gap", "5"}, "--max-gap: '5' may mean 5% or 500%: write which");
  ExpectMistake({"check", plan, "--max-gap", "1"}, "--max-gap: '1' may mean 1% or 100%: write which");
  ExpectMistake({"check", plan, "--max-memory", "1GiB", "--evaluator", "parallel(memory=false)"},
                "does not count memory");
  ExpectMistake({"check", folder / "none.json"}, "none.json");
}

TEST(Instances, BringTheirDevicesCostsAndRule) {
  const Outcome page = RunBerth({"inspect", kSamples + "msr_training.json"});
  EXPECT_EQ(page.code, 0) << page.err;
  EXPECT_THAT(page.out, AllOf(HasSubstr("milliseconds"), HasSubstr("pipeline"), HasSubstr("fpga0")));
  EXPECT_THAT(RunBerth({"inspect", kSamples + "piper.json"}).out,
              HasSubstr("no stated unit: one is taken as one second"));
  EXPECT_EQ(Answer({"inspect", kSamples + "msr_training.json"}).at("data_set").at("seconds_per_unit"), 1e-3);

  const json plan = Answer({"plan", kSamples + "msr_training.json", "--budget", "500evals"});
  EXPECT_EQ(plan.at("evaluator"), "pipeline");
  EXPECT_EQ(plan.at("objective"), "throughput");
  EXPECT_LE(plan.at("score_seconds"), 0.0149);
  ExpectMistake({"plan", kSamples + "msr_training.json", "--objective", "latency"}, "use pipeline");
  EXPECT_EQ(
      Answer({"plan", kSamples + "msr_training.json", "--budget", "500evals", "--evaluator", "serial"}).at("evaluator"),
      "serial(io=host)");
  ExpectMistake({"plan", kSamples + "msr_training.json", "--cluster", "cpu_gpu"}, "leave --cluster out");
  ExpectMistake({"plan", kSamples + "msr_training.json", "--objective", "energy"}, "watts");
  ExpectMistake({"plan", kSamples + "msr_training.json", "--mode", "training"}, "--mode training");
}

TEST(Instances, OfEachDataSetNeedNoCluster) {
  BERTH_SKIP_WITHOUT(kShared);
  const auto plan = [](const std::string& file) {
    return RunBerth({"plan", kShared + file, "--budget", "500evals", "--json"}).json();
  };
  const json moirai = plan("moirai/moirai_example-1.json");  // whose memory is exactly enough: most plans do not fit
  EXPECT_EQ(moirai.at("evaluator"), "parallel(contention=ports,io=everywhere)");
  EXPECT_GE(moirai.at("score_seconds"), 30);  // the published optimum
  const json planted = plan("planted/planted_n50_P2_h0.json");
  EXPECT_THAT(planted.at("evaluator").get<std::string>(), HasSubstr("parallel"));
  EXPECT_GE(planted.at("score_seconds"), planted.at("lower_bound_seconds"));
  EXPECT_EQ(plan("piper/resnet.json").at("evaluator"), "pipeline");
}

TEST(Training, AddsTheBackwardPassAndKeepsItWithTheForward) {
  const json forward = Answer({"inspect", "resnet50"});
  const json sgd = Answer({"inspect", "resnet50", "--mode", "training"});
  const json adam = Answer({"inspect", "resnet50", "--mode", "training", "--optimizer", "adam"});
  EXPECT_GT(sgd.at("ops").get<int>(), 2 * forward.at("ops").get<int>() - 50);
  // The backward costs about twice the forward.
  const double factor = sgd.at("flops").get<double>() / forward.at("flops").get<double>();
  EXPECT_GT(factor, 2.8);
  EXPECT_LT(factor, 3.2);
  EXPECT_NEAR(adam.at("parameter_bytes").get<double>() / sgd.at("parameter_bytes").get<double>(), 3, 0.05);

  const Folder folder;
  const std::string plan = folder / "plan.json";
  const json made =
      Answer({"plan", "resnet50", "--mode", "training", "--optimizer", "adam", "--budget", "50evals", "-o", plan});
  for (const auto& [op, device] : made.at("assignment").items()) {
    if (!op.starts_with("grad/")) continue;
    EXPECT_EQ(made.at("assignment").at(op.substr(5)), device) << op;
  }
  const json again = Answer({"simulate", "--plan", plan});
  EXPECT_EQ(again.at("score_seconds"), made.at("score_seconds"));
  EXPECT_EQ(again.at("peak_memory_bytes"), made.at("peak_memory_bytes"));
  ExpectMistake({"simulate", "--plan", plan, "--mode", "inference"}, "ops");
  ExpectMistake({"plan", "resnet50", "--mode", "trainin"}, "training");
  ExpectMistake({"plan", "resnet50", "--mode", "training", "--optimizer", "adamw"}, "adam");
  ExpectMistake({"plan", "resnet50", "--optimizer", "adam"}, "--mode training");
  // Where nothing is said to be a result, nothing is trained.
  ExpectMistake({"plan", "ir_resnet50", "--mode", "training"}, "no gradient flows from any of its results");
  EXPECT_GT(Answer({"inspect", "ir_resnet50(view=folded)", "--mode", "training"}).at("ops"),
            Answer({"inspect", "ir_resnet50(view=folded)"}).at("ops"));
}

}  // namespace
}  // namespace berth::testing
