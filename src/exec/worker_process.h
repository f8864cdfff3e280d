// A process that does what might hang or end the process that does it.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/stop_check.h"

namespace berth {

// Asks and answers are JSON objects, one a line, on the process's standard input and output. Not thread-safe. The
// process ends with this object, or with this program.
class WorkerProcess {
 public:
  // Throws Error where the program cannot be started.
  explicit WorkerProcess(const std::string& program, const std::vector<std::string>& arguments = {});
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // The answer; or an object with one key "error", a line that says why there is none: what the process answers itself,
  // that it died, that `stop` said so, or that it took longer than `seconds`. After the last three it is gone.
  nlohmann::json Ask(const nlohmann::json& request, double seconds, const StopCheck& stop = {});
  // The same of what is about a file. Throws Error with that line where there is no answer: what the process says
  // itself names the file; where it died, was stopped or took too long, the line begins with it.
  nlohmann::json AskAbout(const std::string& file, const nlohmann::json& request, double seconds,
                          const StopCheck& stop = {});

  bool alive() const { return child_ > 0; }
  // Whether it died while it was asked nothing, which is no fault of the next question; it is not alive then.
  bool DiedMeanwhile();

 private:
  // As much of it as the process takes now, after the first `sent` bytes; false where it takes no more.
  bool Send(const std::string& text, size_t& sent);
  std::string End();  // how it ended
  void Kill();

  std::string name_;  // of the program, without its folder
  pid_t child_ = -1;
  int to_ = -1, from_ = -1, errors_ = -1;
  std::string read_;
};

// A file as the process is told of it, whose folder may be another. Throws Error where its path is not UTF-8, which
// JSON cannot say.
std::string WorkerPath(const std::string& file);

// The program `name` beside this one, or where it was built; empty where it is in neither place.
std::string ProgramBeside(const std::string& name);

}  // namespace berth
