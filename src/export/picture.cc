#include "export/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "export/boxes.h"
#include "export/columns.h"
#include "graph/doubtful_sizes.h"

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

constexpr std::string_view kSent = "#CC3311";  // a tensor that changes the device

// More arrows than this take Graphviz long, and nobody can follow them.
constexpr size_t kPictureArrows = 700, kFoldedArrows = 200;

const Colour& ColourOf(DeviceId device) { return kColours[Index(device) % kColours.size()]; }

// Inside a DOT string, as one character of it. Control characters, and what XML cannot say, become '?'.
std::string EscapedCharacter(std::string_view text, char32_t character) {
  if (character < 0x20 || character == 0x7F || character == kBrokenCharacter ||
      (character >= 0xFFFD && character <= 0xFFFF)) {
    return "?";
  }
  if (character == '&') return "&amp;";  // Graphviz reads entities
  return (character == '"' || character == '\\' ? "\\" : "") + std::string(text);
}

// Inside a DOT string: at most `longest` characters, and the middle left out.
std::string Escaped(std::string_view text, size_t longest = 28) {
  std::vector<std::string> characters;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t character = NextCharacter(text, at);
    characters.push_back(EscapedCharacter(text.substr(start, at - start), character));
  }
  if (characters.size() > longest) {
    const auto head = static_cast<ptrdiff_t>(longest - longest / 2 - 2), tail = static_cast<ptrdiff_t>(longest / 2);
    characters.erase(characters.begin() + head, characters.end() - tail);
    characters.insert(characters.begin() + head, "..");
  }
  return fmt::format("{}", fmt::join(characters, ""));
}

// What all names begin with, up to a '/' or '.': the part of the model that they are in.
std::string_view CommonStart(const Graph& graph, const std::vector<OpId>& ops) {
  std::string_view common = graph.op_name(ops.front());
  for (const OpId op : ops) {
    const std::string_view name = graph.op_name(op);
    common = common.substr(0, static_cast<size_t>(std::ranges::mismatch(common, name).in1 - common.begin()));
  }
  return common.substr(0, common.find_last_of("/.") == common.npos ? 0 : common.find_last_of("/."));
}

class Picture {
 public:
  Picture(const Problem& problem, const Plan& plan, const Timeline& timeline)
      : problem_(problem), graph_(problem.graph()), plan_(plan), timeline_(timeline) {
    if (graph_.num_ops() <= kPictureOps) boxes_ = BoxPerOp(graph_);
    if (graph_.num_ops() > kPictureOps || boxes_.arrows.size() > kPictureArrows) {
      boxes_ = FoldOps(graph_, plan_.device, kFoldedBoxes, kFoldedArrows);
    }
    for (size_t box = 0; box < boxes_.size(); ++box) labels_.push_back(Label(box));
    for (const TensorId tensor : graph_.tensors()) AddArrows(tensor);
    std::vector<double> widths;
    for (const Lines& lines : labels_) widths.push_back(Width(lines));
    columns_ = ArrangeInColumns(boxes_, widths, LayerHeight());
    column_of_.resize(boxes_.size());
    for (size_t c = 0; c < columns_.size(); ++c) {
      for (const auto& layer : columns_[c].layers) {
        for (const size_t box : layer) column_of_[box] = c;
      }
    }
  }

  std::string Dot() {
    Line("digraph berth {{");
    Line(
        "  graph [rankdir=TB, nodesep=0.16, ranksep=0.3, fontname=\"Helvetica\", fontsize=22, labelloc=t, labeljust=l, "
        "label=\"{}\"];",
        Title());
    Line(
        "  node [shape=box, style=filled, fontname=\"Helvetica\", fontsize=10, margin=\"0.06,0.03\", height=0.1, "
        "width=0.6];");
    Line("  edge [fontname=\"Helvetica\", fontsize=9, color=\"#777777\", arrowsize=0.6];");
    for (size_t c = 0; c < columns_.size(); ++c) DrawColumn(c);
    Legend();
    Line("}}");
    return std::move(text_);
  }

