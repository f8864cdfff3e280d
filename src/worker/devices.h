// The devices of a question, as OpenVINO's.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <openvino/openvino.hpp>
#include <string>
#include <vector>

namespace berth {

struct RuntimeDevice {
  std::string name;        // the cluster's
  std::string runs_on;     // OpenVINO's: CPU, GPU, GPU.1, NPU
  std::vector<int> cores;  // of a CPU, to which the thread that calls is pinned
  std::string plugin;      // under which it is known here: a second device of one CPU has a name of its own
  ov::element::Type precision = ov::element::f32;  // in which it computes what the model has in f32
  double pace = 0;  // of a CPU, by the device file: seconds (worker/pace.h); 0: not known

  bool is_cpu() const { return runs_on == "CPU"; }
  // Then the thread that calls is the one that computes, and the time in which it does not run is lost to others.
  bool one_core() const { return is_cpu() && cores.size() == 1; }
};

// [{"name": "cpu0", "runs_on": "CPU", "cores": [0], "precision": "bf16", "pace": seconds}, ...]; without a precision
// f32, without a pace not known. Registers the further names of the CPU. Throws Error for what this machine lacks.
std::vector<RuntimeDevice> ReadDevices(const nlohmann::json& list, ov::Core& core);

// Of an entry of that list; throws Error for one that no device has.
ov::element::Type PrecisionOf(const nlohmann::json& device);

// How a model, or a part of one, is compiled for a device: in its precision, since OpenVINO would choose one by itself
// and others give other results; on a CPU of one core without any thread of OpenVINO's, so that the thread that calls
// is the one that computes.
ov::AnyMap Settings(const RuntimeDevice& device);
// Compiles a model for this device alone: with these settings, `more`, and, on a CPU of one core, without OpenVINO's
// executor, so that a run is a plain call. To be run within OnThisThread.
ov::CompiledModel CompileFor(ov::Core& core, const std::shared_ptr<ov::Model>& model, const RuntimeDevice& device,
                             const ov::AnyMap& more = {});

// By how much a value that is rounded to this type may be off, as a share of it: half the distance between two numbers.
double UnitRoundoff(ov::element::Type precision);
// Those of these that are CPUs.
std::vector<RuntimeDevice> Processors(const std::vector<RuntimeDevice>& devices);
// The least exact of these devices' precisions; f32 of none.
ov::element::Type CoarsestPrecision(const std::vector<RuntimeDevice>& devices);

// Lets the calling thread run on these cores only; threads that it starts inherit that. All that the process was
// started with where there are none.
void PinTo(const std::vector<int>& cores);

// Runs `work`; where it is `alone`, OpenVINO's kernels divide nothing of it among further threads.
void OnThisThread(bool alone, const std::function<void()>& work);

// The same on a thread of its own that is pinned to these cores; throws what `work` throws.
void RunPinned(const std::vector<int>& cores, bool alone, const std::function<void()>& work);

}  // namespace berth
