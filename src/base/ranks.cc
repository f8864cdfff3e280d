#include "base/ranks.h"

#include <utility>

#include "base/error.h"

namespace berth {
namespace {

// What a message begins with.
constexpr char kData = 'd', kMistake = 'm', kEnd = 'e';

}  // namespace

std::vector<std::string> Ranks::Tell(char kind, std::string text) {
  BERTH_CHECK(!ended_, "ranks have nothing to say after their end");
  text.insert(text.begin(), kind);
  std::vector<std::string> all = Gather(text);
  for (const std::string& each : all) {
    BERTH_CHECK(!each.empty(), "a message has a kind");
    ended_ = ended_ || each.front() != kData;
  }
  return all;
}

std::vector<std::string> Ranks::Exchange(std::string mine) {
  std::vector<std::string> all = Tell(kData, std::move(mine));
  for (std::string& each : all) {
    if (each.front() == kMistake) throw Error("{}", each.substr(1));
    BERTH_CHECK(each.front() == kData, "the ranks have come apart");
    each.erase(each.begin());
  }
  return all;
}

bool Ranks::Any(bool mine) {
  for (const std::string& each : Exchange(mine ? "1" : "")) {
    if (!each.empty()) return true;
  }
  return false;
}

std::string Ranks::FromFirst(const std::function<std::string()>& make) {
  return std::move(Exchange(first() ? make() : "")[0]);
}

std::string Ranks::End(const std::string& mistake) {
  if (ended_) return {};  // what is known of that was thrown
  const std::vector<std::string> all =
      mistake.empty() ? Tell(kEnd, {}) : Tell(kMistake, fmt::format("rank {} on {}: {}", rank(), machine(), mistake));
  for (size_t r = 0; r < all.size(); ++r) {
    if (static_cast<int64_t>(r) == rank()) continue;
    if (all[r].front() == kMistake) return all[r].substr(1);
    // It waits for what will not come: a mistake of this one, which it is told by that.
    BERTH_CHECK(all[r].front() == kEnd || !mistake.empty(), "the ranks have come apart");
  }
  return {};
}

}  // namespace berth
