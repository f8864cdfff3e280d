#include "cli/arguments.h"

#include <charconv>
#include <limits>
#include <sstream>

#include "base/error.h"
#include "base/version.h"
#include "cli/measuring_options.h"
#include "cli/option_groups.h"
#include "placement/constraint_file.h"
#include "report/table.h"

namespace berth {
namespace {

// What was written like an option and is none of the command's.
void CheckOptions(const CLI::App& app, const std::string& command) {
  for (const std::string& left : app.remaining()) {
    const std::string option = left.substr(0, left.find('='));
    const size_t dashes = std::min(option.find_first_not_of('-'), option.size());
    if (dashes == 0 || dashes == option.size()) continue;
    std::vector<std::string> names;
    for (const CLI::Option* known : app.get_options()) {
      names.insert(names.end(), known->get_lnames().begin(), known->get_lnames().end());
    }
    const std::string typed = option.substr(dashes);
    std::string_view closest = Closest(typed, names);
    // The beginning of a name, or a name with more behind it, is like that name.
    const auto alike = std::ranges::find_if(names, [&](const std::string& name) {
      return typed.size() > 2 && (name.starts_with(typed) || typed.starts_with(name));
    });
    if (closest.empty() && alike != names.end()) closest = *alike;
    if (!closest.empty()) throw Error("{}: there is no such option; did you mean --{}?", option, closest);
    throw Error("{}: there is no such option; see `{} --help`", option, command);
  }
}

// What options do, within the page and below itself; CLI11 wraps nothing. Commands are lines to copy and stay whole.
std::string WrapHelp(const std::string& help) {
  constexpr size_t kColumn = 30;  // where CLI11 puts what an option does
  std::string wrapped;
  std::istringstream lines(help);
  bool was_empty = false;
  for (std::string line; std::getline(lines, line); was_empty = line.empty()) {
    if (line.empty() && was_empty) continue;
    if (!line.empty() && line.front() != ' ') {
      wrapped += Wrap(line, "");
      continue;
    }
    const bool is_option = line.size() > kColumn && line.starts_with("  ") && line[kColumn - 1] == ' ';
    if (!is_option || line.starts_with("  berth ")) {
      wrapped += line + "\n";
      continue;
    }
    const std::string text = Wrap(line.substr(kColumn), std::string(kColumn, ' '));
    wrapped += line.substr(0, kColumn) + text.substr(kColumn);
  }
  return wrapped;
}

// "--cluster" or "MODEL": as the help calls it.
std::string NameInHelp(const CLI::Option& option) {
  return option.get_positional() ? option.get_type_name() : option.get_name();
}

[[noreturn]] void ThrowEmpty(std::string_view name, bool required) {
  throw Error("{}: its value is empty; give one{}", name, required ? "" : ", or leave it out");
}

// An empty value is mostly a variable of a shell that is not set; what it would limit or choose must not be left out
// without a word.
void CheckValues(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& value : option->count() > 0 ? option->results() : std::vector<std::string>()) {
      if (value.empty()) ThrowEmpty(NameInHelp(*option), option->get_required());
    }
  }
  for (const CLI::App* command : app.get_subcommands()) CheckValues(*command);
}

