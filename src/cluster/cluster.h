// The machines: devices and the links between them, each number with its provenance.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace berth {

// Where a number comes from. A report that rests on guesses says so.
enum class Provenance : uint8_t { kGuess, kVendor, kMeasured };
inline constexpr std::array<std::string_view, 3> kProvenanceNames = {"guess", "vendor", "measured"};

// In what a device may compute what a model has in f32.
inline constexpr std::array<std::string_view, 3> kPrecisionNames = {"f32", "f16", "bf16"};
// What is wrong with one, and what was expected; empty where nothing is.
std::string PrecisionMistake(std::string_view name);

struct Quantity {
  double value = 0;
  Provenance provenance = Provenance::kGuess;
  std::string source{};  // a data sheet, a paper, a command; may be empty
  // Of a guess, between which numbers the true one is thought to be; 0 and 0: half to double. They enter no score.
  double low = 0, high = 0;

  bool has_range() const { return high > 0; }
};

// One processor with its own memory. Rates are at full speed; the efficiencies say what share of it a class of ops
// reaches.
struct Device {
  std::string name{};
  std::string kind{};                // cpu, gpu, igpu, npu, or any other word; efficiencies default by it
  std::optional<Quantity> memory{};  // bytes; absent means unlimited
  std::map<std::string, Quantity, std::less<>> peak{};        // FLOP/s by data type name: f32, f16, bf16, i8, f64
  Quantity memory_bandwidth{};                                // bytes per second
  Quantity op_overhead{};                                     // seconds per op: launch, dispatch
  std::map<std::string, Quantity, std::less<>> efficiency{};  // by op class name: the share of the peak, 0 to 1
  // How many values a convolution or a product of matrices must make to run at half the rate that a large one reaches
  // (n 1/2 of Hockney and Jesshope 1981, "Parallel Computers", chapter 1); 0: all run at the same rate.
  Quantity half_rate_outputs{};
  std::vector<std::string> supports{};  // op types (globs); empty means all
  std::vector<std::string> lacks{};     // op types (globs) that it cannot run
  // What a runtime pays where it runs a part of a model as a model of its own (`parts`, docs/semantics.md).
  Quantity part_overhead{};                                  // seconds per part
  std::map<std::string, Quantity, std::less<>> cut_read{};   // bytes per second by class of the op that reads first
  std::map<std::string, Quantity, std::less<>> cut_write{};  // bytes per second by class of the op that writes
  Quantity watts_idle{};
  Quantity watts_busy{};
  // One of kPrecisionNames: in what it computes what a model has in f32. It enters scores by the peak of this type.
  std::string precision = "f32";
  // Where its ops are executed when a plan is run; they enter no score of a simulator.
  std::string runs_on{};     // a runtime's name of it: CPU, GPU, GPU.1, NPU; empty: by its kind
  std::vector<int> cores{};  // of a processor, ascending: those that are this device; empty: all
  // Of a processor: seconds that three small models took on it while its numbers were measured (worker/pace.h), by
  // which later runs are told at the same speed; 0: not known.
  double pace = 0;
};

// From one device to another.
struct Link {
  Quantity latency{};    // seconds
  Quantity bandwidth{};  // bytes per second, greater than 0
  std::string domain{};  // transfers of one contention domain share its medium; empty: the link is its own
};

// Devices by number and a link for every ordered pair.
class Cluster {
 public:
  // `links` is row-major, devices x devices; the diagonal is not read. Throws Error naming `name` for a repeated device
  // name, a bandwidth that is not positive, or a negative number.
  Cluster(std::string name, std::vector<Device> devices, std::vector<Link> links);
  // The same where links repeat, each kind stored once: that of a pair is kinds[kind_of[pair]].
  Cluster(std::string name, std::vector<Device> devices, std::vector<Link> kinds, std::vector<uint32_t> kind_of);

  const std::string& name() const { return name_; }
  size_t num_devices() const { return devices_.size(); }
  Ids<DeviceId> ids() const { return Ids<DeviceId>(num_devices()); }
  const Device& device(DeviceId id) const { return devices_[Index(id)]; }
  const Link& link(DeviceId from, DeviceId to) const {
    return link_kinds_[kind_of_link_[Index(from) * num_devices() + Index(to)]];
  }

  // The device of this name or number ("1"); throws Error listing the devices.
  DeviceId Find(std::string_view name) const;

  // Devices with equal numbers may be swapped without changing any score, when their links are equal too. class_of(d)
  // is the smallest device that d can be swapped with (itself when there is none), so that search can break the
  // symmetry.
  DeviceId class_of(DeviceId id) const { return class_of_[Index(id)]; }

  // A hash of every number that enters a score (names and provenance do not).
  uint64_t fingerprint() const;

 private:
  void CheckAndFindClasses();

  std::string name_;
  std::vector<Device> devices_;
  std::vector<Link> link_kinds_;
  std::vector<uint32_t> kind_of_link_;  // row-major, devices x devices
  std::vector<DeviceId> class_of_;
};

// "Conv*" against "ConvTranspose": `*` any text, `?` one character; no other wildcard. For op types and names.
bool GlobMatches(std::string_view pattern, std::string_view text);

// Reads a device file; format in docs/cluster-format.md. Throws Error with `path`, the line and what was expected.
Cluster ParseCluster(std::string_view yaml, const std::string& path);
// The same cluster as a device file.
std::string WriteCluster(const Cluster& cluster);

}  // namespace berth
