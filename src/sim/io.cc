#include "sim/io.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"

namespace berth {
namespace {

constexpr std::string_view kAuto = "auto", kEverywhere = "everywhere", kHost = "host";

}  // namespace

Parameter IoParameter() {
  return {.name = "io",
          .type = ParameterType::kText,
          .default_value = std::string(kAuto),
          .sentence =
              "where graph inputs start and outputs return to: everywhere, at no cost; host, the first device "
              "of kind cpu; or a device's name. auto: host where there is a cpu, else everywhere"};
}

Io::Io(const Params& params, const Problem& problem) : text_(params.Text("io")) {
  const Cluster& cluster = problem.cluster();
  const auto ids = cluster.ids();
  const auto cpu = std::find_if(ids.begin(), ids.end(), [&](DeviceId id) { return problem.on_host(id); });
  const bool has_cpu = cpu != ids.end();
  if (text_ == kAuto) text_ = has_cpu ? kHost : kEverywhere;
  if (text_ == kEverywhere) return;
  if (text_ != kHost) {
    try {
      host_ = cluster.Find(text_);
    } catch (const Error& error) {
      throw Error("io={}: {}; or write io=everywhere, io=host or io=auto", text_, error.what());
    }
    // A number stays one where the device is called like one of the words.
    const std::string& name = cluster.device(*host_).name;
    if (name != kAuto && name != kEverywhere && name != kHost) text_ = name;
    return;
  }
  if (!has_cpu) {
    throw Error(
        "io=host: cluster {} has no device of kind cpu; name the device where inputs start among the "
        "evaluator's parameters, like io={}, or write io=everywhere",
        cluster.name(), cluster.device(DeviceId{0}).name);
  }
  host_ = *cpu;
}

}  // namespace berth
