// `berth train` on several processes, started by mpirun, on the built program.
#include <gmock/gmock.h>

#include <map>

#include "cli/launch.h"
#include "cli/learning.h"
#include "tests/cli/run_berth.h"

namespace berth::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Launch LaunchIn(const std::map<std::string, const char*>& environment) {
  return LaunchOf([&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second;
  });
}

TEST(Launches, AreToldFromProgramsThatWereStartedByThemselves) {
  EXPECT_EQ(LaunchIn({}).size, 1);
  const Launch open_mpi = LaunchIn({{"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_RANK", "2"}});
  EXPECT_EQ(open_mpi.size, 3);
  EXPECT_EQ(open_mpi.rank, 2);
  EXPECT_EQ(LaunchIn({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}}).rank, 1);
  const Launch slurm = LaunchIn({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "1"}, {"PMIX_RANK", "1"}});
  EXPECT_EQ(slurm.size, 4);
  EXPECT_EQ(slurm.variable, "SLURM_STEP_NUM_TASKS");
  EXPECT_EQ(LaunchIn({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "1"}}).size, 1) << "each works by itself";
  EXPECT_EQ(LaunchIn({{"OMPI_COMM_WORLD_SIZE", "many"}, {"OMPI_COMM_WORLD_RANK", "0"}}).size, 1);
}

// As mpirun starts rank `rank` of two.
Outcome RunAsRank(const char* rank, const std::vector<std::string>& arguments) {
  ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  ::setenv("OMPI_COMM_WORLD_RANK", rank, 1);
  const Outcome outcome = RunBerth(arguments);
  ::unsetenv("OMPI_COMM_WORLD_SIZE");
  ::unsetenv("OMPI_COMM_WORLD_RANK");
  return outcome;
}

TEST(Launches, OfWhatDividesNoWorkAreRefusedOnce) {
  const std::vector<std::string> plan = {"plan", "chain(ops=4)", "--cluster", "cpu_gpu"};
  const Outcome first = RunAsRank("0", plan), second = RunAsRank("1", plan);
  EXPECT_EQ(first.code, 2);
  EXPECT_EQ(
      first.err,
      "berth: 2 processes were started together (OMPI_COMM_WORLD_SIZE=2), and only `berth train` divides its work "
      "among them; start one\n");
  EXPECT_EQ(second.code, 0) << "or the launcher would kill the first before it has said so";
  EXPECT_EQ(second.err, "");
  EXPECT_EQ(RunAsRank("1", {"plan", "--no-such-option"}).err, "") << "rank 0 says it";
}

TEST(Launches, OfTrainingAreRefusedWhereMpiIsNotBuiltIn) {
  if (kHasMpi) GTEST_SKIP() << "this berth was built with MPI";
  const Outcome outcome = RunAsRank("0", {"train", "--planner", "tabular", "--on", "chain(ops=4)", "--out", "run"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, AllOf(StartsWith("berth: "), HasSubstr("built without MPI")));
}

constexpr const char* kPlanner = "placeto(rounds=2,rollouts=1,epochs=1,workers=3)";

// Needs an mpirun that may start more processes than there are cores, and as root.
class RanksOfMpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kHasMpi) GTEST_SKIP() << "this berth was built without MPI: ./dev setup mpi";
    if (std::system("mpirun --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no mpirun: ./dev setup mpi";
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    ::setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    ::setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
    ::setenv("OMPI_MCA_btl", "self,vader,tcp", 1);
    ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // of OpenMPI's own
  }
  void TearDown() override { ::unsetenv("ASAN_OPTIONS"); }

  // `how`: what a shell does on rank 1 with the command "$@" instead of running it; empty: it runs it.
  Outcome Start(int ranks, const std::vector<std::string>& arguments, const std::string& how = {}) {
    std::ofstream(folder_ / "ranks.sh") << "if [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then\n"
                                        << (how.empty() ? "exec \"$@\"" : how) << "\nfi\nexec \"$@\"\n";
    return RunBerth(arguments, {.directory = folder_.path().string(),
                                .launcher = {"mpirun", "-n", std::to_string(ranks), "sh", "ranks.sh"}});
  }
  std::vector<std::string> Train(const std::string& run, int updates = 5, const std::string& planner = kPlanner) {
    return {"train",
            "--planner",
            planner,
            "--on",
            "fork_join(width=3,depth=2)",
            "--cluster",
            "cpu_gpu",
            "--updates",
            std::to_string(updates),
            "--threads",
            "1",
            "--checkpoint-every",
            "2",
            "--json",
            "--out",
            run};
  }
  // What berth itself has said.
  static std::vector<std::string> Said(const Outcome& outcome) {
    std::vector<std::string> lines;
    std::istringstream all(outcome.err);
    for (std::string line; std::getline(all, line);) {
      if (line.starts_with("berth: ")) lines.push_back(line);
    }
    return lines;
  }

  const Folder folder_;
};

