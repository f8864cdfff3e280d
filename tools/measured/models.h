// What the tables of docs/measured.md are measured on, and how a measurement stands in them.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "cli/catalogs.h"
#include "cli/problem_strings.h"
#include "cli/saved_plan.h"
#include "cli/scratch_folder.h"
#include "exec/openvino.h"

namespace berth::measured {

// A model on one device, seconds.
struct OneDevice {
  // Without counters, in turns with the runs that the profile is made of: the median, at the device file's speed.
  double when_profiled = 0;
  Measurement measured{};  // right after that, by another process, without counters; of several compilations
};

// Models on these devices, the op times of each measured when it is first asked for, over so many runs.
class Models {
 public:
  Models(const Catalogs& catalogs, std::shared_ptr<const Cluster> cluster, size_t runs)
      : catalogs_(catalogs), cluster_(std::move(cluster)), runs_(runs) {}

  ProblemStrings Strings(const std::string& model);
  // The first device alone.
  const OneDevice& Alone(const std::string& model) { return Profiled(model).alone; }
  void SetCluster(Cluster cluster) { cluster_ = std::make_shared<const Cluster>(std::move(cluster)); }
  const Cluster& cluster() const { return *cluster_; }

 private:
  struct Profile {
    std::string costs;
    OneDevice alone;
  };
  const Profile& Profiled(const std::string& model);
  ProblemStrings Unprofiled(const std::string& model) const;

  const Catalogs& catalogs_;
  std::shared_ptr<const Cluster> cluster_;
  size_t runs_;
  ScratchFolder folder_{"berth_measured"};
  std::map<std::string, Profile> profiles_;
};

// The median of its runs in milliseconds and its 95 % interval, or why there is none.
std::string Cell(const Measurement& measurement);

// The plan that this planner makes, with so many evaluations.
SavedPlan MakeSaved(const Catalogs& catalogs, const ProblemStrings& strings, const char* planner, int64_t evaluations);

}  // namespace berth::measured
