#include "import/import.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "import/readers.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

// --- Formats -----------------------------------------------------------------------------------------------

// A kind of model file. The first whose test says yes reads it, so the strictest tests stand first.
struct Format {
  std::string name;  // --format, with parameters: "msr(accelerators=8)"
  std::string sentence;
  std::vector<Parameter> parameters;
  bool (*looks_like)(std::string_view content);
  Instance (*read)(std::string_view content, const std::string& path, const Params& params,
                   const ImportOptions& options);
  bool takes_shapes = false;
  bool runs = false;  // whether a runtime reads it
  // Whether each file of this format looks like it: the reader itself would take a file of another format for that.
  bool certain = false;
};

bool LooksLikeGraphJson(std::string_view content) {
  const size_t first = content.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && content[first] == '{' &&
         content.substr(0, 4096).find("\"berth-graph\"") != std::string_view::npos;
}

// Protobuf has no signature. Its first byte is the key of one of ModelProto's fields, and no text contains the bytes of
// the lengths and numbers that follow.
bool LooksLikeOnnx(std::string_view content) {
  constexpr std::string_view kText = "\t\n\r\f\v";
  return std::ranges::any_of(content.substr(0, 256), [&](char c) {
    return static_cast<unsigned char>(c) < 32 && kText.find(c) == std::string_view::npos;
  });
}

Instance OfGraph(Graph graph) { return {.graph = std::make_shared<const Graph>(std::move(graph))}; }

// Read by another program, as an IR.
Format Foreign(std::string name, std::string sentence, bool (*looks_like)(std::string_view content), bool certain) {
  return {.name = std::move(name),
          .sentence = std::move(sentence),
          .parameters = {},
          .looks_like = looks_like,
          .read =
              [](std::string_view, const std::string& path, const Params&, const ImportOptions& options) {
                if (options.other == nullptr) {
                  throw Error(
                      "{}: this kind of model is read by OpenVINO, and nothing here asks it; convert it to ONNX", path);
                }
                const OtherReader::Ir ir = options.other->ReadAsIr(path, options);
                std::vector<std::string> notes{fmt::format("read by {}", ir.reader)};
                if (!ir.batches.empty()) {
                  notes.push_back(
                      fmt::format("sizes that the file leaves open, taken as 1 (set them with --shape, the batch with "
                                  "--batch): the first axis of {}",
                                  fmt::join(ir.batches, ", ")));
                }
                const IrWeights weights = [&ir](int64_t offset, std::span<char> bytes) {
                  const auto found = ir.numbers.find(offset);
                  if (found == ir.numbers.end() || found->second.size() < bytes.size()) return false;
                  std::ranges::copy_n(found->second.begin(), static_cast<ptrdiff_t>(bytes.size()), bytes.begin());
                  return true;
                };
                return OfGraph(ReadIr(ir.xml, path, IrView::kFolded, weights, std::move(notes)));
              },
          .takes_shapes = true,
          .runs = true,
          .certain = certain};
}

