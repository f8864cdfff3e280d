// What a problem is made of, as commands, plan files and tools hold it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "placement/constraints.h"

namespace berth {

struct ProblemStrings {
  std::string model{};
  std::vector<std::string> shapes{};  // "input=32,3,224,224"
  std::string batch{};                // of every input that has one; empty: the file's
  std::string format{};
  // "own" is what the model's file brings. Empty: its own where it brings one, else a default.
  std::string cluster{};    // cpu_gpu
  std::string costs{};      // roofline(fusion=openvino)
  std::string evaluator{};  // parallel(contention=ports), or pipeline for an objective of throughput
  std::string mode{};       // inference; or training: one step of `optimizer`
  std::string optimizer{};  // sgd; empty for inference
  std::string objective{};  // latency, or throughput where the evaluator is one of steady states
  std::vector<ConstraintText> constraints{};
  // What `cluster` stood for when a plan was made: counts instead of what it stands for now. May be null.
  std::shared_ptr<const Cluster> stored_cluster{};

  // What of these may be the name of a file.
  std::vector<std::string> Files() const;
};

// A file that costs name: the "times.json" of "profile(file=times.json)".
struct FileInCosts {
  size_t at, size;  // where it stands, with its quotes
  std::string name;
};
std::vector<FileInCosts> FilesInCosts(std::string_view costs);

}  // namespace berth
