// Input that once went wrong, on the built program: files that break a rule, and graphs that were computed wrongly.
#include <gmock/gmock.h>

#include "tests/cli/run_berth.h"

namespace berth::testing {
namespace {

const std::string kFaults = std::string(BERTH_SOURCE_DIR) + "/tests/data/faults/";

double Score(const std::string& graph, const std::string& placement, const std::string& evaluator) {
  const Outcome outcome = RunBerth({"simulate", kFaults + graph, "--placement", placement, "--cluster",
                                    kFaults + "two.yaml", "--evaluator", evaluator, "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.json().at("score_seconds");
}

// Two transfers of 30 us over one link, requested at 1 and 2 us, after a latency of 20 us: both are on the link from 22
// us on, so the first ends at 21 + 1 + 2 * 29 = 80, the second at 81, and each of their consumers takes 1 us.
TEST(AnUnrelatedConstant, LeavesTheLatencyOfAllOtherTransfersOffTheSharedLink) {
  const std::string links = "parallel(contention=links)";
  EXPECT_NEAR(Score("links_plain.json", "0,0,1,1", links), 82e-6, 1e-15);
  EXPECT_NEAR(Score("links_const.json", "0,0,1,1,0,0", links), 82e-6, 1e-15);
}

}  // namespace
}  // namespace berth::testing
