// The state of a simulation at one moment, as bytes: values go in one after another, and come out in the same order.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace berth {

class Snapshot {
 public:
  void Clear() { bytes_.clear(); }

  template <typename T>
  void Put(const T& value) {
    PutAll(std::span(&value, 1));
  }
  // Their number is not kept.
  template <typename T>
  void PutAll(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (values.empty()) return;
    const size_t size = bytes_.size();
    bytes_.resize(size + values.size_bytes());
    std::memcpy(bytes_.data() + size, values.data(), values.size_bytes());
  }
  template <typename T>
  void PutAll(const std::vector<T>& values) {
    PutAll(std::span<const T>(values));
  }
  template <typename T>
  void PutCounted(std::span<const T> values) {
    Put(values.size());
    PutAll(values);
  }

  class Reader {
   public:
    explicit Reader(const Snapshot& snapshot) : next_(snapshot.bytes_.data()) {}

    template <typename T>
    T Take() {
      T value;
      TakeAll(std::span(&value, 1));
      return value;
    }
    template <typename T>
    void TakeAll(std::span<T> values) {
      static_assert(std::is_trivially_copyable_v<T>);
      if (values.empty()) return;
      std::memcpy(values.data(), next_, values.size_bytes());
      next_ += values.size_bytes();
    }
    template <typename T>
    void TakeAll(std::vector<T>& values) {
      TakeAll(std::span<T>(values));
    }
    // What PutCounted put, to `first` and the places after it; the place after the last.
    template <typename T>
    T* TakeCounted(T* first) {
      const auto count = Take<size_t>();
      TakeAll(std::span<T>(first, count));
      return first + count;
    }
    template <typename T>
    void TakeCounted(std::vector<T>& values) {
      values.resize(Take<size_t>());
      TakeAll(values);
    }

   private:
    const std::byte* next_;
  };

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace berth
