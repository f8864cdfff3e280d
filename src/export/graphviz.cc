#include "export/graphviz.h"

#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/error.h"

extern char** environ;

namespace berth {
namespace {

constexpr std::array<std::string_view, 3> kFormatNames = {"svg", "png", "pdf"};

// Unnamed files instead of pipes: nobody waits for anybody, and nothing is left behind.
using File = std::unique_ptr<FILE, int (*)(FILE*)>;

File Temporary() {
  File file(std::tmpfile(), &std::fclose);
  if (!file) throw Error("cannot make a temporary file for Graphviz: {}; is /tmp full?", std::strerror(errno));
  return file;
}

std::string Content(FILE* file) {
  std::rewind(file);
  std::string content;
  std::array<char, 65536> buffer;
  while (const size_t size = std::fread(buffer.data(), 1, buffer.size(), file)) content.append(buffer.data(), size);
  return content;
}

[[noreturn]] void ThrowMissing(const char* program, int reason) {
  throw Error("the program `{}` of Graphviz is needed to draw pictures and cannot be run: {}; install graphviz",
              program, std::strerror(reason));
}

// With these files as its standard input, output and errors. A Ctrl-C that reaches the whole terminal does not reach
// it: `dot` would take that as a wish for a hasty, broken picture. Whatever becomes of this process, it ends after so
// many seconds of work.
pid_t Spawn(const char* program, std::string_view format, const std::array<FILE*, 3>& files, double seconds) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < 3; ++i) posix_spawn_file_actions_adddup2(&actions, ::fileno(files[static_cast<size_t>(i)]), i);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::string name(program), flag = "-T" + std::string(format);
  char* const arguments[] = {name.data(), flag.data(), nullptr};
  pid_t child = 0;
  const int code = ::posix_spawnp(&child, program, &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (code != 0) ThrowMissing(program, code);
  const auto most = static_cast<rlim_t>(std::ceil(seconds));
  const rlimit limit{.rlim_cur = most, .rlim_max = most + 1};
  ::prlimit(child, RLIMIT_CPU, &limit, nullptr);
  return child;
}

// Its status; throws Error when it is ended because it took too long or was not wanted any more.
int Wait(pid_t child, const GraphvizLimits& limits) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(limits.seconds);
  while (true) {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    const bool unwanted = limits.cancelled != nullptr && limits.cancelled->load();
    if (unwanted || Clock::now() >= deadline) {
      ::kill(child, SIGKILL);
      while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      if (unwanted) throw Error("stopped by Ctrl-C");
      throw Error("Graphviz was not done after {:g} s and was stopped", limits.seconds);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

PictureFormat PictureFormatOf(std::string_view path) {
  std::string suffix = std::filesystem::path(path).extension().string();
  std::ranges::transform(suffix, suffix.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (size_t i = 0; i < kFormatNames.size(); ++i) {
    if (suffix == fmt::format(".{}", kFormatNames[i])) return static_cast<PictureFormat>(i);
  }
  throw Error("{}: is no name of a picture that can be drawn; let it end in .svg, .png or .pdf", path);
}

std::string DrawDot(std::string_view dot, PictureFormat format, const GraphvizLimits& limits, const char* program) {
  const File input = Temporary(), output = Temporary(), errors = Temporary();
  if (std::fwrite(dot.data(), 1, dot.size(), input.get()) != dot.size() || std::fflush(input.get()) != 0) {
    throw Error("cannot write a temporary file for Graphviz: {}; is /tmp full?", std::strerror(errno));
  }
  std::rewind(input.get());
  const pid_t child = Spawn(program, kFormatNames[static_cast<size_t>(format)],
                            {input.get(), output.get(), errors.get()}, limits.seconds);
  const int status = Wait(child, limits);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) ThrowMissing(program, ENOENT);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::string what = Content(errors.get());
    what.resize(std::min(what.find('\n'), what.size()));
    throw Error("the program `{}` of Graphviz failed: {}", program, what.empty() ? "it was ended by a signal" : what);
  }
  std::string picture = Content(output.get());
  if (picture.empty()) throw Error("the program `{}` of Graphviz wrote nothing; is /tmp full?", program);
  return picture;
}

void CheckGraphviz(const char* program) {
  const char* path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "/bin:/usr/bin" : path;
  while (true) {
    const size_t end = std::min(folders.find(':'), folders.size());
    if (::access(fmt::format("{}/{}", folders.substr(0, end), program).c_str(), X_OK) == 0) return;
    if (end == folders.size()) ThrowMissing(program, ENOENT);
    folders.remove_prefix(end + 1);
  }
}

}  // namespace berth
