#include "base/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "base/random.h"

namespace berth {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::string_view bytes) {
  try {
    ParseTensorFile(bytes, "c");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// A file around any header.
std::string Around(const std::string& header, size_t data_bytes) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return bytes + header + std::string(data_bytes, 'x');
}

// The error of a file with one tensor of this entry, and 16 bytes.
std::string EntryError(const std::string& entry) { return ErrorOf(Around("{\"t\": {" + entry + "}}", 16)); }

TensorFile SomeFile() {
  return {.metadata = {{"format", "berth"}, {"text", "{\"a\": \"\\n\"}"}},
          .tensors = {{.name = "z", .type = "F32", .shape = {2, 1}, .bytes = "abcdefgh"},
                      {.name = "none", .type = "I64", .shape = {3, 0}, .bytes = ""},
                      {.name = "scalar", .type = "BF16", .shape = {}, .bytes = "ij"},
                      {.name = "a", .type = "U8", .shape = {3}, .bytes = "klm"}}};
}

TEST(TensorFile, ComesBackAsItWasWritten) {
  const std::string bytes = WriteTensorFile(SomeFile());
  const TensorFile file = ParseTensorFile(bytes, "c");
  EXPECT_EQ(file.metadata, SomeFile().metadata);
  ASSERT_EQ(file.tensors.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(file.tensors[i].name, SomeFile().tensors[i].name);
    EXPECT_EQ(file.tensors[i].type, SomeFile().tensors[i].type);
    EXPECT_EQ(file.tensors[i].shape, SomeFile().tensors[i].shape);
    EXPECT_EQ(file.tensors[i].bytes, SomeFile().tensors[i].bytes);
  }
  EXPECT_EQ(WriteTensorFile(file), bytes);
  EXPECT_EQ(bytes.find("abcdefgh") % 8, 0u) << "tensors are aligned";
  EXPECT_EQ(WriteTensorFile(ParseTensorFile(WriteTensorFile({}), "c")), WriteTensorFile({}));
}

// As the library of that name writes it: another order of keys, and no metadata.
TEST(TensorFile, IsReadInTheOrderOfItsBytes) {
  const std::string bytes = Around(
      R"({"b":{"data_offsets":[4,6],"shape":[2],"dtype":"I8"},"a":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]}}  )",
      6);
  const TensorFile file = ParseTensorFile(bytes, "c");
  ASSERT_EQ(file.tensors.size(), 2u);
  EXPECT_EQ(file.tensors[0].name, "a");
  EXPECT_EQ(file.tensors[1].bytes.data(), bytes.data() + bytes.size() - 2);
}

TEST(TensorFile, FalseSizesAreRefusedBeforeAnythingIsRead) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("c: its header should have 0 bytes, and the file has 0"));
  EXPECT_THAT(ErrorOf("1234567"), HasSubstr("its header should have"));
  EXPECT_THAT(ErrorOf(std::string(8, '\xff') + "{}"), HasSubstr("18446744073709551615 bytes, and the file has 10"));
  EXPECT_THAT(ErrorOf(Around("{}", 0).substr(0, 9)), HasSubstr("should have 2 bytes, and the file has 9"));
  EXPECT_THAT(ErrorOf(Around("[]", 0)), HasSubstr("c: expected an object, not a list"));
  EXPECT_THAT(ErrorOf(Around("{\"t\": 1}", 0)), HasSubstr("t: expected an object"));
  EXPECT_THAT(ErrorOf(Around("{", 0)), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf(Around("{}", 3)), HasSubstr("3 bytes at its end belong to no tensor"));
  EXPECT_THAT(ErrorOf(Around("{\"__metadata__\": {\"a\": 1}}", 0)), HasSubstr("__metadata__.a: expected a text"));

  EXPECT_EQ(EntryError(R"("dtype":"F32","shape":[4],"data_offsets":[0,16])"), "no error");
  EXPECT_THAT(EntryError(R"("dtype":"F32","shape":[4])"), HasSubstr("t.data_offsets: is missing"));
  EXPECT_THAT(EntryError(R"("dtype":"F31","shape":[4],"data_offsets":[0,16])"), HasSubstr("'F31' is no type"));
  EXPECT_THAT(EntryError(R"("dtype":"F32","shape":[5],"data_offsets":[0,20])"),
              HasSubstr("t.data_offsets: is [0, 20]; the file has 16 bytes of tensors"));
  EXPECT_THAT(EntryError(R"("dtype":"F32","shape":[5],"data_offsets":[0,16])"),
              HasSubstr("its type and shape make 20"));
  EXPECT_THAT(EntryError(R"("dtype":"F32","shape":[-4],"data_offsets":[0,16])"), HasSubstr("whole numbers"));
  EXPECT_THAT(EntryError(R"("dtype":"F32","shape":[4.0],"data_offsets":[0,16])"), HasSubstr("whole numbers"));
  EXPECT_THAT(EntryError(R"("dtype":"F32","shape":[4],"data_offsets":[16,0])"), HasSubstr("is [16, 0]"));
  EXPECT_THAT(EntryError(R"("dtype":"F32","shape":[4],"data_offsets":[0,16,32])"), HasSubstr("expected two numbers"));
  EXPECT_THAT(EntryError(R"("dtype":"F32","shape":[4],"data_offsets":[0,16],"more":1)"), HasSubstr("t.more"));
  EXPECT_THAT(EntryError(R"("dtype":"F32","shape":[4],"shape":[4],"data_offsets":[0,16])"), HasSubstr("there twice"));
  // Products that would wrap around to 16 and to 0 bytes.
  EXPECT_THAT(EntryError(R"("dtype":"F32","shape":[4611686018427387908],"data_offsets":[0,16])"),
              HasSubstr("more than can be counted"));
  EXPECT_THAT(EntryError(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])"),
              HasSubstr("more than can be counted"));
  EXPECT_THAT(EntryError(R"("dtype":"F32","shape":[0,9223372036854775807,9223372036854775807],"data_offsets":[0,0])"),
              HasSubstr("more than can be counted"));
  EXPECT_THAT(EntryError(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,16])"),
              HasSubstr("whole numbers"));
  EXPECT_THAT(EntryError(R"("dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,16],"data_offsets":[0,16])"),
              HasSubstr("more than 16 axes"));
}

