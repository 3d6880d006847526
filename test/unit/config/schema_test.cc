// Schemas, tested through their error messages.
#include "config/schema.h"

#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "support/message_of.h"
#include "support/problems_text.h"

namespace hctr::test {

enum class Colour { red, green, blue };
struct Inner {
  int64_t depth = 2;
};
struct Thing {
  int64_t size = 0;
  double rate = 0.5;
  bool fast = false;
  std::string path;
  Colour colour = Colour::green;
  std::vector<int64_t> gpus;
  std::optional<double> limit;
  Inner inner;
  std::vector<Inner> layers;
};

}  // namespace hctr::test

namespace hctr {

template <>
struct EnumWords<test::Colour> {
  static const std::vector<std::pair<std::string, test::Colour>>& table() {
    static const std::vector<std::pair<std::string, test::Colour>> words = {{"Red", test::Colour::red},
                                                                            {"Green", test::Colour::green},
                                                                            {"Blue", test::Colour::blue},
                                                                            {"Verde", test::Colour::green}};
    return words;
  }
};

}  // namespace hctr

namespace hctr::test {
namespace {

Schema<Inner> inner() { return Schema<Inner>("inner").need("depth", &Inner::depth, "how deep", at_least(1)); }

Schema<Thing> thing(std::string nested = "") {
  using T = Thing;
  return Schema<T>("Thing", std::move(nested))
      .need("size", &T::size, "columns of y", at_least(1))
      .opt("rate", &T::rate, "share of zeros", strictly_between(0, 1))
      .alias("dropout_rate")
      .opt("fast", &T::fast, "whether to hurry")
      .opt("path", &T::path, "where")
      .opt("colour", &T::colour, "of what")
      .opt("gpus", &T::gpus, "which")
      .opt("limit", &T::limit, "at most this", more_than(0))
      .ignored("plan_file", "plans are made by themselves");
}

struct Parsed {
  Thing thing;
  Problems problems;
  std::string text() const { return problems_text(problems); }
};

Parsed parse(const std::string& json, const Schema<Thing>& schema = thing(),
             const std::vector<std::string>& outer = {}) {
  Parsed p;
  p.thing = schema.parse(Json::parse(json, "c.json"), "/t", p.problems, outer);
  return p;
}

TEST(Schema, FillsAStructAndLeavesDefaults) {
  const Parsed p = parse(
      R"({"size": 7, "dropout_rate": 0.25, "fast": true, "path": "x", "colour": "Blue", "gpus": [0, 2], "limit": 3})");
  EXPECT_EQ(p.text(), "");
  EXPECT_EQ(p.thing.size, 7);
  EXPECT_EQ(p.thing.rate, 0.25);
  EXPECT_TRUE(p.thing.fast);
  EXPECT_EQ(p.thing.colour, Colour::blue);
  EXPECT_EQ(p.thing.gpus, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(p.thing.limit, 3);
  const Parsed few = parse(R"({"size": 7})");
  EXPECT_EQ(few.text(), "");
  EXPECT_EQ(few.thing.rate, 0.5);
  EXPECT_EQ(few.thing.colour, Colour::green);
  EXPECT_EQ(few.thing.limit, std::nullopt);
}

TEST(Schema, ANumberBeyondFloatsIsRefused) {
  const Schema<Thing> schema = Schema<Thing>("Thing").opt("limit", &Thing::limit, "at most this", Range{});
  for (const char* number : {"1e39", "-1e39", "1e308"})
    EXPECT_EQ(parse(cat(R"({"limit": )", number, "}"), schema)
                  .text()
                  .find("error /t/limit: expected a number that a float can hold (up to 3.4e38), found the number "),
              0u)
        << number;
  EXPECT_EQ(parse(R"({"limit": 3.4e38})", schema).text(), "");
}

TEST(Schema, AFieldWithoutEffectBecauseOfAnotherIsNotRead) {
  const Schema<Thing> schema =
      Schema<Thing>(thing()).unused_when([](const Thing& t) { return t.fast ? "the thing is fast" : ""; });
  EXPECT_EQ(parse(R"({"size": 7, "limit": 3})", schema).thing.limit, 3);
  const Parsed unused = parse(R"({"size": 7, "fast": true, "limit": -3})", schema);
  EXPECT_EQ(unused.text(), "note /t/limit: \"limit\" is accepted and has no effect: the thing is fast\n");
  EXPECT_EQ(unused.thing.limit, std::nullopt);
}

TEST(Schema, AMissingFieldIsNamedWithItsMeaning) {
  EXPECT_EQ(parse("{}").text(), "error /t: Thing needs \"size\": columns of y\n");
}

TEST(Schema, AMisspeltFieldIsAnErrorWithASuggestion) {
  EXPECT_EQ(parse(R"({"szie": 7})").text(),
            "error /t/szie: Thing has no field \"szie\"; did you mean \"size\"?\n"
            "error /t: Thing needs \"size\": columns of y\n");
  EXPECT_EQ(parse(R"({"size": 7, "dropoutrate": 0.1})").text(),
            "error /t/dropoutrate: Thing has no field \"dropoutrate\"; did you mean \"dropout_rate\"?\n");
  EXPECT_EQ(parse(R"({"size": 7, "Rate": 0.1})").text(),
            "error /t/Rate: Thing has no field \"Rate\"; did you mean \"rate\"?\n");
}

TEST(Schema, AnUnknownFieldIsAWarningAlsoIfCloseToOneThatIsSet) {
  EXPECT_EQ(parse(R"({"size": 7, "comment": "hello"})").text(),
            "warning /t/comment: Thing has no field \"comment\"; it is ignored\n");
  EXPECT_EQ(parse(R"({"size": 7, "sizes": 8})").text(),
            "warning /t/sizes: Thing has no field \"sizes\"; it is ignored\n");
}

TEST(Schema, AClosedSchemaKnowsEveryFieldButComments) {
  const Schema<Thing> schema = Schema<Thing>(thing()).closed();
  EXPECT_EQ(parse(R"({"size": 7, "comment": "hello", "plan_file": 1})", schema).text(),
            "error /t/comment: Thing has no field \"comment\"; --explain Thing lists them all\n"
            "note /t/plan_file: \"plan_file\" is accepted and has no effect: plans are made by themselves\n");
  EXPECT_EQ(parse(R"({"size": 7, "_comment": "hello"})", schema).text(),
            "warning /t/_comment: Thing has no field \"_comment\"; it is ignored\n");
  EXPECT_EQ(parse(R"({"size": 7, "sizes": 8})", schema).text(),
            "error /t/sizes: Thing has no field \"sizes\"; --explain Thing lists them all\n");
}

TEST(Schema, ARefusedFieldIsAnErrorUnlessEmpty) {
  const Schema<Thing> schema = Schema<Thing>(thing()).refused("states", "nobody reads them");
  EXPECT_EQ(parse(R"({"size": 7, "states": "a"})", schema).text(),
            "error /t/states: \"states\" is not supported: nobody reads them\n");
  EXPECT_EQ(parse(R"({"size": 7, "states": [""]})", schema).text(),
            "note /t/states: \"states\" is accepted and has no effect: it is empty\n");
}

TEST(Schema, StrictMakesWarningsErrors) {
  Parsed p = parse(R"({"size": 7, "comment": "hello"})");
  EXPECT_NO_THROW(p.problems.throw_if_any("c.json"));
  p.problems.make_strict();
  EXPECT_EQ(message_of(Kind::config, [&] { p.problems.throw_if_any("c.json"); }),
            "c.json: 1 problem\n  /t/comment: Thing has no field \"comment\"; it is ignored");
}

TEST(Schema, TwoSpellingsOfOneFieldMustAgree) {
  EXPECT_EQ(parse(R"({"size": 7, "dropout_rate": 0.2, "rate": 0.1})").text(),
            "error /t/dropout_rate: \"dropout_rate\" and \"rate\" are names of the same field and have different "
            "values; keep one\n");
  EXPECT_EQ(parse(R"({"size": 7, "dropout_rate": 0.1, "rate": 0.1})").text(), "");
}

TEST(Schema, WrongTypesSayWhatWasExpectedAndFound) {
  const auto text = [](const std::string& field) { return parse("{\"size\": 7, " + field + "}").text(); };
  EXPECT_EQ(parse(R"({"size": "7"})").text(),
            "error /t/size: expected an integer, at least 1, found the string \"7\"\n");
  EXPECT_EQ(parse(R"({"size": 7.5})").text(), "error /t/size: expected an integer, at least 1, found the number 7.5\n");
  EXPECT_EQ(text(R"("rate": "x")"),
            "error /t/rate: expected a number, more than 0 and less than 1, found the string \"x\"\n");
  EXPECT_EQ(text(R"("fast": 1)"), "error /t/fast: expected true or false, found the integer 1\n");
  EXPECT_EQ(text(R"("path": null)"), "error /t/path: expected a string, found null\n");
  EXPECT_EQ(text(R"("gpus": 0)"), "error /t/gpus: expected an array of integers, found the integer 0\n");
  EXPECT_EQ(text(R"("gpus": [0, "1"])"), "error /t/gpus/1: expected an integer, found the string \"1\"\n");
  EXPECT_EQ(text(R"("limit": {})"), "error /t/limit: expected a number, more than 0, found an object\n");
}

TEST(Schema, BoundsAreChecked) {
  EXPECT_EQ(parse(R"({"size": 0})").text(), "error /t/size: expected an integer, at least 1, found the integer 0\n");
  EXPECT_EQ(parse(R"({"size": 1, "rate": 1})").text(),
            "error /t/rate: expected a number, more than 0 and less than 1, found the integer 1\n");
  EXPECT_EQ(parse(R"({"size": 1, "rate": 0.999})").text(), "");
  EXPECT_EQ(parse(R"({"size": 1, "limit": 0})").text(),
            "error /t/limit: expected a number, more than 0, found the integer 0\n");
}

TEST(Schema, WordsAreSuggested) {
  EXPECT_EQ(parse(R"({"size": 1, "colour": "Gren"})").text(),
            "error /t/colour: expected \"Red\", \"Green\", \"Blue\" or \"Verde\"; did you mean \"Green\"?, found the "
            "string \"Gren\"\n");
  EXPECT_EQ(parse(R"({"size": 1, "colour": 3})").text(),
            "error /t/colour: expected \"Red\", \"Green\", \"Blue\" or \"Verde\", found the integer 3\n");
  EXPECT_EQ(parse(R"({"size": 1, "colour": "Verde"})").thing.colour, Colour::green);
}

TEST(Schema, AScalarMayBeWrappedInAnArrayOfOne) {
  const Parsed p = parse(R"({"size": [7], "rate": [0.25], "fast": [true], "path": ["x"], "colour": ["Red"]})");
  EXPECT_EQ(p.text(), "");
  EXPECT_EQ(p.thing.size, 7);
  EXPECT_EQ(p.thing.path, "x");
  EXPECT_EQ(p.thing.colour, Colour::red);
  EXPECT_EQ(parse(R"({"size": [7, 8]})").text(),
            "error /t/size: expected an integer, at least 1, found an array of 2\n");
}

TEST(Schema, IntegersMayBeWrittenAsFractionsOrFlags) {
  EXPECT_EQ(parse(R"({"size": 1e6})").thing.size, 1000000);
  EXPECT_EQ(parse(R"({"size": true})").thing.size, 1);
  EXPECT_EQ(parse(R"({"size": 7, "rate": 1e-1})").thing.rate, 0.1);
}

TEST(Schema, NestedFieldsAndTheirObject) {
  const Schema<Thing> schema = thing("thing_param");
  EXPECT_EQ(parse(R"({"name": "n", "thing_param": {"size": 3}})", schema, {"name"}).text(), "");
  EXPECT_EQ(parse(R"({"name": "n"})", schema, {"name"}).text(), "error /t: Thing needs the object \"thing_param\"\n");
  EXPECT_EQ(parse(R"({"name": "n", "thing_parm": {"size": 3}})", schema, {"name"}).text(),
            "error /t/thing_parm: Thing has no field \"thing_parm\"; did you mean \"thing_param\"?\n"
            "error /t: Thing needs the object \"thing_param\"\n");
  EXPECT_EQ(parse(R"({"thing_param": [1]})", schema).text(),
            "error /t/thing_param: expected an object, found an array of 1\n");
  EXPECT_EQ(parse(R"({"thing_param": {"sizze": 3}})", schema).text(),
            "error /t/thing_param/sizze: Thing has no field \"sizze\"; did you mean \"size\"?\n"
            "error /t/thing_param: Thing needs \"size\": columns of y\n");
  EXPECT_EQ(parse("[]").text(), "error /t: Thing: expected an object, found an array of 0\n");
}

TEST(Schema, IgnoredKeysAreNotes) {
  EXPECT_EQ(parse(R"({"size": 3, "plan_file": "x"})").text(),
            "note /t/plan_file: \"plan_file\" is accepted and has no effect: plans are made by themselves\n");
}

TEST(Schema, PartsAndListsReportPointersInside) {
  const Schema<Thing> schema = Schema<Thing>("Thing")
                                   .part("inner", &Thing::inner, inner(), "inside")
                                   .list("layers", &Thing::layers, inner(), "all of them", false);
  EXPECT_EQ(parse(R"({"inner": {"depth": 5}, "layers": [{"depth": 1}, {"depth": 2}]})", schema).thing.layers.size(),
            2u);
  EXPECT_EQ(parse(R"({"inner": {"depth": 0}, "layers": [{"depth": 1}, {"dept": 2}]})", schema).text(),
            "error /t/inner/depth: expected an integer, at least 1, found the integer 0\n"
            "error /t/layers/1/dept: inner has no field \"dept\"; did you mean \"depth\"?\n"
            "error /t/layers/1: inner needs \"depth\": how deep\n");
  EXPECT_EQ(parse(R"({"inner": 3, "layers": {}})", schema).text(),
            "error /t/inner: inner: expected an object, found the integer 3\n"
            "error /t/layers: expected an array of objects, found an object\n");
  EXPECT_EQ(parse("{}", schema).text(), "error /t: Thing needs \"inner\": inside\n");
}

TEST(Schema, RulesAcrossFieldsAreCheckedOnceEachFieldIsValid) {
  int calls = 0;
  Schema<Thing> schema = thing("thing_param");
  schema.together([&](Thing& t, const std::string& pointer, Problems& problems) {
    ++calls;
    if (t.fast && t.rate < 0.1) problems.error(pointer + "/rate", "fast things need more");
  });
  EXPECT_EQ(parse(R"({"thing_param": {"size": 3, "fast": true, "rate": 0.01}})", schema).text(),
            "error /t/thing_param/rate: fast things need more\n");
  EXPECT_EQ(calls, 1);
  parse(R"({"thing_param": {"size": 0, "fast": true}})", schema);
  EXPECT_EQ(calls, 1);
}

TEST(Schema, TheEffectiveConfigHasEveryDefault) {
  EXPECT_EQ(thing("p").effective(parse(R"({"size": 3, "colour": "Verde"})").thing).text(),
            R"({"p":{"size":3,"rate":0.5,"fast":false,"path":"","colour":"Green","gpus":[]}})");
}

TEST(Schema, DocumentsItself) {
  const std::vector<FieldDoc> fields = thing().fields();
  EXPECT_TRUE(fields[0].required);
  EXPECT_EQ(fields[0].range, "at least 1");
  EXPECT_EQ(fields[0].default_text, "");
  EXPECT_EQ(fields[1].type, "number");
  EXPECT_EQ(fields[1].default_text, "0.5");
  EXPECT_EQ(fields[1].aliases, std::vector<std::string>{"dropout_rate"});
  EXPECT_EQ(fields[5].type, "array of integer");
}

TEST(Problems, AreListedTogether) {
  Problems problems;
  problems.error("/layers/3", "one");
  problems.warn("/x", "not this");
  problems.error("", "two");
  EXPECT_EQ(message_of(Kind::config, [&] { problems.throw_if_any("config.json"); }),
            "config.json: 2 problems\n  /layers/3: one\n  /: two");
  for (int i = 0; i < 100000; ++i) problems.error("", "more");
  const std::string message = message_of(Kind::config, [&] { problems.throw_if_any("config.json"); });
  EXPECT_EQ(message.find("config.json: 100002 problems\n  /layers/3: one"), 0u);
  EXPECT_TRUE(message.ends_with("\n  /: more\n  and 99002 more")) << "the first thousand";
}

TEST(Nearest, CountsInsertionsDeletionsReplacementsAndSwaps) {
  const std::vector<std::string> words = {"num_output", "weight_init", "bias_init"};
  EXPECT_EQ(nearest("num_ouput", words), "num_output");
  EXPECT_EQ(nearest("num_otuput", words, 1), "num_output");
  EXPECT_EQ(nearest("NUM_OUTPUTS", words), "num_output");
  EXPECT_EQ(nearest("bisa_inti", words), "bias_init");
  EXPECT_EQ(nearest("output", words), "");
  EXPECT_EQ(nearest("x", {"y"}), "") << "nothing is close to a word of one letter";
  EXPECT_EQ(one_of({"a"}), "a");
  EXPECT_EQ(one_of({"a", "b", "c"}), "a, b or c");
}

}  // namespace
}  // namespace hctr::test
