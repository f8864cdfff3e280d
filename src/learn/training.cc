#include "learn/training.h"

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "base/stopwatch.h"
#include "base/system_limits.h"
#include "learn/learner.h"
#include "placement/on_groups.h"

namespace berth {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

// What a request's planner is: a method, and perhaps the groups that it is to learn on.
class GroupedMethod {
 public:
  explicit GroupedMethod(const std::string& planner) : on_(OnGroups::Parse(planner)) {
    RegisterMethods(methods_);
    method_ = methods_.Make(on_ ? on_->planner() : planner);
  }

  const Method& method() const { return method_; }
  std::string group() const { return on_ ? on_->group() : ""; }  // empty: none
  std::string name() const { return Whole(method_.name); }       // canonical
  // That answers with the policy of this checkpoint.
  std::string NameWithPolicy(const std::string& checkpoint) const {
    return Whole(methods_.NameWith(methods_.NameWith(method_.name, "train", ""), "checkpoint", checkpoint));
  }

 private:
  std::string Whole(const std::string& method) const { return on_ ? on_->NameWith(method) : method; }

  MethodCatalog methods_;
  std::optional<OnGroups> on_;
  Method method_;
};

// Throws Error where the policy would be validated on a model that it is trained on, or tested on one that it is
// trained on or chosen by.
void CheckUnseen(const TrainingRequest& request) {
  struct Seen {
    std::string name;
    const char* how;
  };
  std::map<uint64_t, Seen> seen;
  const auto check = [&](const char* option, const std::vector<TrainingCase>& cases) {
    for (const TrainingCase& each : cases) {
      const auto found = seen.find(each.evaluator.problem().fingerprint());
      if (found == seen.end()) continue;
      const auto& [name, how] = found->second;
      throw Error("{} {}: the policy is {}{}; leave it out of one of the two", option, each.name, how,
                  name == each.name ? "" : fmt::format(", as {}", name));
    }
  };
  const auto add = [&](const char* how, const std::vector<TrainingCase>& cases) {
    for (const TrainingCase& each : cases) seen.emplace(each.evaluator.problem().fingerprint(), Seen{each.name, how});
  };
  add("trained on this model (--on)", request.cases);
  check("--validate", request.validation);
  add("chosen by this model (--validate)", request.validation);
  check("--test", request.tests);
}

// The cases of a request as a learner takes them: a search for each, and the groups that it refers to.
struct Lessons {
  Lessons(const GroupedMethod& planner, const TrainingRequest& request, const std::vector<TrainingCase>& cases) {
    for (const TrainingCase& each : cases) {
      const Problem* problem = &each.evaluator.problem();
      if (const std::string& group = each.group.empty() ? planner.group() : each.group; !group.empty()) {
        BERTH_CHECK(request.groupings != nullptr);
        size_t dropped = 0;
        problem = &grouped.emplace_back(Grouped(*problem, request.groupings->Make(group, *problem, {}), dropped));
      }
      if (const auto reason = WhyNot(planner.method(), *problem, each.evaluator)) {
        throw Error("{} does not learn on {}: {}", planner.method().name, each.name, *reason);
      }
      own.push_back(std::make_unique<Search>(PlanRequest{
          .evaluator = each.evaluator, .budget = {}, .random = Random(request.seed), .constrained = problem}));
      searches.push_back(own.back().get());
    }
  }

