#include "cluster/yaml_lists.h"

#include "cluster/yaml_fields.h"

namespace berth {

std::vector<YamlEntry> ReadYamlLists(std::string_view yaml, const std::string& path, std::string_view what,
                                     const std::vector<std::string>& known) {
  const std::string keys = fmt::format("{}:", fmt::join(known, ":, "));
  std::vector<YamlEntry> entries;
  try {
    const YAML::Node root = ParseYaml(yaml, path, {.what = what, .keys = keys});
    const YamlFields fields(root, {.path = &path, .line = 1, .what = std::string(what)}, known);
    for (const YamlField& field : fields.all()) {
      const YamlPlace place = fields.PlaceOf(field);
      if (!field.value.IsSequence()) {
        entries.push_back({field.key, YamlText(field.value, place, "a text or a list of texts"), field.line});
        continue;
      }
      for (const YAML::Node& item : field.value) {
        const YAML::Mark mark = item.Mark();
        const int line = mark.is_null() ? field.line : mark.line + 1;
        entries.push_back({field.key, YamlText(item, {&path, line, place.what}, "a text"), line});
      }
    }
  } catch (const YAML::Exception& exception) {
    throw Error("{}:{}: not YAML ({})", path, exception.mark.is_null() ? 1 : exception.mark.line + 1, exception.msg);
  }
  return entries;
}

}  // namespace berth
