// Values as bytes, for a process of the same program on a machine of the same kind.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "learn/libtorch.h"

namespace berth {

// Is filled, or read in the order in which it was filled: one function that names all values does both.
class Parcel {
 public:
  Parcel() = default;
  explicit Parcel(std::string bytes) : bytes_(std::move(bytes)), reads_(true) {}

  bool reads() const { return reads_; }
  std::string Take() && { return std::move(bytes_); }

  template <typename T>
    requires std::is_trivially_copyable_v<T>
  void operator()(T& value) {
    Bytes(&value, sizeof(T));
  }
  void operator()(std::string& text) { Elements(text); }
  template <typename T>
  void operator()(std::vector<T>& list) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      Elements(list);
    } else {
      int64_t size = std::ssize(list);
      (*this)(size);
      if (reads_) list.resize(static_cast<size_t>(size));
      for (T& each : list) (*this)(each);
    }
  }
  template <typename A, typename B>
    requires(!std::is_trivially_copyable_v<std::pair<A, B>>)
  void operator()(std::pair<A, B>& pair) {
    (*this)(pair.first);
    (*this)(pair.second);
  }
  // Of floats, or undefined.
  void operator()(at::Tensor& tensor) {
    bool defined = tensor.defined();
    (*this)(defined);
    if (!defined) return;
    std::vector<int64_t> sizes;
    if (!reads_) sizes = tensor.sizes().vec();
    (*this)(sizes);
    if (reads_) tensor = torch::empty(sizes);
    const at::Tensor whole = tensor.detach().contiguous();
    BERTH_CHECK(whole.scalar_type() == torch::kFloat32);
    Bytes(whole.mutable_data_ptr(), whole.nbytes());
  }

 private:
  void Bytes(void* value, size_t size) {
    if (size == 0) return;
    if (!reads_) {
      bytes_.append(static_cast<const char*>(value), size);
      return;
    }
    BERTH_CHECK(size <= bytes_.size() - at_, "a parcel ends too soon");
    std::memcpy(value, bytes_.data() + at_, size);
    at_ += size;
  }
  template <typename List>
  void Elements(List& list) {
    int64_t size = std::ssize(list);
    (*this)(size);
    if (reads_) {
      BERTH_CHECK(static_cast<size_t>(size) <= (bytes_.size() - at_) / sizeof(list[0]), "a parcel ends too soon");
      list.resize(static_cast<size_t>(size));
    }
    Bytes(list.data(), list.size() * sizeof(list[0]));
  }

  std::string bytes_{};
  bool reads_ = false;
  size_t at_ = 0;
};

}  // namespace berth
