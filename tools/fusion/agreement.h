// What the rules of fusion say of a model, beside what OpenVINO made of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth {

// Edges of the graph: pairs of an op and one that reads what it makes, without what depends on constants alone.
struct FusionRow {
  std::string file{};
  std::string family{};   // "shipped", or what stands before the zoo's first underscore
  bool learnt = false;    // whether the rules were written with it in sight
  std::string refusal{};  // why OpenVINO made nothing of it; empty where it did
  size_t edges = 0;
  size_t named = 0;  // of these, both of whose ops OpenVINO's kernels name
  // Of the named ones: in one kernel by both, by the rules alone, by OpenVINO alone.
  size_t both = 0, rules_only = 0, openvino_only = 0;

  void Add(const FusionRow& other);
  double f1() const;
};

// By a hash of the model's name, without how and by whom it was written to a file: forms of one model are all on one
// side.
bool IsLearntFrom(std::string_view file_name);

// Compiles the model for the first core of this processor, in a process of its own.
FusionRow CheckFusion(const std::string& path, const std::string& family);

// All models that ship, and those of the zoo's folder where it is there.
std::vector<FusionRow> CheckFusionOfAll(const std::string& zoo);

// docs/fusion.md.
std::string FusionPage(const std::vector<FusionRow>& rows);

}  // namespace berth