std::vector<Format> Formats() {
  std::vector<Format> formats;
  formats.push_back({.name = "berth",
                     .sentence = "Berth's own JSON",
                     .parameters = {},
                     .looks_like = LooksLikeGraphJson,
                     .read = [](std::string_view content, const std::string& path, const Params&,
                                const ImportOptions&) { return OfGraph(ReadGraphJson(content, path)); }});
  formats.push_back(
      {.name = "msr",
       .sentence = "JSON of Tarnawski et al. 2020",
       .parameters = {{.name = "accelerators",
                       .type = ParameterType::kInt,
                       .default_value = "0",
                       .sentence = "at least so many accelerators, where the file has fewer",
                       .least = 0,
                       .most = 1024}},
       .looks_like = LooksLikeMsr,
       .read = [](std::string_view content, const std::string& path, const Params& params, const ImportOptions&) {
         return ReadMsr(content, path, {.least_accelerators = static_cast<size_t>(params.Int("accelerators"))});
       }});
  formats.push_back(
      {.name = "piper",
       .sentence = "JSON of Piper",
       .parameters = {{.name = "recomputation",
                       .type = ParameterType::kBool,
                       .default_value = "false",
                       .sentence = "the costs with activations computed again in the backward pass"}},
       .looks_like = LooksLikePiper,
       .read = [](std::string_view content, const std::string& path, const Params& params, const ImportOptions&) {
         return ReadPiper(
             content, path,
             params.Bool("recomputation") ? PiperConfiguration::kRecomputation : PiperConfiguration::kVanilla);
       }});
  formats.push_back(
      {.name = "pipedream",
       .sentence = "a profile of PipeDream, graph.txt",
       .parameters = {{.name = "training",
                       .type = ParameterType::kBool,
                       .default_value = "true",
                       .sentence = "with the backward pass"}},
       .looks_like = LooksLikePipeDream,
       .read = [](std::string_view content, const std::string& path, const Params& params, const ImportOptions&) {
         return ReadPipeDream(content, path, {.training = params.Bool("training")});
       }});
  formats.push_back({.name = "moirai",
                     .sentence = "JSON of Moirai's instances",
                     .parameters = {},
                     .looks_like = LooksLikeMoirai,
                     .read = [](std::string_view content, const std::string& path, const Params&,
                                const ImportOptions&) { return ReadMoirai(content, path); }});
  formats.push_back({.name = "placeto",
                     .sentence = "JSON of graphs for Placeto's simulator",
                     .parameters = {},
                     .looks_like = LooksLikePlaceto,
                     .read = [](std::string_view content, const std::string& path, const Params&,
                                const ImportOptions&) { return ReadPlaceto(content, path); }});
  formats.push_back({.name = "planted",
                     .sentence = "JSON of tasks on processors",
                     .parameters = {},
                     .looks_like = LooksLikePlanted,
                     .read = [](std::string_view content, const std::string& path, const Params&,
                                const ImportOptions&) { return ReadPlanted(content, path); }});
  formats.push_back(
      {.name = "ir",
       .sentence = "OpenVINO's IR, the .xml",
       .parameters = {{.name = "view",
                       .type = ParameterType::kChoice,
                       .default_value = "folded",
                       .sentence = "folded: what a runtime executes; raw: every layer is an op, as HSDAG counts",
                       .choices = {"folded", "raw"}}},
       .looks_like = LooksLikeIr,
       .read =
           [](std::string_view content, const std::string& path, const Params& params, const ImportOptions&) {
             const IrWeights weights = WeightsBeside(path);
             if (params.Text("view") == "raw") return OfGraph(ReadIr(content, path, IrView::kRaw, weights));
             return OfGraph(ReadIr(content, path, IrView::kFolded, weights,
                                   {"--format 'ir(view=raw)' makes every layer of the IR an op"}));
           },
       .runs = true});
  formats.push_back(Foreign("tensorflow", "TensorFlow: a frozen graph, .pb or .pbtxt, or the folder of a SavedModel",
                            LooksLikeTensorFlow, false));
  formats.push_back(Foreign("tflite", "TensorFlow Lite", LooksLikeTfLite, true));
  formats.push_back(Foreign("paddle", "Paddle, the .pdmodel", LooksLikePaddle, true));
  formats.push_back({.name = "onnx",
                     .sentence = "ONNX",
                     .parameters = {},
                     .looks_like = LooksLikeOnnx,
                     .read = [](std::string_view content, const std::string& path, const Params&,
                                const ImportOptions& options) { return OfGraph(ReadOnnx(content, path, options)); },
                     .takes_shapes = true,
                     .runs = true});
  return formats;
}

