// The generated pages of the manual in the repository are up to date.
#include <gtest/gtest.h>

#include "support/paths.h"
#include "support/program.h"

namespace hctr::test {
namespace {

TEST(Manual, PagesAreWhatTheProgramWrites) {
  const TemporaryFolder folder;
  for (const std::string page : {"config", "layers"}) {
    const Outcome outcome = run_program("huge_ctr", {"--explain", page}, folder.path());
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(outcome.out == read_file(hctr::test::source_dir() / "docs" / (page + ".md")))
        << "docs/" << page << ".md is stale; write it anew: huge_ctr --explain " << page << " > docs/" << page << ".md";
  }
}

TEST(Manual, OneEntryAndAWordThatIsNone) {
  const TemporaryFolder folder;
  EXPECT_NE(run_program("huge_ctr", {"--explain", "InnerProduct"}, folder.path()).out.find("`num_output`"),
            std::string::npos);
  const Outcome none = run_program("huge_ctr", {"--explain", "InerProduct"}, folder.path());
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("did you mean \"InnerProduct\"?"), std::string::npos) << none.err;
}

}  // namespace
}  // namespace hctr::test
