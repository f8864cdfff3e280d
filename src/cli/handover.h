// A plan as files that a runtime runs without Berth.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "cli/saved_plan.h"
#include "report/json.h"

namespace berth {

// What was written, for the page and the JSON.
struct Handover {
  std::string runtime;  // "openvino" or "onnxruntime"
  struct User {
    std::string device;
    std::string runs_on;  // the plugin or the provider
    size_t ops = 0;
    size_t parts = 0;  // of onnxruntime
  };
  std::vector<User> devices{};  // those that the plan uses
  std::vector<std::string> files{};
  size_t parts = 0;   // models
  size_t handed = 0;  // tensors that go from part to part, once per reader
  std::vector<std::string> notes{};
};

// Write into `folder`. Both throw Error for what the runtime does not take.
Handover HandToOpenVino(const SavedPlan& saved, const std::string& model_file, const NewFolder& folder);
Handover HandToOnnxRuntime(const SavedPlan& saved, const std::string& model_file, const NewFolder& folder);

// `folder`: its name for the page.
std::string HandoverPage(const SavedPlan& saved, const Handover& handover, const std::string& folder);
Json HandoverJson(const SavedPlan& saved, const Handover& handover, const std::string& folder);

}  // namespace berth
