// After a workspace's first call no score allocates. This file replaces the global operator new of its test binary.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "placement/testing.h"
#include "sim/simulators.h"

namespace {
std::atomic<int64_t> allocations{0};
}

// GCC sees the one inlined and not the other.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

void* operator new(std::size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace berth {
namespace {

// Some plans of one kind, the first with everything on one device, where nothing is sent: none may need more than it
// took.
std::vector<Plan> Plans(const Problem& problem, bool with_priority, bool with_sequence) {
  Random random(2);
  std::vector<Plan> plans(20);
  for (size_t k = 0; k < plans.size(); ++k) {
    Plan& plan = plans[k];
    plan.device =
        k == 0 ? std::vector<DeviceId>(problem.num_ops(), DeviceId{0}) : testing::RandomPlacement(problem, random);
    if (with_priority) {
      for (size_t v = 0; v < problem.num_ops(); ++v) plan.priority.push_back(random.Uniform());
    }
    if (with_sequence) plan.sequence = testing::RandomSequence(problem, plan.device, random);
  }
  return plans;
}

TEST(Workspace, AllocatesInItsFirstCallOnly) {
  EvaluatorCatalog catalog("evaluator");
  RegisterParallel(catalog);
  RegisterSerial(catalog);
  RegisterParts(catalog);
  Random random(1);
  const Problem problem = testing::RandomProblem(random, {.ops = 400, .devices = 5, .memory_limits = true});
  for (const std::vector<Plan>& plans :
       {Plans(problem, false, false), Plans(problem, true, false), Plans(problem, false, true)}) {
    for (const std::string name : {"parallel(io=everywhere)", "parallel(contention=egress,io=everywhere)",
                                   "parallel(contention=ports,io=everywhere)", "parallel(contention=ports,io=d1)",
                                   "parallel(contention=links,io=everywhere)", "parallel(contention=links,io=d4)",
                                   "serial(subgraph_overhead=1,io=everywhere)", "serial(io=d2)", "parts"}) {
      SCOPED_TRACE(name);
      const auto evaluator = catalog.Make(name, problem);
      const auto workspace = evaluator->NewWorkspace();
      std::vector<double> starts(problem.num_ops());
      evaluator->ScorePlan(plans[0].view(), *workspace, starts);
      const int64_t before = allocations;
      for (const Plan& plan : plans) evaluator->ScorePlan(plan.view(), *workspace, starts);
      EXPECT_EQ(allocations, before);
    }
  }
}

}  // namespace
}  // namespace berth
