#include "cli/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "placement/objective_text.h"
#include "report/table.h"

namespace berth {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

}  // namespace

void Print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error("standard output cannot be written: {}", std::strerror(errno));
  }
}

size_t OutputWidth() {
  constexpr size_t kLeast = 20;
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    size_t width = 0;
    const std::string_view text = columns;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), width);
    if (code == std::errc() && end == text.data() + text.size() && width > 0) return std::max(width, kLeast);
  }
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return std::max<size_t>(size.ws_col, kLeast);
  return kAnyWidth;
}

std::string ShellWord(std::string_view text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./,:=+@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

void PrintError(std::string_view text) {
  // fmt::print and streams throw.
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void Warn(std::string_view text) { PrintError(fmt::format("berth: warning: {}\n", Legible(text))); }

void CheckWritable(const std::string& path, std::span<const std::string> inputs) {
  if (path.empty()) return;
  std::error_code code;
  for (const std::string& input : inputs) {
    if (!input.empty() && !path.starts_with("/dev/") && std::filesystem::equivalent(path, input, code)) {
      throw Error("{}: is read here, and would be overwritten; name another file to write", path);
    }
  }
  if (std::filesystem::is_directory(path, code)) {
    throw Error("{}: is a directory; name a file in it", path);
  }
  const std::string replaced = FollowLinks(path);
  const size_t slash = replaced.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : replaced.substr(0, slash);
  // A device or a pipe is written to itself, a file is made beside and renamed.
  const bool device = ::access(path.c_str(), W_OK) == 0 && path.starts_with("/dev/");
  if (!device && ::access(folder.c_str(), W_OK) != 0) {
    throw Error("{}: cannot be written: {}: {}; name a folder that is there and yours", path, folder,
                std::strerror(errno));
  }
}

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (shown_) PrintError("\r\x1b[K");
}

void ProgressLine::Show(const std::string& text) {
  if (!terminal_) return;
  PrintError(fmt::format("\r\x1b[K{}", text));
  shown_ = true;
}

void ProgressLine::Milestone(const std::string& text) {
  if (terminal_) return;
  PrintError(text + '\n');
}

ProgressCallback ShowProgress(const Evaluator& evaluator, const std::string& planner) {
  auto line = std::make_shared<ProgressLine>();
  if (!line->terminal()) return {};
  return [line, &evaluator, name = Shorten(planner, 32)](const Progress& progress) {
    line->Show(fmt::format("{}: {:.1f} s, best {}{}, {}", name, progress.seconds,
                           ObjectiveText(evaluator.problem(), evaluator.facts().objective, progress.best.value()),
                           progress.best.fits() ? "" : " (does not fit)", Counted(progress.evaluations, "evaluation")));
  };
}

const std::atomic<bool>* CatchInterrupts() {
  struct sigaction action{};
  action.sa_handler = [](int) {
    interrupted.store(true, std::memory_order_relaxed);
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
  };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  return &interrupted;
}

void InterruptSearches() { interrupted.store(true, std::memory_order_relaxed); }

}  // namespace berth
