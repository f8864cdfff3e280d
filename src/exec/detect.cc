#include "exec/detect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <set>
#include <span>

#include "base/error.h"
#include "cluster/pace.h"
#include "exec/openvino.h"
#include "exec/statistics.h"
#include "exec/worker_process.h"

namespace berth {
namespace {

// Seconds; to start, and for what a pair of devices takes however little time there is.
constexpr double kAskLimit = 300, kPairLimit = 2;

nlohmann::json AskFor(WorkerProcess& worker, const nlohmann::json& question, double limit) {
  nlohmann::json answer = worker.Ask(question, limit);
  if (answer.contains("error")) throw Error("measuring this machine: {}", answer.at("error").get<std::string>());
  return answer;
}

// To four digits, which is more than repeated measurements agree in.
double Rounded(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 3);
  return std::stod(fmt::format("{:.4g}", std::round(value / unit) * unit));
}

// Numbers with how they were found and how far their repetitions were apart; remembers where that was the most.
class Measurer {
 public:
  Quantity operator()(const std::vector<double>& values, const std::string& how) {
    const double median = Median(values);
    const auto [least, most] = std::ranges::minmax(values);
    const double percent = 100 * (most - least) / median;
    if (percent > widest_) {
      widest_ = percent;
      by_ = how;
    }
    return {Rounded(median), Provenance::kMeasured, fmt::format("{}; {:.0f} % between the runs", how, percent)};
  }

  void Warn(const std::function<void(const std::string&)>& warn) const {
    constexpr double kUnsteady = 100;
    if (widest_ <= kUnsteady || !warn) return;
    warn(
        fmt::format("runs of one number ({}) differ by up to {:.0f} %: other programs have the cores, or their "
                    "clock changes; detect again on a machine at rest",
                    by_, widest_));
  }

 private:
  double widest_ = 0;
  std::string by_;
};

std::vector<double> Numbers(const nlohmann::json& answer, const char* key) {
  return answer.at(key).get<std::vector<double>>();
}

// Lower case, without what a name of a device cannot hold: "GPU.1" -> "gpu1".
std::string NameOf(const std::string& runs_on) {
  std::string name;
  for (const char c : runs_on) {
    if (c != '.') name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return name;
}

std::string KindOf(const std::string& runs_on) {
  const std::string name = runs_on.substr(0, runs_on.find('.'));
  return name == "CPU" ? "cpu" : name == "GPU" ? "gpu" : name == "NPU" ? "npu" : "other";
}

std::vector<Device> FindDevices(const nlohmann::json& found, const DetectOptions& options) {
  std::vector<Device> devices;
  for (const nlohmann::json& one : found) {
    const std::string runs_on = one.at("runs_on");
    Device device;
    device.name = NameOf(runs_on);
    device.kind = KindOf(runs_on);
    device.runs_on = runs_on;
    if (runs_on != "CPU") {
      const double memory = one.value("memory_bytes", 0.0);
      if (memory > 0) device.memory = Quantity{memory, Provenance::kMeasured, "OpenVINO"};
      devices.push_back(std::move(device));
      continue;
    }
    const size_t each = options.cores.size() / options.split;
    for (size_t i = 0; i < options.split; ++i) {
      Device part = device;
      if (options.split > 1) part.name = fmt::format("cpu{}", i);
      if (!options.precisions.empty()) {
        part.precision = options.precisions[options.precisions.size() == 1 ? 0 : i];
      }
      const auto first = options.cores.begin() + static_cast<std::ptrdiff_t>(i * each);
      part.cores.assign(first, first + static_cast<std::ptrdiff_t>(each));
      // They share one memory; each may fill its part of it.
      if (options.memory > 0) {
        part.memory = Quantity{std::floor(options.memory / static_cast<double>(options.split)), Provenance::kMeasured,
                               options.split > 1 ? "the operating system; an equal part each" : "the operating system"};
      }
      devices.push_back(std::move(part));
    }
  }
  return devices;
}

// Tells equal parts of the processor at one pace, the median over them: they were measured one after another, at
// moments of which one may have been slower, and would seem to differ.
void TellAtOnePace(const std::vector<Device>& devices, nlohmann::json& answers) {
  std::vector<std::vector<double>> paces;  // by device; none of what could not be measured, or is no processor
  for (const nlohmann::json& answer : answers) paces.push_back(answer.value("pace", std::vector<double>{}));
  // Equal cores reach the same pace at their best; of fast and slow ones of one processor none is told as the other.
  const auto same = [&](size_t a, size_t b) {
    constexpr double kSame = 1.1;
    if (paces[a].empty() || paces[b].empty() || devices[a].cores.size() != devices[b].cores.size() ||
        devices[a].precision != devices[b].precision) {
      return false;
    }
    const double best_a = std::ranges::min(paces[a]), best_b = std::ranges::min(paces[b]);
    return std::max(best_a, best_b) < kSame * std::min(best_a, best_b);
  };
  std::vector<double> common(devices.size(), 0);
  for (size_t i = 0; i < devices.size(); ++i) {
    std::vector<double> all;
    for (size_t k = 0; k < devices.size(); ++k) {
      if (same(i, k)) std::ranges::copy(paces[k], std::back_inserter(all));
    }
    if (!all.empty()) common[i] = Median(all);
  }
  const auto scale = [](nlohmann::json& values, double factor) {
    for (nlohmann::json& value : values) value = value.get<double>() * factor;
  };
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!(common[i] > 0)) continue;
    const double slower = Slowdown(Median(paces[i]), common[i]);
    for (auto& [precision, rates] : answers[i].at("rates").items()) {
      for (auto& [op_class, values] : rates.items()) scale(values, slower);
    }
    scale(answers[i].at("bandwidth"), slower);
    scale(answers[i].at("op_overhead"), 1 / slower);
    answers[i]["pace"] = common[i];
  }
}

