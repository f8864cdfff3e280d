// The one door through which models come in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/catalog.h"
#include "graph/graph.h"
#include "import/instance.h"
#include "import/other_reader.h"

namespace berth {

// Graphs made by a formula: "lstm_grid(layers=8,steps=40)".
using ModelCatalog = Catalog<Graph()>;
void RegisterSyntheticModels(ModelCatalog& catalog);

struct ImportOptions {
  // Sizes for model inputs, by input name: replaces symbolic and fixed dimensions alike.
  NamedSizes shapes{};
  // The size of the batch axis of every input of which it is plain which axis that is.
  std::optional<int64_t> batch{};
  // "onnx", "berth", "piper(recomputation=true)", ...; empty: known by content.
  std::string format{};
  // Names that stand for many models at once: no model, but a wrong name may be meant for one.
  std::vector<std::string> sets{};
  // Reads formats that Berth has no reader for, and tells shapes that its own leaves unknown. May be null: the first
  // are an Error then, the second stay unknown.
  const OtherReader* other = nullptr;
};

// Parses "input=32,3,224,224"; throws Error with an example.
void ParseShape(std::string_view text, ImportOptions& options);

// `model` is a file (of TensorFlow's SavedModel the folder), the name of a model that ships with Berth ("resnet50"), or
// a catalog name with parameters, looked for in this order: an existing file, a shipped model, the catalog. Throws
// Error when it is none, naming what there is.
Instance ReadInstance(std::string_view model, const ModelCatalog& catalog, const ImportOptions& options = {});
// The graph of it alone.
Graph ReadModel(std::string_view model, const ModelCatalog& catalog, const ImportOptions& options = {});

// The file of such a model; empty where it is a formula, or nothing.
std::string ModelFile(std::string_view model);

// A model file whose format is known but that is not read yet.
struct ModelContent {
  std::string content;
  std::string format;    // "onnx", "ir", "berth", ...
  std::string sentence;  // what that is: "OpenVINO's IR, the .xml"
  bool runs = false;     // whether a runtime reads it, and not Berth alone
};
// `format`: as in ImportOptions. Throws Error.
ModelContent ReadModelContent(const std::string& path, const std::string& format);

// The models that ship: name and path, by name.
std::vector<std::pair<std::string, std::string>> ShippedModels();

// One reader each. `content` is the file's, `path` is its name in errors.
Graph ReadOnnx(std::string_view content, const std::string& path, const ImportOptions& options);
Graph ReadGraphJson(std::string_view content, const std::string& path);

// Berth's own format (docs/graph-format.md): reading it back gives an equal graph.
std::string WriteGraphJson(const Graph& graph);

}  // namespace berth
