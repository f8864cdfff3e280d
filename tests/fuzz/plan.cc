// Plan files: ParsePlanFile, back by WritePlanFile, and bound to a small problem.
#include "placement/plan_file.h"
#include "tests/fuzz/json_mutator.h"
#include "tests/fuzz/small_problem.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return berth::fuzz::MutateJson(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string path = "fuzz.plan.json";
  fuzz::Survives(
      path, [&] { return ParsePlanFile(fuzz::Text(data, size), path); },
      [&](const PlanFile& file) {
        const std::string written = WritePlanFile(file);
        FUZZ_CHECK(WritePlanFile(ParsePlanFile(written, path)) == written);

        // As if it had been made for this problem, which no fuzzer guesses.
        const Problem& problem = fuzz::SmallProblem();
        PlanFile bound = file;
        bound.graph_fingerprint = problem.graph().structural_fingerprint();
        std::vector<std::string> warnings;
        fuzz::Survives(
            path, [&] { return BindPlan(bound, problem, warnings); },
            [&](const Plan& plan) {
              if (FindViolation(problem, plan.view())) return;
              for (const OpId op : problem.graph().ops()) plan.cause_of(op);
              const PlanFile made = MakePlanFile(problem, plan);
              FUZZ_CHECK(BindPlan(ParsePlanFile(WritePlanFile(made), path), problem, warnings).device == plan.device);
            });
      });
  return 0;
}
