#include "base/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json_object.h"

namespace berth {
namespace {

using nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr size_t kAlignment = 8;
constexpr size_t kMostAxes = 16;
constexpr const char* kMetadata = "__metadata__";

constexpr std::array<std::pair<std::string_view, size_t>, 10> kTypes = {{{"F64", 8},
                                                                         {"F32", 4},
                                                                         {"F16", 2},
                                                                         {"BF16", 2},
                                                                         {"I64", 8},
                                                                         {"I32", 4},
                                                                         {"I16", 2},
                                                                         {"I8", 1},
                                                                         {"U8", 1},
                                                                         {"BOOL", 1}}};

// The bytes that a type and a shape make; throws what is none.
int64_t BytesOf(JsonObject& entry, const StoredTensor& tensor) {
  auto bytes = static_cast<int64_t>(TensorTypeBytes(tensor.type));
  if (bytes == 0) throw entry.Mistake("dtype", fmt::format("'{}' is no type of safetensors", tensor.type));
  // Of sizes that are not 0, so that no size hides another that is too large.
  int64_t product = bytes;
  for (const int64_t size : tensor.shape) {
    if (__builtin_mul_overflow(product, std::max<int64_t>(size, 1), &product)) {
      throw entry.Mistake("shape", "its sizes are more than can be counted");
    }
    bytes *= size == 0 ? 0 : 1;
  }
  return bytes == 0 ? 0 : product;
}

struct Placed {
  StoredTensor tensor;
  int64_t begin, end;
};

Placed ReadEntry(JsonObject entry, int64_t data_bytes, std::string_view data) {
  Placed placed{.tensor = {.type = entry.Text("dtype")}, .begin = 0, .end = 0};
  const auto count = [&](const json& number, std::string_view key) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
      throw entry.Mistake(key, "expected whole numbers of at least 0");
    }
    return number.get<int64_t>();
  };
  const json& shape = entry.List("shape");
  if (shape.size() > kMostAxes) throw entry.Mistake("shape", fmt::format("has more than {} axes", kMostAxes));
  for (const json& size : shape) placed.tensor.shape.push_back(count(size, "shape"));
  const json& offsets = entry.List("data_offsets");
  if (offsets.size() != 2) throw entry.Mistake("data_offsets", "expected two numbers: where it begins and ends");
  placed.begin = count(offsets[0], "data_offsets");
  placed.end = count(offsets[1], "data_offsets");
  entry.Finish();
  if (placed.begin > placed.end || placed.end > data_bytes) {
    throw entry.Mistake("data_offsets", fmt::format("is [{}, {}]; the file has {} bytes of tensors", placed.begin,
                                                    placed.end, data_bytes));
  }
  if (const int64_t needed = BytesOf(entry, placed.tensor); needed != placed.end - placed.begin) {
    throw entry.Mistake("data_offsets", fmt::format("is [{}, {}], which is {} bytes; its type and shape make {}",
                                                    placed.begin, placed.end, placed.end - placed.begin, needed));
  }
  placed.tensor.bytes = data.substr(static_cast<size_t>(placed.begin), static_cast<size_t>(placed.end - placed.begin));
  return placed;
}

}  // namespace

size_t TensorTypeBytes(std::string_view type) {
  const auto* const found = std::ranges::find(kTypes, type, [](const auto& entry) { return entry.first; });
  return found == kTypes.end() ? 0 : found->second;
}

std::string WriteTensorFile(const TensorFile& file) {
  // In the order of the bytes, for people who look into it.
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header[kMetadata] = file.metadata;
  size_t bytes = 0;
  for (const StoredTensor& tensor : file.tensors) {
    BERTH_CHECK(!header.contains(tensor.name), "two tensors are called {}", tensor.name);
    header[tensor.name] = {
        {"dtype", tensor.type}, {"shape", tensor.shape}, {"data_offsets", {bytes, bytes + tensor.bytes.size()}}};
    bytes += tensor.bytes.size();
  }
  std::string head = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  head.resize((head.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  std::string text;
  text.reserve(kLengthBytes + head.size() + bytes);
  for (size_t i = 0; i < kLengthBytes; ++i) text += static_cast<char>(head.size() >> (8 * i) & 0xFF);
  text += head;
  for (const StoredTensor& tensor : file.tensors) text += tensor.bytes;
  return text;
}

TensorFile ParseTensorFile(std::string_view bytes, const std::string& path) {
  uint64_t length = 0;
  for (size_t i = 0; i < std::min(bytes.size(), kLengthBytes); ++i) {
    length |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  if (bytes.size() < kLengthBytes || length > bytes.size() - kLengthBytes) {
    throw Error("{}: its header should have {} bytes, and the file has {}", path, length, bytes.size());
  }
  const std::string_view head = bytes.substr(kLengthBytes, length), data = bytes.substr(kLengthBytes + length);
  const json header = ParseJson(head, path);
  JsonObject top(header, path);
  TensorFile file;
  std::vector<Placed> placed;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadata) {
      JsonObject metadata = top.Object(name);
      for (const auto& [key, text] : value.items()) file.metadata[key] = metadata.Text(key);
      continue;
    }
    placed.push_back(ReadEntry(top.Object(name), static_cast<int64_t>(data.size()), data));
    placed.back().tensor.name = name;
  }
  std::ranges::stable_sort(placed, {}, [](const Placed& p) { return std::pair(p.begin, p.end); });
  int64_t at = 0;
  for (Placed& each : placed) {
    if (each.begin != at) {
      throw Error("{}: {}: its bytes {} those of the tensor before it", path, each.tensor.name,
                  each.begin < at ? "overlap" : "leave a gap after");
    }
    at = each.end;
    file.tensors.push_back(std::move(each.tensor));
  }
  if (at != static_cast<int64_t>(data.size())) {
    throw Error("{}: {} bytes at its end belong to no tensor", path, static_cast<int64_t>(data.size()) - at);
  }
  return file;
}

}  // namespace berth
