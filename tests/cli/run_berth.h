// Runs the built program as a user would.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace berth::testing {

// A new folder that is gone with the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "berth_cli_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::filesystem::path path_;
};

inline std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

inline void Write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// Two cores of this machine, as models are run on.
inline constexpr const char* kTwoCores = R"(name: two
devices:
  a: {kind: cpu, peak: {f32: 100GFLOP/s}, memory_bandwidth: 20GB/s, op_overhead: 1us, cores: [0]}
  b: {kind: cpu, peak: {f32: 100GFLOP/s}, memory_bandwidth: 20GB/s, op_overhead: 1us, cores: [1]}
links:
  - {latency: 10us, bandwidth: 10GB/s}
)";

inline bool HasOpenVino() {
  return std::filesystem::exists(std::filesystem::path(BERTH_BINARY).parent_path() / "berth-openvino");
}

// Until the process has a handler for the signal, or has ended. Throws after a minute.
inline void AwaitHandler(pid_t process, int signal) {
  for (int i = 0; i < 6000; ++i, ::usleep(10'000)) {
    std::ifstream status("/proc/" + std::to_string(process) + "/status");
    std::string line;
    while (std::getline(status, line)) {
      if (line.starts_with("State:") && line.find('Z') != std::string::npos) return;
      if (!line.starts_with("SigCgt:")) continue;
      const uint64_t caught = std::stoull(line.substr(line.find_first_not_of(" \t", 7)), nullptr, 16);
      if ((caught >> (signal - 1)) & 1) return;
    }
  }
  throw std::runtime_error("it has no handler for the signal");
}

struct Outcome {
  int code = -1;  // 128 + the signal that ended it
  std::string out, err;

  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

struct RunOptions {
  std::string directory = ".";
  std::string program = BERTH_BINARY;
  double interrupt_after = 0;           // seconds until `signal`; 0: never
  std::string interrupt_at{};           // or once this file is there
  std::string interrupt_printed{};      // or once this was printed
  int signal = SIGINT;                  // Ctrl-C
  int columns = 0;                      // how wide the terminal is; 0: there is none
  std::string path{};                   // where other programs are looked for; empty: as in the test itself
  std::string error_to{};               // where standard error goes instead of Outcome::err
  std::vector<std::string> launcher{};  // a program, looked for in PATH, and its arguments, which starts berth
};

inline Outcome RunBerth(const std::vector<std::string>& arguments, const RunOptions& options = {}) {
  const Folder folder;
  const std::string out = folder / "out", err = options.error_to.empty() ? folder / "err" : options.error_to;
  std::fflush(nullptr);  // or the child prints what this process still holds
  const pid_t child = ::fork();
  if (child == 0) {
    if (::chdir(options.directory.c_str()) != 0 || std::freopen("/dev/null", "r", stdin) == nullptr ||
        std::freopen(out.c_str(), "w", stdout) == nullptr || std::freopen(err.c_str(), "w", stderr) == nullptr) {
      ::_exit(99);
    }
    if (!options.path.empty()) ::setenv("PATH", options.path.c_str(), 1);
    ::unsetenv("COLUMNS");
    if (options.columns > 0) ::setenv("COLUMNS", std::to_string(options.columns).c_str(), 1);
    std::vector<char*> list;
    std::string program = options.program;
    for (const std::string& word : options.launcher) list.push_back(const_cast<char*>(word.c_str()));
    list.push_back(program.data());
    for (const std::string& argument : arguments) list.push_back(const_cast<char*>(argument.c_str()));
    list.push_back(nullptr);
    ::execvp(list[0], list.data());
    ::_exit(98);
  }
  if (options.interrupt_after > 0) {
    ::usleep(static_cast<useconds_t>(options.interrupt_after * 1e6));
    // A slow machine may still be reading the model; whoever presses Ctrl-C then ends the program.
    if (options.launcher.empty()) AwaitHandler(child, options.signal);
    ::kill(child, options.signal);
  }
  if (!options.interrupt_at.empty()) {
    for (int i = 0; i < 6000 && !std::filesystem::exists(options.interrupt_at); ++i) ::usleep(10'000);
    ::usleep(100'000);
    ::kill(child, options.signal);
  }
  int status = 0;
  if (!options.interrupt_printed.empty()) {
    while (Content(out).find(options.interrupt_printed) == std::string::npos) {
      if (::waitpid(child, &status, WNOHANG) == child)
        throw std::runtime_error("it ended before it could be interrupted");
      ::usleep(10'000);
    }
    ::usleep(100'000);
    ::kill(child, options.signal);
  }
  ::waitpid(child, &status, 0);
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = Content(out),
          .err = options.error_to.empty() ? Content(err) : ""};
}

// A copy of the program in this folder, in which it is to run, beside a worker that is this shell script.
inline RunOptions BesideWorker(const Folder& folder, const std::string& script) {
  RunOptions options{.directory = folder.path().string(), .program = folder / "berth"};
  std::filesystem::copy_file(BERTH_BINARY, options.program);
  Write(folder / "berth-openvino", "#!/bin/sh\n" + script + "\n");
  std::filesystem::permissions(folder / "berth-openvino", std::filesystem::perms::owner_all);
  return options;
}

// Fine, and its JSON.
inline nlohmann::json Answer(std::vector<std::string> arguments, int code = 0) {
  arguments.push_back("--json");
  const Outcome outcome = RunBerth(arguments);
  EXPECT_EQ(outcome.code, code) << outcome.err;
  return outcome.out.empty() ? nlohmann::json::object() : outcome.json();
}

}  // namespace berth::testing
