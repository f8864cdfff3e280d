// What the benchmarks of learned planners share: running many, and saying what came of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/catalogs.h"
#include "cli/problem_factory.h"

namespace berth::learned {

// What one planner did on one problem with one seed.
struct Outcome {
  double seconds = 0;              // of the best placement
  std::optional<double> policy{};  // of the policy's likeliest placement
  std::optional<double> drawn{};   // of the best that its policy drew, where nothing else was scored before its answer
  int64_t near_evaluations = 0;    // until within 1 % of the optimum; 0: never
  std::optional<double> decisions{};  // per placement, at the end of learning
  double wall = 0;
};

// `near`: seconds; what counts as near the optimum, or 0.
Outcome Play(const Catalogs& catalogs, const Setup& setup, const std::string& planner, int64_t evaluations,
             uint64_t seed, double near = 0);

// Placeto's published form, with what its authors say must be tuned: rewards that do not depend on the graph's size,
// and an entropy bonus that ends.
inline constexpr const char* kTuned =
    "mode=paper,reward=log,normalise=true,entropy=0.01,entropy_end=0,learning_rate=0.003,learning_rate_end=0.0003";

double Mean(const std::vector<double>& values);
double Deviation(const std::vector<double>& values);

// Runs jobs on all processors, in any order; each writes to a place of its own.
class Jobs {
 public:
  void Add(std::function<void()> job) { jobs_.push_back(std::move(job)); }
  void Run();

 private:
  std::vector<std::function<void()>> jobs_;
};

struct Part {
  const char* name;
  const char* sentence;
  // Writes the part's section to standard output, and its pictures into the folder `pictures`, where that is named.
  void (*write)(const Catalogs& catalogs, bool quick, const std::string& pictures);
};
void WriteHsdag(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteHsdagAblations(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WritePlaceto(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WritePlacetoAblations(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteTrainingGraphs(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteHdp(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteGdp(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteGdpTraining(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteGdpScale(const Catalogs& catalogs, bool quick, const std::string& pictures);
void WriteFamilies(const Catalogs& catalogs, bool quick, const std::string& pictures);

}  // namespace berth::learned
