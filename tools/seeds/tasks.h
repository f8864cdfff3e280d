// On which problems the methods of the field are compared, and with which methods.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/seeds/cell.h"

namespace berth::seeds {

struct Method {
  std::string title{};    // in tables
  std::string planner{};  // or kPublished
  bool searches = false;  // has its seconds, and every seed; a rule ends by itself and has one
};

// Whose table a problem is a row or a column of.
enum class Paper : uint8_t { kHsdag, kPlaceto, kGo };

struct Task {
  Paper paper{};
  std::string title{};  // the graph, as the papers call it
  int devices = 0;
  std::string graph{}, machine{}, mode{}, costs{}, evaluator{};
  std::vector<Method> methods{};

  // "training, inception_v3(batch=32), k80x4": of what a method is one.
  std::string Name() const;
  Question Ask(const Method& method, int seed, const Limits& limits) const;
};

// What HSDAG's paper gives of each of its benchmarks (Duan et al. 2024, table 2), in seconds.
struct HsdagBenchmark {
  const char *graph, *title;
  double cpu, gpu;
};
inline constexpr HsdagBenchmark kHsdagBenchmarks[] = {{"ir_inception_v3", "Inception-V3", 0.0128, 0.0120},
                                                      {"ir_resnet50", "ResNet-50", 0.0160, 0.00781},
                                                      {"ir_bert_base", "BERT-base", 0.00638, 0.00277}};
inline constexpr const char* kHsdagMachines[] = {"hsdag_20us", "hsdag_5us"};

// What a CPU alone takes, beside Placeto's problems.
inline constexpr std::string_view kHost = "p2_host";

// All of them. `published`: whether the data set with the published placement is there.
std::vector<Task> Tasks(bool published);
// A few that take seconds, with all methods: of each paper one.
std::vector<Task> ShortTasks(bool published);

}  // namespace berth::seeds
