// Measured times of ops: ReadProfile, and a problem's times by them.
#include "import/profile.h"

#include <cmath>

#include "tests/fuzz/json_mutator.h"
#include "tests/fuzz/small_problem.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return berth::fuzz::MutateJson(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string path = "fuzz.json";
  fuzz::Survives(
      path, [&] { return ReadProfile(fuzz::Text(data, size), path); },
      [&](const std::vector<OpProfile>& profiles) {
        FUZZ_CHECK(!profiles.empty());
        const OpProfile& profile = profiles.front();
        for (const OpProfile& one : profiles) FUZZ_CHECK(!one.time_by_op.empty());
        for (const auto& [name, time] : profile.time_by_op) {
          FUZZ_CHECK(!name.empty() && std::isfinite(time.value) && time.value >= 0, "'{}' takes {}", name, time.value);
        }
        const Problem& problem = fuzz::SmallProblem();
        OpTimes times = fuzz::TimesOf(problem);
        const std::vector<DeviceId> devices = {MakeId<DeviceId>(0), MakeId<DeviceId>(1)};
        fuzz::Survives(
            path, [&] { return ApplyProfile(profile, problem.graph(), problem.cluster(), devices, times); },
            [&](size_t found) {
              FUZZ_CHECK(found > 0 && found <= problem.num_ops());
              for (const double time : times.time) FUZZ_CHECK(time >= 0 && time < kCannotRun, "an op takes {}", time);
              for (const Kernel& kernel : times.kernels) {
                for (const double time : kernel.apart) FUZZ_CHECK(time >= 0, "apart an op takes {}", time);
              }
            });
      });
  return 0;
}
