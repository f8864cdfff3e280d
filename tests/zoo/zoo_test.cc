// Models that Berth had not seen, against what a run saw of them.

#include <gtest/gtest.h>

#include <filesystem>

#include "tools/models/models.h"

namespace berth {
namespace {

TEST(Zoo, EveryModelIsReadAsItIs) {
  const std::string folder = BERTH_SHARED_DIR "/zoo";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "needs " << folder << ", which is not here";
  const std::vector<ModelRow> rows = CheckModels(folder);
  EXPECT_EQ(rows.size(), 140u);
  for (const ModelRow& row : rows) {
    EXPECT_EQ(row.refusal, "") << row.file;
    EXPECT_EQ(row.right + row.said, row.shapes) << row.file;
    EXPECT_NEAR(row.flops_error, 0, 1e-3) << row.file;
    EXPECT_EQ(row.unknown, 0u) << row.file;
    EXPECT_TRUE(row.same_without_record) << row.file;
  }
}

}  // namespace
}  // namespace berth