  std::deque<Problem> grouped{};  // which stay where they are
  std::vector<std::unique_ptr<Search>> own{};
  std::vector<Search*> searches{};
};

// Of the budget, what the policy's own answers take at a checkpoint; those for validation are beside it.
int64_t EvaluationsOfAnswers(const TrainingRequest& request, const Learner& learner) {
  return request.validation.empty() ? learner.own_evaluations() : 0;
}

// There are checkpoints in between, and one at the end.
int64_t PlannedUpdates(const TrainingRequest& request, const Method& method, const Learner& learner) {
  int64_t evaluations = request.budget.evaluations;
  if (evaluations == kNoEnd && !request.updates) evaluations = method.default_evaluations;
  if (evaluations == kNoEnd) return *request.updates;
  const int64_t own = EvaluationsOfAnswers(request, learner);
  int64_t fit = learner.UpdatesWithin(evaluations - own);
  if (const int64_t between = request.checkpoint_every; fit > between) {
    const double each =
        static_cast<double>(learner.evaluations_per_update()) + static_cast<double>(own) / static_cast<double>(between);
    fit = std::max(between, static_cast<int64_t>(std::ceil(static_cast<double>(evaluations) / each)));
  }
  return std::min(fit, request.updates.value_or(kNoEnd));
}

Json CasesJson(const std::vector<TrainingCase>& cases, const Lessons& lessons) {
  Json list = Json::array();
  for (size_t i = 0; i < cases.size(); ++i) {
    const Problem& problem = lessons.searches[i]->problem();
    list.push_back({{"name", cases[i].name},
                    {"fingerprint", fmt::format("{:016x}", problem.fingerprint())},
                    {"ops", problem.num_ops()},
                    {"cluster", problem.cluster().name()},
                    {"costs", problem.cost_source()},
                    {"evaluator", cases[i].evaluator.name()}});
  }
  return list;
}

// `checkpoint`: a hash of what the policy begins with; empty where it begins anew.
Json ConfigJson(const TrainingRequest& request, const Method& method, const std::string& checkpoint,
                const Lessons& cases, const Lessons& validation, const Lessons& tests) {
  Json arguments = Json::object();
  for (const auto& [name, value] : request.arguments) arguments[name] = value;
  Json json = {{"berth_training", 1},
               {"planner", method.name},
               {"seed", request.seed},
               {"budget", request.budget.ToString()},
               {"updates", request.updates ? Json(*request.updates) : Json()},
               {"checkpoint_every", request.checkpoint_every},
               {"arguments", std::move(arguments)},
               {"cases", CasesJson(request.cases, cases)},
               {"validation", CasesJson(request.validation, validation)},
               {"tests", CasesJson(request.tests, tests)}};
  if (!checkpoint.empty()) json["checkpoint"] = checkpoint;
  return json;
}

Json ReadConfig(const std::string& folder) {
  const std::string path = folder + "/config.json";
  if (::access(path.c_str(), F_OK) != 0) {
    std::error_code code;
    const bool empty = !fs::exists(folder, code) || (fs::is_directory(folder, code) && fs::is_empty(folder, code));
    throw Error("{}: no training was begun here, so none can be resumed; {}", folder,
                empty ? "leave --resume out" : "name the folder of a run, which has a config.json");
  }
  const std::string text = ReadFile(path);
  Json config = Json::parse(text, nullptr, false);
  const auto has = [&](const char* key, auto is) { return config.contains(key) && is(config.at(key)); };
  if (!config.is_object() || !has("berth_training", [](const Json& value) { return value == 1; }) ||
      !has("arguments", [](const Json& value) { return value.is_object(); })) {
    throw Error("{}: this is no configuration of a training that this program has written", path);
  }
  ParseJson(text,
            path);  // refuses a key that is there twice; the order of keys, which it does not keep, is wanted here
  return config;
}

// Names of files need not be UTF-8; JSON is.
std::string Dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// What a run writes; the results are its caller's.
constexpr const char* kFiles[] = {"config.json", "curve.csv",   "curve.svg",   "last",
                                  "best",        "results.txt", "results.json"};

// The folder of a run: what it holds, and the one open file.
class RunFolder {
 public:
  RunFolder(const TrainingRequest& request, const Json& config) : folder_(request.folder) {
    if (request.resume) {
      const Json there = ReadConfig(folder_);
      lock_ = std::make_shared<const FolderLock>(folder_);
      Compare(there, config);
      CheckLast(request.checkpoint_every);
      for (const char* file : kFiles) RemoveLeftovers(Path(file));
    } else {
      Make();
      lock_ = std::make_shared<const FolderLock>(folder_);
      CheckEmpty();
      WriteFile(Path("config.json"), Dump(config, 2) + "\n");
    }
  }
  ~RunFolder() {
    if (curve_ != nullptr) std::fclose(curve_);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  std::string Path(std::string_view name) const { return fmt::format("{}/{}", folder_, name); }
  const std::shared_ptr<const FolderLock>& lock() const { return lock_; }
  bool Has(std::string_view name) const { return ::access(Path(name).c_str(), F_OK) == 0; }

  // The curve up to an update, with what came later cut off.
  std::vector<CurvePoint> CurveUpTo(int64_t update) {
    std::vector<CurvePoint> points;
    if (update > 0) points = ParseCurve(ReadFile(Path("curve.csv")), Path("curve.csv"));
    if (static_cast<int64_t>(points.size()) < update) {
      throw Error("{}: has {} of the {} updates that the checkpoint beside it had seen: train anew", Path("curve.csv"),
                  points.size(), update);
    }
    points.resize(static_cast<size_t>(update));
    std::string text = CurveTitle();
    for (const CurvePoint& point : points) text += CurveRow(point);
    WriteFile(Path("curve.csv"), text);
    curve_ = std::fopen(Path("curve.csv").c_str(), "ae");
    if (curve_ == nullptr) throw Error("{}: cannot be written: {}", Path("curve.csv"), std::strerror(errno));
    return points;
  }

  void Append(const CurvePoint& point) {
    const std::string row = CurveRow(point);
    if (std::fwrite(row.data(), 1, row.size(), curve_) != row.size() || std::fflush(curve_) != 0) {
      throw Error("{}: cannot be written: {}", Path("curve.csv"), std::strerror(errno));
    }
  }

 private:
  void Make() const {
    std::error_code code;
    if (::mkdir(folder_.c_str(), 0777) == 0) return;
    if (errno != EEXIST) {
      throw Error("{}: cannot be made: {}; name a folder whose parent is there", folder_, std::strerror(errno));
    }
    if (!fs::is_directory(folder_, code)) throw Error("{}: is no folder; name another", folder_);
    CheckEmpty();
  }

  // But for the lock.
  void CheckEmpty() const {
    std::error_code code;
    for (fs::directory_iterator entry(folder_, code), end; !code && entry != end; entry.increment(code)) {
      if (entry->path().filename() == FolderLock::kFile) continue;
      throw Error("{}: is there already and not empty; {}", folder_,
                  Has("config.json") ? "go on in it with --resume, or name another"
                                     : "it holds no run to go on with, so name another");
    }
  }

  // Without the checkpoint the run would begin again, and end what is there of its curve.
  void CheckLast(int64_t checkpoint_every) const {
    if (Has("last") || !Has("curve.csv")) return;
    const auto updates = static_cast<int64_t>(ParseCurve(ReadFile(Path("curve.csv")), Path("curve.csv")).size());
    if (updates <= checkpoint_every) return;
    throw Error("{}: is missing, though curve.csv has {} updates and there is a checkpoint every {}; {}, or train anew",
                Path("last"), updates, checkpoint_every,
                Has("best") ? "put it back, or a copy of best" : "put it back");
  }

  void Compare(const Json& there, const Json& asked) const {
    for (const auto& [key, value] : asked.items()) {
      if (there.contains(key) && there.at(key) == value) continue;
      if (key == "cases" || key == "validation" || key == "tests") {
        throw Error("{}: this run has other {}, or these have changed since; resume with those of config.json", folder_,
                    key);
      }
      if (key == "checkpoint") {
        throw Error(
            "{}: the checkpoint that this run began with has changed since; put it back, or train anew in another "
            "folder",
            folder_);
      }
      throw Error("{}: this run has {} {}, not {}; resume with that, or train anew in another folder", folder_, key,
                  there.contains(key) ? Dump(there.at(key)) : "none", Dump(value));
    }
  }

  std::string folder_;
  std::shared_ptr<const FolderLock> lock_;
  std::FILE* curve_ = nullptr;
};

// For learning on all cases at once.
int64_t ThreadsFor(std::span<const TrainingCase> cases, int64_t threads) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const TrainingCase& each : cases) least = std::min(least, ThreadsFor(each.evaluator, threads));
  return least;
}