 private:
  using Lines = std::vector<std::string>;  // escaped

  // All tensors from one box to another.
  struct Arrow {
    int64_t sent_bytes = 0;  // of those that change the device
    bool sent = false;
  };

  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  std::string Time(double units) const { return ToString(problem_.ToSeconds(units)); }

  std::string DeviceName(DeviceId device) const { return Escaped(problem_.cluster().device(device).name); }

  // Of Helvetica in 10 points, about.
  static double Width(const Lines& lines) {
    size_t longest = 0;
    for (const std::string& line : lines) longest = std::max(longest, line.size());
    return 5.2 * static_cast<double>(longest) + 10;
  }

  // The text of the tallest box, the arrows below it, and what stands beside them.
  double LayerHeight() const {
    size_t lines = 1;
    for (const Lines& label : labels_) lines = std::max(lines, label.size());
    return 12 * static_cast<double>(lines) + 6 + 22 + (AnySent() ? 6 : 0);
  }

  bool AnySent() const {
    return std::ranges::any_of(arrows_, [](const auto& arrow) { return arrow.second.sent; });
  }

  std::string Title() const {
    const auto guessed = FindDoubtful(graph_, Certainty::kUnknown);
    return fmt::format(
        "{} on {}: {}{}{}", Escaped(graph_.name(), 60), Escaped(problem_.cluster().name(), 60),
        Time(timeline_.score.time), timeline_.score.fits() ? "" : " (does not fit)",
        guessed ? fmt::format("\\nGUESSED: the sizes of {} of {} ops are unknown", guessed->ops, graph_.num_ops())
                : "");
  }

  // How a box is called elsewhere.
  std::string Name(size_t box) const {
    return boxes_.ops[box].size() > 1 ? fmt::format("#{}", box + 1)
                                      : Escaped(graph_.op_name(boxes_.ops[box].front()), 20);
  }

  std::string TimeOf(size_t box) const {
    double time = 0;
    for (const OpId op : boxes_.ops[box]) time += timeline_.ops[Index(op)].end - timeline_.ops[Index(op)].start;
    return Time(time);
  }

  // Where colours return, the device's name goes with them.
  std::string DeviceNote(size_t box) const {
    if (problem_.num_devices() <= kColours.size() || OpsByDevice(box).size() > 1) return "";
    return " on " + DeviceName(plan_.device[Index(boxes_.ops[box].front())]);
  }

  Lines Label(size_t box) const {
    const std::vector<OpId>& ops = boxes_.ops[box];
    if (ops.size() == 1) {
      return {Escaped(graph_.op_name(ops.front())),
              fmt::format("{}  {}{}", Escaped(graph_.op_type(ops.front())), TimeOf(box), DeviceNote(box))};
    }
    Lines lines = {fmt::format("{}: {} ops  {}{}", Name(box), ops.size(), TimeOf(box), DeviceNote(box))};
    if (const std::string_view start = CommonStart(graph_, ops); !start.empty()) lines.push_back(Escaped(start));
    std::map<std::string_view, size_t> count;
    for (const OpId op : ops) ++count[graph_.op_type(op)];
    std::vector<std::pair<std::string_view, size_t>> types(count.begin(), count.end());
    std::ranges::stable_sort(types, std::greater(), &std::pair<std::string_view, size_t>::second);
    std::string text;
    size_t others = ops.size();
    for (size_t i = 0; i < std::min<size_t>(types.size(), 2); ++i) {
      text += fmt::format("{}{} {}", i == 0 ? "" : ", ", types[i].second, Escaped(types[i].first, 16));
      others -= types[i].second;
    }
    lines.push_back(others == 0 ? text : fmt::format("{}, {} more", text, others));
    return lines;
  }

  std::map<DeviceId, size_t> OpsByDevice(size_t box) const {
    std::map<DeviceId, size_t> ops;
    for (const OpId op : boxes_.ops[box]) ++ops[plan_.device[Index(op)]];
    return ops;
  }

