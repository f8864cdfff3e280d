#include "learn/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/safetensors.h"

namespace berth {
namespace {

constexpr const char* kMeta = "berth";
constexpr const char* kHash = "berth_hash";

struct NamedType {
  at::ScalarType type;
  std::string_view name;
};
constexpr std::array<NamedType, 10> kTypes = {{{at::kDouble, "F64"},
                                               {at::kFloat, "F32"},
                                               {at::kHalf, "F16"},
                                               {at::kBFloat16, "BF16"},
                                               {at::kLong, "I64"},
                                               {at::kInt, "I32"},
                                               {at::kShort, "I16"},
                                               {at::kChar, "I8"},
                                               {at::kByte, "U8"},
                                               {at::kBool, "BOOL"}}};

// Finds what was lost or changed by chance.
std::string HashOf(const TensorFile& file, const std::string& meta) {
  Hasher hasher;
  hasher.Add(std::string_view(meta));
  for (const StoredTensor& tensor : file.tensors) {
    hasher.Add(std::string_view(tensor.name)).Add(std::string_view(tensor.type)).Add(uint64_t{tensor.shape.size()});
    for (const int64_t size : tensor.shape) hasher.Add(static_cast<uint64_t>(size));
    hasher.Add(tensor.bytes);
  }
  return hasher.Text();
}

}  // namespace

std::string Checkpoint::ToBytes() const {
  TensorFile file;
  std::vector<at::Tensor> kept;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor& flat = kept.emplace_back(tensor.detach().cpu().contiguous());
    const auto* const type = std::ranges::find(kTypes, flat.scalar_type(), &NamedType::type);
    BERTH_CHECK(type != kTypes.end(), "{} is of a type that no checkpoint holds", name);
    file.tensors.push_back({.name = name,
                            .type = std::string(type->name),
                            .shape = {flat.sizes().begin(), flat.sizes().end()},
                            .bytes = {static_cast<const char*>(flat.const_data_ptr()), flat.nbytes()}});
  }
  // Names of files need not be UTF-8; JSON is.
  const std::string text = meta.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  file.metadata = {{kMeta, text}, {kHash, HashOf(file, text)}};
  return WriteTensorFile(file);
}

Checkpoint Checkpoint::Parse(std::string_view bytes, const std::string& path) {
  const auto refused = [&](std::string_view why) {
    return Error("{}: this is no checkpoint that Berth has written, or it is damaged ({}); name another, or train anew",
                 path, why);
  };
  TensorFile file;
  try {
    file = ParseTensorFile(bytes, path);
  } catch (const Error& error) {
    const std::string_view why = error.what();
    throw refused(why.substr(std::min(path.size() + std::string_view(": ").size(), why.size())));
  }
  if (!file.metadata.contains(kMeta) || !file.metadata.contains(kHash)) throw refused("it has no metadata of Berth's");
  const std::string& text = file.metadata[kMeta];
  if (file.metadata[kHash] != HashOf(file, text)) throw refused("its hash is another");
  Checkpoint checkpoint{.meta = ParseJson(text, path)};
  for (const StoredTensor& stored : file.tensors) {
    const auto* const type = std::ranges::find(kTypes, stored.type, &NamedType::name);
    BERTH_CHECK(type != kTypes.end(), "{} is known to safetensors.cc alone", stored.type);
    at::Tensor tensor = torch::empty(stored.shape, type->type);
    BERTH_CHECK(tensor.nbytes() == stored.bytes.size());
    if (tensor.numel() > 0) std::memcpy(tensor.mutable_data_ptr(), stored.bytes.data(), stored.bytes.size());
    checkpoint.tensors.emplace_back(stored.name, std::move(tensor));
  }
  return checkpoint;
}

void Checkpoint::CopyTo(std::string_view prefix, const std::vector<at::Tensor>& to, const std::string& path) const {
  const torch::NoGradGuard no_gradient;
  size_t i = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!name.starts_with(prefix)) continue;
    if (i == to.size() || to[i].sizes() != tensor.sizes() || to[i].scalar_type() != tensor.scalar_type()) {
      throw Error("{}: the checkpoint is of a policy of another form: {} does not fit", path, name);
    }
    at::Tensor(to[i++]).copy_(tensor);
  }
  if (i != to.size())
    throw Error("{}: the checkpoint is of a policy of another form: it has {} of {} tensors", path, i, to.size());
}

}  // namespace berth
