// For tests of what reads files: damage.
#pragma once

#include <string>
#include <string_view>

#include "base/random.h"

namespace berth::testing {

// The text with one to three pieces changed, cut out, doubled or cut off behind. `likely`: what the format is made of,
// so that some of it still means something.
inline std::string Damaged(std::string text, Random& random, std::string_view likely) {
  for (size_t k = 1 + random.Below(3); k > 0; --k) {
    if (text.empty()) text = " ";
    const size_t at = random.Below(text.size());
    switch (random.Below(5)) {
      case 0:
        text[at] = likely[random.Below(likely.size())];
        break;
      case 1:
        text[at] = static_cast<char>(random.Below(256));
        break;
      case 2:
        text.erase(at, 1 + random.Below(20));
        break;
      case 3:
        text.insert(at, text.substr(random.Below(text.size()), random.Below(60)));
        break;
      default:
        text.resize(at + 1);
        break;
    }
  }
  return text;
}

}  // namespace berth::testing
