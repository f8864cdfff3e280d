#include "report/table.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(Table, AlignsByWhatATerminalShows) {
  Table table({{"name"}, {"time", Table::Align::kRight}, {"note"}});
  table.Add({"größe", "12.0 us", "x"});
  table.Add({"张量", "3 s"});
  EXPECT_EQ(table.ToString(),
            "  name      time  note\n"
            "  ─────  ───────  ────\n"
            "  größe  12.0 us  x\n"
            "  张量       3 s\n");
}

// A page of so many cells, for one test.
class Page {
 public:
  explicit Page(size_t cells) { SetPageWidth(cells); }
  ~Page() { SetPageWidth(kAnyWidth); }
};

TEST(Table, OnANarrowPageLeavesOutColumnsByRankAndNamesThem) {
  using enum Table::Align;
  Table table({{"planner"}, {"time", kRight}, {"energy", kRight, 2}, {"evaluations", kRight, 1}});
  table.Add({"heft", "12.0 us", "1.20 J", "1"});
  const std::string whole = table.ToString();
  {
    const Page page(40);
    EXPECT_EQ(table.ToString(), whole);
  }
  const Page page(33);
  EXPECT_EQ(table.ToString(),
            "  planner     time  evaluations\n"
            "  ───────  ───────  ───────────\n"
            "  heft     12.0 us            1\n"
            "  (no room for: energy)\n");
}

TEST(Table, OnANarrowPageBreaksTextsAtLast) {
  Table table({{"planner"}, {"time", Table::Align::kRight}});
  table.Add({"on(group=merge,planner=placeto)", "12.0 us"});
  const Page page(30);
  EXPECT_EQ(table.ToString(),
            "  planner                 time\n"
            "  ───────────────────  ───────\n"
            "  on(group=merge,      12.0 us\n"
            "  planner=placeto)\n");
}

TEST(Table, WidthCountsCellsNotBytes) {
  EXPECT_EQ(DisplayWidth("abc"), 3u);
  EXPECT_EQ(DisplayWidth("größe"), 5u);
  EXPECT_EQ(DisplayWidth("e\u0301"), 1u);
  EXPECT_EQ(DisplayWidth("张量"), 4u);
  EXPECT_EQ(DisplayWidth("\xff\xc3"), 2u);
}

TEST(Printable, NamesCannotSteerATerminal) {
  EXPECT_EQ(Printable("a\x1b[2Jb\nc\u009b\u202e"), "a?[2Jb?c??");
  EXPECT_EQ(Printable("ok \xc3\xa9 \xc3( \xed\xa0\x80"), "ok é ?( ???") << "one for each byte";
}

TEST(Legible, KeepsSentencesAndShortensLongWords) {
  EXPECT_EQ(Legible("op 'a/b'  runs\non 2 devices"), "op 'a/b'  runs?on 2 devices");
  EXPECT_EQ(Legible(""), "");
  const std::string name(100'000, 'n');
  EXPECT_EQ(Legible("op " + name + " runs"), "op " + std::string(99, 'n') + "…" + std::string(100, 'n') + " runs");
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += "word ";
  EXPECT_EQ(DisplayWidth(Legible(many)), 4000u);
}

TEST(Shorten, KeepsBothEnds) {
  EXPECT_EQ(Shorten("layer/attention/query", 30), "layer/attention/query");
  EXPECT_EQ(Shorten("layer/attention/query", 11), "layer…query");
  EXPECT_EQ(DisplayWidth(Shorten("张量张量张量张量", 7)), 5u);
  EXPECT_EQ(Shorten(std::string(3'000'000, 'x') + "yz", 6), "xx…xyz") << "in linear time";
}

TEST(Numbers, ReadAsPeopleWriteThem) {
  EXPECT_EQ(Count(0), "0");
  EXPECT_EQ(Count(999), "999");
  EXPECT_EQ(Count(1000), "1,000");
  EXPECT_EQ(Count(-1234567), "-1,234,567");
  EXPECT_EQ(Counted(1, "op"), "1 op");
  EXPECT_EQ(Counted(2, "op"), "2 ops");
  EXPECT_EQ(Percent(0), "0 %");
  EXPECT_EQ(Percent(0.0723), "7.2 %");
  EXPECT_EQ(Percent(0.0996), "10 %");
  EXPECT_EQ(Percent(0.4567), "46 %");
  EXPECT_EQ(Factor(1.417), "1.42x");
  EXPECT_EQ(Factor(31.42), "31.4x");
  EXPECT_EQ(JoinAnd({"a", "b", "c"}), "a, b and c");
}

TEST(Wrap, BreaksAtSpaces) {
  EXPECT_EQ(Wrap("one two three", "  ", 9), "  one two\n  three\n");
  EXPECT_EQ(Wrap("about 81 % of it", "", 9), "about\n81 % of\nit\n");
}

TEST(Wrap, BreaksLongWordsOnlyOnAPageWithAWidth) {
  EXPECT_EQ(Wrap("see /a/long/path", "  ", 9), "  see\n  /a/long/path\n");
  const Page page(9);
  EXPECT_EQ(Wrap("see /a/long/path"), "  see\n  /a/long\n  /path\n");
}

TEST(Item, ContinuesBelowItsText) {
  const Page narrow(20);
  EXPECT_EQ(Item("one two three four five"), "  - one two three\n    four five\n");
  EXPECT_EQ(Item("one two three four", "    "), "    - one two three\n      four\n");
}

TEST(Field, ContinuesBelowItsText) {
  EXPECT_EQ(Field("time", "5.81 ms"), "  time         5.81 ms\n");
  const Page page(24);
  EXPECT_EQ(Field("time", "5.81 ms per sample"), "  time         5.81 ms\n               per\n               sample\n");
}

}  // namespace
}  // namespace berth
