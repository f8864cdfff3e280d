#include "exec/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"
#include "base/units.h"
#include "base/utf8.h"

extern char** environ;

namespace berth {
namespace {

constexpr int kPollMilliseconds = 20;
constexpr size_t kLongestAnswer = size_t{256} << 20;

nlohmann::json Failure(std::string why) { return {{"error", std::move(why)}}; }

// The last line of what a process wrote to standard error.
std::string LastLine(int file) {
  const off_t size = ::lseek(file, 0, SEEK_END);
  if (size <= 0) return {};
  std::array<char, 2048> text{};
  const off_t from = size > static_cast<off_t>(text.size()) ? size - static_cast<off_t>(text.size()) : 0;
  const ssize_t count = ::pread(file, text.data(), text.size(), from);
  std::string tail(text.data(), static_cast<size_t>(count > 0 ? count : 0));
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  const size_t line = tail.rfind('\n');
  return line == std::string::npos ? tail : tail.substr(line + 1);
}

}  // namespace

WorkerProcess::WorkerProcess(const std::string& program, const std::vector<std::string>& arguments)
    : name_(std::filesystem::path(program).filename().string()) {
  std::array<int, 2> in{}, out{};
  errors_ = ::memfd_create("berth-worker", MFD_CLOEXEC);
  const bool has_in = errors_ >= 0 && ::pipe2(in.data(), O_CLOEXEC) == 0;
  if (!has_in || ::pipe2(out.data(), O_CLOEXEC) != 0) {
    const int reason = errno;
    if (errors_ >= 0) ::close(errors_);
    if (has_in) ::close(in[0]), ::close(in[1]);
    throw Error("{}: cannot be started: {}", program, std::strerror(reason));
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors_, STDERR_FILENO);
  // A group of its own: Ctrl-C is for this program, which then asks it to end.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const int failed = ::posix_spawn(&child_, program.c_str(), &actions, &attributes, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  ::close(in[0]);
  ::close(out[1]);
  to_ = in[1];
  from_ = out[0];
  // A process that does not read must not keep this one from looking at the clock.
  ::fcntl(to_, F_SETFL, O_NONBLOCK);
  if (failed != 0) {
    child_ = -1;
    ::close(to_);
    ::close(from_);
    ::close(errors_);
    throw Error("{}: cannot be started: {}", program, std::strerror(failed));
  }
}

WorkerProcess::~WorkerProcess() {
  Kill();
  ::close(to_);
  ::close(from_);
  ::close(errors_);
}

bool WorkerProcess::Send(const std::string& text, size_t& sent) {
  // A process that died is an answer, not a signal.
  struct sigaction ignore{}, before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);
  const ssize_t count = ::write(to_, text.data() + sent, text.size() - sent);
  const bool later = count < 0 && (errno == EINTR || errno == EAGAIN);
  ::sigaction(SIGPIPE, &before, nullptr);
  if (count > 0) sent += static_cast<size_t>(count);
  return count > 0 || later;
}

bool WorkerProcess::DiedMeanwhile() {
  if (child_ <= 0 || ::waitpid(child_, nullptr, WNOHANG) != child_) return false;
  child_ = -1;
  return true;
}

nlohmann::json WorkerProcess::Ask(const nlohmann::json& request, double seconds, const StopCheck& stop) {
  if (!alive()) return Failure(name_ + " is gone");
  const Stopwatch watch;
  // What a user typed may be no UTF-8, which the process then says of it.
  const std::string question = request.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  size_t sent = 0;
  for (;;) {
    if (const size_t line = read_.find('\n'); sent == question.size() && line != std::string::npos) {
      const std::string text = read_.substr(0, line);
      read_.erase(0, line + 1);
      nlohmann::json answer = nlohmann::json::parse(text, nullptr, false);
      if (answer.is_object()) return answer;
      Kill();
      return Failure(name_ + " gave an answer that is no JSON object");
    }
    if (stop && stop()) {
      Kill();
      return Failure("stopped");
    }
    if (watch.seconds() > seconds) {
      Kill();
      return Failure(fmt::format("no answer within {}", ToString(Seconds{seconds})));
    }
    std::array<pollfd, 2> ready = {
        {{.fd = from_, .events = POLLIN, .revents = 0}, {.fd = to_, .events = POLLOUT, .revents = 0}}};
    const nfds_t watched = sent < question.size() ? 2 : 1;
    if (::poll(ready.data(), watched, kPollMilliseconds) <= 0) continue;
    if (ready[1].revents != 0 && !Send(question, sent)) return Failure(End());
    if (ready[0].revents == 0) continue;
    std::array<char, 65536> buffer;
    const ssize_t count = ::read(from_, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Failure(End());
    if (read_.size() > kLongestAnswer) {
      Kill();
      return Failure(name_ + " gave an answer that is too long");
    }
    read_.append(buffer.data(), static_cast<size_t>(count));
  }
}

nlohmann::json WorkerProcess::AskAbout(const std::string& file, const nlohmann::json& request, double seconds,
                                       const StopCheck& stop) {
  nlohmann::json answer = Ask(request, seconds, stop);
  if (answer.contains("error")) {
    const std::string error = answer.at("error");
    throw alive() ? Error("{}", error) : Error("{}: {}", file, error);
  }
  return answer;
}

std::string WorkerProcess::End() {
  int status = 0;
  const Stopwatch watch;
  pid_t ended = 0;
  // It closed its output: a moment to end by itself, so that the reason is its own.
  while ((ended = ::waitpid(child_, &status, WNOHANG)) == 0 && watch.seconds() < 2) ::usleep(1000);
  if (ended != child_) {
    Kill();
    return name_ + " closed its output";
  }
  child_ = -1;
  const std::string said = LastLine(errors_);
  const std::string how =
      WIFSIGNALED(status) ? fmt::format("was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                          : fmt::format("ended with code {}", WEXITSTATUS(status));
  return fmt::format("{} {}{}{}", name_, how, said.empty() ? "" : ": ", said);
}

void WorkerProcess::Kill() {
  if (child_ <= 0) return;
  ::kill(child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
}

std::string WorkerPath(const std::string& file) {
  std::string path = std::filesystem::absolute(file).string();
  if (ToUtf8(path) != path)
    throw Error("{}: its path is not UTF-8; rename the file, or link to it by another name", file);
  return path;
}

std::string ProgramBeside(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code code;
  const fs::path beside = fs::read_symlink("/proc/self/exe", code).parent_path() / name;
  if (!code && ::access(beside.c_str(), X_OK) == 0) return beside.string();
  const fs::path built = fs::path(BERTH_BUILD_DIR) / name;
  return ::access(built.c_str(), X_OK) == 0 ? built.string() : std::string();
}

}  // namespace berth
