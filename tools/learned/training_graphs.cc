// The table of Placeto's paper (Addanki et al. 2019, table 1): training steps of large networks on two and four GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "tools/learned/common.h"
#include "tools/learned/rows.h"

namespace berth::learned {
namespace {

Setup MakeTraining(const Catalogs& catalogs, const std::string& model, const std::string& cluster) {
  ProblemStrings strings;
  strings.model = model;
  strings.mode = "training";
  strings.optimizer = "sgd";
  strings.cluster = cluster;
  strings.evaluator = "parallel(contention=egress,io=everywhere)";
  return MakeSetup(catalogs, strings);
}

// As an expert would: the ops in order, cut into as many parts of equal work as there are devices.
double ContiguousSplit(const Setup& setup) {
  const Problem& problem = *setup.problem;
  double whole = 0, done = 0;
  for (const OpId op : problem.graph().ops()) whole += problem.op_time(op, DeviceId{0});
  std::vector<DeviceId> device;
  for (const OpId op : problem.graph().ops()) {
    const double share = (done + problem.op_time(op, DeviceId{0}) / 2) / whole;
    done += problem.op_time(op, DeviceId{0});
    device.push_back(MakeId<DeviceId>(
        std::min(static_cast<size_t>(share * static_cast<double>(problem.num_devices())), problem.num_devices() - 1)));
  }
  return setup.evaluator->ScorePlan({.device = device}, *setup.evaluator->NewWorkspace()).value() *
         problem.seconds_per_unit();
}

}  // namespace

void WriteTrainingGraphs(const Catalogs& catalogs, bool quick, const std::string&) {
  const int seeds = quick ? 1 : 2;
  const int64_t episodes = quick ? 8 : 100;
  constexpr const char* kGroup = "merge(size=128,balance=2)";
  const int64_t evaluations = episodes * 129 + 3;
  const auto on = [&](const std::string& planner) { return fmt::format("on(group={},planner={})", kGroup, planner); };
  fmt::print(
      "## Placeto's own table: training on two and four GPUs\n\nOne training step (forward, backward, `sgd`) of our "
      "formulas of the networks, under `parallel(contention=egress,io=everywhere)` with roofline costs; all planners place the same "
      "groups of `{}` with {} evaluations, which are {} episodes. Times in ms, medians of {} seeds. CPU alone "
      "is "
      "`p2_host`, the machine's processor. The contiguous split cuts the ops in order into parts of equal work.\n\n"
      "| network, cluster | ops | CPU alone | one GPU | contiguous split | random | hill climbing | placeto, as in the "
      "paper | placeto, tuned | **placeto** | its likeliest | time of its run |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
      kGroup, evaluations, episodes, seeds);
  for (const char* model : {"inception_v3", "nasnet", "nmt"}) {
    const Setup host = MakeTraining(catalogs, model, "p2_host");
    const double cpu = Play(catalogs, host, "single", 1, 1).seconds;
    for (const char* cluster : {"k80x2", "k80x4"}) {
      const Setup setup = MakeTraining(catalogs, model, cluster);
      std::vector<Row> rows = {
          {"random", on("random"), seeds, evaluations},
          {"hill climbing", on("local_search"), seeds, evaluations},
          {"paper", on("placeto(mode=paper)"), seeds, evaluations},
          {"tuned", on(fmt::format("placeto({})", kTuned)), seeds, evaluations},
          {"ours", on("placeto"), seeds, evaluations},
      };
      Jobs jobs;
      Fill(jobs, catalogs, setup, rows);
      jobs.Run();
      fmt::print("| {}, {} | {} | {:.1f} | {:.2f} | {:.2f} |", model, cluster, setup.problem->num_ops(), cpu * 1e3,
                 Play(catalogs, setup, "single", 1, 1).seconds * 1e3, ContiguousSplit(setup) * 1e3);
      for (const Row& row : rows) fmt::print(" {:.2f} |", row.Best() * 1e3);
      fmt::print(" {:.2f} | {:.0f} s |\n", rows.back().Policy() * 1e3, rows.back().Wall());
      std::fflush(stdout);
    }
  }
  fmt::print("\n");
}

}  // namespace berth::learned
