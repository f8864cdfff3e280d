// Things named by strings: heft(rank=upward), parallel(contention=ports), best_of(heft,local_search(restarts=3)).
// One grammar for the command line, tests, logs and reports. A Catalog is a list that somebody fills by explicit calls;
// a wrong name prints what there is, a wrong parameter the parameters there are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace berth {

// A parsed name: `name(argument, key=value, ...)`. Values keep their text; nested parentheses and "quoted text" are
// whole.
struct Spec {
  std::string name{};
  std::vector<std::string> arguments{};                           // without a key, in order
  std::vector<std::pair<std::string, std::string>> parameters{};  // with a key, in order

  // Throws Error that shows the place.
  static Spec Parse(std::string_view text);
  // Gives a parameter this text anew; takes it away where that is empty.
  void Set(std::string_view parameter, std::string_view text);
};

// Splits "a,b(c=1,d=2),e" at the commas outside parentheses and quotes; spaces around the parts are dropped.
std::vector<std::string> SplitList(std::string_view text);

enum class ParameterType { kInt, kReal, kTime, kBool, kText, kChoice, kSpec, kSpecs };

// One declared parameter of a catalog entry.
struct Parameter {
  std::string name{};
  ParameterType type = ParameterType::kText;
  std::string default_value{};         // as text; what Params answers when it is not given
  std::string sentence{};              // what it does, with its unit
  std::vector<std::string> choices{};  // kChoice only
  double least = -1e300;               // kInt, kReal, kTime (seconds): the smallest and largest value that is accepted
  double most = 1e300;
  bool mode_decides = false;  // canonical names show it whenever it is given, also as the default: another parameter
                              // may change that, or it is the name's main point
};

// The values given to one instance, checked against the declaration when made. kSpecs takes the arguments without a
// key.
class Params {
 public:
  // `what` names the instance's family in errors, like "planner".
  Params(const Spec& spec, const std::vector<Parameter>& declared, std::string_view what);

  int64_t Int(std::string_view name) const;
  double Real(std::string_view name) const;
  double Time(std::string_view name) const;  // seconds
  bool Bool(std::string_view name) const;
  const std::string& Text(std::string_view name) const;         // also kChoice and kSpec
  std::vector<std::string> Specs(std::string_view name) const;  // kSpecs
  bool Given(std::string_view name) const;                      // false where the default answers

  // The instance's own name again, canonical: parameters in declared order, defaults left out.
  const std::string& canonical() const { return canonical_; }
  // The same with one kText parameter shown as `text`, default or not: what "auto" has become.
  std::string CanonicalWith(std::string_view name, std::string_view text) const;

 private:
  using Shown = std::pair<std::string, std::vector<std::string>>;  // a parameter and what canonical() shows of it
  struct Value {
    ParameterType type;
    std::string text;
    std::vector<std::string> specs;
    bool given;
  };
  const Value& Get(std::string_view name, ParameterType type) const;

  std::string name_;
  std::map<std::string, Value, std::less<>> values_;
  std::vector<Shown> shown_;  // in declared order
  std::string canonical_;
};

// What a list command shows of an entry.
struct EntryInfo {
  std::string name{};
  std::string sentence{};
  std::string source{};  // paper with section, or "-"
  std::vector<Parameter> parameters{};
};

// Throws the Error for a name that is not there.
[[noreturn]] void ThrowUnknownName(std::string_view what, std::string_view name, const std::vector<std::string>& known);

template <typename Signature>
class Catalog;

template <typename Product, typename... Arguments>
class Catalog<Product(Arguments...)> {
 public:
  using Factory = std::function<Product(const Params&, Arguments...)>;

  struct Entry {
    EntryInfo info;
    Factory factory;
  };

  // `what` is the family's name in errors and lists: "planner", "evaluator".
  explicit Catalog(std::string what) : what_(std::move(what)) {}

  void Add(EntryInfo info, Factory factory) {
    BERTH_CHECK(Find(info.name) == nullptr, "{} {} is registered twice", what_, info.name);
    entries_.push_back({std::move(info), std::move(factory)});
  }

  Product Make(std::string_view text, Arguments... arguments) const {
    const Spec spec = Spec::Parse(text);
    const Entry* entry = Find(spec.name);
    if (entry == nullptr) {
      for (const Missing& missing : missing_) {
        if (std::ranges::find(missing.names, spec.name) != missing.names.end()) {
          throw Error("{} {}", spec.name, missing.needs);
        }
      }
      ThrowUnknownName(what_, spec.name, Names());
    }
    return entry->factory(Params(spec, entry->info.parameters, what_), std::forward<Arguments>(arguments)...);
  }

  // The canonical name of an instance with one parameter set anew, or left out where `text` is empty. The entry must be
  // here.
  std::string NameWith(std::string_view instance, std::string_view parameter, std::string_view text) const {
    Spec spec = Spec::Parse(instance);
    spec.Set(parameter, text);
    return Params(spec, Find(spec.name)->info.parameters, what_).canonical();
  }

  // Where names are looked up that are not here: a catalog that takes long to load, and is loaded when it is first
  // needed. `more` is called on any thread, and each time answers with the same catalog, or throws.
  void SetMore(std::function<const Catalog&()> more) { more_ = std::move(more); }

  // Names that are known but not here, and what each of them needs: what an Error says of it.
  struct Missing {
    std::vector<std::string> names;
    std::string needs;
  };
  void AddMissing(Missing missing) { missing_.push_back(std::move(missing)); }
  const std::vector<Missing>& missing() const { return missing_; }

  const Entry* Find(std::string_view name) const {
    for (const Entry& entry : entries_) {
      if (entry.info.name == name) return &entry;
    }
    return more_ ? more_().Find(name) : nullptr;
  }

  // With those that come later.
  std::vector<EntryInfo> Infos() const {
    std::vector<EntryInfo> infos;
    for (const Entry& entry : entries_) infos.push_back(entry.info);
    if (more_) std::ranges::move(more_().Infos(), std::back_inserter(infos));
    return infos;
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (EntryInfo& info : Infos()) names.push_back(std::move(info.name));
    return names;
  }

  const std::string& what() const { return what_; }

 private:
  std::string what_;
  std::vector<Entry> entries_;
  std::function<const Catalog&()> more_;
  std::vector<Missing> missing_;
};

}  // namespace berth
