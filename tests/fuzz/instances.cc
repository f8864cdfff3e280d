// Published data sets in the formats of their own: the readers of import/readers.h, as --format auto finds them.
#include "import/readers.h"
#include "tests/fuzz/graph_promises.h"
#include "tests/fuzz/json_mutator.h"

namespace {

using namespace berth;

// A problem of the file's own devices, or of a cluster's where it has times by kind of device.
void CheckInstance(const Instance& instance) {
  fuzz::CheckGraph(*instance.graph);
  FUZZ_CHECK(instance.file_ids.empty() || instance.file_ids.size() == instance.graph->num_ops());
  if (instance.times) {
    for (const double time : instance.times->time) FUZZ_CHECK(time >= 0, "an op takes {}", time);
  }
  const auto use = [&](const Problem& problem) {
    if (instance.plan) FindViolation(problem, instance.plan->view());
  };
  // What no device can run is the user's mistake, which the problem names.
  if (instance.is_whole()) fuzz::Survives("", [&] { return instance.ToProblem(); }, use);
  if (!instance.times_by_kind.empty()) {
    const auto cluster = std::make_shared<const Cluster>(fuzz::AnyCluster());
    fuzz::Survives("", [&] { return instance.On(cluster); }, use);
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return berth::fuzz::MutateJson(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = "fuzz.json";
  const std::string_view text = fuzz::Text(data, size);
  const auto read = [&](const auto& reader) { fuzz::Survives(path, reader, CheckInstance); };
  if (LooksLikeMsr(text)) {
    read([&] { return ReadMsr(text, path); });
    read([&] { return ReadMsr(text, path, {.least_accelerators = 3}); });
  }
  if (LooksLikePiper(text)) {
    read([&] { return ReadPiper(text, path); });
    read([&] { return ReadPiper(text, path, PiperConfiguration::kRecomputation); });
  }
  if (LooksLikePipeDream(text)) {
    read([&] { return ReadPipeDream(text, path); });
    read([&] { return ReadPipeDream(text, path, {.training = false}); });
  }
  if (LooksLikePlaceto(text)) read([&] { return ReadPlaceto(text, path); });
  if (LooksLikeMoirai(text)) read([&] { return ReadMoirai(text, path); });
  if (LooksLikePlanted(text)) read([&] { return ReadPlanted(text, path); });
  return 0;
}
