#include "learn/checkpoint.h"

#include <cstring>

#include "base/error.h"
#include "base/hash.h"

namespace berth {
namespace {

constexpr std::string_view kMagic = "berth checkpoint ";

std::string Line(std::string_view rest) { return fmt::format("{}{}\n", kMagic, Hasher().Add(rest).Text()); }

size_t BytesOf(const at::Tensor& tensor) { return static_cast<size_t>(tensor.numel()) * tensor.element_size(); }

}  // namespace

std::string Checkpoint::ToBytes() const {
  nlohmann::json head = {{"meta", meta}, {"tensors", nlohmann::json::array()}};
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor flat = tensor.detach().cpu().contiguous();
    head["tensors"].push_back({{"name", name},
                               {"type", static_cast<int>(flat.scalar_type())},
                               {"sizes", std::vector<int64_t>(flat.sizes().begin(), flat.sizes().end())}});
    data.append(static_cast<const char*>(flat.const_data_ptr()), BytesOf(flat));
  }
  const std::string rest = head.dump() + "\n" + data;
  return Line(rest) + rest;
}

Checkpoint Checkpoint::Parse(std::string_view bytes, const std::string& path) {
  const size_t first = bytes.find('\n') + 1;
  const std::string_view rest = bytes.substr(first);
  if (first == 0 || bytes.substr(0, first) != Line(rest)) {
    throw Error("{}: this is no checkpoint that Berth has written, or it is damaged; name another, or train anew",
                path);
  }
  // The hash holds, so what follows is as ToBytes wrote it.
  const size_t second = rest.find('\n') + 1;
  const nlohmann::json head = nlohmann::json::parse(rest.substr(0, second));
  Checkpoint checkpoint{.meta = head.at("meta")};
  const char* data = rest.data() + second;
  for (const auto& entry : head.at("tensors")) {
    at::Tensor tensor = torch::empty(entry.at("sizes").get<std::vector<int64_t>>(),
                                     static_cast<at::ScalarType>(entry.at("type").get<int>()));
    if (tensor.numel() > 0) std::memcpy(tensor.mutable_data_ptr(), data, BytesOf(tensor));
    data += BytesOf(tensor);
    checkpoint.tensors.emplace_back(entry.at("name"), std::move(tensor));
  }
  return checkpoint;
}

void Checkpoint::CopyTo(std::string_view prefix, const std::vector<at::Tensor>& to, const std::string& path) const {
  const torch::NoGradGuard no_gradient;
  size_t i = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!name.starts_with(prefix)) continue;
    if (i == to.size() || to[i].sizes() != tensor.sizes()) {
      throw Error("{}: the checkpoint is of a policy of another form: {} does not fit", path, name);
    }
    at::Tensor(to[i++]).copy_(tensor);
  }
  if (i != to.size())
    throw Error("{}: the checkpoint is of a policy of another form: it has {} of {} tensors", path, i, to.size());
}

}  // namespace berth
