// Models that Berth had not seen, read and compared with what a real run saw.
#pragma once

#include <string>
#include <vector>

namespace berth {

// One file against its truth.
struct ModelRow {
  std::string file{}, exporter{};
  std::string refusal{};  // why it could not be read; empty where it was
  size_t ops = 0;
  double matrix_flops = 0;  // the truth
  // What was read of it, relative to the nearer end of the truth without and with biases.
  double flops_error = 0;
  size_t shapes = 0, right = 0;       // tensors of the graph whose shape the run saw, and of how many it is the same
  size_t said = 0;                    // of how many else it is said that a run's data decide
  size_t estimated = 0, unknown = 0;  // ops whose sizes are said to be so
  bool same_without_record = false;   // the same without the file's own record of shapes (value_info)
  double seconds = 0;                 // to read it, the best of three

  bool holds() const;
};

// Every file of FOLDER/manifest.json, in its order. Throws Error where the folder is not there.
std::vector<ModelRow> CheckModels(const std::string& folder);

// docs/models.md.
std::string ModelsPage(const std::vector<ModelRow>& rows);

}  // namespace berth
