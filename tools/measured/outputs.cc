#include "tools/measured/outputs.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/measured_run.h"
#include "tools/measured/models.h"

namespace berth::measured {
namespace {

// What a runtime fuses stays together: HETERO would not keep a cut within it.
constexpr const char* kByTurns = "on(group=fusion,planner=round_robin)";
// Of a run nothing but its outputs is asked for.
constexpr size_t kRuns = 2;

}  // namespace

bool PrintOutputs(const Catalogs& catalogs, const std::shared_ptr<const Cluster>& cluster,
                  std::span<const std::string> models) {
  fmt::print(
      "\n## Are the outputs the same?\n\nA plan that was found for the tables below may be one part, which would be "
      "compared with itself. So each model's kernels are dealt out to the devices by turns here (`{}`), whatever that "
      "costs. The outputs are compared with those of the model on the first device alone: the largest difference, as a "
      "share of the largest value. *Counted*: the subgraphs that `serial` and `serial(subgraphs=hetero)` count in the "
      "plan, beside those that HETERO makes of it.\n\n"
      "| model | parts | openvino_parallel | subgraphs, counted | as HETERO | made | openvino | allowed |\n"
      "|---|---:|---|---:|---:|---:|---|---:|\n",
      kByTurns);
  bool equal = true;
  for (const std::string& model : models) {
    fmt::print(stderr, "{}: outputs\n", model);
    const SavedPlan saved = MakeSaved(
        catalogs, {.model = model, .cluster = "here", .evaluator = "serial", .stored_cluster = cluster}, kByTurns, 1);
    OpenVino runtime(*saved.setup.problem, ModelFile(model));
    const Measurement parallel = RunMeasured(saved, runtime, "openvino_parallel", kRuns).plan.measured,
                      hetero = RunMeasured(saved, runtime, "openvino", kRuns).plan.measured;
    const auto said = [&](const Measurement& measurement) {
      // One part is compared with itself.
      const bool fine =
          measurement.error.empty() && measurement.outputs && measurement.outputs->equal && measurement.subgraphs > 1;
      equal = equal && fine;
      if (!measurement.outputs) return measurement.error.empty() ? std::string("not compared") : measurement.error;
      if (measurement.subgraphs < 2) return std::string("NOT CUT");
      return fmt::format("{}, {:.1e}", fine ? "equal" : "NOT EQUAL", measurement.outputs->largest_difference);
    };
    const auto as_hetero = catalogs.evaluators.Make("serial(subgraphs=hetero)", *saved.setup.problem);
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} |\n", model, parallel.subgraphs, said(parallel),
               saved.report.timeline.subgraphs, as_hetero->Trace(saved.report.result.plan.view()).subgraphs,
               hetero.subgraphs, said(hetero),
               parallel.outputs ? fmt::format("{:.0e}", parallel.outputs->tolerance) : "");
  }
  return equal;
}

}  // namespace berth::measured
