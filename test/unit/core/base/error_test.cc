#include "core/base/expect.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "core/base/log.h"
#include "support/message_of.h"
#include "support/test_log.h"

namespace hctr::test {
namespace {

TEST(Error, GathersContext) {
  const auto fail = [] {
    in_context([] { return "reading the batch"; },
               [] { in_context([] { return cat("parsing line ", 3); }, [] { throw Error(Kind::data, "no label"); }); });
  };
  EXPECT_EQ(message_of(Kind::data, fail), "no label\n  while parsing line 3\n  while reading the batch");
}

TEST(Error, CatPrintsNumbersAsStreamsDo) {
  const auto streamed = [](auto value) {
    std::ostringstream out;
    out << value;
    return out.str();
  };
  for (const double value : {0.0, -0.0, 1.0, 0.1, 1e-5, 123456.0, 1234567.0, 1e21, -2.5e-300, 1.0 / 3, 99999.95, 5e-324,
                             std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()})
    EXPECT_EQ(cat(value), streamed(value));
  EXPECT_EQ(cat(0.1f), streamed(0.1f));
  EXPECT_EQ(cat(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(cat(std::numeric_limits<int64_t>::min(), ' ', std::numeric_limits<uint64_t>::max(), ' ', -7, ' ', true),
            "-9223372036854775808 18446744073709551615 -7 1");
  EXPECT_EQ(cat("a", std::string("b"), std::string_view("c"), 'd', ""), "abcd");
  EXPECT_EQ(cat(), "");
}

TEST(Error, ContextIsBuiltOnlyForAnError) {
  bool asked = false;
  EXPECT_EQ(in_context(
                [&] {
                  asked = true;
                  return "";
                },
                [] { return 7; }),
            7);
  EXPECT_FALSE(asked);
}

TEST(Error, ABrokenPromiseNamesItsPlace) {
  EXPECT_EQ(message_of(Kind::bug, [] { broken_promise("/x/src/ops/add.cc", 12, "rank 3"); }),
            "rank 3; src/ops/add.cc:12");
  EXPECT_EQ(message_of(Kind::bug, [] { broken_promise("/usr/local/src/huge_ctr/src/ops/add.cc", 12, "rank 3"); }),
            "rank 3; src/ops/add.cc:12");
}

TEST(Error, EveryKindHasAnExitCodeAndAName) {
  const std::vector<std::pair<Kind, int>> codes = {{Kind::usage, 2}, {Kind::config, 3},       {Kind::data, 4},
                                                   {Kind::io, 5},    {Kind::device, 6},       {Kind::comm, 7},
                                                   {Kind::bug, 1},   {Kind::interrupted, 130}};
  for (const auto& [kind, code] : codes) EXPECT_EQ(exit_code(kind), code) << kind_name(kind);
  EXPECT_EQ(kind_name(Kind::comm), "comm");
}

TEST(Log, MarksWarningsAndErrors) {
  TestLog log;
  log.expect("careful");
  log.expect("worse");
  log.log().info("step ", 3);
  log.log().warning("careful");
  log.log().error("much worse");
  EXPECT_EQ(log.lines(), (std::vector<std::string>{"step 3", "warning: careful", "error: much worse"}));
}

}  // namespace
}  // namespace hctr::test
