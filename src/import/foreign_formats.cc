// Formats that Berth has no reader for, known by their first bytes.

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>

#include "import/readers.h"

namespace berth {
namespace {

// Protocol buffers, field by field.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  bool Byte(unsigned char expected) {
    if (bytes_.empty() || static_cast<unsigned char>(bytes_.front()) != expected) return false;
    bytes_.remove_prefix(1);
    return true;
  }
  // The bytes of a field whose key is `key` and which stands next; those of them that are there.
  std::optional<std::string_view> Field(unsigned char key) {
    if (!Byte(key)) return std::nullopt;
    uint64_t length = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      if (bytes_.empty()) return std::nullopt;
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      length |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        const std::string_view field = bytes_.substr(0, length);
        bytes_.remove_prefix(field.size());
        return field;
      }
    }
    return std::nullopt;
  }

 private:
  std::string_view bytes_;
};

constexpr unsigned char kFirst = 0x0a, kSecond = 0x12;  // keys of fields 1 and 2, where these are messages or texts

}  // namespace

// A GraphDef begins with a node, and a node with its name and its op, which is a word that begins with a capital or an
// underscore; as text, with "node {". SavedModel's saved_model.pb is known by its name instead (KnownByPath).
bool LooksLikeTensorFlow(std::string_view content) {
  std::string_view text = content.substr(0, 4096);
  while (text.starts_with('#')) {
    const size_t end = text.find('\n');
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  if (text.starts_with("node {") || text.starts_with("node{")) return true;
  const auto node = Fields(content).Field(kFirst);
  if (!node) return false;
  Fields fields(*node);
  const auto name = fields.Field(kFirst), op = fields.Field(kSecond);
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return name && !name->empty() && op && !op->empty() &&
         (std::isupper(static_cast<unsigned char>(op->front())) != 0 || op->front() == '_') &&
         std::ranges::all_of(*op, is_word);
}

// FlatBuffers have room for an identifier.
bool LooksLikeTfLite(std::string_view content) { return content.size() > 8 && content.substr(4, 4) == "TFL3"; }

// A ProgramDesc begins with a block: number 0, whose parent is -1.
bool LooksLikePaddle(std::string_view content) {
  const auto block = Fields(content).Field(kFirst);
  return block && block->starts_with(std::string_view("\x08\x00\x10\xff\xff", 5));
}

}  // namespace berth
