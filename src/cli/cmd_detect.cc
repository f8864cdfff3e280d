#include <optional>

#include "base/catalog.h"
#include "base/file.h"
#include "base/stopwatch.h"
#include "base/system_limits.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/machine.h"
#include "exec/detect.h"
#include "report/cluster_page.h"
#include "report/json.h"
#include "report/table.h"

namespace berth {
namespace {

constexpr double kQuickSeconds = 8, kSeconds = 45;

// "cpu:2".
size_t ParseSplit(const std::string& text) {
  if (text.empty()) return 1;
  if (!text.starts_with("cpu:")) throw Error("--split {}: expected cpu: and a number of devices, like cpu:2", text);
  return ParseCount("--split cpu", text.substr(4), 1);
}

// "f32,bf16".
std::vector<std::string> ParsePrecisions(const std::string& text) {
  std::vector<std::string> precisions = SplitList(text);
  for (const std::string& precision : precisions) {
    if (const std::string mistake = PrecisionMistake(precision); !mistake.empty()) {
      throw Error("--precision {}: {}", text, mistake);
    }
  }
  return precisions;
}

}  // namespace

int DetectCluster(const DetectArguments& arguments) {
  CheckWritable(arguments.output);
  const size_t split = ParseSplit(arguments.split);
  const DeviceCores usable = CoresFor(split);
  std::vector<std::string> warnings;
  const DetectOptions options = {.cores = usable.cores,
                                 .split = split,
                                 .precisions = ParsePrecisions(arguments.precision),
                                 .memory = MemoryBytes(),
                                 .seconds = arguments.quick ? kQuickSeconds : kSeconds,
                                 .warn = [&](const std::string& text) { warnings.push_back(text); }};
  if (split > usable.physical && split <= options.cores.size()) {
    Warn(fmt::format(
        "--split cpu:{}: there are {}, so devices are threads of one core: each is measured alone, and is slower while "
        "the other computes",
        split, Counted(static_cast<int64_t>(usable.physical), "physical core")));
  }
  const auto cores = static_cast<double>(options.cores.size());
  if (const std::optional<double> limit = ProcessorLimitBelow(options.cores.size())) {
    const bool even_alone = *limit < cores / static_cast<double>(split);
    Warn(fmt::format("this process may use {}, but only the time of {:.3g} (cpu.max of its control group): {}",
                     Counted(std::ssize(options.cores), "core"), *limit,
                     even_alone ? "rates are measured under that limit"
                                : "devices that compute at the same time may be slower than measured, since each is "
                                  "measured alone"));
  }
  const Stopwatch watch;
  const Cluster cluster = [&] {
    ProgressLine progress;
    progress.Show(fmt::format("measuring, about {:.0f} s", options.seconds));
    return DetectMachine(options);
  }();
  const double took = watch.seconds();
  for (const std::string& text : warnings) Warn(text);
  if (!arguments.output.empty()) WriteFile(arguments.output, WriteCluster(cluster));
  if (arguments.json) {
    Print(DumpJson(ClusterJson(cluster)));
    return 0;
  }
  std::string text = ClusterPage(cluster) + "\n" + Line(fmt::format("Measured in {:.1f} s.", took));
  if (!arguments.output.empty()) {
    text +=
        "\n" + Line(fmt::format("Written to {0}: berth plan MODEL --cluster {0} -o plan.json, then berth run plan.json",
                                ShellWord(Printable(arguments.output))));
  }
  Print(text);
  return 0;
}

}  // namespace berth