// The peak is the best that any op reached; efficiencies are what each class reached of it in the device's precision.
void SetRates(const nlohmann::json& answer, Measurer& measure, Device& device) {
  for (const auto& [precision, rates] : answer.at("rates").items()) {
    const std::vector<double> products = Numbers(rates, "matmul_flops"), convolutions = Numbers(rates, "conv_flops");
    const bool product = Median(products) >= Median(convolutions);
    device.peak[precision] =
        measure(product ? products : convolutions, product ? "products of matrices" : "convolutions");
  }
  const nlohmann::json& own = answer.at("rates").at(device.precision);
  const std::vector<double> matmul = Numbers(own, "matmul_flops"), conv = Numbers(own, "conv_flops");
  const double peak = device.peak[device.precision].value;
  // A processor reads what it is given where it lies.
  const std::string copies = device.kind == "cpu" ? "" : ", its input and result copied over the bus";
  const auto share = [&](std::vector<double> rates, const char* how) {
    for (double& rate : rates) rate /= peak;
    Quantity quantity = measure(rates, how);
    quantity.value = std::min(1.0, quantity.value);
    return quantity;
  };
  device.efficiency["matmul"] = share(matmul, "products of matrices");
  device.efficiency["conv"] = share(conv, "convolutions 3x3 of 64 channels");
  device.memory_bandwidth =
      measure(Numbers(answer, "bandwidth"), "an elementwise op on more than the caches hold" + copies);
  device.op_overhead = measure(Numbers(answer, "op_overhead"), "a chain of tiny ops");
  if (const auto pace = answer.find("pace"); pace != answer.end() && pace->is_number()) device.pace = Rounded(*pace);
}

}  // namespace

std::vector<int> OnePerPhysicalCore(const std::vector<int>& cores, const std::string& folder) {
  std::vector<int> first;
  std::set<std::string> seen;
  for (const int core : cores) {
    // "0,4": the same text for all threads of a core.
    std::string threads;
    std::ifstream file(fmt::format("{}/cpu{}/topology/thread_siblings_list", folder, core));
    if (!std::getline(file, threads) || seen.insert(threads).second) first.push_back(core);
  }
  return first;
}

