#include "export/runtime_programs.h"

#include <algorithm>

#include "base/embedded.h"
#include "base/error.h"

namespace berth {

const std::vector<EmbeddedFile>& RuntimePrograms();  // src/export/programs

namespace {

// What comes from names of files and devices must not end a comment or a text of the program.
std::string Tame(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 32 || byte == 127 || c == '"' || c == '\\') c = '?';
  }
  return text;
}

std::string Quoted(const std::string& text) { return '"' + Tame(text) + '"'; }

std::string Program(std::string_view name) {
  const auto& all = RuntimePrograms();
  const auto found = std::ranges::find(all, name, &EmbeddedFile::name);
  BERTH_CHECK(found != all.end(), "programs are embedded");
  return std::string(found->content);
}

void Replace(std::string& text, std::string_view mark, const std::string& by) {
  const size_t at = text.find(mark);
  BERTH_CHECK(at != text.npos, "a program has a place for it");
  text.replace(at, mark.size(), by);
}

}  // namespace

std::string OpenVinoPython(const std::string& title, std::span<const OpenVinoPlugin> plugins) {
  std::string devices, more;
  for (const OpenVinoPlugin& plugin : plugins) {
    devices += fmt::format("    {}: {{\n", Quoted(plugin.name));
    for (const auto& [key, value] : plugin.settings) {
      devices += fmt::format("        {}: {},\n", Quoted(key), Quoted(value));
    }
    devices += "    },\n";
    if (plugin.more_cpu) more += (more.empty() ? "" : ", ") + Quoted(plugin.name);
  }
  std::string program = Program("run_openvino");
  Replace(program, "@title@", Tame(title));
  Replace(program, "@devices@", devices);
  Replace(program, "@more_cpus@", more);
  return program;
}

std::string OpenVinoCpp(const std::string& title, std::span<const OpenVinoPlugin> plugins) {
  std::string lines, settings, over;
  for (const OpenVinoPlugin& plugin : plugins) {
    if (plugin.more_cpu) {
      lines += fmt::format("  core.register_plugin(\"openvino_intel_cpu_plugin\", {});\n", Quoted(plugin.name));
    }
    settings += fmt::format("  core.set_property({}, ov::AnyMap{{", Quoted(plugin.name));
    for (size_t i = 0; i < plugin.settings.size(); ++i) {
      const auto& [key, value] = plugin.settings[i];
      settings += fmt::format("{}\n      {{{}, {}}}", i == 0 ? "" : ",", Quoted(key), Quoted(value));
    }
    settings += "});\n";
    over += (over.empty() ? "" : ",") + Tame(plugin.name);
  }
  std::string program = Program("run_openvino_cpp");
  Replace(program, "@title@", Tame(title));
  Replace(program, "@register@", lines);
  Replace(program, "@settings@\n", settings);
  Replace(program, "@over@", over);
  return program;
}

OrtProvider OrtProviderOf(const Cluster& cluster, DeviceId id) {
  const Device& device = cluster.device(id);
  if (device.runs_on == "CPU" || (device.runs_on.empty() && device.kind == "cpu")) {
    return {.name = "CPUExecutionProvider", .threads = device.cores.size()};
  }
  if (!device.runs_on.empty()) {
    return {.name = "OpenVINOExecutionProvider", .options = {{"device_type", device.runs_on}}};
  }
  if (device.kind == "gpu") {
    size_t number = 0;
    for (const DeviceId other : cluster.ids()) {
      if (other < id && cluster.device(other).kind == "gpu" && cluster.device(other).runs_on.empty()) ++number;
    }
    // ONNX Runtime's default is TF32, whose fractions have 10 bits in place of 23.
    const std::string tf32 = device.precision == "f32" ? "0" : "1";
    return {.name = std::string(kCuda), .options = {{"device_id", std::to_string(number)}, {"use_tf32", tf32}}};
  }
  if (device.kind == "igpu") return {.name = "OpenVINOExecutionProvider", .options = {{"device_type", "GPU"}}};
  if (device.kind == "npu") return {.name = "OpenVINOExecutionProvider", .options = {{"device_type", "NPU"}}};
  throw Error(
      "device {} is of kind {}, for which ONNX Runtime has no provider that Berth knows; say in the device file where "
      "it runs, like `runs_on: CPU`",
      device.name, device.kind);
}

std::string OnnxRuntimePython(const std::string& title) {
  std::string program = Program("run_onnxruntime");
  Replace(program, "@title@", Tame(title));
  return program;
}

}  // namespace berth
