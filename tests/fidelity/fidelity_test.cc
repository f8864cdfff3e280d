// Every value of docs/fidelity.md.
#include "tools/fidelity/fidelity.h"

#include <gtest/gtest.h>

#include <limits>

namespace berth {
namespace {

TEST(Fidelity, AgreesWithWhatIsPublished) {
  const std::vector<FidelityTable> tables = Fidelity(BERTH_SHARED_DIR);
  if (tables.empty()) GTEST_SKIP() << "not all data sets are in " << BERTH_SHARED_DIR;
  for (const FidelityTable& table : tables) {
    EXPECT_FALSE(table.rows.empty()) << table.title;
    for (const FidelityRow& row : table.rows) {
      EXPECT_TRUE(Agrees(table, row)) << table.title << ": " << row.what << ": published " << row.published << ", ours "
                                      << row.ours << (row.fits ? "" : ", which does not fit");
    }
  }
}

TEST(Fidelity, AgreesWithNothingThatIsNoNumber) {
  const FidelityTable table{.tolerance = 1};
  EXPECT_TRUE(Agrees(table, {.published = 2, .ours = 3}));
  EXPECT_FALSE(Agrees(table, {.published = 2, .ours = 5}));
  EXPECT_FALSE(Agrees(table, {.published = 2, .ours = std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_FALSE(Agrees(table, {.published = 2, .ours = 2, .fits = false}));
}

TEST(Fidelity, IsATableOfOneRowPerValue) {
  const std::string text = ToMarkdown(
      {{.title = "Values",
        .text = "In ms.",
        .tolerance = 0.1,
        .rows = {{.what = "one", .published = 4, .ours = 4.25}, {.what = "two", .published = 1, .ours = 2}}}});
  EXPECT_NE(text.find("2 values, of which 1 agree within the tolerance of their table and 0 are equal"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("| one | 4 | 4.25 | 6.2e-02 |  |"), std::string::npos) << text;
  EXPECT_NE(text.find("| two | 1 | 2 | 1.0e+00 | **differs** |"), std::string::npos) << text;
}

}  // namespace
}  // namespace berth
