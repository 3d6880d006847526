#include "formats/checkpoint/checkpoint_folder.h"

#include <gtest/gtest.h>

#include <set>

#include "core/base/expect.h"
#include "support/message_of.h"
#include "support/run_program.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

class CheckpointFolder : public testing::Test {
 protected:
  void make(const std::string& name) { write_file(folder_ / name / "rank_0.state", "x"); }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) names.insert(entry.path().filename().string());
    return names;
  }
  void SetUp() override {
    for (const char* name : {"iteration_000200", "iteration_000400.part", "iteration_1000000", "iteration_7",
                             "iteration_000300.left", "iteration_x", "other"}) {
      fs::create_directories(folder_ / name);
      make(name);
    }
  }
  TemporaryFolder folder_;
};

TEST_F(CheckpointFolder, ListsCompleteOnesByIteration) {
  std::vector<int64_t> iterations;
  for (const CheckpointPlace& place : list_checkpoints(folder_.path())) iterations.push_back(place.iteration);
  EXPECT_EQ(iterations, (std::vector<int64_t>{200, 1000000}));
  EXPECT_TRUE(list_checkpoints(folder_ / "missing").empty());
}

TEST_F(CheckpointFolder, LosesWhatDeadRunsLeftAndNothingElse) {
  std::set<std::string> expected = names();
  expected.erase("iteration_000400.part");
  remove_parts(folder_.path());
  EXPECT_EQ(names(), expected);
  remove_checkpoint(folder_.path(), 200);
  expected.erase("iteration_000200");
  EXPECT_EQ(names(), expected);
}

TEST_F(CheckpointFolder, GetsANameWhenTheCheckpointIsComplete) {
  publish_checkpoint(folder_.path(), 400);
  EXPECT_TRUE(names().contains("iteration_000400") && !names().contains("iteration_000400.part"));
  EXPECT_NE(message_of(Kind::io, [&] { publish_checkpoint(folder_.path(), 401); }).find("iteration_000401"),
            std::string::npos);
}

TEST_F(CheckpointFolder, LeavesOutNewerOnes) {
  const auto left = leave_newer_checkpoints(folder_.path(), 200);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].filename(), "iteration_1000000.left");
  EXPECT_TRUE(names().contains("iteration_000200"));
  EXPECT_EQ(list_checkpoints(folder_.path()).size(), 1u);
}

TEST_F(CheckpointFolder, HasOneOwner) {
  {
    const FolderLock mine(folder_ / "new");
    EXPECT_NE(message_of(Kind::io, [&] { const FolderLock other(folder_ / "new"); }).find("another run uses"),
              std::string::npos);
  }
  const FolderLock after(folder_ / "new");
}

}  // namespace
}  // namespace hctr::test
