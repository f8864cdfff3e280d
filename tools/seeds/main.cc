// The benchmark of the field: ./dev bench-seeds. Measures what is not there yet, then writes the tables of
// docs/seeds.md to standard output.
//   usage: seeds [--short] [--only TEXT] [--seeds N] [--seconds N] [--evaluations N] [--at-once N] [--results FILE]
//                [--from TEXT]
//          seeds --tables [...]        writes the tables of what is there, and measures nothing
//          seeds --answer PROCESSOR    is asked by the others
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/console.h"
#include "cli/machine.h"
#include "tools/seeds/measure.h"
#include "tools/seeds/play.h"
#include "tools/seeds/published_placement.h"
#include "tools/seeds/tables.h"

namespace berth::seeds {
namespace {

constexpr int kStopped = 130;  // as shells say it of Ctrl-C

struct Arguments {
  Selection selection{};
  bool is_short = false, tables = false;
  size_t at_once = 1;  // cells, each on a core of its own
  std::string results = "seeds.jsonl", from = "an unnamed commit";
};

double NumberOf(std::string_view option, const char* text, double least) {
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(number >= least) || number > 1e9) {
    throw Error("{} {}: a number from {} to 1e9", option, text, least);
  }
  return number;
}

int64_t CountOf(std::string_view option, const char* text) {
  const double number = NumberOf(option, text, 1);
  if (number != std::floor(number)) throw Error("{} {}: a whole number", option, text);
  return static_cast<int64_t>(number);
}

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  Selection& selection = arguments.selection;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--short") arguments.is_short = true;
  }
  if (arguments.is_short) {
    selection.limits = {.evaluations = 500, .seconds = 2};
    selection.seeds = 1;
  }
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--short") continue;
    if (option == "--tables") {
      arguments.tables = true;
      continue;
    }
    if (option != "--only" && option != "--seeds" && option != "--seconds" && option != "--evaluations" &&
        option != "--at-once" && option != "--results" && option != "--from") {
      throw Error(
          "it knows --short, --only TEXT, --seeds N, --seconds N, --evaluations N, --at-once N, --results FILE and "
          "--tables, not {}",
          option);
    }
    if (i + 1 == argc) throw Error("{} wants a value", option);
    const char* value = argv[++i];
    if (option == "--only") selection.only = value;
    if (option == "--seeds") selection.seeds = static_cast<int>(CountOf(option, value));
    if (option == "--seconds") selection.limits.seconds = NumberOf(option, value, 0.001);
    if (option == "--evaluations") selection.limits.evaluations = CountOf(option, value);
    if (option == "--at-once") {
      arguments.at_once = static_cast<size_t>(CountOf(option, value));
      if (const size_t cores = CoresFor(arguments.at_once).physical; arguments.at_once > cores) {
        throw Error("--at-once {}: each cell wants a core of its own, and this machine has {}", value, cores);
      }
    }
    if (option == "--results") arguments.results = value;
    if (option == "--from") arguments.from = value;
  }
  return arguments;
}

std::string Duration(double seconds) {
  if (seconds < 60) return fmt::format("{:g} s", seconds);
  return seconds < 3600 ? fmt::format("{:.1f} minutes", seconds / 60) : fmt::format("{:.1f} hours", seconds / 3600);
}

void Tell(const std::string& line) { fmt::print(stderr, "bench-seeds: {}\n", line); }

int64_t Failed(std::span<const Question> questions, const Results& results) {
  int64_t count = 0;
  for (const Question& question : questions) {
    const Cell* cell = results.Find(question);
    if (cell == nullptr || cell->found != Found::kFails) continue;
    Tell(fmt::format("{} fails: {}", question.Key(), cell->why));
    ++count;
  }
  return count;
}

int Run(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--answer") {
    return AnswerQuestions(static_cast<int>(NumberOf(argv[1], argv[2], 0)));
  }
  const Arguments arguments = Parse(argc, argv);
  const bool published = std::filesystem::exists(kPublishedPlacement);
  if (!published) Tell(fmt::format("{} is not here: no row of the published placement", kPublishedPlacement));
  const std::vector<Task> tasks = arguments.is_short ? ShortTasks(published) : Tasks(published);
  const std::vector<Question> questions = Questions(tasks, arguments.selection);
  if (questions.empty()) {
    throw Error("--only {}: no cell has that in its name, like '{}'", arguments.selection.only,
                NameOf(tasks.back(), tasks.back().methods.back()));
  }
  Results results(arguments.results, arguments.tables ? Results::Access::kReads : Results::Access::kAdds);
  if (!results.mended().empty()) Tell(results.mended());
  const std::vector<Question> missing = Missing(questions, results);
  if (!arguments.tables) {
    Tell(fmt::format("{} of {} cells are in {}{}", questions.size() - missing.size(), questions.size(), results.path(),
                     missing.empty() ? "" : "; the limits of the others are " + Duration(MostSeconds(missing))));
    const std::atomic<bool>* interrupted = CatchInterrupts();
    const StopCheck stop = [interrupted] { return interrupted->load(); };
    std::vector<Answer> answers;
    for (const int processor : CoresFor(arguments.at_once).cores) {
      if (answers.size() == arguments.at_once) break;
      answers.push_back(AskProcess(std::filesystem::read_symlink("/proc/self/exe").string(), processor, stop));
    }
    const std::string from =
        arguments.at_once == 1 ? arguments.from : fmt::format("{}, {} at a time", arguments.from, arguments.at_once);
    if (!Measure(missing, results, answers, from, stop, Tell)) {
      Tell(fmt::format("stopped; {} of {} cells are in {}, and the same command goes on from there",
                       questions.size() - Missing(questions, results).size(), questions.size(), results.path()));
      return kStopped;
    }
  }
  fmt::print("{}", Tables(tasks, arguments.selection, results));
  // On problems that are this small nothing should fail.
  return arguments.is_short && Failed(questions, results) > 0 ? 1 : 0;
}

}  // namespace
}  // namespace berth::seeds

int main(int argc, char** argv) try { return berth::seeds::Run(argc, argv); } catch (const std::exception& error) {
  fmt::print(stderr, "bench-seeds: {}\n", error.what());
  return 2;
}
