// Copies of JSON objects with one member added or replaced.
#include "config/json_member.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

TEST(JsonMember, AMemberIsReplacedAddedOrLeftOut) {
  const Json object = Json::parse(R"({"a": 1, "b": {"a": 2}, "c": 3})", "object");
  EXPECT_EQ(with_member(object, "b", 4).text(), R"({"a":1,"c":3,"b":4})");
  EXPECT_EQ(with_member(object, "d", 4).text(), R"({"a":1,"b":{"a":2},"c":3,"d":4})");
  EXPECT_EQ(without_member(object, "a").text(), R"({"b":{"a":2},"c":3})") << "of the object alone, not of those in it";
  EXPECT_EQ(without_member(object, "d").text(), object.text());
  EXPECT_EQ(object.text(), R"({"a":1,"b":{"a":2},"c":3})");
}

}  // namespace
}  // namespace hctr::test
