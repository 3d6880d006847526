#include "base/error.h"

#include "base/log.h"
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
