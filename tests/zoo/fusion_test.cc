// Which ops are one kernel, against OpenVINO's runtime model of models that ship.

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "exec/openvino.h"
#include "import/import.h"
#include "tools/fusion/agreement.h"

namespace berth {
namespace {

TEST(Fusion, IsWhatOpenVinoMakesOfModelsThatTheRulesWereNotWrittenOn) {
  try {
    OpenVinoProgram();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  FusionRow sum;
  for (const std::string name : {"squeezenet1_1", "mobilenet_v2", "mobilenet_v3_large", "resnet18", "wavenet_4x9"}) {
    const FusionRow row = CheckFusion(ModelFile(name), "shipped");
    EXPECT_EQ(row.refusal, "") << name;
    EXPECT_FALSE(row.learnt) << name;
    EXPECT_GE(row.f1(), 0.9) << name;
    sum.Add(row);
  }
  EXPECT_GE(sum.f1(), 0.95);
  EXPECT_GE(sum.named, sum.edges / 2);
}

}  // namespace
}  // namespace berth