// CLI11's messages, in one line and with a remedy.
[[noreturn]] void ThrowMistake(const CLI::App& app, const CLI::ParseError& error, int argc, const char* const* argv) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const auto used = app.get_subcommands();
  if (used.empty()) {
    for (int i = 1; i < argc; ++i) {
      if (argv[i][0] == '-') continue;
      const std::string_view closest = Closest(argv[i], names);
      throw Error("no command '{}'; {}: {}", argv[i],
                  closest.empty() ? "there are" : fmt::format("did you mean '{}'? There are", closest),
                  fmt::join(names, ", "));
    }
    CheckOptions(app, "berth");
    throw Error("give a command: {}; `berth --help` says more", fmt::join(names, ", "));
  }
  std::string what = error.what();
  what.resize(std::min(what.find('\n'), what.size()));
  CheckOptions(app, "berth");
  std::string command;
  for (const CLI::App* deeper = &app; !deeper->get_subcommands().empty();) {
    deeper = deeper->get_subcommands().front();
    command += (command.empty() ? "" : " ") + deeper->get_name();
    CheckOptions(*deeper, "berth " + command);
    // What has no option's name is called as in the help.
    for (const CLI::Option* option : deeper->get_options()) {
      if (option->get_required() && option->get_positional() && option->count() == 0) {
        what = fmt::format("{} is required", option->get_type_name());
      }
      if (error.get_name() != "ArgumentMismatch" || !what.starts_with(option->get_name() + ":")) continue;
      what = option->count() > 1 && option->get_items_expected_max() == 1
                 ? fmt::format("{} is given {} times; once is enough", NameInHelp(*option), option->count())
                 : fmt::format("{} needs a value, {}", NameInHelp(*option), option->get_type_name());
    }
    const auto left = deeper->remaining();
    std::vector<std::string> deeper_names;
    for (const CLI::App* one : deeper->get_subcommands({})) deeper_names.push_back(one->get_name());
    if (!deeper_names.empty() && deeper->get_subcommands().empty()) {
      const std::string_view closest = left.empty() ? "" : Closest(left.front(), deeper_names);
      what = left.empty()      ? fmt::format("give one of {}", fmt::join(deeper_names, ", "))
             : closest.empty() ? fmt::format("no '{}'; there are {}", left.front(), fmt::join(deeper_names, ", "))
                               : fmt::format("no '{}'; did you mean '{}'?", left.front(), closest);
    } else if (!left.empty()) {
      what = fmt::format("'{}' was not expected", left.front());
    }
  }
  throw Error("{}: {}; see `berth {} --help`", command, what, command);
}

}  // namespace

ProblemStrings ProblemArguments::Strings() const {
  ProblemStrings all = strings;
  all.constraints = TextsOf(constraints);
  return all;
}

std::vector<std::string> ProblemArguments::Files() const {
  std::vector<std::string> files = strings.Files();
  files.insert(files.end(), constraints.files.begin(), constraints.files.end());
  return files;
}

std::vector<std::string> PlanOverrides::FilesWith(const std::string& plan, const std::string& placement) const {
  const ProblemArguments given{
      .strings = {.model = model.value_or(""), .cluster = cluster.value_or(""), .costs = costs.value_or("")},
      .constraints = constraints};
  std::vector<std::string> files = given.Files();
  files.push_back(plan);
  if (placement.starts_with('@')) files.push_back(placement.substr(1));
  return files;
}

std::vector<ConstraintText> TextsOf(const ConstraintArguments& arguments) {
  std::vector<ConstraintText> texts;
  for (size_t kind = 0; kind < kConstraintNames.size(); ++kind) {
    for (const std::string& text : arguments.stated[kind]) {
      texts.push_back({.kind = static_cast<ConstraintKind>(kind), .text = text, .place = {}});
    }
  }
  for (const std::string& file : arguments.files) {
    const std::vector<ConstraintText> more = ReadConstraintFile(file);
    texts.insert(texts.end(), more.begin(), more.end());
  }
  return texts;
}

double ParseLimit(const std::string& text) {
  if (text.empty()) return std::numeric_limits<double>::infinity();
  try {
    const double seconds = ParseSeconds(text).value;
    if (!(seconds > 0)) throw Error("'{}' is no time to run in; give some, like 60s", text);
    return seconds;
  } catch (const Error& error) {
    throw Error("--limit: {}", error.what());
  }
}

uint64_t ParseCount(std::string_view option, const std::string& text, uint64_t least, uint64_t most) {
  uint64_t count = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (text.empty() || code != std::errc() || end != text.data() + text.size() || count < least || count > most) {
    const bool bounded = most < std::numeric_limits<uint64_t>::max();
    throw Error("{}: '{}' is no integer from {} to {}", option, text, least,
                bounded ? fmt::to_string(most) : "2^64 - 1");
  }
  return count;
}

