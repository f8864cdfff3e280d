#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "import/import.h"
#include "import/readers.h"

namespace berth {
namespace {

using ::testing::HasSubstr;

// A node "x" of op Placeholder, and what follows.
const std::string kGraphDef("\x0a\x10\x0a\x01x\x12\x0bPlaceholder", 18);
const std::string kProgram("\x0a\x85\x28\x08\x00\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 16);

TEST(ForeignFormats, AreKnownByTheirFirstBytes) {
  EXPECT_TRUE(LooksLikeTensorFlow(kGraphDef));
  EXPECT_TRUE(LooksLikeTensorFlow("node {\n  name: \"x\"\n"));
  EXPECT_TRUE(LooksLikeTensorFlow("# a comment\nnode {\n"));
  EXPECT_FALSE(LooksLikeTensorFlow("# a comment and no more"));
  EXPECT_FALSE(LooksLikeTensorFlow(std::string(5000, '#')));
  EXPECT_TRUE(LooksLikeTfLite(std::string("\x1c\0\0\0TFL3\0\0\0\0", 12)));
  EXPECT_TRUE(LooksLikePaddle(kProgram));
}

TEST(ForeignFormats, AreNotTakenForOneAnotherNorForOnnx) {
  const std::string onnx(
      "\x08\x08\x12\x07pytorch\x1a\x05"
      "2.1.0",
      18);
  for (const std::string& content : {onnx, std::string(), std::string("\x0a", 1),
                                     std::string("\x0a\xff\xff\xff\xff\xff\xff", 7), std::string("node")}) {
    EXPECT_FALSE(LooksLikeTensorFlow(content));
    EXPECT_FALSE(LooksLikeTfLite(content));
    EXPECT_FALSE(LooksLikePaddle(content));
  }
  EXPECT_FALSE(LooksLikeTensorFlow(kProgram));
  EXPECT_FALSE(LooksLikePaddle(kGraphDef));
}

TEST(ForeignFormats, NoPrefixOfAFileBringsTheTestsDown) {
  for (const std::string& whole : {kGraphDef, kProgram}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      LooksLikeTensorFlow(whole.substr(0, size));
      LooksLikePaddle(whole.substr(0, size));
    }
  }
}

// Answers with an IR of one op.
class Scripted : public OtherReader {
 public:
  Ir ReadAsIr(const std::string& path, const ImportOptions& options) const override {
    asked = path;
    EXPECT_EQ(options.batch, 3);
    return {.reader = "Scripted 1",
            .xml = R"(<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter"><data shape="3,4" element_type="f32"/><output><port id="0" precision="FP32"><dim>3</dim><dim>4</dim></port></output></layer>
<layer id="1" name="r" type="ReLU"><input><port id="0"/></input><output><port id="1" precision="FP32"><dim>3</dim><dim>4</dim></port></output></layer>
<layer id="2" name="o" type="Result"><input><port id="0"/></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>)",
            .batches = {"y"}};
  }
  Sizes TensorSizes(const std::string&, const NamedSizes&) const override { return {}; }
  mutable std::string asked;
};

TEST(ForeignFormats, AreReadByTheOtherReader) {
  const std::string path = ::testing::TempDir() + "/berth_foreign_graph.pb";
  std::ofstream(path, std::ios::binary) << kGraphDef;
  const Scripted other;
  const ModelCatalog none("model");
  const Graph graph = ReadModel(path, none, {.batch = 3, .other = &other});
  EXPECT_EQ(other.asked, path);
  EXPECT_EQ(graph.num_ops(), 1);
  EXPECT_EQ(graph.notes().front(), "read by Scripted 1");
  EXPECT_THAT(graph.notes()[1], HasSubstr("the first axis of y"));
  try {
    ReadModel(path, none);
    FAIL() << "was read by nobody";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("is read by OpenVINO, and nothing here asks it"));
  }
  std::filesystem::remove(path);
}

// OpenVINO reads what it finds, whatever was asked for.
TEST(ForeignFormats, AreNotReadAsTheOneThatIsAskedForWhereTheyAreAnother) {
  const std::string path = ::testing::TempDir() + "/berth_foreign_asked.pb";
  std::ofstream(path, std::ios::binary) << kGraphDef;
  const Scripted other;
  const ModelCatalog none("model");
  for (const std::string format : {"tflite", "paddle"}) {
    try {
      ReadModel(path, none, {.batch = 3, .format = format, .other = &other});
      FAIL() << "was read as " << format;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("is no file of the format " + format));
    }
  }
  EXPECT_EQ(other.asked, "");
  EXPECT_EQ(ReadModel(path, none, {.batch = 3, .format = "tensorflow", .other = &other}).num_ops(), 1);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace berth
