#include "report/diagnosis_page.h"

#include <algorithm>

#include "report/table.h"

namespace berth {
namespace {

constexpr size_t kShownOps = 8;
constexpr size_t kShownConstraints = 20;

// A title and its lines, the first `most` of them.
std::string Block(const std::string& title, std::vector<std::string> lines, size_t most) {
  if (lines.empty()) return {};
  const size_t all = lines.size();
  lines.resize(std::min(all, most));
  if (all > most) lines.push_back(fmt::format("and {} more (--json names them all)", all - most));
  std::string text = "\n" + title + "\n";
  for (const std::string& line : lines) text += Item(Legible(line), "    ");
  return text;
}

}  // namespace

std::string DiagnosisPage(const Diagnosis& diagnosis) {
  std::string text = Wrap(Legible("No plan exists: " + diagnosis.summary + "."), "");
  std::vector<std::string> constraints;
  for (const ConstraintText& constraint : diagnosis.constraints) {
    constraints.push_back(constraint.place.empty() ? constraint.ToString()
                                                   : fmt::format("{}  ({})", constraint.ToString(), constraint.place));
  }
  const size_t count = constraints.size();
  text += Block(count == 1 ? "The constraint that makes it so:"
                           : fmt::format("The {} constraints that together make it so:", count),
                std::move(constraints), kShownConstraints);
  text += Block("Where the ops may be:", diagnosis.reasons, kShownOps);
  // The summary names a few.
  const size_t named = diagnosis.kind == Diagnosis::Kind::kPlacement ? kNamedOps : 1;
  if (diagnosis.ops.size() > named) {
    text += Block(fmt::format("The ops, {} in all:", diagnosis.ops.size()), diagnosis.ops, kShownOps);
  }
  text += Block(
      diagnosis.remedies.size() > 1 ? "What to do (one of these; if more is wrong, it shows then):" : "What to do:",
      diagnosis.remedies, kShownConstraints);
  return text;
}

Json DiagnosisJson(const Diagnosis& diagnosis) {
  Json constraints = Json::array();
  for (const ConstraintText& constraint : diagnosis.constraints) {
    constraints.push_back({{"constraint", constraint.ToString()}, {"place", constraint.place}});
  }
  Json json = {{"kind", diagnosis.kind == Diagnosis::Kind::kMemory ? "memory" : "placement"},
               {"summary", diagnosis.summary},
               {"constraints", std::move(constraints)},
               {"ops", diagnosis.ops},
               {"reasons", diagnosis.reasons},
               {"remedies", diagnosis.remedies}};
  if (diagnosis.kind == Diagnosis::Kind::kMemory) {
    json["devices"] = diagnosis.devices;
    json["needed_bytes"] = diagnosis.needed_bytes;
    json["available_bytes"] = diagnosis.available_bytes;
  }
  return {{"feasible", false}, {"impossible", std::move(json)}};
}

}  // namespace berth
