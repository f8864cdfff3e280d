#include "worker/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <oneapi/tbb/task_arena.h>
#include <sched.h>

#include <algorithm>
#include <exception>
#include <thread>

#include "base/error.h"
#include "worker/loaded_model.h"

namespace berth {
namespace {

// What the process may use, before anybody pins a thread.
const cpu_set_t& AllCores() {
  static const cpu_set_t all = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  return all;
}

constexpr const char* kCpuLibrary = "openvino_intel_cpu_plugin";

// OpenVINO takes a precision that the processor lacks, and computes in another.
void CheckPrecision(const RuntimeDevice& device, ov::Core& core) {
  if (device.precision == ov::element::f32) return;
  const std::vector<std::string> has = core.get_property(device.runs_on, ov::device::capabilities);
  const std::string wanted = device.precision == ov::element::bf16 ? "BF16" : "FP16";
  if (std::ranges::count(has, wanted) > 0) return;
  throw Error("device {}: precision {} is none of {}'s on this machine; leave it out for f32", device.name,
              device.precision.get_type_name(), device.runs_on);
}

// Why OpenVINO's plugin for a device does not load, as without a driver's library; empty where there is no such plugin.
std::string WhyNotLoaded(const std::string& runs_on, ov::Core& core) {
  try {
    core.get_property(runs_on, ov::available_devices);
  } catch (const std::exception& exception) {
    const std::string why = Brief(exception);
    if (why.starts_with("Cannot load library")) return why;
  }
  return "";
}

}  // namespace

std::vector<RuntimeDevice> ReadDevices(const nlohmann::json& list, ov::Core& core) {
  const std::vector<std::string> available = core.get_available_devices();
  std::vector<RuntimeDevice> devices;
  for (const nlohmann::json& entry : list) {
    RuntimeDevice device{.name = entry.at("name"),
                         .runs_on = entry.at("runs_on"),
                         .cores = entry.at("cores").get<std::vector<int>>(),
                         .plugin = {}};
    device.precision = PrecisionOf(entry);
    device.pace = entry.value("pace", 0.0);
    const auto here = [&](const std::string& one) {
      return one == device.runs_on || one.starts_with(device.runs_on + ".");
    };
    if (std::ranges::none_of(available, here)) {
      if (const std::string why = WhyNotLoaded(device.runs_on, core); !why.empty()) {
        throw Error(
            "device {} runs on {}, whose plugin OpenVINO cannot load here: {}; install what is missing, or plan for "
            "what `berth cluster detect` finds",
            device.name, device.runs_on, why);
      }
      throw Error(
          "device {} runs on {}, which this machine lacks: OpenVINO finds {} here; plan for what `berth cluster "
          "detect` finds",
          device.name, device.runs_on, fmt::join(available, ", "));
    }
    CheckPrecision(device, core);
    for (const int one : device.cores) {
      if (one < 0 || one >= CPU_SETSIZE || !CPU_ISSET(static_cast<size_t>(one), &AllCores())) {
        throw Error("device {}: core {} is none that this process may use", device.name, one);
      }
      for (const RuntimeDevice& other : devices) {
        if (std::ranges::count(other.cores, one) > 0) {
          throw Error("devices {} and {} both have core {}; give each cores of its own", other.name, device.name, one);
        }
      }
    }
    const auto same = std::ranges::count(devices, device.runs_on, &RuntimeDevice::runs_on);
    device.plugin = device.runs_on;
    if (same > 0) {
      const bool pinned = !device.cores.empty() && std::ranges::none_of(devices, [&](const RuntimeDevice& other) {
        return other.runs_on == device.runs_on && other.cores.empty();
      });
      if (!device.is_cpu() || !pinned) {
        throw Error(
            "device {}: a second device that runs on {}; only a CPU can be several, with `cores` of its own each",
            device.name, device.runs_on);
      }
      device.plugin = fmt::format("CPU{}", std::string(static_cast<size_t>(same), 'B'));
      try {
        core.register_plugin(kCpuLibrary, device.plugin);
      } catch (const ov::Exception&) {
        // It is known from a model that was opened before.
      }
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

ov::element::Type PrecisionOf(const nlohmann::json& device) {
  const std::string name = device.value("precision", "f32");
  for (const ov::element::Type type : {ov::element::f32, ov::element::f16, ov::element::bf16}) {
    if (type.get_type_name() == name) return type;
  }
  throw Error("device {}: precision '{}'; expected f32, f16 or bf16", device.at("name").get<std::string>(), name);
}

double UnitRoundoff(ov::element::Type precision) {
  // Of 24, 11 and 8 bits.
  return precision == ov::element::bf16 ? 0x1p-8 : precision == ov::element::f16 ? 0x1p-11 : 0x1p-24;
}

std::vector<RuntimeDevice> Processors(const std::vector<RuntimeDevice>& devices) {
  std::vector<RuntimeDevice> processors;
  std::ranges::copy_if(devices, std::back_inserter(processors), &RuntimeDevice::is_cpu);
  return processors;
}

ov::element::Type CoarsestPrecision(const std::vector<RuntimeDevice>& devices) {
  ov::element::Type coarsest = ov::element::f32;
  for (const RuntimeDevice& device : devices) {
    if (UnitRoundoff(device.precision) > UnitRoundoff(coarsest)) coarsest = device.precision;
  }
  return coarsest;
}

ov::AnyMap Settings(const RuntimeDevice& device) {
  ov::AnyMap settings{ov::hint::inference_precision(device.precision)};
  if (!device.is_cpu() || device.cores.empty()) return settings;
  settings.insert(ov::inference_num_threads(static_cast<int>(device.cores.size())));
  settings.insert(ov::hint::enable_cpu_pinning(false));
  settings.emplace("NUM_STREAMS", std::string(device.cores.size() == 1 ? "0" : "1"));
  return settings;
}

ov::CompiledModel CompileFor(ov::Core& core, const std::shared_ptr<ov::Model>& model, const RuntimeDevice& device,
                             const ov::AnyMap& more) {
  ov::AnyMap settings = Settings(device);
  settings.insert(more.begin(), more.end());
  // OpenVINO's executor enters an arena of TBB's for each run, which asks which cores the thread may run on, lets it
  // run on all, and sets them back: 10 of the 12 us that a model with next to nothing to compute takes.
  if (device.one_core()) settings.emplace("EXCLUSIVE_ASYNC_REQUESTS", true);
  ov::CompiledModel compiled;
  OnThisThread(device.one_core(), [&] { compiled = core.compile_model(model, device.plugin, settings); });
  return compiled;
}

void PinTo(const std::vector<int>& cores) {
  cpu_set_t set = AllCores();
  if (!cores.empty()) {
    CPU_ZERO(&set);
    for (const int core : cores) CPU_SET(static_cast<size_t>(core), &set);
  }
  ::sched_setaffinity(0, sizeof set, &set);
}

void OnThisThread(bool alone, const std::function<void()>& work) {
  if (!alone) return work();
  tbb::task_arena arena(1, 1);
  arena.execute(work);
}

void RunPinned(const std::vector<int>& cores, bool alone, const std::function<void()>& work) {
  AllCores();
  std::exception_ptr thrown;
  std::thread([&] {
    PinTo(cores);
    try {
      OnThisThread(alone, work);
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace berth
