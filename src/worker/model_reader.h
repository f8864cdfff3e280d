// What OpenVINO reads in a model file, for programs that read it otherwise or not at all.
#pragma once

#include <nlohmann/json.hpp>
#include <openvino/openvino.hpp>

namespace berth {

// {"do": "read_ir", "model": path, "inputs": {name: [sizes]}, "batch": n or null}
//   -> {"xml": the model as an IR, without weights; "batches": [inputs whose first axis was open and is 1 now],
//       "version": OpenVINO's}
// Constants are folded. Sizes that are left open on other axes stay open. Throws Error that names the file.
nlohmann::json ReadAsIr(const nlohmann::json& question, ov::Core& core);

// {"do": "tensor_sizes", "model": path, "inputs": {name: [sizes]}}
//   -> {"tensors": {name: [sizes]}, "version": OpenVINO's}: of the tensors that have a name and sizes
nlohmann::json ReadTensorSizes(const nlohmann::json& question, ov::Core& core);

}  // namespace berth
