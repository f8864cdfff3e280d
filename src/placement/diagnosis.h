// Why no plan can exist: a smallest set of constraints that cannot be kept together, and what to relax.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "placement/constraint_subset.h"
#include "placement/memory_gap.h"
#include "placement/problem.h"

namespace berth {

// How many ops the summary of a kPlacement names; of more, these and their count.
inline constexpr size_t kNamedOps = 4;

// A certain answer. Names instead of numbers: it outlives the graph.
struct Diagnosis {
  enum class Kind : uint8_t {
    kPlacement,  // devices, whatever the memory
    kMemory,     // bytes
  };
  Kind kind{};
  std::string summary{};  // one sentence
  std::vector<ConstraintText>
      constraints{};                    // without any of them the others can be kept; empty: it is the devices alone
  std::vector<std::string> ops{};       // which cannot be placed; empty when they are too many to be told apart
  std::vector<std::string> reasons{};   // one line each: which op may be where
  std::vector<std::string> remedies{};  // one line each
  std::vector<std::string> devices{};   // kMemory: those that the bytes would have to fit on
  int64_t needed_bytes = 0, available_bytes = 0;  // kMemory
};

// Knows a problem as it is without its constraints, so that it can leave some of them out.
class ConstraintCheck {
 public:
  // `times` and `options` are those before ApplyConstraints.
  ConstraintCheck(std::shared_ptr<const Graph> graph, std::shared_ptr<const Cluster> cluster, const OpTimes& times,
                  const Problem::Options& options, std::vector<Constraint> constraints);

  // Nothing when nothing shows that no plan exists, which does not mean that one does: colourings too hard to decide,
  // and memory beyond necessary conditions, are left to the planners. `memory_rule` as MemoryRule calls it: under
  // "berth" and "msr" each parameter lies on some device that can run one of its ops, and under "berth" an op's inputs,
  // outputs and workspace lie beside the parameters of its unit; "none" looks at devices alone.
  std::optional<Diagnosis> Diagnose(std::string_view memory_rule) const;

  // The constraints that a placement does not keep, each with its Breach.
  std::vector<std::pair<ConstraintText, std::string>> Broken(std::span<const DeviceId> device) const;

 private:
  bool Impossible(std::span<const size_t> chosen, std::string_view memory_rule) const;
  std::vector<size_t> SmallestConflict(std::string_view memory_rule) const;
  std::vector<OpId> FewestOps(std::span<const size_t> chosen) const;
  Diagnosis DescribePlacement(std::span<const size_t> chosen) const;
  Diagnosis DescribeMemory(std::span<const size_t> chosen, const MemoryGap& gap) const;
  std::string WhyNowhere(std::span<const size_t> chosen, OpId op) const;
  std::string WhereItMayBe(const ConstraintSubset& subset, OpId op) const;
  std::string DeviceNames(std::span<const DeviceId> devices) const;

  ConstrainedModel model_;  // with the constraints that the model's file brings
};

}  // namespace berth
