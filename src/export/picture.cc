#include "export/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <string_view>
#include <vector>

namespace berth {
namespace {

// Paul Tol's light scheme, with the outlines darkened: told apart by most colour-blind people, and black text reads on
// it.
struct Colour {
  std::string_view fill, line;
};
constexpr std::array<Colour, 9> kColours = {{{"#BBCC33", "#76811F"},
                                             {"#77AADD", "#2F6EA8"},
                                             {"#EE8866", "#B0431D"},
                                             {"#EEDD88", "#A08C1E"},
                                             {"#99DDFF", "#1E86B8"},
                                             {"#FFAABB", "#C2405C"},
                                             {"#44BB99", "#22705A"},
                                             {"#AAAA00", "#666600"},
                                             {"#DDDDDD", "#777777"}}};

constexpr size_t kPictureArrows = 800;

const Colour& ColourOf(DeviceId device) { return kColours[Index(device) % kColours.size()]; }

// Inside a DOT string: quotes and backslashes are escaped, and what is not printable ASCII or UTF-8 is left out.
std::string Escaped(std::string_view text, size_t longest = 28) {
  std::string result;
  std::string shortened;
  if (text.size() > longest) {
    const size_t tail = longest / 2;
    shortened = fmt::format("{}..{}", text.substr(0, longest - tail - 2), text.substr(text.size() - tail));
    text = shortened;
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) {
      result += '?';
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result;
}

// Which group each op belongs to; groups are numbered by their first op.
struct Grouping {
  std::vector<size_t> group;  // by op
  size_t count = 0;
};

Grouping Renumber(const std::vector<size_t>& key) {
  Grouping grouping;
  std::map<size_t, size_t> numbers;
  for (const size_t k : key) grouping.group.push_back(numbers.emplace(k, numbers.size()).first->second);
  grouping.count = numbers.size();
  return grouping;
}

// Ops of the same device and phase that are joined by a tensor; the phase counts changes of device on the way to the
// op.
Grouping PhaseGroups(const Graph& graph, const Plan& plan) {
  std::vector<size_t> phase(graph.num_ops()), root(graph.num_ops());
  std::iota(root.begin(), root.end(), size_t{0});
  const auto find = [&](size_t op) {
    while (root[op] != op) op = root[op] = root[root[op]];
    return op;
  };
  for (const OpId op : graph.ops()) {
    for (const TensorId tensor : graph.inputs_of(op)) {
      const size_t producer = Index(graph.producer(tensor));
      const size_t after = phase[producer] + (plan.device[producer] != plan.device[Index(op)] ? 1 : 0);
      phase[Index(op)] = std::max(phase[Index(op)], after);
    }
  }
  for (const OpId op : graph.ops()) {
    for (const TensorId tensor : graph.inputs_of(op)) {
      const size_t producer = Index(graph.producer(tensor));
      if (plan.device[producer] != plan.device[Index(op)] || phase[producer] != phase[Index(op)]) continue;
      const size_t a = find(producer), b = find(Index(op));
      root[std::max(a, b)] = std::min(a, b);
    }
  }
  std::vector<size_t> key;
  for (size_t op = 0; op < graph.num_ops(); ++op) key.push_back(find(op));
  return Renumber(key);
}

// All ops of a device within one of `stretches` equal parts of the topological order: acyclic towards later parts.
Grouping StretchGroups(const Problem& problem, const Plan& plan, size_t stretches) {
  std::vector<size_t> key;
  for (size_t op = 0; op < problem.num_ops(); ++op) {
    key.push_back(op * stretches / problem.num_ops() * problem.num_devices() + Index(plan.device[op]));
  }
  return Renumber(key);
}

class Picture {
 public:
  Picture(const Problem& problem, const Plan& plan, const Timeline& timeline)
      : problem_(problem), graph_(problem.graph()), plan_(plan), timeline_(timeline) {}

  std::string Dot() {
    Grouping groups = PhaseGroups(graph_, plan_);
    Line("digraph berth {{");
    Line(
        "  graph [rankdir=TB, nodesep=0.25, ranksep=0.35, fontname=\"Helvetica\", fontsize=24, labelloc=t, "
        "label=\"{}\"];",
        Title());
    Line("  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=10, margin=\"0.08,0.04\"];");
    Line("  edge [fontname=\"Helvetica\", fontsize=9, color=\"#888888\", arrowsize=0.6];");
    Legend();
    if (graph_.num_ops() <= kPictureOps) {
      Ops(groups);
      std::vector<size_t> own(graph_.num_ops());
      std::iota(own.begin(), own.end(), size_t{0});
      Draw(ArrowsOf({.group = own, .count = own.size()}));
    } else {
      // Graphviz takes minutes for thousands of arrows, and nobody can follow them.
      Arrows arrows = ArrowsOf(groups);
      for (size_t stretches = kPictureOps / problem_.num_devices() + 1;
           (groups.count > kPictureOps || arrows.size() > kPictureArrows) && stretches > 1;) {
        stretches /= 2;
        groups = StretchGroups(problem_, plan_, stretches);
        arrows = ArrowsOf(groups);
      }
      Boxes(groups);
      Draw(arrows);
    }
    Line("}}");
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  std::string Time(double units) const { return ToString(problem_.ToSeconds(units)); }

  std::string Title() const {
    return fmt::format("{} on {}: {}{}", Escaped(graph_.name(), 60), Escaped(problem_.cluster().name(), 60),
                       Time(timeline_.score.time), timeline_.score.feasible ? "" : " (does not fit)");
  }

  void Legend() {
    std::vector<size_t> ops(problem_.num_devices());
    std::vector<double> busy(problem_.num_devices());
    for (const OpRun& run : timeline_.ops) {
      ++ops[Index(run.device)];
      busy[Index(run.device)] += run.end - run.start;
    }
    Line("  subgraph cluster_legend {{ label=\"devices\"; fontsize=14; color=\"#CCCCCC\"; style=rounded;");
    for (const DeviceId device : problem_.cluster().ids()) {
      Line("    device{} [fillcolor=\"{}\", color=\"{}\", label=\"{}\\n{} ops, {}\"];", Index(device),
           ColourOf(device).fill, ColourOf(device).line, Escaped(problem_.cluster().device(device).name),
           ops[Index(device)], Time(busy[Index(device)]));
    }
    Line("  }}");
  }

  void Ops(const Grouping& groups) {
    std::vector<std::vector<OpId>> members(groups.count);
    for (const OpId op : graph_.ops()) members[groups.group[Index(op)]].push_back(op);
    for (size_t g = 0; g < groups.count; ++g) {
      const Colour& colour = ColourOf(plan_.device[Index(members[g].front())]);
      const bool outlined = members[g].size() > 1;
      if (outlined)
        Line("  subgraph cluster_{} {{ label=\"\"; color=\"{}\"; style=\"rounded,dashed\";", g, colour.line);
      for (const OpId op : members[g]) {
        const OpRun& run = timeline_.ops[Index(op)];
        Line("    n{} [fillcolor=\"{}\", color=\"{}\", label=\"{}\\n{}  {}\", tooltip=\"{}: {} on {}\"];", Index(op),
             colour.fill, colour.line, Escaped(graph_.op_name(op)), Escaped(graph_.op_type(op)),
             Time(run.end - run.start), Escaped(graph_.op_name(op), 200), Escaped(graph_.op_type(op), 60),
             Escaped(problem_.cluster().device(run.device).name, 60));
      }
      if (outlined) Line("  }}");
    }
  }

  void Boxes(const Grouping& groups) {
    struct Box {
      size_t ops = 0;
      double time = 0;
      OpId first{}, last{};
      std::map<std::string_view, size_t> types;
    };
    std::vector<Box> boxes(groups.count);
    for (const OpId op : graph_.ops()) {
      Box& box = boxes[groups.group[Index(op)]];
      if (box.ops++ == 0) box.first = op;
      box.last = op;
      box.time += timeline_.ops[Index(op)].end - timeline_.ops[Index(op)].start;
      ++box.types[graph_.op_type(op)];
    }
    for (size_t g = 0; g < groups.count; ++g) {
      const Box& box = boxes[g];
      const DeviceId device = plan_.device[Index(box.first)];
      const auto most = std::max_element(box.types.begin(), box.types.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      const std::string what =
          box.ops == 1 ? fmt::format("{}\\n{}", Escaped(graph_.op_name(box.first)), Escaped(graph_.op_type(box.first)))
                       : fmt::format("{} ops\\nmostly {}", box.ops, Escaped(most->first));
      // Area grows with time, so that what matters is seen first.
      const double share = timeline_.score.time > 0 ? std::min(1.0, box.time / timeline_.score.time) : 0;
      Line("  n{} [fillcolor=\"{}\", color=\"{}\", height={:.2f}, label=\"{}\\n{}\", tooltip=\"{} .. {}\"];", g,
           ColourOf(device).fill, ColourOf(device).line, 0.5 + 2 * std::sqrt(share), what, Time(box.time),
           Escaped(graph_.op_name(box.first), 200), Escaped(graph_.op_name(box.last), 200));
    }
  }

  // All tensors from one box to another; boxes by number.
  struct Arrow {
    int64_t bytes = 0;
    bool crosses = false;
  };
  using Arrows = std::map<std::pair<size_t, size_t>, Arrow>;

  Arrows ArrowsOf(const Grouping& boxes) const {
    Arrows arrows;
    for (const TensorId tensor : graph_.tensors()) {
      const size_t producer = Index(graph_.producer(tensor));
      std::vector<size_t> reached;  // a tensor that several ops of a box read goes there once
      for (const OpId consumer : graph_.consumers(tensor)) {
        const size_t from = boxes.group[producer], to = boxes.group[Index(consumer)];
        if (from == to || std::find(reached.begin(), reached.end(), to) != reached.end()) continue;
        reached.push_back(to);
        Arrow& arrow = arrows[{from, to}];
        arrow.bytes += graph_.tensor_bytes(tensor);
        arrow.crosses = plan_.device[producer] != plan_.device[Index(consumer)];
      }
    }
    return arrows;
  }

  void Draw(const Arrows& arrows) {
    for (const auto& [ends, arrow] : arrows) {
      if (arrow.crosses) {
        Line("  n{} -> n{} [color=\"#CC3311\", penwidth=1.8, fontcolor=\"#CC3311\", label=\"{}\"];", ends.first,
             ends.second, ToString(Bytes{arrow.bytes}));
      } else {
        Line("  n{} -> n{};", ends.first, ends.second);
      }
    }
  }

  const Problem& problem_;
  const Graph& graph_;
  const Plan& plan_;
  const Timeline& timeline_;
  std::string text_;
};

}  // namespace

std::string PictureDot(const Problem& problem, const Plan& plan, const Timeline& timeline) {
  return Picture(problem, plan, timeline).Dot();
}

}  // namespace berth
