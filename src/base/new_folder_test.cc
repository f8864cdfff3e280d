#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

class NewFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(root_);
    fs::create_directory(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  size_t Entries() const { return static_cast<size_t>(std::distance(fs::directory_iterator(root_), {})); }

  const std::string root_ = ::testing::TempDir() + "/berth_new_folder";
  const std::string path_ = root_ + "/made";
};

TEST_F(NewFolderTest, IsThereAsAWholeOrNotAtAll) {
  {
    NewFolder folder(path_ + "/");
    WriteFile(folder / "a", "1");
    EXPECT_FALSE(fs::exists(path_));
  }
  EXPECT_EQ(Entries(), 0u) << "what was not put in place is gone";
  {
    NewFolder folder(path_);
    WriteFile(folder / "a", "1");
    folder.PutInPlace();
  }
  EXPECT_EQ(ReadFile(path_ + "/a"), "1");
  EXPECT_EQ(Entries(), 1u);
  EXPECT_EQ(fs::status(path_).permissions() & fs::perms::owner_all, fs::perms::owner_all);
}

TEST_F(NewFolderTest, TakesThePlaceOfAnEmptyFolderAndOfNothingElse) {
  fs::create_directory(path_);
  NewFolder folder(path_);
  folder.PutInPlace();
  WriteFile(path_ + "/mine", "1");
  EXPECT_THROW(NewFolder{path_}, Error);
  EXPECT_THROW(NewFolder{path_ + "/mine"}, Error);
  EXPECT_THROW(NewFolder{root_ + "/none/made"}, Error);
  EXPECT_EQ(ReadFile(path_ + "/mine"), "1");
}

TEST_F(NewFolderTest, IsNotPutOverWhatSomebodyElseMadeInTheMeantime) {
  NewFolder folder(path_);
  fs::create_directory(path_);
  WriteFile(path_ + "/theirs", "1");
  EXPECT_THROW(folder.PutInPlace(), Error);
  EXPECT_EQ(ReadFile(path_ + "/theirs"), "1");
}

}  // namespace
}  // namespace berth
