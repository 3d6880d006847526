// Ranks that fail, reject a batch or are stopped: the job ends in time, reports which rank and why, and saves what it
// can.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

#include "base/host_name.h"
#include "base/platform.h"
#include "ranks_fixture.h"
#include "support/paths.h"

namespace hctr::test {
namespace {

/// A run that ends because a table is full. The message names the table, its rank and its limit. All ranks save the
/// model of the last completed step.
class FullTable : public RanksTest {
 protected:
  void expect_saved(const std::string& config, const Ranks& ranks, const std::string& limit, int least_iterations = 1) {
    SCOPED_TRACE(ranks.gpu);
    const std::string limited =
        with_change(config, "\"max_vocabulary_size_per_gpu\": 1000, \"embedding_vec_size\": 5",
                    "\"max_vocabulary_size_per_gpu\": " + limit + ", \"grow\": false, \"embedding_vec_size\": 5");
    fs::remove_all(folder_ / "full");
    const Outcome outcome = start(limited, ranks, "full");
    EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
    for (const char* piece : {"table 'deep_emb' on rank ", " rows that \"max_vocabulary_size_per_gpu\" allows",
                              "while training on rank ", " is saved as full/_dense_"})
      EXPECT_NE(outcome.err.find(piece), std::string::npos) << "no \"" << piece << "\" in " << outcome.err;
    const std::string saved = "; iteration ";
    const int iterations = std::atoi(outcome.err.c_str() + outcome.err.find(saved) + saved.size());
    const std::string iteration = std::to_string(iterations);
    EXPECT_GE(iterations, least_iterations);
    ASSERT_TRUE(fs::exists(folder_ / "full" / ("_dense_" + iteration + ".model"))) << outcome.err;
    fs::remove_all(folder_ / "whole");
    const Outcome whole = start(with_change(config, "\"max_iter\": 20", "\"max_iter\": " + iteration), ranks, "whole");
    EXPECT_EQ(whole.exit_code, 0) << whole.err;
    for (const std::string& file :
         {"_dense_" + iteration + ".model", "0_sparse_" + iteration + ".model", "1_sparse_" + iteration + ".model"})
      EXPECT_EQ(read_file(folder_ / "full" / file), read_file(folder_ / "whole" / file)) << file;
  }
};

TEST_F(FullTable, OfOneRankEndsTheRunWithItsNameAndTheModelSaved) {
  // Three slots of 300 keys. Of two ranks one has two slots. A single batch fits.
  for (const auto& [ranks, limit] :
       {std::pair{kThreads[0], "420"}, {kThreads[1], "220"}, {kProcesses[0], "420"}, {kProcesses[1], "220"}})
    if (ranks.processes == 1 || why_no_mpi().empty()) expect_saved(config_, ranks, limit);
}

TEST_F(FullTable, RefusesABatchBeforeFrequentRowsOfAnotherTableChange) {
  // The rejected batch was already looked up in the replicated rows. It must not have changed them.
  const std::string hybrid = with_change(config_, "\"bottom\": \"wide_data\", \"top\": \"wide_emb\",",
                                         R"("bottom": "wide_data", "top": "wide_emb", "placement": "hybrid",)");
  const std::string found =
      with_change(hybrid, "\"embedding_vec_size\": 1,", R"("embedding_vec_size": 1, "num_iterations_statistics": 1,)");
  for (const auto& [ranks, limit] : {std::pair{kThreads[0], "500"}, {kThreads[2], "270"}, {kProcesses[0], "500"}})
    if (ranks.processes == 1 || why_no_mpi().empty()) expect_saved(found, ranks, limit, 2);
}

TEST_F(RanksTest, ASignalStopsAllRanksAfterTheSameStepAndSavesTheModel) {
  write_file(folder_ / "endless.json", with_change(endless(), "\"gpu\": [0]", "\"gpu\": [0, 1, 2]"));
  const Outcome outcome =
      run_and_signal("huge_ctr", {"--train", "endless.json", "--run-dir", "endless", "--device", "cpu"}, folder_.path(),
                     "Iter: 20 ", SIGINT);
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  const Json summary = Json::read_file(folder_ / "endless" / "summary.json");
  EXPECT_EQ(summary.find("model_files")->array()->size(), 5u);
  EXPECT_GE(*summary.find("iterations")->integer(), 20);
}

TEST_F(RanksTest, ListsThatDoNotFitTheProcessesAreExplained) {
  HCTR_SKIP_WITHOUT_MPI();
  const Outcome outcome = start(config_, {"[0, 1, 2]", 2}, "lists");
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_NE(outcome.err.find("/solver/gpu: names the GPUs of 1 process and 2 were started"), std::string::npos)
      << outcome.err;
}

/// Sends a signal to one of two processes during training. The job must end in time.
class FailingRank : public RanksTest {
 protected:
  Outcome end_of(int signal_number, int rank = 1) {
    write_file(folder_ / "endless.json", with_change(endless(), "\"gpu\": [0]", "\"gpu\": [[0], [0]]"));
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = run_under_mpi_and_signal(
        2, "huge_ctr", {"--train", "endless.json", "--run-dir", "endless", "--device", "cpu", "--comm-timeout", "5"},
        folder_.path(), "Iter: 20 ", rank, signal_number);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(kSanitized ? 60 : 30)) << outcome.err;
    EXPECT_NE(outcome.exit_code, 0);
    return outcome;
  }
};

TEST_F(FailingRank, KilledEndsTheJob) {
  HCTR_SKIP_WITHOUT_MPI();
  for (const int rank : {0, 1}) {
    const Outcome outcome = end_of(SIGKILL, rank);
    EXPECT_NE(outcome.err.find("exited on signal 9"), std::string::npos)
        << outcome.out << outcome.err;  // the output of mpirun
    EXPECT_NE(outcome.err.find(cat("rank ", rank)), std::string::npos) << outcome.out << outcome.err;
  }
}

TEST_F(FailingRank, ThrowingIsNamedWithItsReason) {
  HCTR_SKIP_WITHOUT_MPI();
  // Each process has its own files, and those of rank 1 are damaged.
  write_file(folder_ / "each.json", with_change(with_change(config_, "\"max_iter\": 20", "\"max_iter\": 500"),
                                                "\"gpu\": [0]", "\"gpu\": [[0], [0]]"));
  const TemporaryFolder places;
  for (const char* rank : {"0", "1"}) fs::copy(folder_.path(), places / rank, fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(places / "1"))
    if (entry.path().extension() == ".data") fs::resize_file(entry.path(), entry.file_size() / 2);
  const auto begin = std::chrono::steady_clock::now();
  const std::string program = (hctr::test::bin_dir() / "huge_ctr").string();
  const Outcome outcome = run_under_mpi(
      2, "/bin/sh",
      {"-c", "cd $OMPI_COMM_WORLD_RANK && exec " + program + " --train each.json --run-dir run --device cpu"},
      places.path());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(kSanitized ? 60 : 30)) << outcome.err;
  EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
  EXPECT_NE(outcome.err.find("while training on rank 1 of 2"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("train."), std::string::npos) << outcome.err;
}

TEST_F(FailingRank, WhoseClockIsOffIsNamed) {
  HCTR_SKIP_WITHOUT_MPI();
  if (kSanitized) GTEST_SKIP() << "sanitizers want to be loaded first";
  write_file(folder_ / "clock.json", with_change(config_, "\"gpu\": [0]", "\"gpu\": [[0], [0]]"));
  const std::string train =
      cat("exec ", (bin_dir() / "huge_ctr").string(), " --train clock.json --run-dir clock --device cpu");
  const Outcome outcome =
      run_under_mpi(2, "/bin/sh",
                    {"-c", cat("if [ $OMPI_COMM_WORLD_RANK = 0 ]; then export HCTR_TEST_CLOCK_OFF=100 LD_PRELOAD=",
                               (bin_dir() / "libclock_off.so").string(), "; fi; ", train)},
                    folder_.path());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("s behind that of"), std::string::npos) << outcome.err;
}

TEST_F(FailingRank, StalledIsNamed) {
  HCTR_SKIP_WITHOUT_MPI();
  const Outcome outcome = end_of(SIGSTOP);
  EXPECT_NE(outcome.err.find(cat("rank 1 on ", host_name(), " has not answered within 5 s")), std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.exit_code, 7) << outcome.err;
}

}  // namespace
}  // namespace hctr::test