Arguments ParseArguments(int argc, const char* const* argv) {
  CLI::App app("Berth decides which device runs which op of a neural network.", "berth");
  app.set_version_flag("-V,--version", fmt::format("berth {}", kVersion));
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  berth demo\n"
      "  berth plan resnet50 --cluster cpu_gpu -o plan.json --picture plan.svg\n"
      "  berth compare bert_base_s128 --cluster k80x4 --planners heft,annealing --budget 5s\n"
      "  berth simulate plan.json --trace trace.json\n"
      "  berth explain plan.json --op '*Conv'\n"
      "  berth help plan\n"
      "Exit codes: 0 fine, 1 no plan that fits or a limit is missed, 2 a mistake in what was asked.");

  SearchTexts search;

  InspectArguments inspect;
  CLI::App& inspect_command = *app.add_subcommand("inspect", "What a model consists of, and what its ops cost");
  AddModel(inspect_command, inspect.problem);
  inspect_command
      .add_option("--cluster", inspect.problem.cluster,
                  "Say what the ops cost on these devices too: a preset or a device file, berth cluster list")
      ->type_name("CLUSTER");
  inspect_command
      .add_option("--costs", inspect.problem.costs,
                  "Where these op times come from: berth list costs (default: roofline)")
      ->type_name("COSTS");
  inspect_command.add_option("-o,--output", inspect.output, "Write the graph in Berth's own JSON format")
      ->type_name("FILE");
  AddJson(inspect_command, inspect.json);
  inspect_command.footer(
      "Examples:\n"
      "  berth inspect resnet50\n"
      "  berth inspect resnet50 --shape input=32,3,224,224 -o graph.json\n"
      "  berth inspect resnet50 --batch 32 --cluster cpu_gpu\n"
      "  berth inspect 'lstm_grid(layers=8,steps=40)' --mode training --json");

  PlanArguments plan;
  CLI::App& plan_command = *app.add_subcommand("plan", "Place a model's ops on a cluster's devices");
  AddProblem(plan_command, plan.problem);
  plan_command.add_option("--planner", plan.planner, "How to search: berth list planners")
      ->capture_default_str()
      ->type_name("PLANNER");
  AddSearch(plan_command, search);
  plan_command.add_option("-o,--output", plan.output, "Write the plan, for simulate and explain")->type_name("FILE");
  plan_command
      .add_option("--picture", plan.picture, "Draw the graph with its devices: .svg, .png or .pdf (needs Graphviz)")
      ->type_name("FILE");
  AddJson(plan_command, plan.json);
  plan_command.footer(
      "Examples:\n"
      "  berth plan resnet50 --cluster cpu_gpu -o plan.json --picture plan.svg\n"
      "  berth plan bert_base_s128 --evaluator serial --planner mincut\n"
      "  berth plan inception_v3 --pin '*Concat=gpu' --keep-free 10% --budget 2000evals");

  CompareArguments compare;
  CLI::App& compare_command = *app.add_subcommand("compare", "Compare planners with each other and with simple rules");
  AddProblem(compare_command, compare.problem);
  compare_command
      .add_option("--planners", compare.planners,
                  "Planners to compare, separated by commas; the simple rules are always compared too")
      ->type_name("A,B,C");
  AddSearch(compare_command, search);
  compare_command.add_option("-o,--output", compare.output, "Write the fastest plan")->type_name("FILE");
  AddJson(compare_command, compare.json);
  compare_command.footer(
      "Examples:\n"
      "  berth compare bert_base_s128 --cluster k80x4 --planners heft,annealing --budget 5s\n"
      "  berth compare resnet50 --objective energy --budget 2000evals -o plan.json");

  TrainArguments train;
  CLI::App& train_command =
      *app.add_subcommand("train", "Train a learned planner on one model or many, in a folder that can be resumed");
  AddTraining(train_command, train);
  AddJson(train_command, train.json);
  train_command.footer(
      "Examples:\n"
      "  berth train --planner placeto --on 'family(name=enas_conv)' --updates 200 --out run\n"
      "  berth train --planner hsdag --on resnet50 --cluster cpu_gpu --evaluator serial --updates 50 --out run\n"
      "  berth train --resume --out run");

  SimulateArguments simulate;
  CLI::App& simulate_command =
      *app.add_subcommand("simulate", "Simulate a plan: its timeline, its transfers, its memory");
  simulate_command
      .add_option("plan-or-model", simulate.plan_or_model,
                  "A plan file, which ends in .json; or, with --plan or --placement, the model")
      ->type_name("PLAN|MODEL");
  CLI::Option* plan_option =
      simulate_command.add_option("--plan", simulate.plan, "A plan file, as `berth plan -o` writes it")
          ->type_name("FILE");
  simulate_command
      .add_option("--placement", simulate.placement,
                  "Instead of a plan: a device per op in the file's order, 0,1,1,... or @file")
      ->excludes(plan_option)
      ->type_name("LIST");
  AddOverrides(simulate_command, simulate.overrides);
  simulate_command.add_option("--trace", simulate.trace, "Write the timeline for ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE");
  simulate_command
      .add_option("--picture", simulate.picture, "Draw the graph with its devices: .svg, .png or .pdf (needs Graphviz)")
      ->type_name("FILE");
  AddJson(simulate_command, simulate.json);
  simulate_command.footer(
      "Examples:\n"
      "  berth simulate plan.json --trace trace.json\n"
      "  berth simulate plan.json --evaluator serial --json\n"
      "  berth simulate 'chain(ops=4)' --placement 0,0,1,1 --picture chain.svg");

  ExplainArguments explain;
  CLI::App& explain_command =
      *app.add_subcommand("explain", "Why each op is where it is, and what its alternatives would cost");
  explain_command.add_option("plan", explain.plan, "A plan file, as `berth plan -o` writes it")
      ->required()
      ->type_name("PLAN");
  explain_command.add_option("--op", explain.op, "Only ops whose name matches: * any text, ? one character")
      ->capture_default_str()
      ->type_name("GLOB");
  explain_command
      .add_option("--model", explain.overrides.model, "The model, where it is not the one that the plan names")
      ->type_name("MODEL");
  AddOverrides(explain_command, explain.overrides);
  AddJson(explain_command, explain.json);
  explain_command.footer(
      "Examples:\n"
      "  berth explain plan.json\n"
      "  berth explain plan.json --op '*Conv' --json");

  CheckArguments check;
  CLI::App& check_command = *app.add_subcommand("check", "Check a plan against limits; exit code 1 when it misses one");
  AddPlanOrPlacement(check_command, "A plan file of Berth's, or a data set's split (with --model)", check.plan,
                     check.placement, check.overrides.model);
  AddOverrides(check_command, check.overrides);
  AddAllowUnknown(check_command, check.allow_unknown_shapes);
  AddLimits(check_command, check);
  AddJson(check_command, check.json);
  check_command.footer(
      "Examples:\n"
      "  berth check plan.json --max-latency 50ms --max-memory gpu=4GiB --max-gap 50%\n"
      "  berth check --model 'chain(ops=4)' --placement 0,0,0,0 --max-transfers 0");

  ExportArguments exported;
  CLI::App& export_command = *app.add_subcommand("export", "Hand a plan over: files that a runtime runs without Berth");
  export_command.add_option("plan", exported.plan, "A plan file, as `berth plan -o` writes it")
      ->required()
      ->type_name("PLAN");
  export_command
      .add_option("--to", exported.to,
                  "openvino: its IR with each node's device; onnxruntime: an ONNX model per part, and a manifest")
      ->required()
      ->type_name("RUNTIME");
  export_command.add_option("-o,--output", exported.output, "Write into this folder, which must be new or empty")
      ->required()
      ->type_name("FOLDER");
  export_command.add_option("--model", exported.model, "The model, where it is not the one that the plan names")
      ->type_name("MODEL");
  AddJson(export_command, exported.json);
  export_command.footer(
      "Examples:\n"
      "  berth plan two_towers --cluster here.yaml -o plan.json\n"
      "  berth export plan.json --to onnxruntime -o parts\n"
      "  berth export plan.json --to openvino -o ir");

  ClusterArguments cluster;
  CLI::App& cluster_command = *app.add_subcommand("cluster", "Clusters: those that ship with Berth, and this machine");
  cluster_command.require_subcommand(1);
  cluster_command.footer(
      "Examples:\n"
      "  berth cluster list\n"
      "  berth cluster show cpu_gpu\n"
      "  berth cluster detect -o here.yaml");
  CLI::App& show_command = *cluster_command.add_subcommand("show", "One cluster, and where its numbers come from");
  show_command.add_option("cluster", cluster.cluster, "A preset or a device file")->required()->type_name("CLUSTER");
  show_command.add_flag("--yaml", cluster.yaml, "Print it as a device file, to edit");
  AddJson(show_command, cluster.json);
  show_command.footer(
      "Examples:\n"
      "  berth cluster show cpu_gpu\n"
      "  berth cluster show cpu_gpu --yaml");
  CLI::App& cluster_list_command = *cluster_command.add_subcommand("list", "All presets");
  AddJson(cluster_list_command, cluster.json);
  cluster_list_command.footer(
      "Examples:\n"
      "  berth cluster list");

  const MeasuringCommands measuring(app, cluster_command);

  ListArguments list;
  CLI::App& list_command =
      *app.add_subcommand("list", "List planners, evaluators, objectives, clusters, models, costs or groupings");
  list_command.add_option("what", list.what, "planners, evaluators, objectives, clusters, models, costs or groupings")
      ->required()
      ->type_name("WHAT");
  AddJson(list_command, list.json);
  list_command.footer(
      "Examples:\n"
      "  berth list planners\n"
      "  berth list models --json");

  CLI::App& demo_command =
      *app.add_subcommand("demo", "Show what Berth does, on models and clusters that ship with it");
  demo_command.footer("Examples:\n  berth demo");

  app.add_subcommand("help", "What a command does and takes: berth help plan");
  // `berth help plan` is `berth plan --help`.
  std::vector<const char*> words(argv, argv + argc);
  const bool asked_by_word = argc > 1 && std::string_view(argv[1]) == "help";
  if (asked_by_word) {
    words.erase(words.begin() + 1);
    if (argc == 2 || std::string_view(words.back()) != "--help") words.push_back("--help");
  }

  // CLI11 takes the next word for the value of `--name=`.
  for (const char* const word : words) {
    const std::string_view text(word);
    if (text.starts_with("--") && text.find('=') == text.size() - 1) ThrowEmpty(text.substr(0, text.size() - 1), false);
  }
  try {
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::CallForHelp& help) {
    if (asked_by_word && words.size() > 2 && app.get_subcommands().empty()) {
      ThrowMistake(app, help, static_cast<int>(words.size()), words.data());
    }
    return TextArguments{WrapHelp(app.help())};
  } catch (const CLI::CallForVersion&) {
    return TextArguments{fmt::format("berth {}\n", kVersion)};
  } catch (const CLI::ParseError& error) {
    ThrowMistake(app, error, static_cast<int>(words.size()), words.data());
  }
  CheckValues(app);
  plan.search = compare.search = search.Parsed();
  if (inspect_command) return inspect;
  if (plan_command) return plan;
  if (compare_command) return compare;
  if (train_command) return train;
  if (simulate_command) return simulate;
  if (explain_command) return explain;
  if (check_command) return check;
  if (const std::optional<Arguments> chosen = measuring.Chosen()) return *chosen;
  if (export_command) return exported;
  if (cluster_command) return cluster;
  if (list_command) return list;
  BERTH_CHECK(demo_command.parsed());
  return DemoArguments{};
}

}  // namespace berth