// Of what is often given for a model and is none; empty for everything else. By the first bytes.
std::string_view NoModel(std::string_view content) {
  using namespace std::string_view_literals;
  struct Kind {
    std::string_view start, sentence;
  };
  constexpr Kind kKinds[] = {
      {"PK\3\4"sv, "a zip archive, as PyTorch's .pt and Keras's .keras are; export the model to ONNX, or unpack it"sv},
      {"\x1f\x8b"sv, "compressed with gzip; unpack it first"sv},
      {"\xfd"
       "7zXZ"sv,
       "compressed with xz; unpack it first"sv},
      {"\x28\xb5\x2f\xfd"sv, "compressed with zstd; unpack it first"sv},
      {"\x89HDF"sv, "an HDF5 file, as Keras's .h5 is; export the model to ONNX"sv},
      {"GGUF"sv, "a GGUF file, which holds weights and no graph; export the model to ONNX"sv},
  };
  for (const Kind& kind : kKinds) {
    if (content.starts_with(kind.start)) return kind.sentence;
  }
  // A length in eight bytes, then JSON.
  if (content.size() > 10 && content.substr(8, 2) == "{\""sv && content.substr(4, 4) == "\0\0\0\0"sv) {
    return "a safetensors file, which holds weights and no graph; export the model to ONNX";
  }
  return {};
}

const Format& FormatOf(const std::vector<Format>& formats, std::string_view content, const std::string& path,
                       const std::string& asked) {
  if (content.empty()) throw Error("{}: is empty; a model was expected", path);
  const std::string_view none = asked.empty() ? NoModel(content) : "";
  if (!none.empty()) throw Error("{}: is {}", path, none);
  const auto found = std::ranges::find_if(
      formats, [&](const Format& format) { return asked.empty() ? format.looks_like(content) : format.name == asked; });
  if (found != formats.end()) {
    if (found->certain && !found->looks_like(content)) {
      throw Error("{}: is no file of the format {} ({}); without --format the file's first bytes tell", path,
                  found->name, found->sentence);
    }
    return *found;
  }
  std::vector<std::string> names, known;
  for (const Format& format : formats) {
    names.push_back(format.name);
    known.push_back(fmt::format("{} ({})", format.name, format.sentence));
  }
  if (!asked.empty()) ThrowUnknownName("model format", asked, names);
  // What Berth itself wrote: its first key says what it is.
  const std::string_view start = content.substr(0, 64);
  if (start.find("\"berth_plan\"") != std::string_view::npos) {
    throw Error("{}: is a plan, and a model was expected; `berth explain` and `berth simulate` read plans", path);
  }
  if (start.find("\"berth-profile\"") != std::string_view::npos) {
    throw Error("{0}: is a profile, and a model was expected; write --costs 'profile(file=\"{0}\")'", path);
  }
  if (content.starts_with("devices:") || content.find("\ndevices:") != std::string_view::npos) {
    throw Error("{0}: is a device file, and a model was expected; write --cluster {0}", path);
  }
  throw Error("{}: is no model of a known kind; known are {}; --format names one", path, fmt::join(known, ", "));
}

constexpr std::string_view kSavedModel = "saved_model.pb";

// The format of what content cannot tell: a SavedModel is a folder.
std::string KnownByPath(const std::string& path) {
  std::error_code code;
  const bool saved = fs::is_directory(path, code) ? fs::exists(fs::path(path) / kSavedModel, code)
                                                  : fs::path(path).filename() == kSavedModel;
  return saved ? "tensorflow" : "";
}

std::string ReadContent(const std::string& path) {
  std::error_code code;
  const bool folder = fs::is_directory(path, code);
  if (folder && KnownByPath(path).empty())
    throw Error("{}: is a directory; of directories only TensorFlow's SavedModel is a model, which has a {}", path,
                kSavedModel);
  return ReadFile(
      folder ? (fs::path(path) / kSavedModel).string() : path,
      {.what = "model",
       .most_bytes = (int64_t{1} << 31) - 1,
       .may_be_pipe = true,
       .if_larger = "keep the weights in files of their own (ONNX external data), Berth does not need them"});
}

Spec AskedFormat(const std::string& format, const std::string& path) {
  const std::string asked = format.empty() ? KnownByPath(path) : format;
  return asked.empty() ? Spec{} : Spec::Parse(asked);
}

