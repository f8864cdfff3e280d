#include "report/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "cluster/device_numbers.h"

namespace berth {
namespace {

using ::testing::UnorderedElementsAreArray;

TEST(ClusterJson, HasEveryNumberOfADevice) {
  Device device{.name = "all", .memory = Quantity{}};
  device.peak["f32"] = device.efficiency["conv"] = device.cut_read["matmul"] = device.cut_write["other"] = {};
  std::vector<double> numbers;
  ForEachNumber(device, [&](std::string_view, std::string_view, Quantity& number) {
    number.value = static_cast<double>(numbers.size() + 1);
    numbers.push_back(number.value);
  });
  const Json flat = ClusterJson(Cluster("one", {device}, std::vector<Link>(1))).at("devices").at(0).flatten();
  std::vector<double> found;
  for (const auto& [path, value] : flat.items()) {
    if (path.ends_with("/value")) found.push_back(value.get<double>());
  }
  EXPECT_THAT(found, UnorderedElementsAreArray(numbers));
}

}  // namespace
}  // namespace berth
