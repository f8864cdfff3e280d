// A model that OpenVINO has opened, for all that a command runs of it.
#pragma once

#include <memory>

#include "cli/problem_factory.h"
#include "exec/openvino.h"

namespace berth {

// Stays with the problem that it was opened for. Other problems of the same model on the same devices, whatever their
// costs, may be run by it.
struct Runtime {
  // Throws Error where the model cannot be run here.
  explicit Runtime(std::shared_ptr<const Setup> of)
      : setup(std::move(of)), openvino(*setup->problem, ModelFile(setup->strings.model)) {}

  const std::shared_ptr<const Setup> setup;
  OpenVino openvino;
};

inline std::shared_ptr<Runtime> OpenRuntime(const Catalogs& catalogs, const ProblemStrings& strings) {
  return std::make_shared<Runtime>(std::make_shared<const Setup>(MakeSetup(catalogs, strings)));
}

}  // namespace berth
