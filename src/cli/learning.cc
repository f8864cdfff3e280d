#include "cli/learning.h"

#include <dlfcn.h>

#include "base/error.h"

namespace berth {

const LearnModule& Learning() {
  if (!kCanLearn) {
    throw Error("training {}", kNeedsTorch);
  }
  // It is never closed again: its code is in use until the program ends.
  static const LearnModule& module = [&]() -> const LearnModule& {
    void* const library = ::dlopen(kLearnLibrary, RTLD_NOW | RTLD_LOCAL);
    const void* const found = library == nullptr ? nullptr : ::dlsym(library, kLearnSymbol);
    if (found == nullptr) {
      throw Error("the learned planners do not load ({}); {} belongs beside the program", ::dlerror(), kLearnLibrary);
    }
    return *static_cast<const LearnModule*>(found);
  }();
  return module;
}

}  // namespace berth