// The training itself.
class Run {
 public:
  // `name`: of what learns; `validator`: answers the cases for validation, null without any.
  Run(const TrainingRequest& request, std::string name, Learner& learner, Learner* validator, const Json& config,
      Ranks& ranks)
      : request_(request),
        name_(std::move(name)),
        learner_(learner),
        validator_(validator),
        ranks_(ranks),
        threads_(ThreadsFor(request.cases, request.threads)) {
    std::optional<Bytes> left = MemoryLeft();
    if (left) left->value /= ranks.beside();  // they share this machine
    if (const auto reason = learner_.WhyTooLarge(threads_, left)) throw Error("{}: {}", name_, *reason);
    if (ranks.first()) folder_.emplace(request, config);
    if (ranks_.Any(request.resume && folder_ && folder_->Has("last"))) learner_.Load(Path("last"), false);
    if (!folder_) return;
    curve_ = folder_->CurveUpTo(learner_.updates());
    for (const CurvePoint& point : curve_) Judge(point);
  }

  // False when Ctrl-C or SIGTERM ended it.
  bool Go() {
    const Stopwatch watch;
    const Budget& budget = request_.budget;
    const auto cancelled = [&] {
      return budget.cancelled != nullptr && budget.cancelled->load(std::memory_order_relaxed);
    };
    const auto late = [&] { return watch.seconds() >= budget.seconds; };
    const int64_t own = EvaluationsOfAnswers(request_, learner_);
    const auto left = [&] {
      return budget.evaluations == kNoEnd ? kNoEnd : budget.evaluations - learner_.evaluations();
    };
    // One clock may be ahead of the others, and a signal may reach one process alone.
    const auto over = [&] {
      return learner_.updates() >= learner_.planned_updates() || left() <= own || ranks_.Any(late());
    };
    for (bool ended = learner_.updates() > 0 && over(); !ended;) {
      const std::optional<CurvePoint> updated =
          Update(left() == kNoEnd ? kNoEnd : std::max<int64_t>(left() - own, 1), [&] { return cancelled() || late(); });
      if (!updated) {
        SaveLast();
        learner_.AdoptDropped();
        return !ranks_.Any(cancelled());
      }
      CurvePoint point = *updated;
      ended = over();
      const bool due = ended || point.update % request_.checkpoint_every == 0;
      if (due && validator_ != nullptr) {
        validator_->TakePolicy(learner_);
        point.greedy_cost = validator_->GreedyCost(ThreadsFor(request_.validation, request_.threads));
      } else if (due && left() >= own) {
        point.greedy_cost = learner_.GreedyCost(threads_);
      }
      // What is not due has asked nobody since; and where the clock ends it now, `last` is due.
      if (due) ended = ended || over();
      curve_.push_back(point);
      if (folder_) folder_->Append(point);
      // `best` first: should the process end between the two, the run goes on from the older `last` and comes here
      // again.
      if (Judge(point) && folder_) learner_.Save(Path("best"));
      if (due) SaveLast();
      if (request_.progress) request_.progress(point, learner_.planned_updates());
    }
    return true;
  }

