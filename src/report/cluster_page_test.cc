#include "report/cluster_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Quantity From(double value, const char* source) {
  return {.value = value, .provenance = Provenance::kMeasured, .source = source};
}

Cluster Three(const char* first_latency) {
  std::vector<Device> devices;
  for (const char* name : {"a", "b", "c"}) {
    devices.push_back({.name = name, .memory = From(1 << 30, "known"), .memory_bandwidth = From(1e9, "known")});
  }
  std::vector<Link> links(9, {.latency = From(1e-6, "a short message"), .bandwidth = From(1e9, "a long message")});
  links[1].latency = From(2e-6, first_latency);  // of a -> b
  return {"three", std::move(devices), std::move(links)};
}

TEST(ClusterPage, SaysTheSourceOfAllLinksOnce) {
  const std::string page = ClusterPage(Three("a short message"));
  EXPECT_THAT(page, HasSubstr("- link latency: a short message"));
  EXPECT_THAT(page, HasSubstr("- link bandwidth: a long message"));
}

TEST(ClusterPage, SaysOnceWhatBothNumbersOfALinkComeFrom) {
  std::vector<Device> devices(2);
  devices[0].name = "a";
  devices[1].name = "b";
  const Link link{.latency = From(1e-6, "a data sheet"), .bandwidth = From(1e9, "a data sheet")};
  EXPECT_THAT(ClusterPage(Cluster("two", std::move(devices), std::vector<Link>(4, link))),
              HasSubstr("- link latency and bandwidth: a data sheet"));
}

// The second and the third of these are the same in all numbers.
TEST(ClusterPage, CountsTheLinksOfEqualDevicesToo) {
  std::vector<Device> devices(3);
  devices[0].name = "a";
  devices[1].name = "b";
  devices[2].name = "c";
  std::vector<Link> links(9, {.latency = From(1e-6, "a guess"), .bandwidth = From(1e9, "a guess")});
  for (const size_t of_a : {1, 2, 3, 6})
    links[of_a] = {.latency = From(2e-6, "known"), .bandwidth = From(1e9, "a guess")};
  const std::string page = ClusterPage(Cluster("three", std::move(devices), std::move(links)));
  EXPECT_THAT(page, HasSubstr("- link bandwidth and latency of b → c, c → b: a guess"));
  EXPECT_THAT(page, HasSubstr("- latency of a → b and 3 more: known"));
}

TEST(ClusterPage, SaysOfWhichLinksASourceIsWhereTheyDiffer) {
  const std::string page = ClusterPage(Three("a guess of today"));
  EXPECT_THAT(page, HasSubstr("latency of a → b: a guess of today"));
  EXPECT_THAT(page, HasSubstr("latency of a → c and 4 more: a short message"));
  EXPECT_THAT(page, HasSubstr("link bandwidth: a long message"));
  EXPECT_THAT(page, Not(HasSubstr("link latency")));
}

TEST(ClusterPage, SaysTheRangesThatTheFileStates) {
  std::vector<Device> devices(1);
  devices[0].name = "a";
  devices[0].memory_bandwidth = {.value = 1e9};
  EXPECT_THAT(ClusterPage(Cluster("one", devices, {Link{}})), Not(HasSubstr("range")));
  devices[0].op_overhead = {.value = 15e-6, .low = 5e-6, .high = 40e-6};
  devices[0].watts_busy = {.value = 100, .low = 90, .high = 120};
  const std::string page = ClusterPage(Cluster("one", devices, {Link{}}));
  EXPECT_THAT(page, HasSubstr("Guesses with a range of their own (all others: from half to double):\n"
                              "  - op_overhead of a: 15.0 us, from 5.00 us to 40.0 us\n"
                              "  - watts busy of a: 100 W, from 90.0 W to 120 W\n"));
}

}  // namespace
}  // namespace berth
