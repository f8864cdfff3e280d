// What this process is asked, one JSON object after another.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "worker/pace.h"
#include "worker/runner.h"

namespace berth {

// {"do": "open", "model": path, "inputs": {name: sizes}, "ops": [{"name": n, "tensors": [names], "flops": f}],
//  "devices": [{"name": n, "runs_on": "CPU", "cores": [0], "precision": "f32", "pace": seconds}]}
//   -> {"ops": n, "ops_found": n, "ops_missing": [the first few], "weights_filled": n, "version": OpenVINO's}
//
// {"do": "run", "ways": [way, ...], "rounds": n, "compare": bool}, a way being {"how": "parallel" or "hetero",
// "device":
//  [by op]}, {"how": "alone", "device": d}, {"how": "default"}, {"how": "auto", "first": "CPU"} or {"how": "threads"}
//   -> {"ways": [{"seconds": [by round], "stolen": [by round], "slowdown": [by round], "precision": the least exact of
//   those that it uses,
//  "subgraphs": n, "parts": [...], "part_runs": [[begin, end] by part, of the run in the middle], "part_seconds":
//  [by part, the median, each time divided by the device's slowdown], "transfers": [...], "outputs": {...} or
//  "no_reference": why} or {"error": why}]}
// "slowdown" is by how many times the run took longer than it would have at the paces that the question named
// (worker/pace.h, EndAtOtherSpeeds); it is left out where the pace of no device that is used is known. A device of
// which nothing is known counts as 1. The ways take turns: a round runs each once. The first round warms up and is not
// told. Outputs are compared with those of the whole model on the first device in f32.
//
// {"do": "op_times", "device": [by op], "rounds": n}, under HETERO
//   -> {"ops": [[seconds, kind] by op], "kernels": [[numbers of ops that ran as one]], "totals": [by round, or one for
//   all], "seconds": [by round, without counters], "stolen": [of these], "unassigned": share}
//
// {"do": "profile", "devices": [d, ...], "rounds": n}: {"devices": [the same of the whole model on each of these, with
// "slowdown": [by round], by which ops and totals are divided already, or {"error": why}]}. The devices take turns, so
// that what else the machine does meets all of them.
//
// {"do": "write_ir", ...} -> {...} (worker/ir_writer.h); needs no model that is opened
//
// {"do": "read_ir", ...}, {"do": "tensor_sizes", ...} -> {...} (worker/model_reader.h); likewise
//
// {"do": "kernels", "device": d} -> {"kernels": [{"type": OpenVINO's, "ops": [numbers]}]}: which ops it runs as one; an
// op that no kernel names is in none, one that became several nodes may be in several.
//
// {"do": "devices"} -> {"devices": [{"runs_on": "CPU"}]}
// {"do": "detect", "devices": [...], "seconds": s} -> {"devices": [...], "links": [...]} (worker/detect.h)
//
// Anything that goes wrong: {"error": a line}.
class WorkerSession {
 public:
  nlohmann::json Answer(const nlohmann::json& question);

 private:
  nlohmann::json Open(const nlohmann::json& question);
  nlohmann::json Run(const nlohmann::json& question);
  nlohmann::json Profile(const nlohmann::json& question);
  nlohmann::json ProfileHetero(const nlohmann::json& question);
  ov::element::Type PrecisionOfWay(const nlohmann::json& way) const;
  // Adds "outputs", or "no_reference" where the first device does not run the whole model.
  void Compare(const std::vector<ov::Tensor>& outputs, ov::element::Type precision, nlohmann::json& answer);

  // Of each op the device, by number. Throws where it has another number of ops, or a device that is none of these.
  std::vector<int32_t> PlacementOf(const nlohmann::json& question) const;
  std::unique_ptr<Runner> Make(const nlohmann::json& way);
  // Whose pace tells how fast it is, by number; empty where that of no device does.
  std::set<size_t> DevicesOf(const nlohmann::json& way) const;
  // Of runs that began after these measurements of the pace; empty where nothing is known. Of parts, which `answer`
  // tells of, by when the last would have ended; of a model that is whole the mean over the devices.
  std::vector<double> SlowdownsOf(const std::set<size_t>& devices, const std::vector<OneRun>& runs,
                                  const std::vector<size_t>& before, const nlohmann::json& answer) const;

  ov::Core core_;
  std::vector<RuntimeDevice> devices_;
  PaceMeter paces_;
  std::optional<LoadedModel> model_;
  std::vector<double> flops_;
  std::vector<ov::Tensor> reference_;  // outputs of the whole model; empty until somebody compares
  std::string no_reference_;           // why there are none
};

}  // namespace berth
