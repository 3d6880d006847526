// test/fuzz/spellings.py: a table gets the same scores in every equivalent spelling of its cells.
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

/// Tables whose spellings had different scores in earlier versions: lists, missing values, empty defaults, vocabularies
/// and shared key spaces.
TEST(Spellings, HaveTheScoresOfTheOneThatTrained) {
  const char* given = std::getenv("HCTR_PYTHON");
  const std::string python = given ? given : "python3";
  const TemporaryFolder folder;
  const Outcome done = run_program("/usr/bin/env",
                                   {python, (source_dir() / "test/fuzz/spellings.py").string(), "--bin",
                                    bin_dir().string(), "--seeds", "3,13,22,29,36,39,42"},
                                   folder.path(), {{"PYTHONDONTWRITEBYTECODE", "1"}});
  if (done.exit_code == 127) GTEST_SKIP() << "no " << python << "; HCTR_PYTHON names a Python";
  EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
  EXPECT_NE(done.out.find("failed: none"), std::string::npos) << done.out << done.err;
}

}  // namespace
}  // namespace hctr::test
