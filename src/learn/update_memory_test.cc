#include "learn/update_memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "learn/testing.h"
#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

// A line of /proc/self/status, in bytes; 0 where there is none.
double StatusBytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return 1024 * std::stod(line.substr(name.size() + 1));
  }
  return 0;
}

bool ForgetPeak() {
  std::ofstream file("/proc/self/clear_refs");
  return (file << "5" << std::flush).good();
}

// Twice, since the first has nothing in its memory.
void Update(const Method& method, const std::vector<Problem>& problems) {
  std::vector<std::unique_ptr<Evaluator>> evaluators;
  std::vector<std::reference_wrapper<const Evaluator>> list;
  for (const Problem& problem : problems) {
    evaluators.push_back(testing::EvaluatorNamed("parallel(io=everywhere)", RegisterParallel, problem));
    list.emplace_back(*evaluators.back());
  }
  testing::OpenLearner learner(method, list, Random(1), 2);
  for (int update = 0; update < 2; ++update) learner.Update(1'000'000, 1);
}

struct Case {
  const char* method;
  size_t ops;
  size_t graphs = 1;
};

// Exits with 0 where the estimate is right within a factor of two. In a process of its own, so that nothing of what is
// held had been held before.
[[noreturn]] void HoldAgainstPeak(const Case& of) {
  const Method method = testing::MethodNamed(of.method);
  Update(method, {testing::Chain(20, 2)});  // the library's own
  std::vector<Problem> problems;
  for (size_t i = 0; i < of.graphs; ++i) problems.push_back(testing::Chain(of.ops, 2));
  const auto policy = method.make_policy(problems.front(), Random(1));
  std::vector<std::unique_ptr<Task>> prepared;
  std::vector<const Task*> tasks;
  for (const Problem& problem : problems) tasks.push_back(prepared.emplace_back(policy->Prepare(problem)).get());
  const auto estimate = static_cast<double>(UpdateMemory(method, *policy, tasks, {}).value);
  if (!ForgetPeak()) std::exit(0);
  const double before = StatusBytes("VmRSS");
  Update(method, problems);
  const double held = StatusBytes("VmHWM") - before;
  fmt::print(stderr, "{} on {} ops: {:.0f} MiB estimated, {:.0f} MiB held\n", of.method, of.ops, estimate / (1 << 20),
             held / (1 << 20));
  std::exit(held < 2 * estimate && held > estimate / 2 ? 0 : 1);
}

class UpdateMemoryOf : public ::testing::TestWithParam<Case> {};

TEST_P(UpdateMemoryOf, AnUpdateIsWithinAFactorOfTwoOfWhatItHolds) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer holds memory of its own";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(HoldAgainstPeak(GetParam()), ::testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(Methods, UpdateMemoryOf,
                         ::testing::Values(Case{"gdp", 5'000}, Case{"gdp", 20'000}, Case{"gdp(workers=4)", 5'000, 4},
                                           Case{"gdp", 5'000, 4}, Case{"hdp(nodes=ops)", 20'000},
                                           Case{"hdp(nodes=ops)", 80'000}, Case{"rnn(colocation=none)", 100},
                                           Case{"rnn(colocation=none)", 200}, Case{"placeto", 120},
                                           Case{"placeto", 240}, Case{"hsdag(colocation=none)", 4'000},
                                           Case{"hsdag(mode=paper,columns=fixed,colocation=none)", 800},
                                           Case{"hsdag(mode=paper,columns=fixed,colocation=none)", 3'200}),
                         [](const auto& each) {
                           std::string name =
                               fmt::format("{}_{}_{}", each.param.method, each.param.ops, each.param.graphs);
                           for (char& letter : name) {
                             if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace berth
