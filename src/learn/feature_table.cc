#include "learn/feature_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "base/error.h"

namespace berth {

void FeatureColumns::Add(std::string name, std::vector<double> value) {
  BERTH_CHECK(value.size() == nodes_);
  names_.push_back(std::move(name));
  columns_.push_back(std::move(value));
}

void FeatureColumns::AddOneHot(const std::string& name, const std::vector<size_t>& number) {
  for (const size_t level : std::set<size_t>(number.begin(), number.end())) AddRange(name, number, level, level);
}

void FeatureColumns::AddRanges(const std::string& name, const std::vector<size_t>& number) {
  for (size_t level = 0; level <= 4; ++level) AddRange(name, number, level, level);
  AddRange(name, number, 5, 8);
  AddRange(name, number, 9, 16);
  AddRange(name, number, 17, std::numeric_limits<size_t>::max());
}

void FeatureColumns::AddRange(const std::string& name, const std::vector<size_t>& number, size_t least, size_t most) {
  std::vector<double> column(nodes_);
  for (size_t v = 0; v < nodes_; ++v) column[v] = number[v] >= least && number[v] <= most ? 1 : 0;
  Add(fmt::format("{}:{}", name, least), std::move(column));
}

void FeatureColumns::Normalise() {
  for (std::vector<double>& column : columns_) {
    double mean = 0, squares = 0;
    for (const double x : column) mean += x / static_cast<double>(nodes_);
    for (const double x : column) squares += (x - mean) * (x - mean) / static_cast<double>(nodes_);
    // What is constant is 0, not what rounding has left of it, which grows with the mean.
    const double scale = squares > 1e-20 * std::max(mean * mean, 1e-4) ? 1 / std::sqrt(squares) : 0;
    for (double& x : column) x = (x - mean) * scale;
  }
}

FeatureTable FeatureColumns::Finish() const {
  FeatureTable table{.columns = columns_.size(), .value = {}, .names = names_};
  table.value.reserve(nodes_ * columns_.size());
  for (size_t v = 0; v < nodes_; ++v) {
    for (const auto& column : columns_) table.value.push_back(static_cast<float>(column[v]));
  }
  return table;
}

}  // namespace berth
