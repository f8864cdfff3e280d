// Runs model.xml as Berth placed it: @title@.
//
// With OpenVINO's CMake package: find_package(OpenVINO REQUIRED), target_link_libraries(run PRIVATE openvino::runtime).
// ./run FOLDER
#include <chrono>
#include <cstdio>
#include <openvino/openvino.hpp>
#include <string>

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  ov::Core core;
  // Names of the CPU beside its own, for devices that are a share of its cores; and how each device computes.
@register@@settings@
  const auto model = core.read_model(folder + "/model.xml");
  // HETERO asks every node, constants too. An IR keeps no such thing at its nodes: it is kept at the model, by name.
  for (const auto& node : model->get_ordered_ops()) {
    node->get_rt_info()["affinity"] = model->get_rt_info<std::string>("affinity", node->get_friendly_name());
  }
  ov::CompiledModel compiled = core.compile_model(model, "HETERO:@over@");

  ov::InferRequest request = compiled.create_infer_request();
  // Inputs are as they were allocated: fill request.get_input_tensor(i).
  for (int run = 0; run < 5; ++run) {
    const auto began = std::chrono::steady_clock::now();
    request.infer();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    std::printf("%.2f ms\n", took.count());
  }
  for (size_t i = 0; i < compiled.outputs().size(); ++i) {
    const ov::Tensor output = request.get_output_tensor(i);
    std::printf("output %zu: %s, %zu elements\n", i, output.get_element_type().get_type_name().c_str(),
                output.get_size());
  }
}
