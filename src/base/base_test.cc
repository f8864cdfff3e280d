#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/catalog.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/parameters.h"
#include "base/random.h"
#include "base/units.h"

namespace berth {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The text of the Error that `call` throws, or "no error".
template <typename Call>
std::string ErrorOf(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Error, IsOneLineWhateverItQuotes) {
  EXPECT_STREQ(Error("a.yaml:3: unknown key '{}'; expected name", "x\ny\t\x1b[2J").what(),
               "a.yaml:3: unknown key 'x\\ny\\x09\\x1b[2J'; expected name");
}

TEST(Error, LeavesOutTheMiddleOfWhatNobodyWouldRead) {
  const std::string whole = fmt::format("a.yaml: unknown key '{}'; expected name", std::string(4000, 'x'));
  EXPECT_EQ(Error(whole).what(), whole);
  std::string umlauts;
  for (int i = 0; i < 1'000'000; ++i) umlauts += "\u00e4";
  for (const std::string before : {"", "o"}) {
    const std::string text = Error("a.yaml: unknown key '{}{}'; expected name", before, umlauts).what();
    EXPECT_LE(text.size(), Error::kLongest);
    EXPECT_THAT(text, AllOf(HasSubstr("a.yaml: unknown key '" + before + "\u00e4"), HasSubstr("\u00e4 [1996"),
                            HasSubstr(" bytes] \u00e4"), HasSubstr("\u00e4'; expected name")));
  }
}

TEST(Closest, TakesTwoSwappedLettersAsOneMistake) {
  EXPECT_EQ(Closest("pni", {"colocate", "pin"}), "pin");
  EXPECT_EQ(Closest("cup", {"gpu", "cpu"}), "cpu");
}

TEST(Closest, MindsNoCase) {
  EXPECT_EQ(Closest("GPU", {"cpu", "gpu"}), "gpu");
  EXPECT_EQ(Closest("Cpu", {"cpu", "gpu"}), "cpu");
  EXPECT_EQ(Closest("gpu0", {"GPU0", "GPU1"}), "GPU0");
}

TEST(Catalog, SaysWhatAKnownNameNeedsThatIsNotHere) {
  Catalog<int()> catalog("planner");
  catalog.Add({.name = "heft"}, [](const Params&) { return 1; });
  catalog.AddMissing({.names = {"hsdag"}, .needs = "needs libtorch"});
  catalog.AddMissing({.names = {"scotch"}, .needs = "needs Scotch"});
  EXPECT_THAT([&] { catalog.Make("hsdag(steps=3)"); }, ::testing::ThrowsMessage<Error>("hsdag needs libtorch"));
  EXPECT_THAT([&] { catalog.Make("scotch"); }, ::testing::ThrowsMessage<Error>("scotch needs Scotch"));
  EXPECT_THAT([&] { catalog.Make("heff"); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("did you mean 'heft'")));
}

// Or a device file would change when it is written and read again.
TEST(Units, KnowOneZero) {
  EXPECT_FALSE(std::signbit(ParseSeconds("-0us").value));
  EXPECT_FALSE(std::signbit(ParseBytesPerSecond("-0GB/s")));
  EXPECT_FALSE(std::signbit(ParseShare("-0%")));
}

TEST(Units, ReadsQuantitiesWithTheirUnits) {
  EXPECT_EQ(ParseSeconds("20us").value, 20e-6);
  EXPECT_EQ(ParseSeconds("1.5 ms").value, 1.5e-3);
  EXPECT_EQ(ParseBytes("16GiB").value, int64_t{16} << 30);
  EXPECT_EQ(ParseBytes("4096B").value, 4096);
  EXPECT_EQ(ParseBytesPerSecond("12GB/s"), 12e9);
  EXPECT_EQ(ParseBytesPerSecond("100Gbit/s"), 12.5e9);
  EXPECT_EQ(ParseFlopsPerSecond("8.2TFLOP/s"), 8.2e12);
  EXPECT_EQ(ParseSeconds("1.1e2us").value, 1.1e-4);
}

TEST(Units, RefusesWhatIsNoQuantityAndShowsAnExample) {
  for (const char* text : {"", "fast", "-1ms", "1", "nan s", "inf s", "1 parsec"}) {
    EXPECT_THAT(ErrorOf([&] { ParseSeconds(text); }), HasSubstr("20us")) << text;
  }
  EXPECT_THAT(ErrorOf([] { ParseBytes("100"); }),
              HasSubstr("'100' is not an amount of memory: write a number and a unit"));
  EXPECT_THAT(ErrorOf([] { ParseBytes("16 Gb"); }),
              HasSubstr("there is no unit 'Gb', but B, kB, KB, MB, GB, TB, KiB, MiB, GiB, TiB): write a number"));
  EXPECT_THAT(ErrorOf([] { ParseBytes("-1GiB"); }), HasSubstr("it is below zero"));
  EXPECT_THAT(ErrorOf([] { ParseBytes("1e30 TiB"); }), HasSubstr("more memory"));
}

TEST(Units, PrintsThreeDigits) {
  EXPECT_EQ(ToString(Seconds{0.00781}), "7.81 ms");
  EXPECT_EQ(ToString(Seconds{12e-6}), "12.0 us");
  EXPECT_EQ(ToString(Seconds{0.9996e-3}), "1.00 ms");
  EXPECT_EQ(ToString(Seconds{1234}), "1234 s");
  EXPECT_EQ(ToString(Seconds{1.7e299}), "1.70e+299 s");
  EXPECT_EQ(WithPrefix(1.7e308, "FLOP"), "1.70e+290 EFLOP");
  EXPECT_EQ(ToString(Bytes{0}), "0 B");
  EXPECT_EQ(ToString(Bytes{102236160}), "97.5 MiB");
  EXPECT_EQ(WithPrefix(8.21e9, "FLOP"), "8.21 GFLOP");
}

TEST(Random, RepeatsForASeed) {
  Random a(1), b(1), c(2);
  const uint64_t first = a.Next();
  EXPECT_EQ(first, b.Next());
  EXPECT_NE(first, c.Next());
  // Written down so that another compiler or machine would be noticed.
  EXPECT_EQ(Random(1).Next(), 12966619160104079557ull);
}

TEST(Random, ForksDoNotDependOnWhatWasDrawn) {
  Random a(7);
  const uint64_t before = a.Fork(3, 4).Next();
  a.Next();
  EXPECT_EQ(a.Fork(3, 4).Next(), before);
  EXPECT_NE(a.Fork(4, 3).Next(), before);
  std::set<uint64_t> firsts;
  for (uint64_t i = 0; i < 30; ++i) {
    for (uint64_t k = 0; k < 30; ++k) firsts.insert(a.Fork(i, k).Next());
  }
  EXPECT_EQ(firsts.size(), 900u);
}

TEST(Random, DrawsEvenlyBelowACount) {
  Random random(5);
  std::vector<int> counts(6);
  for (int i = 0; i < 60000; ++i) ++counts[random.Below(6)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
}

TEST(Random, NormalsHaveTheirMeanAndSpread) {
  Random random(5);
  double sum = 0, squares = 0;
  for (int i = 0; i < 50000; ++i) {
    const double x = random.Normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 50000, 0, 0.02);
  EXPECT_NEAR(squares / 50000, 1, 0.03);
}

TEST(Hasher, TellsOrderAndBoundariesApart) {
  EXPECT_EQ(Hasher().Add("ab").Add("c").value(), Hasher().Add("ab").Add("c").value());
  EXPECT_NE(Hasher().Add("ab").Add("c").value(), Hasher().Add("a").Add("bc").value());
  EXPECT_NE(Hasher().Add(uint64_t{1}).Add(uint64_t{2}).value(), Hasher().Add(uint64_t{2}).Add(uint64_t{1}).value());
  EXPECT_EQ(Hasher().Text().size(), 16u);
}

TEST(Spec, ReadsNestedNames) {
  const Spec spec = Spec::Parse("on(group=colocation, planner=hsdag(episodes=100,steps=20), heft, file=\"a b,c\")");
  EXPECT_EQ(spec.name, "on");
  EXPECT_THAT(spec.parameters,
              ElementsAre(std::pair<std::string, std::string>("group", "colocation"),
                          std::pair<std::string, std::string>("planner", "hsdag(episodes=100,steps=20)"),
                          std::pair<std::string, std::string>("file", "a b,c")));
  EXPECT_THAT(spec.arguments, ElementsAre("heft"));
}

TEST(Spec, RefusesWhatDoesNotBalance) {
  for (const char* text :
       {"", "(", "a(", "a)", "a(b=1))", "a(b=(1)", "a(b=\"x)", "a b", "a(x=1)b", "a(,)", "a(x=1,,y=2)"}) {
    EXPECT_NE(ErrorOf([&] { Spec::Parse(text); }), "no error") << text;
  }
}

TEST(Spec, SaysWhatDoesNotBalanceAndShowsTheWholeText) {
  const auto error = [](const char* text) { return ErrorOf([&] { Spec::Parse(text); }); };
  EXPECT_EQ(error("placeto(rounds=4"), "'placeto(rounds=4': a closing parenthesis is missing");
  EXPECT_EQ(error("placeto(rounds=4))"), "'placeto(rounds=4))': one closing parenthesis too many");
  EXPECT_EQ(error("fixed(devices=[0,1)"), "'fixed(devices=[0,1)': a closing bracket is missing");
  EXPECT_EQ(error("a(b=[1]])"), "'a(b=[1]])': one closing bracket too many");
  EXPECT_EQ(error("a(b=\"x)"), "'a(b=\"x)': a closing quotation mark is missing");
  EXPECT_EQ(error("a(b=1)(c=2)"), "'a(b=1)(c=2)': after the name 'a' only (key=value, ...) may follow");
}

TEST(SplitList, SplitsOutsideParentheses) {
  EXPECT_THAT(SplitList("a, b(c=1,d=2) ,e"), ElementsAre("a", "b(c=1,d=2)", "e"));
  EXPECT_TRUE(SplitList("").empty());
}

struct Toy {
  std::string text;
};

Catalog<Toy()> MakeToys() {
  Catalog<Toy()> toys("toy");
  toys.Add(
      {.name = "ball",
       .sentence = "It rolls.",
       .source = "-",
       .parameters = {{.name = "size",
                       .type = ParameterType::kInt,
                       .default_value = "3",
                       .sentence = "cm",
                       .least = 1,
                       .most = 9},
                      {.name = "colour",
                       .type = ParameterType::kChoice,
                       .default_value = "red",
                       .sentence = "paint",
                       .choices = {"red", "blue"}},
                      {.name = "bounce", .type = ParameterType::kReal, .default_value = "0.5", .sentence = "share"}}},
      [](const Params& params) {
        return Toy{fmt::format("{} {} {}", params.Int("size"), params.Text("colour"), params.Real("bounce"))};
      });
  toys.Add({.name = "top",
            .sentence = "It spins.",
            .source = "-",
            .parameters = {Time("turn", "0.02", "how long", 1e-6, 60)}},
           [](const Params& params) { return Toy{fmt::format("{}", params.Time("turn"))}; });
  toys.Add({.name = "box",
            .sentence = "It holds.",
            .source = "-",
            .parameters =
                {{.name = "toys", .type = ParameterType::kSpecs, .default_value = "", .sentence = "what is in it"}}},
           [](const Params& params) {
             return Toy{fmt::format("{} | {}", fmt::join(params.Specs("toys"), ";"), params.canonical())};
           });
  return toys;
}

TEST(Catalog, MakesThingsFromTheirNames) {
  const auto toys = MakeToys();
  EXPECT_EQ(toys.Make("ball").text, "3 red 0.5");
  EXPECT_EQ(toys.Make("ball(colour=blue,size=4)").text, "4 blue 0.5");
  EXPECT_EQ(toys.Make("box(ball, ball(size=2))").text, "ball;ball(size=2) | box(ball,ball(size=2))");
}

TEST(Catalog, TakesATimeInSecondsOrWithItsUnit) {
  const auto toys = MakeToys();
  for (const auto& [text, seconds] : {std::pair("top", "0.02"),
                                      {"top(turn=0.5)", "0.5"},
                                      {"top(turn=8.6us)", "8.6e-06"},
                                      {"top(turn=1 min)", "60"},
                                      {"top(turn=1e-6)", "1e-06"}}) {
    EXPECT_EQ(toys.Make(text).text, seconds) << text;
  }
  const std::vector<Parameter>& declared = toys.Find("top")->info.parameters;
  for (const auto& [text, name] : {std::pair("top(turn=8.6 us)", "top(turn=8.6e-06)"),
                                   {"top(turn=0.0000086)", "top(turn=8.6e-06)"},
                                   {"top(turn=20ms)", "top"}}) {
    EXPECT_EQ(Params(Spec::Parse(text), declared, "toy").canonical(), name);
  }
  for (const char* wrong : {"nan", "inf", "-1", "-1us", "5 parsecs", "us", "2min", "1ns", "0", "1s2"}) {
    EXPECT_THAT(ErrorOf([&] { toys.Make(fmt::format("top(turn={})", wrong)); }),
                AllOf(HasSubstr("is not a time (a number of seconds, or one with its unit, like 20us)"),
                      HasSubstr("from 1e-06 to 60")));
  }
}

TEST(Catalog, LeavesDefaultsOutOfTheCanonicalName) {
  const Spec spec = Spec::Parse("ball(colour=red, size=4)");
  EXPECT_EQ(Params(spec, MakeToys().Find("ball")->info.parameters, "toy").canonical(), "ball(size=4)");
}

TEST(Catalog, NamesAThingWithOneParameterSetAnew) {
  const auto toys = MakeToys();
  EXPECT_EQ(toys.NameWith("ball(colour=blue, size=4)", "size", "5"), "ball(size=5,colour=blue)");
  EXPECT_EQ(toys.NameWith("ball(colour=blue,size=4)", "size", ""), "ball(colour=blue)");
  EXPECT_EQ(toys.NameWith("ball", "colour", "red"), "ball");
  EXPECT_THAT(ErrorOf([&] { toys.NameWith("ball", "size", "12"); }), HasSubstr("from 1 to 9"));
}

TEST(Catalog, TheCanonicalNameReadsBack) {
  for (const char* text : {"box", "a b", "x,y", "p(q", "[0", "k=v"}) {
    const Params params({.name = "shelf", .parameters = {{"room", text}}}, {{.name = "room"}}, "toy");
    EXPECT_EQ(Params(Spec::Parse(params.canonical()), {{.name = "room"}}, "toy").Text("room"), text);
  }
}

TEST(Catalog, NamesWhatThereIsWhenAskedForSomethingElse) {
  const auto toys = MakeToys();
  EXPECT_THAT(ErrorOf([&] { toys.Make("bal"); }),
              HasSubstr("there is no toy 'bal'; did you mean 'ball'? There are: ball, top, box"));
  EXPECT_THAT(ErrorOf([&] { toys.Make("ball(weight=1)"); }),
              AllOf(HasSubstr("no parameter 'weight'"), HasSubstr("size=3")));
  EXPECT_THAT(ErrorOf([&] { toys.Make("ball(size=12)"); }), HasSubstr("from 1 to 9"));
  EXPECT_THAT(ErrorOf([&] { toys.Make("ball(size=1.5)"); }), HasSubstr("a whole number"));
  EXPECT_THAT(ErrorOf([&] { toys.Make("ball(bounce=nan)"); }), HasSubstr("a number"));
  EXPECT_THAT(ErrorOf([&] { toys.Make("ball(colour=green)"); }), HasSubstr("red, blue"));
  EXPECT_THAT(ErrorOf([&] { toys.Make("ball(size=1,size=2)"); }), HasSubstr("twice"));
  EXPECT_THAT(ErrorOf([&] { toys.Make("ball(7)"); }), HasSubstr("has no key"));
}

class FileTest : public ::testing::Test {
 protected:
  FileTest() { std::filesystem::create_directories(folder_); }
  ~FileTest() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ / name; }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("berth-file-test-{}", ::getpid());
};

TEST_F(FileTest, ReadsBackWhatItWrote) {
  const std::string content("one\0two\n", 8);
  WriteFile(Path("a"), content);
  EXPECT_EQ(ReadFile(Path("a")), content);
  WriteFile(Path("a"), "");
  EXPECT_EQ(ReadFile(Path("a")), "");
}

TEST_F(FileTest, KeepsWhoMayReadWhatItReplaces) {
  WriteFile(Path("a"), "old");
  std::filesystem::permissions(Path("a"), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  WriteFile(Path("a"), "new");
  EXPECT_EQ(std::filesystem::status(Path("a")).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(FileTest, LeavesNothingBehindWhenItCannotWrite) {
  EXPECT_THAT(ErrorOf([&] { WriteFile(Path("missing/a"), "x"); }), HasSubstr("missing/a: cannot be written"));
  EXPECT_THAT(ErrorOf([&] { WriteFile(folder_.string(), "x"); }), HasSubstr("is a directory"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(FileTest, RemovesWhatAKilledProcessLeftOfOneFile) {
  for (const char* name : {"a", "a.part-1bcXYZ", "b.part-1bcXYZ", "a.part-", "a.part-longer1", "xa.part-1bcXYZ"}) {
    WriteFile(Path(name), "x");
  }
  RemoveLeftovers(Path("a"));
  EXPECT_FALSE(std::filesystem::exists(Path("a.part-1bcXYZ")));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 5);
  RemoveLeftovers(Path("missing/a"));
}

TEST_F(FileTest, NamesTheFileThatCannotBeRead) {
  EXPECT_THAT(ErrorOf([&] { ReadFile(Path("b")); }), HasSubstr("No such file"));
  EXPECT_THAT(ErrorOf([&] { ReadFile(folder_.string()); }), HasSubstr("is a directory"));
}

TEST_F(FileTest, ReadsRegularFilesOfASaneSizeOnly) {
  WriteFile(Path("a"), "0123456789");
  EXPECT_EQ(ReadFile(Path("a"), {.what = "plan", .most_bytes = 10}), "0123456789");
  EXPECT_EQ(ErrorOf([&] { ReadFile(Path("a"), {.what = "plan", .most_bytes = 9}); }),
            Path("a") + ": is larger than 9 B, the most that a plan may have; check the path");
  // Where the size is not known before, as of files that are made when they are read.
  EXPECT_THAT(ErrorOf([&] { ReadFile("/proc/self/status", {.most_bytes = 20}); }), HasSubstr("larger than 20 B"));
  EXPECT_THAT(ReadFile("/proc/self/status"), HasSubstr("Pid:"));
  EXPECT_EQ(ErrorOf([&] { ReadFile("/dev/zero", {.what = "plan"}); }),
            "/dev/zero: is a device and no regular file; write the plan into a file and name that");
  ASSERT_EQ(::mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(ErrorOf([&] { ReadFile(Path("fifo"), {.what = "plan"}); }),
            Path("fifo") + ": is a pipe and no regular file; write the plan into a file and name that");
}

TEST_F(FileTest, ReadsPipesWhereTheyAreAllowedAndDoesNotWaitForNobody) {
  const FileKind kind{.what = "model", .most_bytes = 200'000, .may_be_pipe = true};
  const std::string path = Path("fifo");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(ErrorOf([&] { ReadFile(path, kind); }),
            path + ": nobody writes into this pipe; write the model into a file and name that");
  // More than a pipe holds at once, by a writer that comes late and pauses.
  const auto written = [&](size_t size) {
    return std::jthread([=] {
      ::usleep(100'000);
      const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      ::usleep(100'000);
      const std::string content(size, 'x');
      for (size_t at = 0; at < size;) {
        const ssize_t count = ::write(descriptor, content.data() + at, std::min<size_t>(size - at, 50'000));
        if (count <= 0) break;
        at += static_cast<size_t>(count);
        ::usleep(10'000);
      }
      ::close(descriptor);
    });
  };
  {
    const std::jthread writer = written(150'000);
    EXPECT_EQ(ReadFile(path, kind), std::string(150'000, 'x'));
  }
  {
    const auto before = std::signal(SIGPIPE, SIG_IGN);
    {
      const std::jthread writer = written(250'000);
      EXPECT_THAT(ErrorOf([&] { ReadFile(path, kind); }), HasSubstr("the most that a model may have"));
    }
    std::signal(SIGPIPE, before);
  }
  {
    const std::jthread writer = written(0);
    EXPECT_EQ(ReadFile(path, kind), "");
  }
}

TEST_F(FileTest, WritesThroughSymbolicLinks) {
  WriteFile(Path("file"), "old");
  std::filesystem::create_directory(Path("folder"));
  std::filesystem::create_symlink("../file", Path("folder/relative"));
  std::filesystem::create_symlink(Path("folder/relative"), Path("absolute"));
  WriteFile(Path("absolute"), "new");
  EXPECT_EQ(ReadFile(Path("file")), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(Path("absolute")));
  EXPECT_TRUE(std::filesystem::is_symlink(Path("folder/relative")));
  // One that leads to a file which is not there yet.
  std::filesystem::create_symlink("fresh", Path("folder/dangling"));
  WriteFile(Path("folder/dangling"), "made");
  EXPECT_EQ(ReadFile(Path("folder/fresh")), "made");
  std::filesystem::create_symlink("nowhere/file", Path("lost"));
  EXPECT_THAT(ErrorOf([&] { WriteFile(Path("lost"), "x"); }), HasSubstr("lost: cannot be written"));
  std::filesystem::create_symlink("circle", Path("circle"));
  EXPECT_THAT(ErrorOf([&] { WriteFile(Path("circle"), "x"); }), HasSubstr("lead in a circle"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 5) << "nothing is left behind";
}

TEST_F(FileTest, AFolderHasOneWhoWorksInItAtATime) {
  const std::string folder = folder_.string();
  {
    const FolderLock first(folder);
    EXPECT_EQ(ErrorOf([&] { const FolderLock second(folder); }),
              fmt::format("{}: another process ({}) works in this folder; wait for its end, or name another folder",
                          folder, ::getpid()));
  }
  const FolderLock again(folder);
  EXPECT_THAT(ErrorOf([&] { const FolderLock nowhere(Path("missing")); }),
              HasSubstr("missing/lock: cannot be written"));
}

TEST_F(FileTest, WritesToADescriptorOfItsOwnWhereItStands) {
  const int descriptor = ::open(Path("out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::write(descriptor, "before ", 7), 7);
  WriteFile(fmt::format("/dev/fd/{}", descriptor), "plan ");
  ASSERT_EQ(::write(descriptor, "after", 5), 5);
  ::close(descriptor);
  EXPECT_EQ(ReadFile(Path("out")), "before plan after");
}

TEST(Json, RefusesAKeyThatIsThereTwice) {
  const auto error = [](const char* text) { return ErrorOf([&] { ParseJson(text, "x.json"); }); };
  EXPECT_EQ(error(R"({"a": 1, "b": 2, "a": 1})"), "x.json: the key 'a' is there twice; remove one of the two");
  EXPECT_EQ(error(R"({"ops": [{"k": 0}, {"out": [[], {"k": [1], "l": {}, "k": null}]}]})"),
            "x.json: ops[1].out[1]: the key 'k' is there twice; remove one of the two");
  EXPECT_EQ(error(R"([{"a": {"b": {"c": 1, "\u0063": 2}}}])"),
            "x.json: [0].a.b: the key 'c' is there twice; remove one of the two");
  EXPECT_EQ(error(R"([{"a": 1}, {"a": 1}, {"b": {"a": {"a": 1}}}])"), "no error");
}

// The builder is ours, the answers are to be the library's own.
TEST(Json, IsReadAsTheLibraryReadsIt) {
  for (const char* text :
       {"null", "[]", "{}", "true", "-1", "18446744073709551615", "1e3", "0.1", "\"x\\u00e9\"",
        R"({"a": [1, [2, {"b": [], "c": {}}], "d"], "e": {"f": {"g": [null, false]}}, "h": -1e-300})"}) {
    EXPECT_EQ(ParseJson(text, "x.json"), nlohmann::json::parse(text)) << text;
  }
  for (const char* text : {"[1,", "{\"a\"}", "[1] 2", "{\"a\": 1,}", "nul", "\"\xff\"", "[1e999]", "\x01"}) {
    EXPECT_EQ(ErrorOf([&] { ParseJson(text, "x.json"); }).substr(0, 6), "x.json") << text;
  }
  EXPECT_THAT(ErrorOf([] { ParseJson("[1e999]", "x.json"); }), HasSubstr("beyond what a double can hold"));
}

TEST(Json, NamesLineAndColumnOfAMistake) {
  EXPECT_THAT(ErrorOf([] { ParseJson("{\n \"a\": [1,\n 2", "x.json"); }), HasSubstr("x.json:3:"));
  EXPECT_THAT(ErrorOf([] { ParseJson("", "x.json"); }), HasSubstr("is empty"));
  EXPECT_EQ(ParseJson("[1, 2]", "x.json").size(), 2u);
}

TEST(Closest, FindsTheNearestNameOrNone) {
  EXPECT_EQ(Closest("hefft", {"heft", "random"}), "heft");
  EXPECT_EQ(Closest("quantum", {"heft", "random"}), "");
  EXPECT_EQ(Closest("foo", {"topo", "heft"}), "");
  EXPECT_EQ(Closest("", {"cpu"}), "");
  EXPECT_EQ(Closest(std::string(100'000, 'x'), {std::string(100'000, 'x') + "y"}), "");
}

}  // namespace
}  // namespace berth
