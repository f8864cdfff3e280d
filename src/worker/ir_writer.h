// A placed model as OpenVINO's own file, for who runs it without Berth.
#pragma once

#include <nlohmann/json.hpp>
#include <openvino/openvino.hpp>

namespace berth {

// `question`: what LoadModel() takes, "devices": [{"name": n, "runs_on": "CPU", "cores": [0], "plugin": "CPUB"}], which
// need not be here, "device": [by op] and "to": the path of the .xml; the .bin goes beside it. Weights are the file's.
//
// In the model's rt_info stands, under "affinity" and the name of each node, the plugin of its device: OpenVINO's IR
// does not keep what is in the rt_info of nodes. Names of nodes are made unique for that.
//
// -> {"devices": [{"plugin": "CPUB", "settings": {key: value}}], "nodes": n, "ops": n, "ops_found": n,
//     "ops_missing": [the first few]}. Throws Error.
nlohmann::json WriteIr(const nlohmann::json& question, ov::Core& core);

}  // namespace berth