Cluster DetectMachine(const DetectOptions& options) {
  if (options.split < 1 || options.split > options.cores.size()) {
    throw Error("--split cpu:{}: this process may use {}; give each device at least one", options.split,
                Counted(static_cast<int64_t>(options.cores.size()), "core"));
  }
  if (options.precisions.size() > 1 && options.precisions.size() != options.split) {
    throw Error("--precision {}: {} for {}; give one for each, or one for all", fmt::join(options.precisions, ","),
                Counted(static_cast<int64_t>(options.precisions.size()), "precision"),
                Counted(static_cast<int64_t>(options.split), "device"));
  }
  WorkerProcess worker(options.program.empty() ? OpenVinoProgram() : options.program);
  const nlohmann::json found = AskFor(worker, {{"do", "devices"}}, kAskLimit);
  std::vector<Device> devices = FindDevices(found.at("devices"), options);
  nlohmann::json list = nlohmann::json::array();
  for (const Device& device : devices) {
    list.push_back(RuntimeDeviceJson(device));
  }
  const double limit = kAskLimit + 10 * options.seconds + kPairLimit * static_cast<double>(list.size() * list.size());
  nlohmann::json answer = AskFor(worker, {{"do", "detect"}, {"devices", list}, {"seconds", options.seconds}}, limit);
  TellAtOnePace(devices, answer.at("devices"));
  const size_t all = devices.size();
  Measurer measure;
  std::vector<size_t> measured;  // by number in the answer
  for (size_t i = 0; i < all; ++i) {
    const nlohmann::json& one = answer.at("devices").at(i);
    if (!one.contains("error")) {
      SetRates(one, measure, devices[i]);
      measured.push_back(i);
    } else if (options.warn) {
      options.warn(fmt::format("{} is left out, since it could not be measured: {}", devices[i].name,
                               one.at("error").get<std::string>()));
    }
  }
  if (measured.empty()) {
    throw Error("measuring this machine: no device could be measured; the first: {}",
                answer.at("devices").at(0).at("error").get<std::string>());
  }
  const size_t count = measured.size();
  std::vector<Device> kept;
  for (const size_t i : measured) kept.push_back(std::move(devices[i]));
  std::vector<Link> links(count * count);
  std::vector<std::string> unknown;
  for (size_t from = 0; from < count; ++from) {
    for (size_t to = 0; to < count; ++to) {
      const nlohmann::json& link = answer.at("links").at(measured[from] * all + measured[to]);
      if (from == to) continue;
      Link& made = links[from * count + to];
      if (link.contains("error") && options.warn) {
        options.warn(fmt::format("the link from {} to {} is a guess, since it could not be measured: {}",
                                 kept[from].name, kept[to].name, link.at("error").get<std::string>()));
      }
      if (link.is_null()) unknown.push_back(kept[from].name + " -> " + kept[to].name);
      if (link.is_null() || link.contains("error")) {
        made.latency = {20e-6, Provenance::kGuess, "a usual bus"};
        made.bandwidth = {12e9, Provenance::kGuess, "a usual bus"};
        continue;
      }
      made.latency = measure(Numbers(link, "latency"), "to hand over a tensor and to begin a part of a model");
      made.bandwidth = measure(Numbers(link, "bandwidth"), "to read what another core wrote");
    }
  }
  measure.Warn(options.warn);
  if (!unknown.empty() && options.warn) {
    constexpr size_t kNamed = 2;
    const std::span named = std::span(unknown).first(std::min(unknown.size(), kNamed));
    options.warn(fmt::format(
        "{} of {} links are guesses ({}{}): only links between parts of the processor are measured; "
        "write what you know of the others into the device file",
        unknown.size(), count * (count - 1), fmt::join(named, ", "), unknown.size() > kNamed ? ", ..." : ""));
  }
  return Cluster("here", std::move(kept), std::move(links));
}

}  // namespace berth
