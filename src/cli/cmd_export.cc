#include "cli/commands.h"
#include "cli/console.h"
#include "cli/handover.h"
#include "report/table.h"

namespace berth {
namespace {

// Throws Error, which says what can be exported, for a plan of anything else than a model that a runtime reads.
void CheckExportable(const SavedPlan& saved, const std::string& model_file, const std::string& to) {
  const ProblemStrings& strings = saved.setup.strings;
  if (model_file.empty()) {
    throw Error("export: {} is a formula; only the model of a file can be handed to a runtime", strings.model);
  }
  const ModelContent model = ReadModelContent(model_file, strings.format);
  if (!model.runs) {
    throw Error(
        "export: {} is {}, which no runtime reads; plans of ONNX models, OpenVINO's IR and what OpenVINO reads can be "
        "exported",
        model_file, model.sentence);
  }
  if (model.format != "onnx" && to == "onnxruntime") {
    throw Error("export: {} is {}, which ONNX Runtime does not read; export it --to openvino", model_file,
                model.sentence);
  }
  if (strings.mode == "training") {
    throw Error(
        "export: this plan is of a step of training, but what is exported is inference; plan without --mode "
        "training");
  }
}

}  // namespace

int ExportPlan(const ExportArguments& arguments, const Catalogs& catalogs) {
  if (arguments.to != "openvino" && arguments.to != "onnxruntime") {
    ThrowUnknownName("runtime", arguments.to, {"openvino", "onnxruntime"});
  }
  NewFolder folder(arguments.output);
  PlanOverrides overrides;
  overrides.model = arguments.model;
  const SavedPlan saved = OpenToSimulate(arguments.plan, overrides, catalogs);
  const std::string model_file = ModelFile(saved.setup.strings.model);
  CheckExportable(saved, model_file, arguments.to);
  if (!saved.report.timeline.score.fits()) {
    Warn(fmt::format("{} does not fit: {}", arguments.plan, saved.report.timeline.infeasible_because));
  }
  const Handover handover = arguments.to == "openvino" ? HandToOpenVino(saved, model_file, folder)
                                                       : HandToOnnxRuntime(saved, model_file, folder);
  folder.PutInPlace();
  Print(arguments.json ? DumpJson(HandoverJson(saved, handover, arguments.output))
                       : HandoverPage(saved, handover, arguments.output));
  return 0;
}

}  // namespace berth
