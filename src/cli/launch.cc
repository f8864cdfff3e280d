#include "cli/launch.h"

#include <charconv>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "cli/learning.h"

namespace berth {
namespace {

std::optional<int64_t> NumberIn(const char* text) {
  if (text == nullptr) return std::nullopt;
  const std::string_view all = text;
  int64_t number = 0;
  const auto [end, code] = std::from_chars(all.data(), all.data() + all.size(), number);
  if (code != std::errc() || end != all.data() + all.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

Launch LaunchOf(const std::function<const char*(const char*)>& environment) {
  struct Launcher {
    const char *size, *rank;
  };
  // Where srun starts programs without PMI(x), they do not know of each other and are not ours to join.
  for (const auto& [size, rank] : {Launcher{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                   Launcher{"PMI_SIZE", "PMI_RANK"}, Launcher{"SLURM_STEP_NUM_TASKS", "PMIX_RANK"}}) {
    const std::optional<int64_t> of = NumberIn(environment(size)), own = NumberIn(environment(rank));
    if (of && own && *own < *of) return {.size = *of, .rank = *own, .variable = size};
  }
  return {};
}

Launch ThisLaunch() {
  return LaunchOf([](const char* name) { return std::getenv(name); });
}

void CheckLaunch(const Launch& launch, bool trains) {
  if (launch.size == 1) return;
  const std::string started =
      fmt::format("{} processes were started together ({}={})", launch.size, launch.variable, launch.size);
  if (!trains) {
    throw Error("{}, and only `berth train` divides its work among them; start one", started);
  }
  if (!kCanLearn) throw Error("training {}", kNeedsTorch);
  if (!kHasMpi) {
    throw Error(
        "{}, and this berth was built without MPI, so each would train alone; start one, or build it anew after "
        "./dev setup mpi",
        started);
  }
}

std::unique_ptr<Ranks> JoinLaunch(const Launch& launch) {
  if (launch.size == 1) return std::make_unique<Alone>();
  auto* const join = Learning().join_ranks;
  BERTH_CHECK(join != nullptr);
  std::unique_ptr<Ranks> ranks = join();
  if (ranks->size() == launch.size) return ranks;
  throw Error(
      "{}={}, but MPI knows of {}: the launcher and the MPI that berth was built with do not belong together; "
      "use that one's mpirun",
      launch.variable, launch.size, ranks->size());
}

int Together(Ranks& ranks, const std::function<int()>& work) {
  std::exception_ptr mistake;
  std::string text;
  int code = 0;
  try {
    code = work();
  } catch (const Error& error) {
    mistake = std::current_exception();
    text = error.what();
  } catch (const std::bad_alloc&) {
    mistake = std::current_exception();
    text = "what is to be trained does not fit into its memory";
  }
  const std::string theirs = ranks.End(text);
  if (!ranks.first()) return 0;
  if (mistake) std::rethrow_exception(mistake);
  if (!theirs.empty()) throw Error("{}", theirs);
  return code;
}

}  // namespace berth
