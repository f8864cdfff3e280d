// What a policy reads of the nodes of a graph: a row per node.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace berth {

struct FeatureTable {
  size_t columns = 0;
  std::vector<float> value;        // nodes x columns
  std::vector<std::string> names;  // of the columns: "type:Conv", "in_degree:2", "position:3"
};

// Collects columns and makes a table of them.
class FeatureColumns {
 public:
  explicit FeatureColumns(size_t nodes) : nodes_(nodes) {}

  // A value per node.
  void Add(std::string name, std::vector<double> value);
  // A column for each number that occurs.
  void AddOneHot(const std::string& name, const std::vector<size_t>& number);
  // Columns for ranges that cover all numbers, the same for every graph.
  void AddRanges(const std::string& name, const std::vector<size_t>& number);

  // Shifts and scales each column to mean 0 and deviation 1 over the nodes.
  void Normalise();
  FeatureTable Finish() const;

 private:
  void AddRange(const std::string& name, const std::vector<size_t>& number, size_t least, size_t most);

  size_t nodes_;
  std::vector<std::string> names_;
  std::vector<std::vector<double>> columns_;
};

}  // namespace berth
