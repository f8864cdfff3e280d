#include "export/graphviz.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/error.h"

extern char** environ;

namespace berth {
namespace {

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

}  // namespace

std::string DotToSvg(std::string_view dot, const char* program) {
  const File input = Temporary(), output = Temporary(), errors = Temporary();
  if (std::fwrite(dot.data(), 1, dot.size(), input.get()) != dot.size() || std::fflush(input.get()) != 0) {
    throw Error("cannot write a temporary file for Graphviz: {}; is /tmp full?", std::strerror(errno));
  }
  std::rewind(input.get());

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const std::array<FILE*, 3> files = {input.get(), output.get(), errors.get()};
  for (int i = 0; i < 3; ++i) posix_spawn_file_actions_adddup2(&actions, ::fileno(files[static_cast<size_t>(i)]), i);
  std::string name(program), flag = "-Tsvg";
  char* const arguments[] = {name.data(), flag.data(), nullptr};
  pid_t child = 0;
  const int code = ::posix_spawnp(&child, program, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (code == 0) {
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (code != 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
    throw Error("the program `{}` of Graphviz is needed to draw pictures and cannot be run: {}; install graphviz",
                program, std::strerror(code != 0 ? code : ENOENT));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::string what = Content(errors.get());
    what.resize(std::min(what.find('\n'), what.size()));
    throw Error("the program `{}` of Graphviz failed: {}", program, what.empty() ? "it was ended by a signal" : what);
  }
  return Content(output.get());
}

}  // namespace berth
