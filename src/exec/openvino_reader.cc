#include "exec/openvino_reader.h"

#include "base/error.h"
#include "exec/openvino.h"
#include "exec/worker_process.h"

namespace berth {
namespace {

constexpr double kReadLimit = 300;  // seconds; a large model is read in ten

nlohmann::json Ask(const std::string& path, nlohmann::json question) {
  WorkerProcess worker(OpenVinoProgram("reading " + path));
  question["model"] = WorkerPath(path);
  return worker.AskAbout(path, question, kReadLimit);
}

nlohmann::json Json(const SizesByName& sizes) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, dims] : sizes) json[name] = dims;
  return json;
}

}  // namespace

IrReading ReadAsIr(const std::string& path, const SizesByName& inputs, std::optional<int64_t> batch) {
  nlohmann::json question = {{"do", "read_ir"}, {"inputs", Json(inputs)}, {"batch", nullptr}};
  if (batch) question["batch"] = *batch;
  const nlohmann::json answer = Ask(path, question);
  IrReading reading{
      .xml = answer.at("xml"), .batches = answer.at("batches"), .numbers = {}, .version = answer.at("version")};
  for (const auto& [offset, bytes] :
       answer.at("numbers").get<std::vector<std::pair<int64_t, std::vector<uint8_t>>>>()) {
    reading.numbers.emplace(offset, std::string(bytes.begin(), bytes.end()));
  }
  return reading;
}

SizesReading ReadTensorSizes(const std::string& path, const SizesByName& inputs) {
  const nlohmann::json answer = Ask(path, {{"do", "tensor_sizes"}, {"inputs", Json(inputs)}});
  SizesReading reading{.tensors = {}, .version = answer.at("version")};
  for (const auto& [name, dims] : answer.at("tensors").items()) {
    reading.tensors.emplace(name, dims.get<std::vector<int64_t>>());
  }
  return reading;
}

}  // namespace berth
