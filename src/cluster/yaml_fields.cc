#include "cluster/yaml_fields.h"

#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>

namespace berth {
namespace {

// Hostile files stop here, before the parser builds anything of them.
constexpr size_t kMaxBytes = size_t{4} << 20;

int LineOf(const YAML::Node& node, int otherwise) {
  const YAML::Mark mark = node.Mark();
  return mark.is_null() ? otherwise : mark.line + 1;
}

std::string_view KindOf(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return "text";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Map:
      return "a mapping";
    default:
      return "nothing";
  }
}

void CheckIsText(std::string_view text, const std::string& path) {
  if (text.size() > kMaxBytes) throw Error("{}: {} bytes; expected a file of at most 4 MiB", path, text.size());
  const auto control =
      std::ranges::find_if(text, [](unsigned char c) { return c < ' ' && c != '\t' && c != '\n' && c != '\r'; });
  if (control != text.end()) {
    throw Error("{}:{}: the byte {:#04x}; expected a text file in YAML", path,
                1 + std::count(text.begin(), control, '\n'), static_cast<unsigned char>(*control));
  }
}

// Only the place where a document starts matters.
class DocumentStart : public YAML::EventHandler {
 public:
  int line() const { return line_; }

  void OnDocumentStart(const YAML::Mark& mark) override { line_ = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  int line_ = 1;
};

// Not by YAML::LoadAll, which never ends where a document starts with a comma: the parser takes no token then.
void CheckIsOneDocument(const std::string& text, const std::string& path, std::string_view what) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart start;
  if (!parser.HandleNextDocument(start) || !parser.HandleNextDocument(start)) return;
  throw Error("{}:{}: the {} has ended before this; expected one {} per file, all its keys at one indentation", path,
              start.line(), what, what);
}

}  // namespace

YAML::Node ParseYaml(std::string_view text, const std::string& path, const YamlSubject& subject) {
  CheckIsText(text, path);
  const std::string whole(text);
  YAML::Node root;
  try {
    CheckIsOneDocument(whole, path, subject.what);
    root = YAML::Load(whole);
  } catch (const YAML::Exception& exception) {
    const int line = exception.mark.is_null() ? 1 : exception.mark.line + 1;
    const bool star = exception.msg == YAML::ErrorMsg::UNKNOWN_ANCHOR;
    throw Error("{}:{}: not YAML ({}); expected {}", path, line, exception.msg,
                star ? "quotes around a text that begins with *" : "`key: value` lines, indented by spaces");
  }
  if (root.IsNull()) throw Error("{}:1: the file is empty; expected {}", path, subject.keys);
  return root;
}

YamlFields::YamlFields(const YAML::Node& node, YamlPlace place) : place_(std::move(place)) {
  if (!node.IsMap()) throw place_.Fail(fmt::format("is {}; expected a mapping, `key: value` lines", KindOf(node)));
  std::unordered_map<std::string, int> line_of;
  for (const auto& entry : node) {
    const int line = LineOf(entry.first, place_.line);
    const YamlPlace key_place{place_.path, line, place_.what};
    std::string key = YamlText(entry.first, key_place, "a key");
    if (const auto [first, is_new] = line_of.emplace(key, line); !is_new) {
      throw key_place.Fail(fmt::format("'{}' is there twice, first in line {}; expected it once", key, first->second));
    }
    fields_.push_back({std::move(key), entry.second, line});
  }
}

YamlFields::YamlFields(const YAML::Node& node, YamlPlace place, const std::vector<std::string>& known)
    : YamlFields(node, std::move(place)) {
  for (const YamlField& field : fields_) {
    if (std::ranges::find(known, field.key) != known.end()) continue;
    const std::string_view closest = Closest(field.key, known);
    throw YamlPlace{place_.path, field.line, place_.what}.Fail(
        fmt::format("unknown key '{}'{}; expected {}", field.key,
                    closest.empty() ? "" : fmt::format(" (did you mean {}?)", closest), fmt::join(known, ", ")));
  }
}

const YamlField* YamlFields::Find(std::string_view key) const {
  const auto field = std::ranges::find(fields_, key, &YamlField::key);
  return field == fields_.end() ? nullptr : &*field;
}

const YamlField& YamlFields::Need(std::string_view key, std::string_view example) const {
  const YamlField* field = Find(key);
  if (field == nullptr) throw place_.Fail(fmt::format("no {}; expected `{}: {}`", key, key, example));
  return *field;
}

YamlPlace YamlFields::PlaceOf(const YamlField& field) const {
  return {place_.path, field.line, fmt::format("{} of {}", field.key, place_.what)};
}

const std::string& YamlText(const YAML::Node& node, const YamlPlace& place, std::string_view example) {
  if (!node.IsScalar() || node.Scalar().empty()) {
    throw place.Fail(fmt::format("is {}; expected {}", node.IsScalar() ? "nothing" : KindOf(node), example));
  }
  return node.Scalar();
}

std::vector<std::string> YamlTexts(const YAML::Node& node, const YamlPlace& place, std::string_view example) {
  if (!node.IsSequence()) return {YamlText(node, place, example)};
  std::vector<std::string> texts;
  for (const YAML::Node& item : node) {
    const YamlPlace item_place{place.path, LineOf(item, place.line), place.what};
    texts.push_back(YamlText(item, item_place, example));
  }
  if (texts.empty()) throw place.Fail(fmt::format("is an empty list; expected {}", example));
  return texts;
}

}  // namespace berth
