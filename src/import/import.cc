#include "import/import.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

// --- Formats ---------------------------------------------------------------------------------------------------------------

// A kind of model file. The first whose test says yes reads it, so the strictest tests stand first.
struct Format {
  std::string_view name;      // --format
  std::string_view sentence;
  bool (*looks_like)(std::string_view content);
  Graph (*read)(std::string_view content, const std::string& path, const ImportOptions& options);
  bool takes_shapes;
};

bool LooksLikeGraphJson(std::string_view content) {
  const size_t first = content.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && content[first] == '{' && content.substr(0, 4096).find("\"berth-graph\"") != std::string_view::npos;
}

// Protobuf has no signature. Its first byte is the key of one of ModelProto's fields, and no text contains the bytes of the
// lengths and numbers that follow.
bool LooksLikeOnnx(std::string_view content) {
  constexpr std::string_view kText = "\t\n\r\f\v";
  return std::ranges::any_of(content.substr(0, 256), [&](char c) { return static_cast<unsigned char>(c) < 32 && kText.find(c) == std::string_view::npos; });
}

constexpr auto kFormats = std::to_array<Format>({
    {"berth", "Berth's own JSON", LooksLikeGraphJson,
     [](std::string_view content, const std::string& path, const ImportOptions&) { return ReadGraphJson(content, path); }, false},
    {"onnx", "ONNX", LooksLikeOnnx, ReadOnnx, true},
});

std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  return names;
}

const Format& FormatOf(std::string_view content, const std::string& path, const std::string& asked) {
  if (content.empty()) throw Error("{}: is empty; a model was expected", path);
  for (const Format& format : kFormats) {
    if (asked.empty() ? format.looks_like(content) : format.name == asked) return format;
  }
  if (!asked.empty()) ThrowUnknownName("model format", asked, FormatNames());
  std::vector<std::string> known;
  for (const Format& format : kFormats) known.push_back(fmt::format("{} ({})", format.name, format.sentence));
  throw Error("{}: is no model of a known kind; known are {}; --format names one", path, fmt::join(known, ", "));
}

Graph ReadFileAsGraph(const std::string& path, const ImportOptions& options) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (!fs::is_directory(status) && !fs::is_regular_file(status) && !fs::is_fifo(status)) {
    throw Error("{}: is neither a file nor a pipe; a model was expected", path);
  }
  constexpr uintmax_t kMostBytes = (uintmax_t{1} << 31) - 1;
  if (fs::is_regular_file(status) && fs::file_size(path, code) > kMostBytes) {
    throw Error("{}: is larger than 2 GiB; keep the weights in files of their own (ONNX external data), Berth does not need them", path);
  }
  const std::string content = ReadFile(path);
  const Format& format = FormatOf(content, path, options.format);
  if (!options.shapes.empty() && !format.takes_shapes) {
    throw Error("{}: --shape is for formats that describe shapes, like ONNX; this is {}", path, format.sentence);
  }
  return format.read(content, path, options);
}

// --- The models that ship ----------------------------------------------------------------------------------------------------

fs::path ModelsFolder() {
  if (const char* folder = std::getenv("BERTH_MODELS"); folder != nullptr && *folder != '\0') return folder;
  std::error_code code;
  const fs::path installed = fs::read_symlink("/proc/self/exe", code).parent_path() / ".." / "share" / "berth" / "models";
  if (!code && fs::is_directory(installed, code)) return installed;
  return fs::path(BERTH_SOURCE_DIR) / "models";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> ShippedModels() {
  std::vector<std::pair<std::string, std::string>> models;
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator(ModelsFolder(), code)) {
    if (entry.path().extension() == ".onnx") models.emplace_back(entry.path().stem().string(), entry.path().string());
  }
  std::ranges::sort(models);
  return models;
}

void ParseShape(std::string_view text, ImportOptions& options) {
  const auto fail = [&](std::string_view what) { return Error("--shape {}: {}; expected something like input=32,3,224,224", text, what); };
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) throw fail("no input is named");
  std::vector<int64_t> dims;
  for (std::string_view rest = text.substr(equals + 1);;) {
    const std::string_view number = rest.substr(0, rest.find(','));
    int64_t dim = 0;
    const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), dim);
    if (code != std::errc() || end != number.data() + number.size() || dim < 1) {
      throw fail(fmt::format("'{}' is no whole number of at least 1", number));
    }
    dims.push_back(dim);
    if (number.size() == rest.size()) break;
    rest.remove_prefix(number.size() + 1);
  }
  if (!options.shapes.emplace(text.substr(0, equals), std::move(dims)).second) throw fail("this input has a shape already");
}

Graph ReadModel(std::string_view model, const ModelCatalog& catalog, const ImportOptions& options) {
  const std::string name(model);
  std::error_code code;
  if (fs::exists(name, code)) return ReadFileAsGraph(name, options);

  const auto shipped = ShippedModels();
  for (const auto& [shipped_name, path] : shipped) {
    if (shipped_name == model) return ReadFileAsGraph(path, options);
  }
  const size_t parenthesis = name.find('(');
  if (catalog.Find(name.substr(0, parenthesis)) != nullptr) {
    if (!options.shapes.empty()) throw Error("--shape is for model files; {} takes its sizes as parameters, in parentheses", model);
    return catalog.Make(model);
  }
  if (parenthesis == std::string::npos && (name.find('/') != std::string::npos || name.find('.') != std::string::npos)) {
    throw Error("{}: there is no such file; check the path", model);
  }
  std::vector<std::string> names;
  for (const auto& [shipped_name, path] : shipped) names.push_back(shipped_name);
  const size_t files = names.size();
  const std::vector<std::string> formulas = catalog.Names();
  names.insert(names.end(), formulas.begin(), formulas.end());
  const std::string_view near = Closest(name.substr(0, parenthesis), names);
  throw Error("there is no model '{}'{}; name a file, a model that ships ({}) or a formula ({})", model,
              near.empty() ? "" : fmt::format("; did you mean '{}'?", near),
              fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(files), ", "), fmt::join(formulas, ", "));
}

}  // namespace berth
