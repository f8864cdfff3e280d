#include "tools/seeds/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "base/units.h"
#include "exec/worker_process.h"

namespace berth::seeds {
namespace {

constexpr double kPatience = 10, kMorePatience = 60;  // seconds of waiting per second of search, and besides

std::string Sentence(const Cell& cell) {
  switch (cell.found) {
    case Found::kPlan:
      return fmt::format("{:.4g} ms, {:.1f} % above the bound, {}, {:.1f} s", cell.time * 1e3, 100 * cell.gap(),
                         Counted(cell.evaluations, "evaluation"), cell.seconds);
    case Found::kTooBig:
      return fmt::format("out of memory, {:.1f} s", cell.seconds);
    case Found::kRefuses:
      return "refuses: " + cell.why;
    case Found::kFails:
      break;
  }
  return "fails: " + cell.why;
}

}  // namespace

std::string NameOf(const Task& task, const Method& method) {
  return fmt::format("{}, {}", task.Name(), method.planner);
}

std::vector<Question> Questions(std::span<const Task> tasks, const Selection& selection) {
  std::vector<Question> questions;
  for (const Task& task : tasks) {
    for (const Method& method : task.methods) {
      if (NameOf(task, method).find(selection.only) == std::string::npos) continue;
      for (int seed = 1; seed <= (method.searches ? selection.seeds : 1); ++seed) {
        Question question = task.Ask(method, seed, selection.limits);
        // A graph on a machine may be in two papers' tables.
        if (std::ranges::find(questions, question) == questions.end()) questions.push_back(std::move(question));
      }
    }
  }
  return questions;
}

double MostSeconds(std::span<const Question> questions) {
  double seconds = 0;
  for (const Question& question : questions) seconds += question.limits.seconds;
  return seconds;
}

std::vector<Question> Missing(std::span<const Question> questions, const Results& results) {
  std::vector<Question> missing;
  for (const Question& question : questions) {
    const Cell* cell = results.Find(question);
    if (cell == nullptr || cell->found == Found::kFails) missing.push_back(question);
  }
  return missing;
}

bool Measure(std::span<const Question> missing, Results& results, std::span<const Answer> answers,
             const std::string& from, const StopCheck& stop, const Say& say) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> stopped = false;
  std::mutex mutex;  // of results, say and failed
  std::exception_ptr failed;
  const auto stops = [&] {
    if (stop && stop()) stopped = true;
    return stopped.load();
  };
  const auto work = [&](const Answer& answer) {
    try {
      while (!stops()) {
        const size_t i = next++;
        if (i >= missing.size()) return;
        const Question& question = missing[i];
        Cell cell = answer(question);
        if (stops()) return;
        cell.from = from;
        const std::lock_guard lock(mutex);
        say(fmt::format("{}/{} {}, {}, {}, seed {}: {}", i + 1, missing.size(), question.graph, question.machine,
                        question.planner, question.seed, Sentence(cell)));
        results.Add(std::move(cell));
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failed = std::current_exception();
      stopped = true;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (const Answer& answer : answers) threads.emplace_back([&work, &answer] { work(answer); });
  }
  if (failed) std::rethrow_exception(failed);
  return !stopped;
}

Answer AskProcess(const std::string& program, int processor, const StopCheck& stop) {
  return [program, processor, stop, worker = std::shared_ptr<WorkerProcess>()](const Question& question) mutable {
    if (worker == nullptr || !worker->alive()) {
      worker =
          std::make_shared<WorkerProcess>(program, std::vector<std::string>{"--answer", std::to_string(processor)});
    }
    const Cell asked{.question = question};
    const nlohmann::json answer = worker->Ask(nlohmann::json::parse(ToJson(asked).dump()),
                                              kPatience * question.limits.seconds + kMorePatience, stop);
    if (!answer.contains("error")) return CellOf(answer, "the answer");
    Cell cell = asked;
    cell.why = answer["error"].get<std::string>();
    return cell;
  };
}

}  // namespace berth::seeds
