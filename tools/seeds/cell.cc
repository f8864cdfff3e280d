#include "tools/seeds/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/json_object.h"

namespace berth::seeds {
namespace {

constexpr std::array<std::string_view, 4> kFoundNames = {"plan", "out of memory", "refuses", "fails"};
constexpr double kLongest = 1e9;  // seconds
constexpr int64_t kMost = int64_t{1} << 60;

}  // namespace

std::string Question::Key() const {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", graph, machine, mode, costs, evaluator, planner, seed,
                     limits.evaluations, limits.seconds);
}

ProblemStrings Question::Strings() const {
  ProblemStrings strings;
  strings.model = graph;
  strings.cluster = machine;
  strings.mode = mode;
  strings.costs = costs;
  strings.evaluator = evaluator;
  return strings;
}

nlohmann::ordered_json ToJson(const Cell& cell) {
  const Question& asked = cell.question;
  nlohmann::ordered_json on = nlohmann::ordered_json::array();
  for (const Improvement& each : cell.on) {
    nlohmann::ordered_json three = nlohmann::ordered_json::array();
    three.push_back(each.evaluations);
    three.push_back(each.seconds);
    three.push_back(each.time);
    on.push_back(std::move(three));
  }
  nlohmann::ordered_json json;
  json["format"] = kFormat;
  json["graph"] = asked.graph;
  json["machine"] = asked.machine;
  json["mode"] = asked.mode;
  json["costs"] = asked.costs;
  json["evaluator"] = asked.evaluator;
  json["planner"] = asked.planner;
  json["seed"] = asked.seed;
  json["most_evaluations"] = asked.limits.evaluations;
  json["most_seconds"] = asked.limits.seconds;
  json["found"] = kFoundNames[static_cast<size_t>(cell.found)];
  json["why"] = cell.why;
  json["time"] = cell.time;
  json["bound"] = cell.bound;
  json["ops"] = cell.ops;
  json["memory"] = cell.memory;
  json["evaluations"] = cell.evaluations;
  json["seconds"] = cell.seconds;
  json["ended"] = cell.ended;
  json["improvements"] = std::move(on);
  json["from"] = cell.from;
  return json;
}

Cell CellOf(const nlohmann::json& json, const std::string& path) {
  JsonObject object(json, path);
  if (const int64_t format = object.Int("format", 0, kMost); format != kFormat) {
    throw object.Mistake("format", fmt::format("{}, where this program knows {} alone", format, kFormat));
  }
  Cell cell;
  Question& asked = cell.question;
  asked.graph = object.Text("graph");
  asked.machine = object.Text("machine");
  asked.mode = object.Text("mode");
  asked.costs = object.Text("costs");
  asked.evaluator = object.Text("evaluator");
  asked.planner = object.Text("planner");
  asked.seed = static_cast<int>(object.Int("seed", 0, 1'000'000));
  asked.limits.evaluations = object.Int("most_evaluations", 1, kMost);
  asked.limits.seconds = object.Number("most_seconds", 0, kLongest);
  const std::string found = object.Text("found");
  const auto name = std::ranges::find(kFoundNames, found);
  if (name == kFoundNames.end()) throw object.Mistake("found", fmt::format("'{}' is nothing that a cell finds", found));
  cell.found = static_cast<Found>(name - kFoundNames.begin());
  cell.why = object.Text("why");
  cell.time = object.Number("time", 0, kLongest);
  cell.bound = object.Number("bound", 0, kLongest);
  cell.ops = object.Int("ops", 0, kMost);
  cell.memory = object.Int("memory", 0, kMost);
  cell.evaluations = object.Int("evaluations", 0, kMost);
  cell.seconds = object.Number("seconds", 0, kLongest);
  cell.ended = object.Text("ended");
  for (const nlohmann::json& each : object.List("improvements")) {
    if (!each.is_array() || each.size() != 3 || !each[0].is_number() || !each[1].is_number() || !each[2].is_number()) {
      throw object.Mistake("improvements", "each is [evaluations, seconds, time]");
    }
    cell.on.push_back({.evaluations = each[0], .seconds = each[1], .time = each[2]});
  }
  cell.from = object.Text("from");
  object.Finish();
  return cell;
}

}  // namespace berth::seeds
