#include "cli/handover.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "exec/openvino_ir.h"
#include "exec/parts.h"
#include "export/runtime_programs.h"
#include "import/onnx_split.h"
#include "report/table.h"

namespace berth {
namespace {

constexpr const char* kWeights = "weights.bin";

std::string Title(const SavedPlan& saved) {
  return fmt::format("{} on {}", saved.setup.problem->graph().name(), saved.setup.problem->cluster().name());
}

const std::vector<DeviceId>& Placement(const SavedPlan& saved) { return saved.report.result.plan.device; }

size_t OpsOn(const SavedPlan& saved, DeviceId device) {
  return static_cast<size_t>(std::ranges::count(Placement(saved), device));
}

Json PortJson(const OnnxPort& port) { return {{"name", port.name}, {"type", port.type}, {"shape", port.shape}}; }

std::string PartName(size_t part, size_t count) {
  return fmt::format("part_{:0{}}.onnx", part, std::to_string(count - 1).size());
}

}  // namespace

Handover HandToOpenVino(const SavedPlan& saved, const std::string& model_file, const NewFolder& folder) {
  const Problem& problem = *saved.setup.problem;
  const WrittenIr written = WriteOpenVinoIr(problem, Placement(saved), model_file, folder / "model.xml");
  Handover handover{.runtime = "openvino", .files = {"model.bin", "model.xml", "run.cpp", "run.py"}, .parts = 1};
  std::vector<OpenVinoPlugin> plugins;
  for (const IrDevice& one : written.devices) {
    const Device& device = problem.cluster().device(one.device);
    handover.devices.push_back({.device = device.name, .runs_on = one.plugin, .ops = OpsOn(saved, one.device)});
    plugins.push_back({.name = one.plugin, .more_cpu = one.more_cpu, .settings = one.settings});
  }
  WriteFile(folder / "run.py", OpenVinoPython(Title(saved), plugins));
  WriteFile(folder / "run.cpp", OpenVinoCpp(Title(saved), plugins));
  if (written.ops_found < written.ops) {
    handover.notes.push_back(fmt::format(
        "{} of the {} ops are not in OpenVINO's reading of the model, like {}: where they are placed changes nothing.",
        written.ops - written.ops_found, written.ops, Legible(written.ops_missing.front())));
  }
  return handover;
}

Handover HandToOnnxRuntime(const SavedPlan& saved, const std::string& model_file, const NewFolder& folder) {
  const Problem& problem = *saved.setup.problem;
  const Cluster& cluster = problem.cluster();
  const ModelContent model = ReadModelContent(model_file, saved.setup.strings.format);
  OnnxSplit split(model.content, model_file, ReadingOf(saved.setup.strings), problem.graph());
  std::vector<int32_t> device;
  for (const OpId op : split.op()) device.push_back(static_cast<int32_t>(Index(Placement(saved)[Index(op)])));
  const Parts cut = CutIntoParts(split.predecessors(), device);
  std::vector<std::vector<int32_t>> nodes;
  for (const Part& part : cut.parts) nodes.push_back(part.nodes);
  const std::vector<OnnxPart> parts = split.Divide(nodes, kWeights);
  split.CopyWeights(folder / kWeights);

  Handover handover{.runtime = "onnxruntime", .files = {"manifest.json", "run.py"}, .parts = parts.size()};
  std::set<std::string> given;
  for (const OnnxPart& part : parts) given.insert(part.outputs.begin(), part.outputs.end());
  Json manifest = {{"berth_parts", 1},        {"model", problem.graph().name()}, {"cluster", cluster.name()},
                   {"inputs", Json::array()}, {"outputs", Json::array()},        {"parts", Json::array()}};
  for (const OnnxPort& port : split.inputs()) manifest["inputs"].push_back(PortJson(port));
  for (const OnnxPort& port : split.outputs()) manifest["outputs"].push_back(PortJson(port));
  for (size_t i = 0; i < parts.size(); ++i) {
    const DeviceId id = MakeId<DeviceId>(static_cast<size_t>(cut.parts[i].device));
    const OrtProvider provider = OrtProviderOf(cluster, id);
    Json options = Json::object();
    for (const auto& [key, value] : provider.options) options[key] = value;
    const std::string file = PartName(i, parts.size());
    manifest["parts"].push_back({{"file", file},
                                 {"device", cluster.device(id).name},
                                 {"provider", provider.name},
                                 {"provider_options", options},
                                 {"threads", provider.threads},
                                 {"after", cut.parts[i].before},
                                 {"inputs", parts[i].inputs},
                                 {"outputs", parts[i].outputs}});
    WriteFile(folder / file, parts[i].model);
    handover.files.push_back(file);
    for (const std::string& input : parts[i].inputs) handover.handed += given.contains(input) ? 1 : 0;
    auto user = std::ranges::find(handover.devices, cluster.device(id).name, &Handover::User::device);
    if (user == handover.devices.end()) {
      handover.devices.push_back(
          {.device = cluster.device(id).name, .runs_on = provider.name, .ops = OpsOn(saved, id)});
      user = handover.devices.end() - 1;
    }
    ++user->parts;
  }
  if (split.has_stored_weights()) handover.files.emplace_back(kWeights);
  WriteFile(folder / "manifest.json", manifest.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  WriteFile(folder / "run.py", OnnxRuntimePython(Title(saved)));
  std::vector<std::string> left_out, full, tf32;
  for (const Handover::User& user : handover.devices) {
    const std::string& precision = cluster.device(cluster.Find(user.device)).precision;
    const std::string name = Legible(user.device);
    if (user.runs_on == kCuda) {
      (precision == "f32" ? full : tf32).push_back(name);
    } else if (precision != "f32") {
      left_out.push_back(fmt::format("{} ({})", name, precision));
    }
  }
  if (!left_out.empty()) {
    handover.notes.push_back(fmt::format(
        "ONNX Runtime computes in the model's own types; the precision of {} is left out.", JoinAnd(left_out)));
  }
  if (!tf32.empty()) {
    handover.notes.push_back(
        fmt::format("ONNX Runtime computes in the model's own types, and on {}, whose precision is below f32, products "
                    "and convolutions of f32 in TF32.",
                    JoinAnd(tf32)));
  }
  if (!full.empty()) {
    handover.notes.push_back(fmt::format(
        "On {} f32 is computed in full. With \"use_tf32\": \"1\" in manifest.json five models took 0.53 to 1.05 of "
        "the time on an H100, and outputs differed by up to 0.3 % of the largest value.",
        JoinAnd(full)));
  }
  if (split.ops_within_others() > 0) {
    handover.notes.push_back(
        fmt::format("{} ops are in bodies of control flow, which are not divided: each body is where its first op is.",
                    split.ops_within_others()));
  }
  return handover;
}

std::string HandoverPage(const SavedPlan& saved, const Handover& handover, const std::string& folder) {
  std::string text = Line(fmt::format("{}; for {}", DescribeProblem(*saved.setup.problem),
                                      handover.runtime == "openvino" ? "OpenVINO" : "ONNX Runtime")) +
                     "\n";
  using enum Table::Align;
  const bool parts = handover.runtime == "onnxruntime";
  std::vector<Table::Column> columns = {{"device"}, {parts ? "provider" : "plugin"}, {"ops", kRight}};
  if (parts) columns.push_back({"parts", kRight});
  Table table(columns);
  for (const Handover::User& user : handover.devices) {
    table.Add({Legible(user.device), user.runs_on, Count(static_cast<int64_t>(user.ops)),
               Count(static_cast<int64_t>(user.parts))});
  }
  text += table.ToString();
  if (parts) {
    text += "\n" + Field("parts", fmt::format("{}, which hand {} to one another", handover.parts,
                                              Counted(static_cast<int64_t>(handover.handed), "tensor")));
  }
  if (!handover.notes.empty()) text += "\n";
  for (const std::string& note : handover.notes) text += Item(note);
  return text + "\n" + Line(fmt::format("Written to {0}: python3 {0}/run.py", ShellWord(Printable(folder))));
}

Json HandoverJson(const SavedPlan& saved, const Handover& handover, const std::string& folder) {
  Json json = {{"model", saved.setup.strings.model},
               {"cluster", saved.setup.problem->cluster().name()},
               {"runtime", handover.runtime},
               {"folder", folder},
               {"files", handover.files},
               {"parts", handover.parts},
               {"handed_tensors", handover.handed},
               {"devices", Json::array()},
               {"notes", handover.notes}};
  for (const Handover::User& user : handover.devices) {
    json["devices"].push_back(
        {{"device", user.device}, {"runs_on", user.runs_on}, {"ops", user.ops}, {"parts", user.parts}});
  }
  return json;
}

}  // namespace berth
