// The generated manual pages in the repository are up to date.
#include <gtest/gtest.h>

#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

TEST(Manual, PagesAreWhatTheProgramWrites) {
  const TemporaryFolder folder;
  const std::pair<const char*, const char*> pages[] = {{"config", "docs/config.md"},
                                                       {"layers", "docs/layers.md"},
                                                       {"schema", "docs/config.schema.json"},
                                                       {"store_schema", "docs/store.schema.json"}};
  for (const auto& [topic, page] : pages) {
    const Outcome outcome = run_program("huge_ctr", {"--explain", topic}, folder.path());
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(outcome.out == read_file(hctr::test::source_dir() / page))
        << page << " is stale; write it anew: huge_ctr --explain " << topic << " > " << page;
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

TEST(Manual, TheStepOfAConfigNeedsNoGpuAndNoData) {
  const TemporaryFolder folder;
  const std::string config = (hctr::test::source_dir() / "samples/dlrm/config.json").string();
  const Outcome step =
      run_program("huge_ctr", {"--explain", "step", config, "--set", "solver.batchsize=64"}, folder.path());
  EXPECT_EQ(step.exit_code, 0) << step.err;
  EXPECT_NE(step.out.find("64 samples"), std::string::npos) << step.out;
  const Outcome none = run_program("huge_ctr", {"--explain", "step"}, folder.path());
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("huge_ctr --explain step FILE.json"), std::string::npos) << none.err;
}

TEST(Manual, OptimizersMetricsAndDataFormatsHaveEntriesToo) {
  const TemporaryFolder folder;
  const auto explained = [&](const std::string& name) {
    const Outcome outcome = run_program("huge_ctr", {"--explain", name}, folder.path());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_NE(explained("SGD").find("`sgd_hparam`"), std::string::npos);
  EXPECT_EQ(explained("sgd"), explained("SGD"));
  EXPECT_NE(explained("AdamW").find("`weight_decay`"), std::string::npos);
  EXPECT_NE(explained("AUC").find("eval_metrics"), std::string::npos);
  EXPECT_NE(explained("Norm").find("a file list"), std::string::npos);
  const Outcome near = run_program("huge_ctr", {"--explain", "AdaGard"}, folder.path());
  EXPECT_NE(near.err.find("did you mean \"AdaGrad\"?"), std::string::npos) << near.err;
}

}  // namespace
}  // namespace hctr::test