  // The policy that answers: that of the best checkpoint.
  std::string answer() const { return Path(best_update_ > 0 ? "best" : "last"); }
  int64_t best_update() const { return best_update_; }
  int64_t validation_evaluations() const {
    if (validator_ == nullptr) return 0;
    return validator_->own_evaluations() *
           std::ranges::count_if(curve_, [](const CurvePoint& point) { return !std::isnan(point.greedy_cost); });
  }
  std::vector<CurvePoint> curve() && { return std::move(curve_); }
  std::shared_ptr<const FolderLock> lock() const { return folder_ ? folder_->lock() : nullptr; }

 private:
  std::string Path(std::string_view name) const { return fmt::format("{}/{}", request_.folder, name); }

  std::optional<CurvePoint> Update(int64_t evaluations, const std::function<bool()>& stop) {
    const std::optional<CurvePoint> point = learner_.Update(evaluations, threads_, stop);
    if (point && point->diverged) {
      throw Error(
          "{}: training diverged in update {}: the loss or the policy is not finite; {}; a smaller learning_rate "
          "may help",
          name_, point->update,
          folder_ && folder_->Has("last") ? fmt::format("{} is the last good checkpoint", Path("last"))
                                          : "there was no checkpoint yet");
    }
    return point;
  }

  void SaveLast() {
    if (!folder_) return;
    learner_.Save(Path("last"));
    const bool comparable = validator_ == nullptr || request_.cases.front().evaluator.facts().objective.is_time();
    WriteFile(Path("curve.svg"), CurvePicture(curve_, name_,
                                              !comparable             ? ""
                                              : validator_ == nullptr ? "likeliest placements"
                                                                      : "likeliest placements, --validate"));
  }

  bool Judge(const CurvePoint& point) {
    if (!(point.greedy_cost < best_cost_)) return false;
    best_cost_ = point.greedy_cost;
    best_update_ = point.update;
    return true;
  }

  const TrainingRequest& request_;
  const std::string name_;
  Learner& learner_;
  Learner* validator_;
  Ranks& ranks_;
  const int64_t threads_;
  std::optional<RunFolder> folder_{};  // of rank 0
  std::vector<CurvePoint> curve_;
  double best_cost_ = std::numeric_limits<double>::infinity();
  int64_t best_update_ = 0;
};

std::vector<TrainedCase> Answers(Learner& learner, int64_t threads) {
  std::vector<TrainedCase> answers;
  for (size_t i = 0; i < learner.num_cases(); ++i) {
    TrainedCase answer{.first_cost = learner.first_cost(i), .best = learner.search(i).Found()};
    if (!answer.best.plan.device.empty()) answer.best.plan.SetCause("drawn in training");
    Learner::Answer greedy = learner.Greedy(i, threads);
    answer.greedy_cost = greedy.cost;
    answer.greedy = std::move(greedy.result);
    answers.push_back(std::move(answer));
  }
  return answers;
}