TEST_F(RanksOfMpi, TrainToTheSameBytesAndTheSameReport) {
  const Outcome alone = RunBerth(Train(folder_ / "run1"));
  ASSERT_EQ(alone.code, 0) << alone.err;
  for (const int ranks : {2, 3}) {
    const std::string run = "run" + std::to_string(ranks);
    const Outcome outcome = Start(ranks, Train(run));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const char* file : {"curve.csv", "curve.svg", "last", "best"}) {
      EXPECT_TRUE(Content(folder_ / run + "/" + file) == Content(folder_ / "run1/" + file)) << file << " of " << run;
    }
    EXPECT_EQ(outcome.json().at("cases"), alone.json().at("cases")) << "printed once, the same";
    EXPECT_EQ(outcome.err, alone.err) << "progress is told once";
  }
}

TEST_F(RanksOfMpi, ARankThatDiesEndsTheJobAndLeavesACheckpointToGoOnFrom) {
  ASSERT_EQ(RunBerth(Train(folder_ / "whole", 200)).code, 0);
  const Outcome killed = Start(2, Train("broken", 200),
                               "\"$@\" & berth=$!\nwhile [ ! -e broken/last ]; do sleep 0.02; done\nkill -9 $berth\n"
                               "wait $berth\nexit 137");
  EXPECT_NE(killed.code, 0);
  EXPECT_EQ(killed.out, "") << "there is no report";
  ASSERT_TRUE(std::filesystem::exists(folder_ / "broken/last"));
  const Outcome resumed = Start(2, {"train", "--resume", "--out", "broken", "--threads", "1"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  for (const char* file : {"curve.csv", "last", "best"}) {
    EXPECT_TRUE(Content(folder_ / "broken/" + file) == Content(folder_ / "whole/" + file)) << file;
  }
}

TEST_F(RanksOfMpi, ASignalToOneRankStopsAllWithACheckpoint) {
  ASSERT_EQ(RunBerth(Train(folder_ / "whole", 200)).code, 0);
  const Outcome stopped = Start(2, Train("broken", 200),
                                "\"$@\" & berth=$!\nwhile [ ! -e broken/last ]; do sleep 0.02; done\n"
                                "kill -TERM $berth\nwait $berth\nexit $?");
  ASSERT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_EQ(stopped.json().at("finished"), false);
  EXPECT_LT(stopped.json().at("updates"), 200);
  ASSERT_EQ(RunBerth({"train", "--resume", "--out", folder_ / "broken"}).code, 0);
  for (const char* file : {"curve.csv", "last", "best"}) {
    EXPECT_TRUE(Content(folder_ / "broken/" + file) == Content(folder_ / "whole/" + file)) << file;
  }
}

TEST_F(RanksOfMpi, AMistakeOnOneRankEndsAllWithOneLine) {
  Write(folder_ / "two.yaml", kTwoCores);
  std::vector<std::string> arguments = Train("run");
  *(std::find(arguments.begin(), arguments.end(), "--cluster") + 1) = "two.yaml";
  const Outcome missing = Start(2, arguments, "mkdir away; cd away; exec \"$@\"");
  EXPECT_EQ(missing.code, 2) << missing.err;
  ASSERT_EQ(Said(missing).size(), 1u) << missing.err;
  EXPECT_THAT(Said(missing)[0], AllOf(HasSubstr("rank 1 on "), HasSubstr("two.yaml")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/last"));

  const Outcome another = Start(2, arguments, "sed s/100GF/200GF/ two.yaml >away/two.yaml; cd away; exec \"$@\"");
  EXPECT_EQ(another.code, 2) << another.err;
  ASSERT_EQ(Said(another).size(), 1u) << another.err;
  EXPECT_THAT(Said(another)[0], AllOf(HasSubstr("rank 1 on "), HasSubstr("another problem")));
}

TEST_F(RanksOfMpi, ALauncherOfAnotherMpiIsToldOnce) {
  // As where that launcher's variables are set, but each process is alone for the MPI that berth was built with.
  const Outcome first = RunAsRank("0", Train(folder_ / "run")), second = RunAsRank("1", Train(folder_ / "run"));
  EXPECT_EQ(first.code, 2);
  ASSERT_EQ(Said(first).size(), 1u) << first.err;
  EXPECT_THAT(Said(first)[0], AllOf(HasSubstr("OMPI_COMM_WORLD_SIZE=2, but MPI knows of 1"), HasSubstr("mpirun")));
  EXPECT_EQ(second.code, 0) << "or the launcher would kill the first before it has said so";
  EXPECT_THAT(Said(second), IsEmpty());
}

TEST_F(RanksOfMpi, AMistakeOfAllIsToldOnce) {
  const Outcome outcome = Start(3, Train("run", 5, "placeto(workers=2)"));
  EXPECT_EQ(outcome.code, 2);
  ASSERT_EQ(Said(outcome).size(), 1u) << outcome.err;
  EXPECT_THAT(Said(outcome)[0], AllOf(HasSubstr("3 ranks"), HasSubstr("2 plays")));
}

}  // namespace
}  // namespace berth::testing
