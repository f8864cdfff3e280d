// What several seeds say, as a cell of a table.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace berth {

// The median, and, where there are several values that differ, an interval that holds it with 95 % (MedianInterval):
// "0.52 (0.50 to 0.55)". Values are multiplied by `factor`; one that is infinite is "none", as where no plan fits.
// Empty without values.
std::string WithInterval(const std::vector<double>& values, double factor, int digits);

// Of at least one value, all above zero.
double GeometricMean(std::span<const double> values);

}  // namespace berth
