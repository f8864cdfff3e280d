#include "placement/minimal_conflict.h"

#include <algorithm>
#include <numeric>

namespace berth {
namespace {

class QuickXplain {
 public:
  using Question = std::function<std::optional<bool>(std::span<const size_t>)>;
  explicit QuickXplain(const Question& impossible) : impossible_(impossible) {}

  // The members of `candidates` that a minimal conflict needs beside the background, which has `grown` since it was
  // last asked about.
  std::vector<size_t> Explain(bool grown, std::span<const size_t> candidates) {
    if (given_up_ || (grown && Ask())) return {};
    if (candidates.size() == 1) return {candidates.front()};
    const std::span<const size_t> first = candidates.first(candidates.size() / 2);
    const std::span<const size_t> second = candidates.subspan(first.size());
    const size_t before = background_.size();
    background_.insert(background_.end(), first.begin(), first.end());
    std::vector<size_t> needed = Explain(true, second);
    background_.resize(before);
    background_.insert(background_.end(), needed.begin(), needed.end());
    const std::vector<size_t> more = Explain(!needed.empty(), first);
    background_.resize(before);
    needed.insert(needed.end(), more.begin(), more.end());
    return needed;
  }

  bool given_up() const { return given_up_; }

 private:
  bool Ask() {
    const std::optional<bool> answer = impossible_(background_);
    given_up_ |= !answer.has_value();
    return answer.value_or(true);
  }

  const Question& impossible_;
  std::vector<size_t> background_;
  bool given_up_ = false;
};
}  // namespace

std::optional<std::vector<size_t>> MinimalConflict(
    size_t count, const std::function<std::optional<bool>(std::span<const size_t>)>& impossible) {
  std::vector<size_t> all(count);
  std::iota(all.begin(), all.end(), size_t{0});
  const std::optional<bool> without_any = impossible({});
  if (!without_any) return std::nullopt;
  if (*without_any || count == 0) return std::vector<size_t>();
  QuickXplain search(impossible);
  std::vector<size_t> conflict = search.Explain(false, all);
  if (search.given_up()) return std::nullopt;
  std::ranges::sort(conflict);
  return conflict;
}
}  // namespace berth
