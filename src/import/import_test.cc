#include "import/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace berth {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

// A folder of its own, gone afterwards.
class ImportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RegisterSyntheticModels(catalog_);
    std::string name = (fs::temp_directory_path() / "berth-import-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    ::unsetenv("BERTH_MODELS");
    fs::remove_all(folder_);
  }

  std::string File(const std::string& name, std::string_view content) const {
    const std::string path = (folder_ / name).string();
    WriteFile(path, content);
    return path;
  }
  std::string MessageFor(std::string_view model, const ImportOptions& options = {}) const {
    try {
      ReadModel(model, catalog_, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  ModelCatalog catalog_{"model"};
  fs::path folder_;
};

TEST_F(ImportTest, ShapesAreANameAndNumbers) {
  ImportOptions options;
  ParseShape("input=32,3,224,224", options);
  ParseShape("a:0=b=7", options);
  EXPECT_EQ(options.shapes.at("input"), (std::vector<int64_t>{32, 3, 224, 224}));
  EXPECT_EQ(options.shapes.at("a:0=b"), (std::vector<int64_t>{7}));
  for (const char* wrong : {"", "input", "=1", "x=", "x=1,", "x=1,,2", "x=0", "x=-1", "x=1.5", "x=two",
                            "x=99999999999999999999", "input=1"}) {
    EXPECT_THROW(ParseShape(wrong, options), Error) << wrong;
  }
}

TEST_F(ImportTest, FindsFilesThenShippedModelsThenFormulas) {
  EXPECT_EQ(ReadModel("resnet50", catalog_).num_ops(), 122u);
  EXPECT_EQ(ReadModel("chain(ops=7)", catalog_).num_ops(), 7u);
  EXPECT_EQ(ReadModel("chain", catalog_).num_ops(), 100u);
  const std::string path = File("any", WriteGraphJson(ReadModel("chain(ops=3)", catalog_)));
  EXPECT_EQ(ReadModel(path, catalog_).num_ops(), 3u) << "known by content, not by name";
}

TEST_F(ImportTest, ShippedModelsLieWhereTheEnvironmentSays) {
  EXPECT_GE(ShippedModels().size(), 28u);
  File("mine.onnx", ReadFile(ShippedModels().front().second));
  ::setenv("BERTH_MODELS", folder_.c_str(), 1);
  ASSERT_EQ(ShippedModels().size(), 1u);
  EXPECT_EQ(ShippedModels().front().first, "mine");
  EXPECT_EQ(ReadModel("mine", catalog_).name(), "mine");
  ::setenv("BERTH_MODELS", (folder_ / "nothing").c_str(), 1);
  EXPECT_TRUE(ShippedModels().empty());
}

TEST_F(ImportTest, MistakesNameTheRemedy) {
  EXPECT_THAT(MessageFor("resnet51"), AllOf(HasSubstr("did you mean 'resnet50'"), Not(HasSubstr("chain"))));
  EXPECT_THAT(MessageFor("chian(ops=2)"), HasSubstr("did you mean 'chain'"));
  EXPECT_THAT(MessageFor("famly(name=x)", {.sets = {"family"}}), HasSubstr("did you mean 'family'?"));
  EXPECT_THAT(MessageFor("zzzzzzzz", {.sets = {"family"}}),
              AllOf(HasSubstr("name a file, a model that ships (alexnet, "), HasSubstr("or a formula (chain, "),
                    HasSubstr("to train on many, family")));
  EXPECT_THAT(MessageFor("chain(opps=2)"), HasSubstr("ops"));
  EXPECT_THAT(MessageFor("no/such/file.onnx"), HasSubstr("no such file"));
  EXPECT_THAT(MessageFor(folder_.string()), HasSubstr("is a directory; of directories only"));
  EXPECT_THAT(MessageFor("/dev/zero"), HasSubstr("/dev/zero"));
  EXPECT_THAT(MessageFor(File("empty.onnx", "")), AllOf(HasSubstr("empty.onnx"), HasSubstr("is empty")));
  EXPECT_THAT(MessageFor(File("text.onnx", "this is text")), AllOf(HasSubstr("text.onnx"), HasSubstr("known kind")));
  EXPECT_THAT(MessageFor(File("x.json", "{\"a\": 1}")), HasSubstr("known kind"));
  EXPECT_THAT(MessageFor(File("x", "abc"), {.format = "onnx"}), HasSubstr("is no ONNX model"));
  EXPECT_THAT(MessageFor(File("x", "abc"), {.format = "onx"}), HasSubstr("did you mean 'onnx'"));
  ImportOptions shape;
  ParseShape("x=1", shape);
  EXPECT_THAT(MessageFor("chain", shape), HasSubstr("--shape"));
  EXPECT_THAT(MessageFor("resnet50", shape), HasSubstr("its inputs are: input"));
  EXPECT_THAT(MessageFor(File("c.json", WriteGraphJson(ReadModel("chain(ops=3)", catalog_))), shape),
              HasSubstr("--shape"));
}

TEST_F(ImportTest, AFileAboveTwoGigabytesIsRefusedUnread) {
  const std::string path = File("large.onnx", "x");
  fs::resize_file(path, (uintmax_t{1} << 31) + 1);  // sparse: no bytes on disk
  EXPECT_THAT(MessageFor(path), AllOf(HasSubstr("large.onnx"), HasSubstr("2.00 GiB")));
}

}  // namespace
}  // namespace berth