TEST(TensorFile, TensorsNeitherOverlapNorLeaveGaps) {
  const auto two = [](const std::string& first, const std::string& second) {
    const auto entry = [](const std::string& place) {
      return R"({"dtype":"U8","shape":[8],"data_offsets":)" + place + "}";
    };
    return ErrorOf(Around("{\"a\":" + entry(first) + ",\"b\":" + entry(second) + "}", 20));
  };
  EXPECT_THAT(two("[0,8]", "[4,12]"), HasSubstr("c: b: its bytes overlap those of the tensor before it"));
  EXPECT_THAT(two("[0,8]", "[0,8]"), HasSubstr("b: its bytes overlap"));
  EXPECT_THAT(two("[0,8]", "[12,20]"), HasSubstr("b: its bytes leave a gap"));
  EXPECT_THAT(two("[8,16]", "[1,9]"), HasSubstr("b: its bytes leave a gap"));
  EXPECT_THAT(two("[8,16]", "[0,8]"), HasSubstr("4 bytes at its end"));
}

// Whatever becomes of a file on its way, it is read within its bounds or refused (under a sanitizer, that is seen).
TEST(TensorFile, DamagedFilesAreReadOrRefused) {
  const std::string whole = WriteTensorFile(SomeFile());
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_NE(ErrorOf(whole.substr(0, size)), "no error") << size;
  Random random(3);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = whole;
    for (size_t k = 1 + random.Below(4); k > 0; --k) {
      char& byte = bytes[random.Below(bytes.size())];
      byte = random.Chance(0.5) ? static_cast<char>(random.Below(256)) : "0123456789,[]{}\""[random.Below(16)];
    }
    try {
      size_t sum = 0;
      const TensorFile file = ParseTensorFile(bytes, "c");
      for (const StoredTensor& tensor : file.tensors) {
        for (const char c : tensor.bytes) sum += static_cast<unsigned char>(c);
      }
      EXPECT_GT(sum, 0u);
    } catch (const Error&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace berth
