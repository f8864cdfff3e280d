// A model file as OpenVINO reads it, joined to the ops of Berth's graph by name.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <openvino/openvino.hpp>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace berth {

// What fills the weights that a file lacks, and the inputs: the same in every process.
struct LoadedModel {
  std::shared_ptr<ov::Model> model;
  // What computes, in topological order: all nodes but parameters, constants and results.
  std::vector<std::shared_ptr<ov::Node>> nodes;
  std::unordered_map<const ov::Node*, int32_t> number;  // in `nodes`
  // Per node the op that it belongs to, by number: the one whose tensor or name it carries, or, of what a reader or a
  // pass added in between, that of its first consumer.
  std::vector<int32_t> op_of;
  std::vector<bool> named;  // whether the node itself carries the op's tensor or name
  size_t ops = 0, ops_found = 0;
  std::vector<bool> found;               // by op
  std::vector<std::string> ops_missing;  // the first few
  size_t weights_filled = 0;
  std::vector<ov::Tensor> inputs;  // by parameter

  // Per node its predecessors among the nodes, ascending.
  std::vector<std::vector<int32_t>> Predecessors() const;
  // The op that any node of the model goes with: its own; that of what a result takes; that of the first consumer of a
  // constant or a parameter; -1 where nothing tells.
  int32_t OpOf(const ov::Node& node) const;
};

struct LoadOptions {
  bool as_in_file = false;  // no weight is filled and no input is made; weights that are missing are an Error
};

// As OpenVINO reads the file, an IR without its .bin included. Throws what OpenVINO throws.
std::shared_ptr<ov::Model> ReadModelFile(const std::string& path, ov::Core& core, const LoadOptions& options = {});

// Computes what depends on no input, so that a model has the same nodes wherever it is read.
void FoldConstants(const std::shared_ptr<ov::Model>& model);

// What a model's input goes by: its node and its tensor, of TensorFlow's "image:0" also "image".
std::unordered_set<std::string> NamesOf(const ov::Output<ov::Node>& input);
// `inputs`: {name: [sizes]}. Sizes that stay open are 1.
void SetSizes(ov::Model& model, const nlohmann::json& inputs);

// `question`: {"model": path, "inputs": {name: [sizes]}, "ops": [{"name": n, "tensors": [names]}]}. Sizes that stay
// open are 1. Constants that are folded are folded; of the floating-point constants of at least 16 elements those whose
// elements are all equal are taken for weights that the file lacks, and filled with random numbers, because equal
// weights make equal branches, which OpenVINO merges. Throws Error that names the file.
LoadedModel LoadModel(const nlohmann::json& question, ov::Core& core, const LoadOptions& options = {});

// The first lines of what OpenVINO has to say, as one.
std::string Brief(const std::exception& exception);

}  // namespace berth