Instance ReadModelFile(const std::string& path, const ImportOptions& options) {
  const std::string content = ReadContent(path);
  const Spec asked = AskedFormat(options.format, path);
  const std::vector<Format> formats = Formats();
  const Format& format = FormatOf(formats, content, path, asked.name);
  if ((!options.shapes.empty() || options.batch) && !format.takes_shapes) {
    throw Error("{}: --shape and --batch are for formats that describe shapes, like ONNX; this is {}", path,
                format.sentence);
  }
  // Of a SavedModel its folder, whichever of the two was named.
  const bool in_folder = format.name == "tensorflow" && fs::path(path).filename() == kSavedModel;
  return format.read(content, in_folder ? fs::absolute(path).parent_path().string() : path,
                     Params(asked.name.empty() ? Spec{.name = format.name} : asked, format.parameters, "model format"),
                     options);
}

// --- The models that ship ----------------------------------------------------------------------------------

fs::path ModelsFolder() {
  if (const char* folder = std::getenv("BERTH_MODELS"); folder != nullptr && *folder != '\0') return folder;
  std::error_code code;
  const fs::path installed =
      fs::read_symlink("/proc/self/exe", code).parent_path() / ".." / "share" / "berth" / "models";
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

std::string ModelFile(std::string_view model) {
  std::error_code code;
  if (fs::exists(model, code)) return std::string(model);
  for (const auto& [name, path] : ShippedModels()) {
    if (name == model) return path;
  }
  return {};
}

ModelContent ReadModelContent(const std::string& path, const std::string& format) {
  ModelContent model{.content = ReadContent(path), .format = {}, .sentence = {}, .runs = false};
  const std::vector<Format> formats = Formats();
  const Format& known = FormatOf(formats, model.content, path, AskedFormat(format, path).name);
  model.format = known.name;
  model.sentence = known.sentence;
  model.runs = known.runs;
  return model;
}

void ParseShape(std::string_view text, ImportOptions& options) {
  const auto fail = [&](std::string_view what) {
    return Error("--shape {}: {}; expected something like input=32,3,224,224", text, what);
  };
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
  if (!options.shapes.emplace(text.substr(0, equals), std::move(dims)).second)
    throw fail("this input has a shape already");
}

Instance ReadInstance(std::string_view model, const ModelCatalog& catalog, const ImportOptions& options) {
  const std::string name(model);
  std::error_code code;
  if (fs::exists(name, code)) return ReadModelFile(name, options);

  const auto shipped = ShippedModels();
  for (const auto& [shipped_name, path] : shipped) {
    if (shipped_name == model) return ReadModelFile(path, options);
  }
  const size_t parenthesis = name.find('(');
  if (catalog.Find(name.substr(0, parenthesis)) != nullptr) {
    if (!options.shapes.empty() || options.batch || !options.format.empty()) {
      throw Error("--shape, --batch and --format are for model files; {} takes its sizes as parameters, in parentheses",
                  model);
    }
    return OfGraph(catalog.Make(model));
  }
  if (parenthesis == std::string::npos &&
      (name.find('/') != std::string::npos || name.find('.') != std::string::npos)) {
    throw Error("{}: there is no such file; check the path", model);
  }
  std::vector<std::string> names;
  for (const auto& [shipped_name, path] : shipped) names.push_back(shipped_name);
  const size_t files = names.size();
  const std::vector<std::string> formulas = catalog.Names();
  names.insert(names.end(), formulas.begin(), formulas.end());
  names.insert(names.end(), options.sets.begin(), options.sets.end());
  const std::string_view near = Closest(name.substr(0, parenthesis), names);
  if (!near.empty())
    throw Error("there is no model '{}'; did you mean '{}'? All that ship: `berth list models`", model, near);
  throw Error("there is no model '{}'; name a file, a model that ships ({}) or a formula ({}){}", model,
              fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(files), ", "), fmt::join(formulas, ", "),
              options.sets.empty() ? "" : fmt::format("; to train on many, {}", fmt::join(options.sets, ", ")));
}

Graph ReadModel(std::string_view model, const ModelCatalog& catalog, const ImportOptions& options) {
  return *ReadInstance(model, catalog, options).graph;
}

}  // namespace berth
