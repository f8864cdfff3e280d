// A way to run a model, compiled and ready: what measuring calls again and again.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <openvino/openvino.hpp>
#include <string>
#include <vector>

#include "exec/parts.h"
#include "worker/devices.h"
#include "worker/loaded_model.h"

namespace berth {

struct OneRun {
  double seconds = 0;
  double stolen = 0;  // seconds in which another process had the core of a thread that computes, the mean over these
  std::vector<PartRun> parts{};  // by part, where there are parts
};

class Runner {
 public:
  virtual ~Runner() = default;
  virtual OneRun Run() = 0;
  // Of the last run, one per result of the model.
  virtual std::vector<ov::Tensor> Outputs() = 0;
  // What it consists of: {"subgraphs": n}, and "parts" and "transfers" where it knows them.
  virtual nlohmann::json Describe() const = 0;
};

// One compiled model behind it.
class WholeRunner : public Runner {
 public:
  // `cores`: on which the thread that calls runs. `alone`: that this thread is the one that computes, so that the time
  // in which it does not run is stolen.
  WholeRunner(const LoadedModel& model, ov::CompiledModel compiled, std::vector<int> cores, bool alone);
  OneRun Run() override;
  std::vector<ov::Tensor> Outputs() override;
  nlohmann::json Describe() const override;

  ov::InferRequest& request() { return request_; }
  const ov::CompiledModel& compiled() const { return compiled_; }

 private:
  ov::CompiledModel compiled_;
  ov::InferRequest request_;
  std::vector<int> cores_;
  bool alone_;
};

// The whole model on one device.
std::unique_ptr<WholeRunner> RunAlone(const LoadedModel& model, ov::Core& core, const RuntimeDevice& device,
                                      bool counters = false);

// The whole model as OpenVINO places it by itself: `how` is "default" (HETERO over all devices, without affinities),
// "auto" (its AUTO plugin, `first` before all others, in f32, on a CPU with as many threads as these have cores) or
// "threads" (all cores of all CPU devices as one, with as many threads, in the least exact of their precisions).
std::unique_ptr<WholeRunner> RunByItself(const LoadedModel& model, ov::Core& core,
                                         const std::vector<RuntimeDevice>& devices, const std::string& how,
                                         const std::string& first);

// OpenVINO's HETERO with an affinity on every node, by op: one connected subgraph after another. The thread that calls
// computes, on the first device's cores.
std::unique_ptr<WholeRunner> RunHetero(const LoadedModel& model, ov::Core& core,
                                       const std::vector<RuntimeDevice>& devices,
                                       const std::vector<int32_t>& device_of_op, bool counters = false);

// Our own: parts (exec/parts.h), each a model of its own, and a thread per device that is pinned to its cores. A tensor
// that parts share is written once, where they all read it.
std::unique_ptr<Runner> RunParallel(const LoadedModel& model, ov::Core& core, const std::vector<RuntimeDevice>& devices,
                                    const std::vector<int32_t>& device_of_op);

}  // namespace berth
