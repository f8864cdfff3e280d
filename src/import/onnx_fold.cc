#include "import/onnx_fold.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"

namespace berth {
namespace {

const std::unordered_map<std::string_view, FoldRule>& Rules() {
  static const auto all = [] {
    std::unordered_map<std::string_view, FoldRule> rules;
    for (const auto& table : {ElementwiseFoldRules(), MoveFoldRules(), ReductionFoldRules()}) {
      for (const auto& [type, rule] : table) BERTH_CHECK(rules.emplace(type, rule).second, "two rules for {}", type);
    }
    return rules;
  }();
  return all;
}

}  // namespace

bool CanFold(std::string_view type) { return Rules().contains(type); }

void Fold(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  if (!node.domain.empty()) return;
  const auto rule = Rules().find(node.type);
  const auto is_small = [&](const OnnxValue& output) {
    return output.is_sequence || CheckedElements(output.dims, node.where) <= kMaxContent;
  };
  const bool folded = rule != Rules().end() && std::ranges::all_of(outputs, is_small) && rule->second(node, outputs);
  for (OnnxValue& output : outputs) {
    const bool fits = output.content && !output.is_sequence &&
                      static_cast<int64_t>(output.content->size()) == CheckedElements(output.dims, node.where);
    if (!folded || !fits) output.content.reset();
    output.content_certainty = node.InputCertainty();
  }
}

}  // namespace berth