  void AddArrows(TensorId tensor) {
    const size_t producer = Index(graph_.producer(tensor));
    std::map<size_t, bool> reached;  // a tensor that several ops of a box read goes there once
    for (const OpId consumer : graph_.consumers(tensor)) {
      reached[boxes_.of_op[Index(consumer)]] |= plan_.device[producer] != plan_.device[Index(consumer)];
    }
    for (const auto& [to, sent] : reached) {
      if (to == boxes_.of_op[producer]) continue;
      Arrow& arrow = arrows_[{boxes_.of_op[producer], to}];
      arrow.sent |= sent;
      arrow.sent_bytes += sent ? graph_.tensor_bytes(tensor) : 0;
    }
  }

  void DrawBox(size_t box) {
    const std::map<DeviceId, size_t> devices = OpsByDevice(box);
    std::string fill;
    for (const auto& [device, ops] : devices) {
      // The last stripe takes what is left.
      const double share = static_cast<double>(ops) / static_cast<double>(boxes_.ops[box].size());
      fill += fmt::format("{}{}", fill.empty() ? "" : ":", ColourOf(device).fill);
      if (device != devices.rbegin()->first) fill += fmt::format(";{:.3f}", share);
    }
    const std::string_view line = devices.size() > 1 ? "#555555" : ColourOf(devices.begin()->first).line;
    Line("    n{} [{}fillcolor=\"{}\", color=\"{}\", label=\"{}\", tooltip=\"{}\"];", box,
         devices.size() > 1 ? "style=striped, " : "", fill, line, fmt::join(labels_[box], "\\n"), Tooltip(box));
  }

  std::string Tooltip(size_t box) const {
    const std::vector<OpId>& ops = boxes_.ops[box];
    std::vector<std::string> devices;
    for (const auto& [device, count] : OpsByDevice(box)) {
      devices.push_back(ops.size() == 1 ? DeviceName(device) : fmt::format("{} ops on {}", count, DeviceName(device)));
    }
    const std::string names = ops.size() == 1 ? fmt::format("{}: {} on", Escaped(graph_.op_name(ops.front()), 200),
                                                            Escaped(graph_.op_type(ops.front()), 60))
                                              : fmt::format("{} .. {}:", Escaped(graph_.op_name(ops.front()), 200),
                                                            Escaped(graph_.op_name(ops.back()), 200));
    return fmt::format("{} {}", names, fmt::join(devices, ", "));
  }

  void DrawArrow(std::string_view from, std::string_view to, const Arrow& arrow, bool torn) {
    Line("    {} -> {} [{}{}];", from, to, torn ? "style=dashed" : "",
         arrow.sent ? fmt::format("{}color=\"{}\", penwidth=1.8, fontcolor=\"{}\", label=\"{}\"", torn ? ", " : "",
                                  kSent, kSent, ToString(Bytes{arrow.sent_bytes}))
                    : "");
  }

  // One row of a column: an unseen node that keeps the rows apart, and the others at its height.
  std::string Row(size_t column, size_t& rows, const std::vector<std::string>& nodes) {
    const std::string keeper = fmt::format("row{}_{}", column, rows++);
    Line("    {} [style=invis, fixedsize=true, width=0.01, height=0.01, label=\"\"];", keeper);
    Line("    {{rank=same; {}; {}}}", keeper, fmt::join(nodes, "; "));
    return keeper;
  }

