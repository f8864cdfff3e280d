// Where commands print: answers to standard output, progress to standard error where that is a terminal.
#pragma once

#include <atomic>
#include <span>
#include <string>
#include <string_view>

#include "placement/planner.h"

namespace berth {

// Throws Error when nobody takes it (a full disk).
void Print(std::string_view text);

// How many cells wide standard output is: COLUMNS, or what the terminal says; without either there is no limit.
size_t OutputWidth();

// `text` as one word of a shell's: quoted where it must be.
std::string ShellWord(std::string_view text);

// Standard error as it is: where it cannot be written (a full disk), nobody can be told of that either.
void PrintError(std::string_view text);

// "berth: warning: ..." on standard error.
void Warn(std::string_view text);

// Throws Error when a file could not be written at `path`, before a long search finds that out, and when it is one of
// `inputs`, which would be lost. Empty paths are fine, and inputs that are no files.
void CheckWritable(const std::string& path, std::span<const std::string> inputs = {});

// A line on standard error that is rewritten, and gone when this object is. Where standard error is no terminal it is
// silent but for Milestone.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool terminal() const { return terminal_; }
  void Show(const std::string& text);
  // Something to see in a log, too: there each is a line of its own, which stays.
  void Milestone(const std::string& text);

 private:
  bool terminal_;
  bool shown_ = false;
};

// Shows time and best so far of a planner, on a line that is gone when the last copy of this is; empty where nobody
// would see it.
ProgressCallback ShowProgress(const Evaluator& evaluator, const std::string& planner);

// From here on the first Ctrl-C or SIGTERM sets the flag that this returns, which budgets carry; the second ends the
// program.
const std::atomic<bool>* CatchInterrupts();
// Sets that flag, as Ctrl-C does.
void InterruptSearches();

}  // namespace berth
