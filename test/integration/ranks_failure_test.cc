// Ranks that fail, reject a batch or are stopped: the job ends in time, reports the rank and the reason, and saves the
// model if possible.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "core/base/build_info.h"
#include "core/base/host_name.h"
#include "core/base/platform.h"
#include "core/comm/mpi_plugin.h"
#include "ranks_fixture.h"
#include "support/joined.h"
#include "support/paths.h"

namespace hctr::test {
namespace {

/// A run that ends because a table is full. The error names the table, its rank and its limit. All ranks save the model
/// of the last completed step.
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
  // The table has three slots of 300 keys. With two ranks, one rank has two slots. A single batch fits into the limit.
  for (const auto& [ranks, limit] :
       {std::pair{kThreads[0], "420"}, {kThreads[1], "220"}, {kProcesses[0], "420"}, {kProcesses[1], "220"}})
    if ((ranks.processes == 1 || why_no_mpi().empty()) && (!kSanitized || !same_code(ranks)))
      expect_saved(config_, ranks, limit);
}

TEST_F(FullTable, RefusesABatchBeforeFrequentRowsOfAnotherTableChange) {
  // Before the batch is rejected, it is looked up in the replicated rows. This look-up must not change the rows.
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
  EXPECT_NE(outcome.err.find("/solver/gpu: names the GPUs of 1 process but 2 were started"), std::string::npos)
      << outcome.err;
}

/// Sends a signal to one of two processes during training, and expects the job to end in time.
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
  // Each process reads its own copy of the data. The copy of rank 1 is damaged.
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

TEST_F(FailingRank, OfAnotherVersionIsNamed) {
  HCTR_SKIP_WITHOUT_MPI();
  // Simulates a build of another commit by changing the commit in a copy of the program.
  const std::string commit = build_facts()[0].second, other(commit.size(), 'f');
  std::string program = read_file(bin_dir() / "huge_ctr");
  for (size_t at = 0; (at = program.find(commit, at)) != program.npos; at += commit.size())
    program.replace(at, commit.size(), other);
  write_file(folder_ / "other", program);
  fs::permissions(folder_ / "other", fs::perms::owner_all);
  fs::copy(bin_dir() / kMpiPluginFile, folder_ / kMpiPluginFile);
  write_file(folder_ / "each.json", with_change(config_, "\"gpu\": [0]", "\"gpu\": [[0], [0]]"));
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = run_under_mpi(2, "/bin/sh",
                                        {"-c", cat("if [ $OMPI_COMM_WORLD_RANK = 1 ]; then program=./other; else "
                                                   "program=",
                                                   (bin_dir() / "huge_ctr").string(),
                                                   "; fi; exec $program --train each.json --run-dir run --device cpu")},
                                        folder_.path());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(kSanitized ? 60 : 30)) << outcome.err;
  EXPECT_EQ(outcome.exit_code, 7) << outcome.err;
  const std::string said = cat("rank 1 on ", host_name(), " runs ");
  const size_t at = outcome.err.find(said);
  ASSERT_NE(at, outcome.err.npos) << outcome.err;
  const std::string sentence = outcome.err.substr(at, outcome.err.find('\n', at) - at);
  for (const std::string& piece : {other, cat(" and rank 0 on ", host_name(), " runs "), commit})
    EXPECT_NE(sentence.find(piece), sentence.npos) << "no \"" << piece << "\" in: " << sentence;
}

/// Two processes, joined by MPI and by TCP. The disk of the second process stalls for longer than the heartbeat and
/// step timeouts. No process is reported as lost, and both train to the end.
class StuckDisk : public RanksTest {
 protected:
  static constexpr int kSteps = 800;
  void expect_waited_for(const std::string& config, const std::string& files) {
    const std::string limit = std::to_string(kPeerTimeout);
    write_file(folder_ / "stuck.json", with_change(with_change(config, "\"gpu\": [0]", "\"gpu\": [[0], [0]]"),
                                                   "\"max_iter\": 20", cat("\"max_iter\": ", kSteps)));
    const std::string command = cat(
        "if [ $OMPI_COMM_WORLD_RANK$RANK = 1 ]; then export HCTR_TEST_FAULT=$PWD/fault HCTR_TEST_FAULT_FILE=", files,
        " LD_PRELOAD=", (bin_dir() / "libfaulty_disk.so").string(), "; fi; exec ", (bin_dir() / "huge_ctr").string(),
        " --train stuck.json --run-dir run --device cpu --peer-timeout ", limit, " --comm-timeout ", limit);
    for (const bool by_mpi : {true, false}) {
      if (by_mpi && !why_no_mpi().empty()) continue;
      SCOPED_TRACE(by_mpi ? "MPI" : "TCP");
      for (const char* left : {"run", "ckpt"}) fs::remove_all(folder_ / left);
      std::vector<Started> started;
      if (by_mpi)
        started.push_back(start_under_mpi(2, "/bin/sh", {"-c", command}, folder_.path()));
      else
        started = start_joined(std::vector<JoinedProcess>(2, {"/bin/sh", {"-c", command}}), folder_.path());
      wait_for_text(started[0].err, "Iter: 20 ");
      write_file(folder_ / "fault", "stuck");
      std::this_thread::sleep_for(std::chrono::seconds(kPeerTimeout + 2));
      EXPECT_EQ(read_file(started[0].err).find(cat("Iter: ", kSteps, " ")), std::string::npos) << "nothing was stuck";
      fs::remove(folder_ / "fault");
      for (const Started& each : started) {
        const Outcome outcome = finish_program(each);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_EQ(outcome.err.find("error"), std::string::npos) << outcome.err;
      }
      EXPECT_NE(read_file(started[0].err).find(cat("Iter: ", kSteps, " ")), std::string::npos);
    }
  }
};

TEST_F(StuckDisk, OfDataIsNoDeath) {
  if (kSanitized) GTEST_SKIP() << "sanitizers want to be loaded first";
  expect_waited_for(config_, "/train.");
}

TEST_F(StuckDisk, OfCheckpointsIsNoDeath) {
  if (kSanitized) GTEST_SKIP() << "sanitizers want to be loaded first";
  expect_waited_for(with_change(config_, "\"solver\": {", R"("solver": {"checkpoint": {"every": 50}, )"), "/ckpt/");
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
