#include "worker/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "worker/thread_clock.h"

namespace berth {
namespace {

// On every node, constants, parameters and results too, or HETERO refuses the model.
void SetAffinities(const LoadedModel& model, const std::vector<RuntimeDevice>& devices,
                   const std::vector<int32_t>& device_of_op) {
  for (const std::shared_ptr<ov::Node>& node : model.model->get_ordered_ops()) {
    const int32_t op = model.OpOf(*node);
    const RuntimeDevice& device =
        op < 0 ? devices.front() : devices[static_cast<size_t>(device_of_op[static_cast<size_t>(op)])];
    node->get_rt_info()["affinity"] = device.plugin;
  }
}

std::string HeteroOver(const std::vector<RuntimeDevice>& devices) {
  std::string over = "HETERO:";
  for (const RuntimeDevice& device : devices) over += (over.back() == ':' ? "" : ",") + device.plugin;
  return over;
}

bool AllOfOneCore(const std::vector<RuntimeDevice>& devices) {
  return std::ranges::all_of(devices, &RuntimeDevice::one_core);
}

// Of the CPUs among these; 0 where one has all that there are.
int32_t CountCores(const std::vector<RuntimeDevice>& devices) {
  size_t cores = 0;
  for (const RuntimeDevice& processor : Processors(devices)) {
    if (processor.cores.empty()) return 0;
    cores += processor.cores.size();
  }
  return static_cast<int32_t>(cores);
}

ov::AnyMap HeteroSettings(const std::vector<RuntimeDevice>& devices, bool counters) {
  ov::AnyMap settings;
  for (const RuntimeDevice& device : devices) {
    settings.insert(ov::device::properties(device.plugin, Settings(device)));
  }
  if (counters) settings.insert(ov::enable_profiling(true));
  return settings;
}

}  // namespace

WholeRunner::WholeRunner(const LoadedModel& model, ov::CompiledModel compiled, std::vector<int> cores, bool alone)
    : compiled_(std::move(compiled)),
      request_(compiled_.create_infer_request()),
      cores_(std::move(cores)),
      alone_(alone) {
  for (size_t i = 0; i < model.inputs.size(); ++i) request_.set_input_tensor(i, model.inputs[i]);
}

OneRun WholeRunner::Run() {
  OneRun run;
  RunPinned(cores_, alone_, [&] {
    const ThreadClock clock;
    request_.infer();
    run.seconds = clock.seconds();
    if (alone_) run.stolen = clock.stolen();
  });
  return run;
}

std::vector<ov::Tensor> WholeRunner::Outputs() {
  std::vector<ov::Tensor> outputs;
  for (size_t i = 0; i < compiled_.outputs().size(); ++i) outputs.push_back(request_.get_output_tensor(i));
  return outputs;
}

nlohmann::json WholeRunner::Describe() const {
  size_t subgraphs = 1;
  try {
    subgraphs = std::stoul(compiled_.get_property("HETERO_NUMBER_OF_SUBMODELS").as<std::string>());
  } catch (const std::exception&) {
    // Only HETERO says.
  }
  return {{"subgraphs", subgraphs}};
}

std::unique_ptr<WholeRunner> RunAlone(const LoadedModel& model, ov::Core& core, const RuntimeDevice& device,
                                      bool counters) {
  return std::make_unique<WholeRunner>(model, CompileFor(core, model.model, device, {ov::enable_profiling(counters)}),
                                       device.cores, device.one_core());
}

std::unique_ptr<WholeRunner> RunByItself(const LoadedModel& model, ov::Core& core,
                                         const std::vector<RuntimeDevice>& devices, const std::string& how,
                                         const std::string& first) {
  if (how == "default") {
    for (const std::shared_ptr<ov::Node>& node : model.model->get_ordered_ops()) node->get_rt_info().erase("affinity");
    return std::make_unique<WholeRunner>(
        model, core.compile_model(model.model, HeteroOver(devices), HeteroSettings(devices, false)),
        devices.front().cores, AllOfOneCore(devices));
  }
  if (how == "auto") {
    std::vector<std::string> plugins;
    for (const RuntimeDevice& device : devices) {
      if (std::ranges::count(plugins, device.runs_on) == 0) plugins.push_back(device.runs_on);
    }
    std::ranges::stable_partition(plugins, [&](const std::string& plugin) { return plugin.starts_with(first); });
    if (!plugins.front().starts_with(first)) throw Error("no device of the cluster runs on {}", first);
    std::string over = "AUTO:";
    for (const std::string& plugin : plugins) over += (over.back() == ':' ? "" : ",") + plugin;
    ov::AnyMap settings = {ov::hint::inference_precision(ov::element::f32)};
    if (const int32_t cores = CountCores(devices); cores > 0) {
      settings.insert(ov::device::properties("CPU", ov::inference_num_threads(cores)));
    }
    return std::make_unique<WholeRunner>(model, core.compile_model(model.model, over, settings), std::vector<int>{},
                                         false);
  }
  BERTH_CHECK(how == "threads");
  const std::vector<RuntimeDevice> processors = Processors(devices);
  RuntimeDevice all{
      .name = "all", .runs_on = "CPU", .cores = {}, .plugin = "CPU", .precision = CoarsestPrecision(processors)};
  for (const RuntimeDevice& device : processors) {
    all.cores.insert(all.cores.end(), device.cores.begin(), device.cores.end());
  }
  return std::make_unique<WholeRunner>(model, CompileFor(core, model.model, all), all.cores, all.one_core());
}

std::unique_ptr<WholeRunner> RunHetero(const LoadedModel& model, ov::Core& core,
                                       const std::vector<RuntimeDevice>& devices,
                                       const std::vector<int32_t>& device_of_op, bool counters) {
  SetAffinities(model, devices, device_of_op);
  return std::make_unique<WholeRunner>(
      model, core.compile_model(model.model, HeteroOver(devices), HeteroSettings(devices, counters)),
      devices.front().cores, AllOfOneCore(devices));
}

}  // namespace berth
