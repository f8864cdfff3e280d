// Fills the cells that are not there yet.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/stop_check.h"
#include "tools/seeds/cell.h"
#include "tools/seeds/results.h"
#include "tools/seeds/tasks.h"

namespace berth::seeds {

struct Selection {
  Limits limits{};
  int seeds = 3;
  std::string only{};  // cells whose name contains this
};

// "training, inception_v3(batch=32), k80x4, gdp": what Selection::only is looked for in.
std::string NameOf(const Task& task, const Method& method);

// What is asked, in the order of the tasks, then of their methods, then of seeds.
std::vector<Question> Questions(std::span<const Task> tasks, const Selection& selection);

// What the limits of these questions allow, in seconds; what ends by itself takes less.
double MostSeconds(std::span<const Question> questions);

// Those that nobody has answered yet, or that failed: what was killed, stopped for too long or mended since.
std::vector<Question> Missing(std::span<const Question> questions, const Results& results);

// Answers a question; Ask of a process of its own, or Player::Play.
using Answer = std::function<Cell(const Question&)>;
using Say = std::function<void(const std::string& line)>;

// Asks for all that is missing, as many cells at a time as there are `answers`, each asked by a thread of its own, and
// keeps each cell as soon as it is there, with `from` in it. A cell that comes after `stop` has said so is not kept,
// since it may have been cut short. False where it was stopped. Rethrows what an answer throws, when all have ended.
bool Measure(std::span<const Question> missing, Results& results, std::span<const Answer> answers,
             const std::string& from, const StopCheck& stop, const Say& say);

// Asks a process of its own (`program --answer PROCESSOR`, which stays on the processor of that number, is started when
// it is needed, and again when it has died) and waits for ten times the limit and a minute at most.
Answer AskProcess(const std::string& program, int processor, const StopCheck& stop);

}  // namespace berth::seeds
