// OpenVINO's libraries load others with RTLD_DEEPBIND, which the runtime of AddressSanitizer refuses, and by names that
// the loader finds beside the library that calls, which that runtime hides. In sanitized builds their calls come here
// first, and are passed on without the one and with the whole path.
#if defined(__SANITIZE_ADDRESS__)
#include <dlfcn.h>

#include <string>
#include <string_view>

extern "C" [[gnu::visibility("default")]] void* dlopen(const char* file, int flags) noexcept {
  using Open = void* (*)(const char*, int);
  static const auto next = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "dlopen"));
  flags &= ~RTLD_DEEPBIND;
  Dl_info caller{};
  if (file != nullptr && std::string_view(file).find('/') == std::string_view::npos &&
      dladdr(__builtin_return_address(0), &caller) != 0) {
    const std::string beside(caller.dli_fname);
    void* const found = next((beside.substr(0, beside.rfind('/') + 1) + file).c_str(), flags);
    if (found != nullptr) return found;
  }
  return next(file, flags);
}

// Asked whether a folder (TensorFlow's SavedModel) is an IR, OpenVINO reserves as many bytes as it takes the folder to
// have, 2^63, and goes on when it gets none.
extern "C" [[gnu::visibility("default")]] const char* __asan_default_options() { return "allocator_may_return_null=1"; }
#endif