// Throws Error where ranks cannot train this together.
void CheckRanks(const TrainingRequest& request, const Learner& learner, const std::string& name, const Json& config,
                Ranks& ranks) {
  if (ranks.size() == 1) return;
  if (ranks.size() > learner.plays()) {
    throw Error(
        "{} ranks cannot share the work of {}: an update of it has {} (workers, each in all ways to play), and each is "
        "played by one rank; start at most as many, or give it more workers",
        ranks.size(), name, Counted(learner.plays(), "play"));
  }
  for (const TrainingCase& each : request.cases) {
    if (!each.evaluator.facts().exclusive || ranks.beside() == 1) continue;
    throw Error(
        "the evaluator {} gives one score at a time, and {} ranks were started on this machine: start one on each, like "
        "mpirun --map-by ppr:1:node",
        each.evaluator.name(), ranks.beside());
  }
  // Ranks read their files by themselves, each on its own machine.
  const std::string own = Dump(config), first = ranks.FromFirst([&] { return own; });
  if (own == first) return;
  const Json of_first = Json::parse(first), of_own = Json::parse(own);
  for (const char* kind : {"cases", "validation", "tests"}) {
    const Json &theirs = of_first.at(kind), &ours = of_own.at(kind);
    for (size_t i = 0; i < std::min(theirs.size(), ours.size()); ++i) {
      if (theirs[i] == ours[i]) continue;
      throw Error("{} is another problem here ({}) than on rank 0 ({}); give all ranks the same files",
                  ours[i].at("name").get<std::string>(), Dump(ours[i]), Dump(theirs[i]));
    }
  }
  throw Error("this rank was started otherwise than rank 0; start all with the same arguments");
}

}  // namespace

TrainingResult Train(const TrainingRequest& request) {
  BERTH_CHECK(request.checkpoint_every > 0);
  Alone alone;
  Ranks& ranks = request.ranks == nullptr ? alone : *request.ranks;
  const GroupedMethod planner(request.planner);
  const Method& method = planner.method();
  CheckUnseen(request);
  const Lessons cases(planner, request, request.cases), validation(planner, request, request.validation),
      tests(planner, request, request.tests);
  const Random random(request.seed);
  Learner learner(method, cases.searches, random, 1, &ranks);
  const int64_t planned = PlannedUpdates(request, method, learner);
  learner.set_planned_updates(planned);
  std::string begins_with;
  if (!method.checkpoint.empty()) begins_with = learner.Load(method.checkpoint, true);
  std::optional<Learner> validator, tester;
  // Before the work, because a policy may not be able to take them.
  const auto prepare = [&](std::optional<Learner>& answers, const Lessons& of, const char* option,
                           const std::vector<TrainingCase>& unseen) {
    if (of.searches.empty()) return;
    answers.emplace(method, of.searches, random, 1, &ranks);
    if (answers->policy_shape() == learner.policy_shape()) return;
    throw Error(
        "{}: a policy that {} trains on {} does not fit it, since it has parameters of that graph alone; choose a "
        "planner or parameters for several graphs, or leave {} out",
        unseen.front().name, planner.name(), request.cases.front().name, option);
  };
  prepare(validator, validation, "--validate", request.validation);
  prepare(tester, tests, "--test", request.tests);

  const Json config = ConfigJson(request, method, begins_with, cases, validation, tests);
  CheckRanks(request, learner, planner.name(), config, ranks);
  Run run(request, planner.name(), learner, validator ? &*validator : nullptr, config, ranks);
  TrainingResult result{.planner = planner.name(), .planned_updates = planned, .finished = run.Go()};
  result.answer = planner.NameWithPolicy(run.answer());
  result.updates = learner.updates();
  result.evaluations = learner.evaluations();
  result.validation_evaluations = run.validation_evaluations();
  result.best_update = run.best_update();
  learner.Load(run.answer(), true);
  result.cases = Answers(learner, ThreadsFor(request.cases, request.threads));
  if (tester) {
    tester->Load(run.answer(), true);
    result.tests = Answers(*tester, ThreadsFor(request.tests, request.threads));
  }
  result.lock = run.lock();
  result.curve = std::move(run).curve();
  return result;
}

std::vector<std::pair<std::string, std::string>> TrainingArguments(const std::string& folder) {
  std::vector<std::pair<std::string, std::string>> arguments;
  const Json config = ReadConfig(folder);
  for (const auto& [name, value] : config.at("arguments").items()) {
    if (!value.is_string()) throw Error("{}/config.json: arguments.{}: is no text", folder, name);
    arguments.emplace_back(name, value.get<std::string>());
  }
  return arguments;
}

}  // namespace berth
