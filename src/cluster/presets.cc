#include "cluster/presets.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <utility>

#include "base/embedded.h"
#include "base/error.h"
#include "base/file.h"

namespace berth {

// clusters/*.yaml, made by cmake/BerthEmbed.cmake.
const std::vector<EmbeddedFile>& ClusterFiles();

namespace {

struct Preset {
  std::string_view name;
  std::string_view sentence;
  std::string_view source;
};

// One for each file in clusters/.
constexpr std::array kPresets = {
    Preset{"cpu_gpu", "Core i9-12900K and a Data Center GPU Flex 170 under OpenVINO",
           "HSDAG (Duan et al. 2024), section 4.6"},
    Preset{"cpu_igpu_gpu", "the same with the processor's own UHD Graphics 770, which HSDAG left out",
           "HSDAG (Duan et al. 2024)"},
    Preset{"desktop", "a desktop with one large graphics card: Ryzen 9 7950X and GeForce RTX 4090",
           "AMD's and NVIDIA's specifications"},
    Preset{"laptop", "Core Ultra 7 155H: a laptop's processor, integrated GPU and NPU", "Intel's specifications"},
    Preset{"cpu_npu", "Core Ultra 7 155H: a laptop processor and its NPU", "Intel's specifications"},
    Preset{"k80x2", "one Tesla K80 board, two GPUs: a part of p2.8xlarge", "Placeto (Addanki et al. 2019)"},
    Preset{"k80x4", "two Tesla K80 boards, four GPUs: half of p2.8xlarge", "Placeto (Addanki et al. 2019)"},
    Preset{"k80x8", "four Tesla K80 boards, eight GPUs: p2.8xlarge", "Placeto (Addanki et al. 2019)"},
    Preset{"p2_host", "the processor of p2.8xlarge alone", "Placeto (Addanki et al. 2019)"},
    Preset{"p100x2", "two Tesla P100 below one PCIe switch", "GDP (Zhou et al. 2019)"},
    Preset{"p100x4", "four Tesla P100 below two PCIe switches", "GDP (Zhou et al. 2019)"},
    Preset{"p100x8", "eight Tesla P100 below four PCIe switches of one host", "GDP (Zhou et al. 2019)"},
    Preset{"v100x4", "four Tesla V100 joined by NVLink, of unequal width: p3.8xlarge", "Nvidia's data sheet"},
    Preset{"h100x8", "eight H100 behind one NVSwitch: DGX H100", "Nvidia's data sheet"},
    Preset{"edge", "two Raspberry Pi 4, a Jetson Nano and a Jetson Orin Nano on a home network",
           "the makers' data sheets"},
    Preset{"hsdag_20us",
           "a scenario for HSDAG's benchmarks: a link of 20 us, 12 GB/s; use costs calibrated(totals=...)",
           "HSDAG (Duan et al. 2024), table 2"},
    Preset{"hsdag_5us", "the same with a link of 5 us, 20 GB/s, and more overhead per op on the GPU",
           "HSDAG (Duan et al. 2024), table 2"},
    Preset{"hsdag_50us", "the same with a link of 50 us, 8 GB/s, and less overhead per op on the GPU",
           "HSDAG (Duan et al. 2024), table 2"},
};

}  // namespace

void RegisterClusterPresets(ClusterCatalog& catalog) {
  for (const Preset& preset : kPresets) {
    const auto file = std::ranges::find(ClusterFiles(), preset.name, &EmbeddedFile::name);
    BERTH_CHECK(file != ClusterFiles().end(), "clusters/{}.yaml is not embedded", preset.name);
    catalog.Add({.name = std::string(preset.name),
                 .sentence = std::string(preset.sentence),
                 .source = std::string(preset.source),
                 .parameters = {}},
                [file = *file](const Params&) {
                  return ParseCluster(file.content, fmt::format("clusters/{}.yaml", file.name));
                });
  }
}

Cluster ReadCluster(std::string_view cluster, const ClusterCatalog& catalog) {
  const std::string path(cluster);
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  const bool is_folder = std::filesystem::is_directory(status);
  if ((std::filesystem::exists(status) && !is_folder) || cluster.ends_with(".yaml") || cluster.ends_with(".yml")) {
    return ParseCluster(ReadFile(path, {.what = "device file", .most_bytes = int64_t{4} << 20}), path);
  }
  if (is_folder && catalog.Find(cluster) == nullptr) {
    throw Error("{}: is a folder; expected a device file or one of {}", cluster, fmt::join(catalog.Names(), ", "));
  }
  if (cluster.find('/') != std::string_view::npos) {
    throw Error("{}: no such file; expected a device file or one of {}", cluster, fmt::join(catalog.Names(), ", "));
  }
  return catalog.Make(cluster);
}

}  // namespace berth
