// Lists of constraints: ParseConstraintFile, and what they mean for a small problem.
#include "import/import.h"
#include "placement/constraint_file.h"
#include "tests/fuzz/small_problem.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string path = "fuzz.yaml";
  fuzz::Survives(
      path, [&] { return ParseConstraintFile(fuzz::Text(data, size), path); },
      [&](const std::vector<ConstraintText>& texts) {
        for (const ConstraintText& text : texts) {
          // Plan files keep them so.
          const ConstraintText again = ParseConstraint(text.ToString(), text.place);
          FUZZ_CHECK(again.ToString() == ParseConstraint(again.ToString(), text.place).ToString());
          FUZZ_CHECK(again.kind == text.kind);
        }
        const Problem& problem = fuzz::SmallProblem();
        fuzz::Survives(
            path, [&] { return ResolveConstraints(texts, problem.graph(), problem.cluster(), {}); },
            [&](const std::vector<Constraint>& constraints) {
              OpTimes times = fuzz::TimesOf(problem);
              Problem::Options options;
              ApplyConstraints(constraints, problem.graph(), problem.cluster(), times, options);
              const std::vector<DeviceId> device(problem.num_ops(), DeviceId{});
              for (const Constraint& constraint : constraints) {
                Breach(constraint, problem.graph(), problem.cluster(), device);
              }
              for (const int64_t limit : options.memory_limits) FUZZ_CHECK(limit >= 0, "a limit of {}", limit);
              // An op that may be nowhere is the user's mistake, which the problem names.
              fuzz::Survives(
                  "", [&] { return Problem(problem.shared_graph(), problem.shared_cluster(), times, options); },
                  [&](const Problem& constrained) { FindViolation(constrained, {.device = device}); });
            });
      });
  return 0;
}
