// ParseJson of file.h: nlohmann's parser, with a builder of our own that refuses a key that is there twice.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace berth {
namespace {

using nlohmann::json;

// Makes the document of the parser's events. nlohmann's own builder keeps the last of two equal keys without a word.
class Builder final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(number_integer_t value) override { return Put(value); }
  bool number_unsigned(number_unsigned_t value) override { return Put(value); }
  bool number_float(number_float_t value, const string_t&) override { return Put(value); }
  bool string(string_t& value) override { return Put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(json::object()); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    const auto [entry, is_new] = open_.back()->get_ref<json::object_t&>().try_emplace(std::move(name));
    if (!is_new) twice_ = entry->first;
    next_ = &entry->second;
    return is_new;
  }

  bool parse_error(size_t position, const std::string&, const json::exception& error) override {
    position_ = position;
    too_large_ = error.id == 406;
    error_ = error.what();
    return false;
  }

  json Take() { return std::move(document_); }

  // Of a text that was refused.
  [[noreturn]] void Throw(std::string_view text, const std::string& path) const {
    if (error_.empty()) {
      const std::string place = Place();
      throw Error("{}: {}{}the key '{}' is there twice; remove one of the two", path, place, place.empty() ? "" : ": ",
                  twice_);
    }
    if (text.empty()) throw Error("{}: is empty; a JSON document was expected", path);
    if (too_large_) throw Error("{}: holds a number beyond what a double can hold; use one below 1e308", path);
    const std::string_view before = text.substr(0, std::min(position_ == 0 ? 0 : position_ - 1, text.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t start = before.rfind('\n');
    const size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
    const size_t at = error_.rfind(": ");
    throw Error("{}:{}:{}: not valid JSON: {}", path, line, column,
                at == std::string::npos ? error_ : error_.substr(at + 2));
  }

 private:
  json* Add(json value) {
    if (open_.empty()) {
      document_ = std::move(value);
      return &document_;
    }
    if (auto* list = open_.back()->get_ptr<json::array_t*>()) return &list->emplace_back(std::move(value));
    *next_ = std::move(value);
    return next_;
  }
  bool Put(json value) {
    Add(std::move(value));
    return true;
  }
  bool Open(json value) {
    open_.push_back(Add(std::move(value)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  // "ops[3].outputs[0]": where the innermost object that is open stands.
  std::string Place() const {
    std::string place;
    for (size_t i = 1; i < open_.size(); ++i) {
      if (open_[i - 1]->is_array()) {
        place += fmt::format("[{}]", open_[i - 1]->size() - 1);
        continue;
      }
      for (const auto& [name, value] : open_[i - 1]->items()) {
        if (&value == open_[i]) place += (place.empty() ? "" : ".") + name;
      }
    }
    return place;
  }

  json document_;
  std::vector<json*> open_;  // objects and lists that are not complete, outermost first
  json* next_ = nullptr;     // the value of the last key
  std::string twice_, error_;
  size_t position_ = 0;
  bool too_large_ = false;
};

}  // namespace

json ParseJson(std::string_view text, const std::string& path) {
  Builder builder;
  if (!json::sax_parse(text.begin(), text.end(), &builder)) builder.Throw(text, path);
  return builder.Take();
}

json ReadJson(const std::string& path, const FileKind& kind) { return ParseJson(ReadFile(path, kind), path); }

}  // namespace berth
