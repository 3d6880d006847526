// --version of every program, and the version in the documents.
#include <gtest/gtest.h>

#include "core/base/build_info.h"
#include "core/base/expect.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

TEST(Version, EveryProgramNamesItsVersionCommitAndLibraries) {
  TemporaryFolder folder;
  for (const char* program : {"huge_ctr", "criteo2hugectr", "data_generator", "data_inspect", "feature_spec",
                              "preprocess", "table_inspect", "model_convert", "bench"}) {
    SCOPED_TRACE(program);
    if (!std::filesystem::exists(bin_dir() / program)) continue;  // sanitizer builds have no bench
    const Outcome outcome = run_program(program, {"--version"}, folder.path());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out.rfind(cat(program, " ", version(), "\n"), 0), 0u) << outcome.out;
    for (const char* word :
         {"\n  commit:  ", "\n  build:   ", "\n  CUDA:    ", "\n  NCCL:    ", "\n  MPI:     ", "\n  Parquet: "}) {
      const size_t at = outcome.out.find(word);
      ASSERT_NE(at, std::string::npos) << word << " in " << outcome.out;
      EXPECT_NE(outcome.out[at + std::string(word).size()], '\n') << word << " names nothing in " << outcome.out;
    }
  }
}

TEST(Version, TheChangelogKnowsIt) {
  const std::string changelog = read_file(source_dir() / "CHANGELOG.md");
  EXPECT_NE(changelog.find(cat("\n## ", version())), std::string::npos) << version();
}

}  // namespace
}  // namespace hctr::test
