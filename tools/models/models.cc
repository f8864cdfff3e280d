#include "tools/models/models.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "import/import.h"

namespace berth {
namespace {

using nlohmann::json;

// Types that the truth counts, and what each op of a recurrent layer does per output besides its products, which the
// truth leaves out (docs/costs.md).
double MatrixFlops(const Graph& graph, OpId op) {
  constexpr std::string_view kProducts[] = {"Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum"};
  const std::string_view type = graph.op_type(op);
  if (std::ranges::count(kProducts, type) > 0) return graph.work(op).flops;
  const double per_unit = type == "LSTM" ? 30 : type == "GRU" ? 23 : type == "RNN" ? 4 : 0;
  if (per_unit == 0) return 0;
  // The sequence of states; a last state alone has no length, and does not occur here.
  double units = 1;
  for (const int64_t dim : graph.tensor_shape(MakeId<TensorId>(graph.first_output(op))))
    units *= static_cast<double>(dim);
  return graph.work(op).flops - per_unit * units;
}

double MatrixFlops(const Graph& graph) {
  double sum = 0;
  for (const OpId op : graph.ops()) sum += MatrixFlops(graph, op);
  return sum;
}

bool SameShapes(const Graph& a, const Graph& b) {
  if (a.num_tensors() != b.num_tensors() || a.structural_fingerprint() != b.structural_fingerprint()) return false;
  return std::ranges::all_of(
      a.tensors(), [&](TensorId tensor) { return std::ranges::equal(a.tensor_shape(tensor), b.tensor_shape(tensor)); });
}

std::string WithoutRecord(const std::string& content) {
  onnx::ModelProto model;
  model.ParseFromString(content);
  model.mutable_graph()->clear_value_info();
  return model.SerializeAsString();
}

void CountShapes(const Graph& graph, const json& truth, ModelRow& row) {
  for (const TensorId tensor : graph.tensors()) {
    const auto seen = truth.find(std::string(graph.tensor_name(tensor)));
    if (seen == truth.end()) continue;
    ++row.shapes;
    const auto shape = graph.tensor_shape(tensor);
    const std::vector<int64_t> wanted = *seen;
    if (std::ranges::equal(shape, wanted)) {
      ++row.right;
    } else if (graph.work(graph.producer(tensor)).sizes == Certainty::kEstimated) {
      ++row.said;
    }
  }
  for (const OpId op : graph.ops()) {
    row.estimated += graph.work(op).sizes == Certainty::kEstimated ? 1 : 0;
    row.unknown += graph.work(op).sizes == Certainty::kUnknown ? 1 : 0;
  }
}

ModelRow Check(const std::string& folder, const json& entry, const json& shapes) {
  ModelRow row{.file = entry["file"], .exporter = entry["exporter"], .matrix_flops = entry["matrix_flops"]};
  const std::string path = folder + "/" + row.file, content = ReadFile(path);
  try {
    const Graph graph = ReadOnnx(content, path, {});
    row.seconds = std::numeric_limits<double>::infinity();
    for (int run = 0; run < 3; ++run) {
      const auto start = std::chrono::steady_clock::now();
      ReadOnnx(content, path, {});
      row.seconds =
          std::min(row.seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    row.ops = graph.num_ops();
    const double read = MatrixFlops(graph), most = row.matrix_flops + entry["bias_flops"].get<double>();
    const double nearest = std::clamp(read, row.matrix_flops, most);
    row.flops_error = nearest > 0 ? read / nearest - 1 : read;
    CountShapes(graph, shapes.at(row.file), row);
    row.same_without_record = SameShapes(graph, ReadOnnx(WithoutRecord(content), path, {}));
  } catch (const Error& error) {
    row.refusal = error.what();
  }
  return row;
}

std::string Says(const ModelRow& row) {
  if (!row.refusal.empty()) return "refused: " + row.refusal;
  std::string text;
  if (row.estimated > 0)
    text = fmt::format("{} ops depend on a run's data: counted at the most, or on average", row.estimated);
  if (row.unknown > 0) text += fmt::format("{}{} ops of unknown sizes", text.empty() ? "" : "; ", row.unknown);
  if (!row.same_without_record) text += fmt::format("{}other shapes without value_info", text.empty() ? "" : "; ");
  return text;
}

}  // namespace

bool ModelRow::holds() const {
  return refusal.empty() && right + said == shapes && std::fabs(flops_error) <= 1e-3 && unknown == 0 &&
         same_without_record;
}

std::vector<ModelRow> CheckModels(const std::string& folder) {
  const json manifest = json::parse(ReadFile(folder + "/manifest.json")),
             shapes = json::parse(ReadFile(folder + "/shapes.json"));
  std::vector<ModelRow> rows;
  for (const json& entry : manifest) rows.push_back(Check(folder, entry, shapes));
  return rows;
}

std::string ModelsPage(const std::vector<ModelRow>& rows) {
  const auto holding = std::ranges::count_if(rows, &ModelRow::holds);
  const auto slowest = std::ranges::max_element(rows, {}, &ModelRow::seconds);
  std::string page = fmt::format(
      "# Models that Berth had not seen\n\n"
      "Made by `./dev models`. {} ONNX files from torchvision, timm, transformers and small networks, written by both "
      "of\n"
      "PyTorch's exporters (torchscript: the older; dynamo: the modern), are read at the sizes that stand in the file. "
      "The\n"
      "truth about every shape is what ONNX Runtime saw in a run, the truth about matrix FLOPs is computed from these "
      "shapes\n"
      "by a program that shares nothing with Berth. The reader had not seen these files; 64 of them were looked at for\n"
      "the rules of [fusion.md](fusion.md).\n\n"
      "**{} of {} hold**: every shape is the true one, or is said to depend on a run's data; matrix "
      "FLOPs are\n"
      "within 0.1 % of the truth; no size is unknown; and nothing changes when the file's own record of shapes\n"
      "(`value_info`) is taken away. The slowest to read is {} with {:.0f} ms.\n\n"
      "| file | exporter | ops | matrix GFLOP | read | shapes right | ms | |\n|---|---|---:|---:|---:|---:|---:|---|\n",
      rows.size(), holding, rows.size(), slowest->file, slowest->seconds * 1e3);
  for (const ModelRow& row : rows) {
    page +=
        fmt::format("| {} | {} | {} | {:.4g} | {:+.4f} % | {} of {} | {:.1f} | {} |\n", row.file, row.exporter, row.ops,
                    row.matrix_flops / 1e9, row.flops_error * 100, row.right, row.shapes, row.seconds * 1e3, Says(row));
  }
  return page;
}

}  // namespace berth
