#include "cluster/presets.h"

namespace berth {

void RegisterPlacetoCluster(ClusterCatalog& catalog) {
  catalog.Add(
      {.name = "placeto",
       .sentence = "the machine of Placeto's published simulator: equal GPUs, 7.6 GB/s between any two, no latency",
       .source = "Addanki et al. 2019, arXiv 1906.08879, released code",
       .parameters = {{.name = "devices",
                       .type = ParameterType::kInt,
                       .default_value = "4",
                       .sentence = "how many GPUs (a p2.8xlarge has 8)",
                       .least = 1,
                       .most = 1024}}},
      [](const Params& params) {
        const auto count = static_cast<size_t>(params.Int("devices"));
        const std::string published = "constant of Placeto's published simulator";
        std::vector<Device> devices(count);
        for (size_t d = 0; d < count; ++d) {
          // For models that come without measured costs; the simulator itself knows neither rates nor a memory limit.
          const std::string sheet = "Tesla K80 data sheet, half a board";
          devices[d] = {
              .name = fmt::format("gpu{}", d),
              .kind = "gpu",
              .peak = {{"f32", {4.37e12, Provenance::kVendor, sheet}}, {"f64", {1.46e12, Provenance::kVendor, sheet}}},
              .memory_bandwidth = {240e9, Provenance::kVendor, sheet}};
        }
        std::vector<Link> links(count * count);
        for (Link& link : links) {
          link.latency = {0, Provenance::kGuess, published};
          link.bandwidth = {7.6e9, Provenance::kGuess, published};
        }
        return Cluster(params.canonical(), std::move(devices), std::move(links));
      });
}

}  // namespace berth
