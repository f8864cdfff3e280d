// Changes JSON as JSON, so that more than the parser is reached: LLVMFuzzerCustomMutator of fuzzers whose readers take
// it.
#pragma once

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace berth::fuzz {

class JsonMutator {
 public:
  explicit JsonMutator(unsigned seed) : random_(seed) {}

  // The text with one to four changes, or an empty one where it is no JSON, or too deep for what calls itself.
  std::string Mutate(std::string_view text) {
    root_ = Json::parse(text.begin(), text.end(), nullptr, false);
    if (root_.is_discarded()) return {};
    for (size_t changes = 1 + Below(4); changes > 0; --changes) {
      if (!Collect()) return {};
      Change(*values_[Below(values_.size())]);
    }
    return root_.dump(Below(2) == 0 ? -1 : 1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  using Json = nlohmann::json;
  static constexpr size_t kDeepest = 50;

  size_t Below(size_t end) { return end == 0 ? 0 : random_() % end; }

  // All values of the document, and its keys.
  bool Collect() {
    values_ = {&root_};
    keys_ = {"name"};
    std::vector<size_t> depth = {0};
    for (size_t i = 0; i < values_.size(); ++i) {
      Json& value = *values_[i];
      if (!value.is_structured()) continue;
      if (depth[i] == kDeepest) return false;
      for (auto entry = value.begin(); entry != value.end(); ++entry) {
        values_.push_back(&*entry);
        depth.push_back(depth[i] + 1);
        if (value.is_object()) keys_.push_back(entry.key());
      }
    }
    return true;
  }

  Json Odd() {
    static const std::vector<Json> kOdd = {
        0,         1,         -1,       2,      255,  65536, INT32_MAX, INT64_MAX, INT64_MIN,     UINT64_MAX,
        1LL << 46, 1LL << 60, 1e308,    -1e308, 0.5,  -0.0,  5e-324,    nullptr,   true,          false,
        "",        "\n",      "\u00e4", "a#2",  "{}", "*",   "inf",     "NaN",     Json::array(), Json::object()};
    return kOdd[Below(kOdd.size())];
  }

  void Change(Json& value) {
    switch (Below(6)) {
      case 0:
        value = Odd();
        return;
      case 1: {
        const Json other = *values_[Below(values_.size())];  // first a copy: it may lie within, or around
        value = other;
        return;
      }
      default:
        break;
    }
    if (value.is_array()) return ChangeArray(value);
    if (value.is_object()) return ChangeObject(value);
    if (value.is_string()) {
      auto& text = value.get_ref<std::string&>();
      const size_t size = text.size();
      text.resize(size + 16);
      text.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text.data()), size, text.size()));
    } else if (value.is_number_integer()) {
      value = static_cast<int64_t>(value.get<uint64_t>() * (1 + Below(3)) + Below(7) - 3);
    } else if (value.is_number_float()) {
      value = value.get<double>() * (Below(2) == 0 ? -1e3 : 1e-3);
    } else {
      value = Odd();
    }
  }

  void ChangeArray(Json& array) {
    const size_t at = Below(array.size()), other = Below(array.size());
    switch (array.empty() ? 3 : Below(4)) {
      case 0:
        array.erase(at);
        break;
      case 1: {
        const Json copy = array[at];
        array.insert(array.begin() + static_cast<std::ptrdiff_t>(other), copy);
        break;
      }
      case 2:
        std::swap(array[at], array[other]);
        break;
      default: {
        const Json copy = *values_[Below(values_.size())];
        array.push_back(copy);
      }
    }
  }

  void ChangeObject(Json& object) {
    const std::string& key = keys_[Below(keys_.size())];
    if (Below(2) == 0 && !object.empty()) {
      auto entry = object.begin();
      std::advance(entry, Below(object.size()));
      object.erase(entry.key());
    } else {
      const Json copy = *values_[Below(values_.size())];
      object[key] = copy;
    }
  }

  std::minstd_rand random_;
  Json root_;
  std::vector<Json*> values_;
  std::vector<std::string> keys_;
};

// Every other time; the bytes else.
inline size_t MutateJson(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (seed % 2 == 0) {
    const std::string text = JsonMutator(seed).Mutate({reinterpret_cast<const char*>(data), size});
    if (!text.empty() && text.size() <= max_size) {
      std::memcpy(data, text.data(), text.size());
      return text.size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

}  // namespace berth::fuzz