  // Arrows to other columns end and begin at small boxes that say where they go on.
  void DrawColumn(size_t c) {
    std::map<size_t, std::vector<size_t>> into;  // box in an earlier column -> boxes here
    std::map<size_t, std::set<size_t>> out_of;   // box here -> later columns
    for (const auto& [ends, arrow] : arrows_) {
      const auto& [from, to] = ends;
      if (column_of_[from] == column_of_[to]) continue;
      if (column_of_[to] == c) into[from].push_back(to);
      if (column_of_[from] == c) out_of[from].insert(column_of_[to] + 1);
    }
    constexpr std::string_view kStub = "style=dashed, color=\"#777777\", fontsize=9";
    Line("  subgraph cluster_{} {{ style=\"rounded,filled\"; color=\"#F4F4F4\"; fontsize=12; fontcolor=\"#666666\";",
         c);
    Line("    label=\"{}\";", columns_.size() > 1 ? fmt::format("{} of {}", c + 1, columns_.size()) : "");
    std::vector<std::string> keepers;
    size_t rows = 0;
    std::vector<std::string> nodes;
    for (const auto& [from, to] : into) {
      nodes.push_back(fmt::format("in{}_{}", c, from));
      Line("    {} [{}, label=\"from {}: {}\"];", nodes.back(), kStub, column_of_[from] + 1, Name(from));
    }
    if (!nodes.empty()) keepers.push_back(Row(c, rows, nodes));
    for (const std::vector<size_t>& layer : columns_[c].layers) {
      nodes.clear();
      for (const size_t box : layer) {
        DrawBox(box);
        nodes.push_back(fmt::format("n{}", box));
      }
      keepers.push_back(Row(c, rows, nodes));
    }
    nodes.clear();
    for (const auto& [from, to] : out_of) {
      nodes.push_back(fmt::format("out{}", from));
      Line("    {} [{}, label=\"to {}\"];", nodes.back(), kStub, fmt::join(to, ", "));
    }
    if (!nodes.empty()) keepers.push_back(Row(c, rows, nodes));
    if (keepers.size() > 1) Line("    {} [style=invis];", fmt::join(keepers, " -> "));
    for (const auto& [ends, arrow] : arrows_) {
      const auto& [from, to] = ends;
      if (column_of_[to] != c) continue;
      const bool torn = column_of_[from] != c;
      DrawArrow(torn ? fmt::format("in{}_{}", c, from) : fmt::format("n{}", from), fmt::format("n{}", to), arrow, torn);
    }
    for (const auto& [from, to] : out_of) Line("    n{} -> out{} [style=dashed];", from, from);
    Line("  }}");
  }

  void Legend() {
    std::vector<size_t> ops(problem_.num_devices());
    std::vector<double> busy(problem_.num_devices());
    for (const OpRun& run : timeline_.ops) {
      ++ops[Index(run.device)];
      busy[Index(run.device)] += run.end - run.start;
    }
    Line("  subgraph cluster_legend {{ label=\"devices\"; fontsize=12; color=\"#CCCCCC\";");
    std::vector<std::string> rows;
    for (const DeviceId device : problem_.cluster().ids()) {
      rows.push_back(fmt::format("device{}", Index(device)));
      Line("    {} [fillcolor=\"{}\", color=\"{}\", label=\"{}\\n{} {}, {}\"];", rows.back(), ColourOf(device).fill,
           ColourOf(device).line, DeviceName(device), ops[Index(device)], ops[Index(device)] == 1 ? "op" : "ops",
           Time(busy[Index(device)]));
    }
    if (AnySent()) {
      rows.emplace_back("sent");
      Line("    sent [shape=plaintext, style=\"\", fontcolor=\"{}\", label=\"red arrow: sent to\\nanother device\"];",
           kSent);
    }
    if (rows.size() > 1) Line("    {} [style=invis];", fmt::join(rows, " -> "));
    Line("  }}");
  }

  const Problem& problem_;
  const Graph& graph_;
  const Plan& plan_;
  const Timeline& timeline_;
  Boxes boxes_;
  std::vector<Lines> labels_;
  std::map<std::pair<size_t, size_t>, Arrow> arrows_;  // by the boxes at its ends
  std::vector<Column> columns_;
  std::vector<size_t> column_of_;
  std::string text_;
};

}  // namespace

std::string PictureDot(const Problem& problem, const Plan& plan, const Timeline& timeline) {
  return Picture(problem, plan, timeline).Dot();
}

}  // namespace berth
