#include "import/onnx_reshape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth {
namespace {

using ::testing::Optional;

const SizeChanges kBatch = {{1, 32}};

std::optional<Dims> Follow(const Dims& file_input, const Dims& file_output, const Dims& input,
                           const SizeChanges& changes = kBatch) {
  return FollowReshape({.file_input = file_input, .file_output = file_output, .input = input, .changes = changes});
}

TEST(FollowReshape, TheBatchStaysWhereItIs) {
  EXPECT_THAT(Follow({1, 128, 768}, {1, 128, 12, 64}, {32, 128, 768}), Optional(Dims{32, 128, 12, 64}));
  EXPECT_THAT(Follow({1, 128, 12, 64}, {1, 128, 768}, {32, 128, 12, 64}), Optional(Dims{32, 128, 768}));
  EXPECT_THAT(Follow({1, 2048, 1, 1}, {1, 2048}, {32, 2048, 1, 1}), Optional(Dims{32, 2048}));
  EXPECT_THAT(Follow({1, 1, 28, 28}, {1, 1, 784}, {32, 1, 28, 28}), Optional(Dims{32, 1, 784}));
}

TEST(FollowReshape, TheBatchMergesAndComesApartAgain) {
  EXPECT_THAT(Follow({1, 128, 768}, {128, 768}, {32, 128, 768}), Optional(Dims{32 * 128, 768}));
  EXPECT_THAT(Follow({128, 768}, {1, 128, 768}, {32 * 128, 768}), Optional(Dims{32, 128, 768}));
  EXPECT_THAT(Follow({1, 12, 128, 64}, {12, 128, 64}, {32, 12, 128, 64}), Optional(Dims{32 * 12, 128, 64}));
  EXPECT_THAT(Follow({12, 128, 64}, {1, 12, 128, 64}, {32 * 12, 128, 64}), Optional(Dims{32, 12, 128, 64}));
}

TEST(FollowReshape, WithTheSequenceFirstTheBatchGoesToTheHeads) {
  EXPECT_THAT(Follow({197, 1, 768}, {197, 12, 64}, {197, 32, 768}), Optional(Dims{197, 32 * 12, 64}));
  EXPECT_THAT(Follow({197, 12, 64}, {197, 768}, {197, 32 * 12, 64}), Optional(Dims{197 * 32, 768}))
      << "features stay features";
  EXPECT_THAT(Follow({197, 768}, {197, 1, 768}, {197 * 32, 768}), Optional(Dims{197, 32, 768}));
}

TEST(FollowReshape, ALongerSequenceStaysASequence) {
  const SizeChanges longer = {{128, 512}};
  EXPECT_THAT(Follow({1, 128, 768}, {1, 128, 12, 64}, {1, 512, 768}, longer), Optional(Dims{1, 512, 12, 64}));
  EXPECT_THAT(Follow({128, 768}, {128, 1, 768}, {512, 768}, longer), Optional(Dims{512, 1, 768}));
  const SizeChanges both = {{1, 2}, {128, 512}};
  EXPECT_THAT(Follow({1, 128, 768}, {1, 128, 12, 64}, {2, 512, 768}, both), Optional(Dims{2, 512, 12, 64}));
  EXPECT_THAT(Follow({1, 128, 768}, {128, 768}, {2, 512, 768}, both), Optional(Dims{1024, 768}));
}

TEST(FollowReshape, ABatchThatShrinksDivides) {
  const SizeChanges smaller = {{64, 16}};
  EXPECT_THAT(Follow({64, 20, 8}, {1280, 8}, {16, 20, 8}, smaller), Optional(Dims{320, 8}));
  EXPECT_THAT(Follow({64, 3}, {2, 96}, {5, 3}, {{64, 5}}), std::nullopt);
}

}  // namespace
}  // namespace berth
