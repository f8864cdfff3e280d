#include "exec/equal_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth {
namespace {

using ::testing::ElementsAre;

// Ten runs of about so many seconds, and op times.
OpMeasurement Device(double seconds, std::vector<double> op_seconds) {
  OpMeasurement measurement;
  for (int run = 0; run < 10; ++run) measurement.seconds.push_back(seconds * (1 + 0.01 * run));
  measurement.kind.assign(op_seconds.size(), "own");
  measurement.op_seconds = std::move(op_seconds);
  return measurement;
}

TEST(ShareMeans, GivesDevicesThatCannotBeToldApartTheMeanOfTheirOpTimes) {
  std::vector<OpMeasurement> devices = {Device(10, {4, 6}), Device(20, {9, 11}), Device(10.2, {5, 5})};
  ShareMeans(devices);
  EXPECT_THAT(devices[0].op_seconds, ElementsAre(4.5, 5.5));
  EXPECT_THAT(devices[2].op_seconds, ElementsAre(4.5, 5.5));
  EXPECT_THAT(devices[1].op_seconds, ElementsAre(9, 11)) << "twice as slow";
}

TEST(ShareMeans, TrustsTheDeviceFileWhereItSaysThatCoresAreEqual) {
  const std::vector<OpMeasurement> apart = {Device(10, {4}), Device(10.9, {6})},
                                   far = {Device(10, {4}), Device(12, {6})};
  const auto shared = [](std::vector<OpMeasurement> devices, double first, double second) {
    devices[0].pace = first;
    devices[1].pace = second;
    ShareMeans(devices);
    return devices[0].op_seconds == devices[1].op_seconds;
  };
  EXPECT_TRUE(shared(apart, 3e-4, 3e-4));
  EXPECT_FALSE(shared(far, 3e-4, 3e-4)) << "more than a disturbance";
  EXPECT_FALSE(shared(apart, 3e-4, 4e-4)) << "a fast and a slow core";
  EXPECT_FALSE(shared(apart, 0, 0)) << "nobody knows";
  EXPECT_FALSE(shared(apart, 3e-4, 0));
}

// The middle one is near both others, which are not near each other.
TEST(ShareMeans, BeginsWithTheFastestWhateverTheirOrder) {
  const OpMeasurement fast = Device(10, {4}), middle = Device(10.4, {6}), slow = Device(10.8, {8});
  std::vector<std::vector<OpMeasurement>> orders = {{fast, middle, slow}, {middle, slow, fast}, {slow, middle, fast}};
  for (std::vector<OpMeasurement>& devices : orders) {
    ShareMeans(devices);
    for (const OpMeasurement& device : devices) {
      EXPECT_THAT(device.op_seconds, ElementsAre(device.seconds == slow.seconds ? 8 : 5));
    }
  }
}

TEST(EqualDevices, AreGroupsOfWhichThoseThatFailedAreNone) {
  std::vector<OpMeasurement> devices = {Device(10, {4}), Device(20, {9}), Device(9.8, {5}), Device(10, {4})};
  devices[3].error = "it does not compile";
  EXPECT_THAT(EqualDevices(devices), ElementsAre(ElementsAre(2, 0), ElementsAre(1)));
}

TEST(ShareMeans, LeavesDevicesAloneThatFailedOrRunOtherKernels) {
  std::vector<OpMeasurement> devices = {Device(10, {4, 6}), Device(10, {5, 5}), Device(10, {2, 8}), Device(10, {})};
  devices[1].error = "it does not compile";
  devices[2].kind = {"own", "joined"};
  ShareMeans(devices);
  EXPECT_THAT(devices[0].op_seconds, ElementsAre(4, 6));
  EXPECT_THAT(devices[1].op_seconds, ElementsAre(5, 5));
  EXPECT_THAT(devices[2].op_seconds, ElementsAre(2, 8));
}

}  // namespace
}  // namespace berth
