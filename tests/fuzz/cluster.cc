// Device files: ParseCluster, and back by WriteCluster.
#include "cluster/cluster.h"

#include "tests/fuzz/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string path = "fuzz.yaml";
  fuzz::Survives(
      path, [&] { return ParseCluster(fuzz::Text(data, size), path); },
      [&](const Cluster& cluster) {
        FUZZ_CHECK(cluster.num_devices() > 0);
        const std::string written = WriteCluster(cluster);
        const Cluster again = ParseCluster(written, "written.yaml");
        FUZZ_CHECK(again.fingerprint() == cluster.fingerprint());
        FUZZ_CHECK(again.name() == cluster.name());
        FUZZ_CHECK(WriteCluster(again) == written, "{}\nbecomes\n{}", written, WriteCluster(again));
      });
  return 0;
}
