// Readers of published data sets, one each, and how each knows its own files. `content` is the file's, `path` is its
// name in errors. All throw Error for a file that they cannot read whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/instance.h"
#include "import/ir_net.h"

namespace berth {

// The most devices that a file may ask for.
inline constexpr size_t kMostDevices = 1024;

// Tarnawski et al. 2020, "Efficient Algorithms for Device Placement of DNN Graph Operators"
// (msr-fiddle/dnn-partitioning), an "FPGA" being any accelerator: devices fpga0 .. and cpu0 .., op times, staging costs
// and colour classes. A node's size is a parameter of its own. Milliseconds.
struct MsrOptions {
  size_t least_accelerators = 0;  // more than the file has: a what-if, for splits that use more
};
bool LooksLikeMsr(std::string_view content);
Instance ReadMsr(std::string_view content, const std::string& path, const MsrOptions& options = {});

// Tarnawski et al. 2021, "Piper" (msr-fiddle/piper): devices acc0 .., a tensor per edge. At tensor degree 1 each layer
// has two configurations, which are the file's two columns of costs; read_piper.h keeps all of them. One unit is one
// second.
enum class PiperConfiguration : uint8_t { kVanilla, kRecomputation };
bool LooksLikePiper(std::string_view content);
Instance ReadPiper(std::string_view content, const std::string& path,
                   PiperConfiguration configuration = PiperConfiguration::kVanilla);

// PipeDream's profiles (msr-fiddle/pipedream, graph.txt): layers with their forward and backward times on a GPU
// (times_by_kind). Training: each layer becomes two ops, colocated. Milliseconds.
struct PipeDreamOptions {
  bool training = true;  // false: the forward pass alone
};
bool LooksLikePipeDream(std::string_view content);
Instance ReadPipeDream(std::string_view content, const std::string& path, const PipeDreamOptions& options = {});

// Graphs as Placeto's simulator takes them (Addanki et al. 2019): whole microseconds by kind of device, bytes by
// output.
bool LooksLikePlaceto(std::string_view content);
Instance ReadPlaceto(std::string_view content, const std::string& path);

// Moirai's instances (moirai-placement/moirai, arXiv 2312.04025): times on unequal devices, memory, and a time per edge
// and pair of devices, paid per edge. What a task holds is a parameter of its own. One unit is one second.
bool LooksLikeMoirai(std::string_view content);
Instance ReadMoirai(std::string_view content, const std::string& path);

// Tasks on processors with a delay per edge between any two of them: instances around a planted optimum, and the
// classic examples of list scheduling. One unit is one second.
bool LooksLikePlanted(std::string_view content);
Instance ReadPlanted(std::string_view content, const std::string& path);

// Reads as many bytes of an IR's weights as there is room for; false where they are not there.
using IrWeights = std::function<bool(int64_t offset, std::span<char> bytes)>;
// Of the file of that name with the ending .bin.
IrWeights WeightsBeside(const std::string& path);
// OpenVINO's intermediate representation, the .xml of a model. Dynamic dimensions count as 1. Of `weights`, which may
// be empty, nothing is read but what says how many rounds loops have. `notes`: what else there is to say of the graph.
bool LooksLikeIr(std::string_view content);
Graph ReadIr(std::string_view content, const std::string& path, IrView view, const IrWeights& weights = {},
             std::vector<std::string> notes = {});

// Formats that another program reads (import/other_reader.h): TensorFlow's frozen graphs, binary or as text, TensorFlow
// Lite and Paddle.
bool LooksLikeTensorFlow(std::string_view content);
bool LooksLikeTfLite(std::string_view content);
bool LooksLikePaddle(std::string_view content);

}  // namespace berth
