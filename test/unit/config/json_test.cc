#include "config/json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/platform.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

std::string message(const std::string& text) {
  return message_of(Kind::config, [&] { Json::parse(text, "c.json"); });
}

TEST(Json, ReadsEveryKindAndWritesItBack) {
  const std::string text =
      R"({"a":null,"b":[true,false],"c":-12,"d":1.5,"e":"x\"\n","f":{"z":1,"y":[]},"g":9223372036854775807})";
  const Json json = Json::parse(text, "c.json");
  EXPECT_EQ(json.text(), text) << "and keeps the order of the keys";
  EXPECT_EQ(*json.find("g")->integer(), INT64_MAX);
  EXPECT_EQ(json.find("d")->number(), 1.5);
  EXPECT_EQ(json.find("c")->number(), -12);
  EXPECT_EQ(json.find("nothing"), nullptr);
  EXPECT_EQ(Json::parse("18446744073709551615", "").number(), 18446744073709551615.0);
}

TEST(Json, NumbersSurviveARoundTrip) {
  for (const double value : {0.1, 1e-300, 1e300, 123456789.123456789, -0.0, 1.0})
    EXPECT_EQ(Json::parse(Json(value).text(), "").number(), value);
  EXPECT_EQ(Json(INFINITY).text(), "null");
}

TEST(Json, IntegersBeyond64BitsAreRefusedNotRounded) {
  EXPECT_EQ(message_of(Kind::config, [] { Json::parse("{\n \"seed\": 18446744073709551616}", "c.json"); }),
            "c.json: line 2, column 10: the integer 18446744073709551616 exceeds 64 bits; write larger numbers "
            "with an exponent: 1e30");
  EXPECT_NE(message_of(Kind::config, [] { Json::parse("[-9223372036854775809]", "c.json"); })
                .find("-9223372036854775809 exceeds"),
            std::string::npos);
  EXPECT_EQ(Json::parse("18446744073709551615", "c.json").number(), 18446744073709551615.0);
  EXPECT_EQ(Json::parse("1e30", "c.json").number(), 1e30);
}

TEST(Json, ErrorsNameLineAndColumn) {
  EXPECT_EQ(message("{\n  \"a\": 1,\n  \"b\" 2\n}").substr(0, 48), "c.json: line 3, column 7: not valid JSON: syntax");
  EXPECT_EQ(message("{\n  \"a\": tru\n}").substr(0, 43), "c.json: line 2, column 11: not valid JSON: ");
  EXPECT_EQ(message("[1, 2").substr(0, 42), "c.json: line 1, column 6: not valid JSON: ");
  EXPECT_NE(message("{\"a\": {").find("(the file ends too early: is a bracket missing?)"), std::string::npos);
  EXPECT_NE(message("").find("(the file ends too early"), std::string::npos);
  EXPECT_EQ(message("{} x").substr(0, 42), "c.json: line 1, column 4: not valid JSON: ");
}

TEST(Json, DuplicateKeysAreErrorsAtAnyDepth) {
  EXPECT_EQ(message(R"({"a": 1, "b": 2, "a": 3})"),
            "c.json: line 1, column 18: the key \"a\" appears twice in one object");
  EXPECT_EQ(message("[{\"x\": {\"k\": 1,\n \"k\": 1}}]"),
            "c.json: line 2, column 2: the key \"k\" appears twice in one object");
  EXPECT_NO_THROW(Json::parse(R"([{"k": 1}, {"k": {"k": 2}}])", ""));
}

TEST(Json, IsReadToTwoHundredLevels) {
  const auto nested = [](size_t levels, const std::string& open, const std::string& close) {
    std::string text;
    for (size_t i = 0; i < levels; ++i) text += open;
    text += "1";
    for (size_t i = 0; i < levels; ++i) text += close;
    return text;
  };
  const std::string deep = nested(200, "[", "]");
  EXPECT_EQ(Json::parse(deep, "").text(), deep);
  const std::string too_deep = "an object or array is nested inside 200 others; at most 200 levels are read";
  EXPECT_EQ(message(nested(201, "[", "]")), "c.json: line 1, column 201: " + too_deep);
  EXPECT_EQ(message(nested(201, "{\"a[\":\n", "}")), "c.json: line 201, column 1: " + too_deep);
  EXPECT_EQ(message("[\n" + nested(200, "[", "")), "c.json: line 2, column 200: " + too_deep) << "and not that it ends";
  EXPECT_EQ(message(std::string(1'000'000, '[')), "c.json: line 1, column 201: " + too_deep);
  EXPECT_NO_THROW(Json::parse("[" + nested(199, "[", "]") + ", " + nested(199, "[", "]") + "]", ""));
}

TEST(Json, IsReadToFourMillionValues) {
  std::string text = "[1";
  text.reserve(10'000'000);
  for (int i = 2; i < 1 << 22; ++i) text += ",1";  // the array counts as a value, too
  // sanitizers skip this text, because the text below, which has too many values, runs the same code
  if (!kSanitized) {
    EXPECT_EQ(Json::parse(text + "]", "c.json").array()->size(), (size_t{1} << 22) - 1);
  }
  const std::string too_many = message(text + ",1]");
  EXPECT_NE(too_many.find("c.json: line 1, column 8388"), std::string::npos) << too_many;
  EXPECT_NE(too_many.find("more than 4194304 values"), std::string::npos) << too_many;
}

TEST(Json, DescribesKindsInWords) {
  EXPECT_EQ(Json().kind(), "null");
  EXPECT_EQ(Json(true).kind(), "true");
  EXPECT_EQ(Json(3).kind(), "the integer 3");
  EXPECT_EQ(Json(0.5).kind(), "the number 0.5");
  EXPECT_EQ(Json("x").kind(), "the string \"x\"");
  EXPECT_EQ(Json::parse("[1,2]", "").kind(), "an array of 2");
  EXPECT_EQ(Json::parse("{}", "").kind(), "an object");
}

TEST(Json, GrowsFromNull) {
  Json list, object;
  list.add(1).add("two");
  object.set("list", list).set("flag", true);
  EXPECT_EQ(object.text(), R"({"list":[1,"two"],"flag":true})");
  EXPECT_EQ(object.text(2), "{\n  \"list\": [\n    1,\n    \"two\"\n  ],\n  \"flag\": true\n}");
}

TEST(Json, AMemberThatIsSetAgainIsWrittenOnceWithItsLastValue) {
  Json json(Json::Object{{"a", 1}, {"b", 2}});
  json.set("a", 3);
  EXPECT_EQ(json.text(), R"({"a":3,"b":2})");
}

TEST(Json, AMissingFileIsNamed) {
  EXPECT_EQ(message_of(Kind::io, [] { Json::read_file("/no/such.json"); }),
            "cannot open '/no/such.json': No such file or directory");
}

}  // namespace
}  // namespace hctr::test
