// What the benchmarks of learned planners share: running many, and saying what came of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/catalogs.h"
#include "cli/problem_factory.h"
#include "exec/statistics.h"
#include "learn/training.h"

namespace berth::learned {

// The best so far has become better.
struct Improvement {
  int64_t evaluations = 0;  // up to and with this one
  double found = 0;         // seconds, of the best
  double processor = 0;     // seconds of the thread that asked, since the search began
};

// What one planner did on one problem with one seed.
struct Outcome {
  double found = 0;  // seconds, of the best placement that was scored, whoever brought it up; infinite: none fits
  int64_t evaluations = 0;
  std::optional<Learned> learned{};
  std::vector<Improvement> improvements{};
  double processor = 0;  // seconds of the thread that asked
  double wall = 0;
};

// Of a plan's score; infinite where it does not fit.
double SecondsOf(const Problem& problem, const Score& score);

// `threads`: 0 for as many as there are cores; no result depends on it.
Outcome Play(const Catalogs& catalogs, const Setup& setup, const std::string& planner, int64_t evaluations,
             uint64_t seed, int64_t threads = 1);

// Placeto's published form, with what its authors say must be tuned: rewards that do not depend on the graph's size,
// and an entropy bonus that ends.
inline constexpr const char* kTuned =
    "mode=paper,reward=log,normalise=true,entropy=0.01,entropy_end=0,learning_rate=0.003,learning_rate_end=0.0003";

// A folder that goes when it is done with.
class Scratch {
 public:
  explicit Scratch(const std::string& name);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// One policy on all cases, on one thread, as `berth train` does it; with validation, of twice as many checkpoints.
TrainingResult TrainOn(const Catalogs& catalogs, const std::string& planner, const std::vector<TrainingCase>& cases,
                       const std::vector<TrainingCase>& tests, int64_t updates, uint64_t seed, const Scratch& folder,
                       const std::vector<TrainingCase>& validation = {});

// Of a processor that this thread has used, however busy the machine is.
double ProcessorSeconds();

// How many seconds of a processor `run(all)` will take, from those of `run(few)` and `run(more)`: what grows with the
// amount grows evenly.
double Foresee(const std::function<void(int64_t amount)>& run, int64_t few, int64_t more, int64_t all);

// The same of a training by TrainOn, from two short ones that have as many checkpoints, which cost time too.
double ForeseeTraining(const std::function<void(int64_t updates)>& train, int64_t updates, bool validates = false);

// Says to standard error, before the part begins, how long it will take. `runs`: of what, like "3 runs of gdp".
void SayPlan(std::string_view part, double seconds, const std::string& runs);

// Runs jobs on all processors, in any order; each writes to a place of its own.
class Jobs {
 public:
  void Add(std::function<void()> job) { jobs_.push_back(std::move(job)); }
  void Run();

 private:
  std::vector<std::function<void()>> jobs_;
};

// Where Placeto's published graphs lie.
inline constexpr const char* kPlacetoGraphs = BERTH_SHARED_DIR "/data/placeto/graphs";

struct Part {
  const char* name;
  const char* sentence;
  // Writes the part's section to standard output, and its pictures into the folder `pictures`, where that is named.
  void (*write)(const Catalogs& catalogs, bool quick, const std::string& pictures);
  const char* needs = nullptr;  // a folder that not everybody has
};
void WriteHsdag(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteHsdagOthers(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteHsdagElsewhere(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteHsdagLearning(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteHsdagAblations(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WritePlaceto(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WritePlacetoAblations(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteTrainingGraphs(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteHdp(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteGdp(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteGdpBatch(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteGdpTraining(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteGdpPace(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteGdpLarge(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteGdpTransfer(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteGdpScale(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteFamilies(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteUnrolled(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteFirstCase(const Catalogs& catalogs, bool quick, const std::string& pictures);

}  // namespace berth::learned
