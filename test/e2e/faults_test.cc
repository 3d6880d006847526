// Machine faults during a run: full or read-only disks, truncated or removed files, process limits. The run reports the
// fault, and its progress is saved or can be resumed.
#include <gtest/gtest.h>

#include <map>

#include "core/base/expect.h"
#include "core/base/platform.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "support/joined.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "config.json", small_config());
    make_data(folder_.path(), "config.json", 2000, 300);
  }
  /// Runs a bash script, in which $TRAIN trains with `config`, and `until_runs` blocks until a background run trains.
  Outcome in_shell(const std::string& config, const std::string& script, bool with_mounts = false) {
    write_file(folder_ / "this.json", config);
    const std::string program = (bin_dir() / "huge_ctr").string();
    const std::string prelude =
        "rm -f err; until_runs() { until grep -q 'Iter: 20 ' err; do kill -0 $! || break; sleep 0.02; done; }; ";
    std::vector<std::string> words = {"-c", prelude + script};
    if (with_mounts) words.insert(words.begin(), {"--mount", "/bin/bash"});
    return run_program(with_mounts ? "/usr/bin/unshare" : "/bin/bash", words, folder_.path(),
                       {{"PROGRAM", program}, {"TRAIN", program + " --train this.json --run-dir run --device cpu"}});
  }
  /// The reason why this process cannot mount file systems; empty if it can.
  std::string why_no_mounts() {
    const Outcome tried = run_program(
        "/bin/bash",
        {"-c", "mkdir probe && unshare --mount mount -t tmpfs none probe; code=$?; rmdir probe; exit $code"},
        folder_.path());
    return tried.exit_code == 0 ? "" : "this process may not mount a file system: " + tried.err;
  }
  static std::string endless() {
    return with_change(with_change(small_config(), "\"max_iter\": 60", "\"max_iter\": 100000000"),
                       "\"eval_interval\": 30", "\"eval_interval\": 0");
  }
  static std::string with_checkpoints(const std::string& config, const std::string& object) {
    return with_change(config, "\"seed\": 7", "\"seed\": 7, \"checkpoint\": " + object);
  }
  std::map<std::string, std::string> files(const std::string& in, const std::string& prefix = "") const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_ / in))
      if (const std::string name = entry.path().filename(); name.starts_with(prefix) && entry.is_regular_file())
        found[name] = read_file(entry);
    return found;
  }
  static void expect_said(const Outcome& outcome, int code, const std::vector<std::string>& pieces) {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    for (const std::string& piece : pieces)
      EXPECT_NE(outcome.err.find(piece), std::string::npos) << "no \"" << piece << "\" in:\n" << outcome.err;
  }
  /// Environment variables that make I/O fail for files whose path contains `part`, while the file `fault` exists. See
  /// test/preload/faulty_disk.cc.
  static std::string faulty_disk() {
    return cat("LD_PRELOAD=", (bin_dir() / "libfaulty_disk.so").string(),
               " HCTR_TEST_FAULT=$PWD/fault HCTR_TEST_FAULT_FILE=");
  }
  /// The size of the files of a folder in kilobytes, with each file rounded up to whole pages.
  int64_t pages_kb(const std::string& in) const {
    int64_t pages = 0;
    for (const auto& [name, bytes] : files(in)) pages += (static_cast<int64_t>(bytes.size()) + 4095) / 4096;
    return 4 * pages;
  }

  TemporaryFolder folder_;
};

TEST_F(Faults, AFullDiskCostsCheckpointsButNeitherTheRunNorTheLastWholeOne) {
  if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  const std::string config = with_checkpoints(small_config(), R"({"every": 7, "keep_last": 1})");
  ASSERT_EQ(in_shell(config, "exec $TRAIN").exit_code, 0);
  auto whole = files("run", "final_");
  whole.erase("final__model_60.json");  // the manifest differs, because it contains the run name
  const int64_t one = pages_kb("ckpt/iteration_000060");
  ASSERT_GT(one, 60);
  // Disk sizes that are too small for one checkpoint, for two, or for the larger checkpoints late in the run.
  for (const int64_t percent : {10, 45, 80, 130, 170, 190}) {
    SCOPED_TRACE(cat(percent, " % of a checkpoint"));
    fs::remove_all(folder_ / "run");
    const Outcome outcome =
        in_shell(config,
                 cat("mount -t tmpfs -o size=", one * percent / 100,
                     "k none ckpt || exit 99; timeout 60 $TRAIN || exit; mount -o remount,size=100m none ckpt; "
                     "exec $TRAIN --resume latest"),
                 true);
    expect_said(outcome, 0, {"warning: ", "No space left on device"});
    const auto ended = files("run", "final_");
    for (const auto& [name, bytes] : whole) EXPECT_TRUE(ended.contains(name) && ended.at(name) == bytes) << name;
  }
}

/// If an increment or a full checkpoint does not fit on the disk, the next increment that fits contains all changes.
TEST_F(Faults, AFullDiskCostsIncrementsButNeitherTheRunNorWhatBuildsOnTheLastWholeOne) {
  if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  const std::string local = with_change(small_config(), "\"Global\"", "\"Local\"");
  const std::string config = with_checkpoints(with_change(local, "\"batchsize\": 128", "\"batchsize\": 16"),
                                              R"({"every": 3, "keep_last": 2, "whole_every": 4})");
  ASSERT_EQ(in_shell(config, "exec $TRAIN").exit_code, 0);
  auto whole = files("run", "final_");
  whole.erase("final__model_60.json");  // the manifest differs, because it contains the run name
  const int64_t one = pages_kb("ckpt/iteration_000051");
  ASSERT_GT(one, 40);
  for (const int64_t percent : {60, 110, 150, 190}) {
    SCOPED_TRACE(cat(percent, " % of a whole checkpoint"));
    fs::remove_all(folder_ / "run");
    // The first two runs must complete on the small disk. The second run resumes from a checkpoint of the first.
    const Outcome outcome =
        in_shell(config,
                 cat("mount -t tmpfs -o size=", one * percent / 100,
                     "k none ckpt || exit 99; timeout 60 $TRAIN --set solver.max_iter=30 || exit; timeout 60 $TRAIN "
                     "--resume latest --set solver.max_iter=45 || exit; mount -o remount,size=100m none ckpt; "
                     "exec $TRAIN --resume latest"),
                 true);
    expect_said(outcome, 0, {"warning: ", "No space left on device", "Resuming from "});
    const auto ended = files("run", "final_");
    for (const auto& [name, bytes] : whole) EXPECT_TRUE(ended.contains(name) && ended.at(name) == bytes) << name;
  }
}

/// The run folder contains metrics, and copies or links of the final model.
TEST_F(Faults, AFullDiskAtTheRunFolderCostsLinesAndCopiesButNotTheModel) {
  if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  ASSERT_EQ(in_shell(small_config(), "exec $TRAIN").exit_code, 0);
  auto whole = files("out");
  whole.erase("_model_60.json");  // the manifest differs, because it contains the run name
  for (const int kilobytes : {8, 16, 40}) {
    SCOPED_TRACE(kilobytes);
    fs::remove_all(folder_ / "out");
    fs::remove_all(folder_ / "run");
    fs::create_directory(folder_ / "run");
    const Outcome outcome =
        in_shell(with_change(small_config(), "\"display\": 20", "\"display\": 1"),
                 cat("mount -t tmpfs -o size=", kilobytes, "k none run || exit 99; exec $TRAIN"), true);
    EXPECT_TRUE(outcome.exit_code == 0 || outcome.exit_code == 5) << outcome.exit_code << outcome.err;
    expect_said(outcome, outcome.exit_code, {"No space left on device", "Iter: 60 "});
    auto saved = files("out");
    for (const auto& [name, bytes] : whole) EXPECT_TRUE(saved[name] == bytes) << name;
  }
}

TEST_F(Faults, AFullDiskAtTheModelLeavesNothingHalfAndTheModelInTheRunFolder) {
  if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  ASSERT_EQ(in_shell(small_config(), "exec $TRAIN").exit_code, 0);
  const auto whole = files("run", "final_");
  const int64_t one = pages_kb("out");
  for (const int64_t percent : {15, 50, 90}) {
    SCOPED_TRACE(cat(percent, " % of a model"));
    fs::remove_all(folder_ / "run");
    const Outcome outcome = in_shell(small_config(),
                                     cat("mount -t tmpfs -o size=", one * percent / 100,
                                         "k none out || exit 99; $TRAIN; code=$?; ls -A out > left; exit $code"),
                                     true);
    expect_said(outcome, 5, {"No space left on device", "is saved as run/saved_dense_60.model"});
    EXPECT_EQ(read_file(folder_ / "left"), "") << "parts of a set";
    EXPECT_EQ(files("run", "saved_dense_60.model").at("saved_dense_60.model"), whole.at("final__dense_60.model"));
  }
}

TEST_F(Faults, AFileSystemThatBecomesReadOnlyIsNamed) {
  if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  fs::create_directory(folder_ / "out");
  const std::string mount = "mount -t tmpfs none out || exit 99; ";
  expect_said(in_shell(small_config(), mount + "mount -o remount,ro none out; exec $TRAIN", true), 5,
              {"\"snapshot_prefix\" \"out/\"", "Read-only file system"});
  const Outcome outcome =
      in_shell(endless(),
               mount +
                   "$TRAIN 2> err & until_runs; mount -o remount,ro none out; kill -TERM $!; wait $!; code=$?; "
                   "cat err >&2; exit $code",
               true);
  expect_said(outcome, 5, {"Read-only file system", " is saved as run/saved_dense_"});
}

TEST_F(Faults, DataThatAreCutOrRemovedWhileTheyAreReadEndTheRunWithTheModelSaved) {
  for (const char* damage : {"truncate -s 3000 train.0.data", "truncate -s 0 train.0.data", "rm train.0.data"}) {
    SCOPED_TRACE(damage);
    fs::remove_all(folder_ / "out");
    fs::remove(folder_ / "train.txt.made.json");  // without this file, make_data writes all data again
    make_data(folder_.path(), "config.json", 2000, 300, {"--force"});
    ASSERT_TRUE(fs::exists(folder_ / "train.0.data"));
    const Outcome outcome = in_shell(endless(), std::string("timeout 60 $TRAIN 2> err & until_runs; ") + damage +
                                                    "; wait $!; code=$?; cat err >&2; exit $code");
    EXPECT_TRUE(outcome.exit_code == 4 || outcome.exit_code == 5) << outcome.exit_code;
    expect_said(outcome, outcome.exit_code, {"train.0.data", " is saved as out/_dense_"});
    EXPECT_EQ(files("out").size(), 5u);
  }
}

TEST_F(Faults, ADiskThatDoesNotAnswerDoesNotKeepASignalFromSavingTheModel) {
  if (kSanitized) GTEST_SKIP() << "sanitizers want to be loaded first";
  const std::string preload = faulty_disk();
  const auto expect_saved = [&](const std::string& config, const std::string& file, const std::string& said) {
    const Outcome outcome =
        in_shell(config, cat("rm -rf fault out; export ", preload, file, "; timeout 60 $TRAIN 2> err & ",
                             "until_runs; echo stuck > fault; sleep 0.5; pkill -TERM -P $!; wait $!; code=$?; "
                             "cat err >&2; exit $code"));
    expect_said(outcome, 75, {said, "Stopped on request after iteration "});
    EXPECT_EQ(files("out").size(), 5u);
  };
  for (const char* gpu : {"[0]", "[0, 1]"})
    expect_saved(with_change(endless(), "\"gpu\": [0]", cat("\"gpu\": ", gpu)), "train.0.data",
                 "Training was stopped while it waited for data.");
  expect_saved(with_change(endless(), "\"eval_interval\": 0", "\"eval_interval\": 30"), "eval.0.data",
               "The evaluation is not finished");
}

/// The disk of one of two processes stalls for longer than the step timeout. The other process waits.
TEST_F(Faults, ARankThatWaitsForItsDataIsWaitedFor) {
  if (kSanitized) GTEST_SKIP() << "sanitizers want to be loaded first";
  const auto expect_waited = [&](const std::string& config, const std::string& file) {
    SCOPED_TRACE(file);
    const Outcome outcome = in_shell(
        with_change(config, "\"gpu\": [0]", "\"gpu\": \"all\""),
        cat("rm -rf fault run out; export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=", free_port(),
            "; LIMITS='--comm-timeout 2'; (export RANK=1 ", faulty_disk(), file,
            "; exec timeout 60 $TRAIN $LIMITS 2> err1) & (export RANK=0; exec timeout 60 $TRAIN $LIMITS 2> err) & ",
            "until_runs; echo stuck > fault; sleep 4; rm fault; at=$(wc -l < err); ",
            "until [ $(wc -l < err) -gt $((at + 2)) ]; do kill -0 $! || break; sleep 0.02; done; ",
            "pkill -TERM -P $!; wait $!; code=$?; cat err err1 >&2; exit $code"));
    expect_said(outcome, 75, {"Stopped on request after iteration "});
  };
  expect_waited(endless(), "train.0.data");
  expect_waited(with_change(endless(), "\"eval_interval\": 0", "\"eval_interval\": 30"), "eval.0.data");
}

TEST_F(Faults, ATableThatCannotGrowOnOneRankEndsTheRunWithTheModelSaved) {
  if (kSanitized) GTEST_SKIP() << "sanitizers want to be loaded first";
  // Every batch has new keys. A row has one kilobyte.
  std::string config = endless();
  for (const auto& [from, to] : {std::pair("\"batchsize\": 128", "\"batchsize\": 64"),
                                 {"\"embedding_vec_size\": 5", "\"embedding_vec_size\": 256"},
                                 {"\"leading_dim\": 15", "\"leading_dim\": 768"},
                                 {"\"Global\"", "\"Local\""}})
    config = with_change(config, from, to);
  write_file(folder_ / "config.json", config);
  make_data(folder_.path(), "config.json", 20000, 100, {"--vocabulary", "100000", "--force"});
  const std::string preload =
      cat("LD_PRELOAD=", (bin_dir() / "libno_more_memory.so").string(), " HCTR_TEST_NO_MEMORY=$PWD/full");
  for (const char* gpu : {"[0]", "[0, 1]"}) {
    SCOPED_TRACE(gpu);
    const Outcome outcome = in_shell(with_change(config, "\"gpu\": [0]", cat("\"gpu\": ", gpu)),
                                     cat("rm -rf full out; ", preload,
                                         " timeout 60 $TRAIN 2> err & until_runs; touch full; wait $!; code=$?; "
                                         "cat err >&2; exit $code"));
    expect_said(outcome, 6, {"while reserving memory for more rows: table '", " is saved as out/_dense_"});
    EXPECT_EQ(files("out").size(), 5u);
  }
}

/// Any allocation may fail: in a step, a reader or a save. The current step ends, and the run saves the model.
TEST_F(Faults, AnAllocationThatIsRefusedEndsTheRunWithTheModelSaved) {
  if (kSanitized) GTEST_SKIP() << "sanitizers want to be loaded first";
  const std::string preload =
      cat("LD_PRELOAD=", (bin_dir() / "librefused_allocation.so").string(), " HCTR_TEST_REFUSE=$PWD/full");
  for (const auto& [gpu, nth] : {std::pair("[0]", 1), {"[0]", 60}, {"[0, 1]", 5}, {"[0, 1]", 300}}) {
    SCOPED_TRACE(cat(gpu, ", allocation ", nth));
    const Outcome outcome = in_shell(with_change(endless(), "\"gpu\": [0]", cat("\"gpu\": ", gpu)),
                                     cat("rm -rf full out; HCTR_TEST_REFUSE_NTH=", nth, " ", preload,
                                         " timeout 60 $TRAIN 2> err & until_runs; touch full; wait $!; code=$?; "
                                         "cat err >&2; exit $code"));
    expect_said(outcome, 6, {"out of memory on the CPU", " is saved as out/_dense_"});
    EXPECT_EQ(files("out").size(), 5u);
  }
}

/// Runs whose rows do not fit into memory. Rows are evicted to unlinked files in the folder "rows".
class FaultsOfRowsOnDisk : public Faults {
 protected:
  void SetUp() override {
    config_ = with_checkpoints(small_config(), R"({"every": 20, "keep_last": 1})");
    for (const auto& [from, to] : {std::pair("\"batchsize\": 128", "\"batchsize\": 64"),
                                   {"\"max_iter\": 60", "\"max_iter\": 160"},
                                   {"\"embedding_vec_size\": 5", "\"embedding_vec_size\": 256"},
                                   {"\"leading_dim\": 15", "\"leading_dim\": 768"},
                                   {"\"Global\"", "\"Local\""},
                                   {"\"seed\": 7", R"("seed": 7, "table_memory": {"host": "5MB", "disk": "rows"})"}})
      config_ = with_change(config_, from, to);
    write_file(folder_ / "config.json", config_);
    make_data(folder_.path(), "config.json", 4000, 300, {"--vocabulary", "3000"});
    ASSERT_EQ(in_shell(config_, "exec $TRAIN").exit_code, 0);
    whole_ = files("run", "final_");
    whole_.erase("final__model_160.json");  // the manifest differs, because it contains the run name
    ASSERT_GE(whole_.size(), 4u);
    EXPECT_TRUE(fs::is_empty(folder_ / "rows")) << "the files have no names";
    fs::remove_all(folder_ / "run");
    fs::remove_all(folder_ / "ckpt");
  }
  /// Injects a fault after iteration 20, and expects exit code `code`. Resuming from the checkpoint must produce the
  /// same model.
  void expect_end_and_resume(const std::string& environment, const std::string& damage, int code,
                             const std::vector<std::string>& said, const std::string& mounted = "") {
    SCOPED_TRACE(damage);
    fs::remove_all(folder_ / "run");
    fs::remove_all(folder_ / "ckpt");
    const Outcome outcome = in_shell(
        config_,
        cat(mounted,
            "rm -rf fault err; until_checkpoint() { until grep -qs 'iteration_000020' err; do kill -0 $! || break; ",
            "sleep 0.02; done; }; rows() { for each in /proc/$!/fd/*; do case $(readlink $each) in $PWD/rows/*) ",
            "[ $(stat -L -c %s $each) -gt 1000000 ] && echo $each;; esac; done; }; (", environment, " exec $TRAIN) ",
            "2> err & until_checkpoint; ", damage, "; wait $!; code=$?; cat err >&2; exit $code"),
        !mounted.empty());
    expect_said(outcome, code, said);
    if (code != 0) return expect_resumed();
    expect_model();
  }
  void expect_resumed() {
    const Outcome outcome = in_shell(config_, "exec $TRAIN --resume latest");
    expect_said(outcome, 0, {"Resuming from 'ckpt/iteration_"});
    expect_model();
  }
  void expect_model() {
    const auto ended = files("run", "final_");
    for (const auto& [name, bytes] : whole_) EXPECT_TRUE(ended.contains(name) && ended.at(name) == bytes) << name;
  }

  std::string config_;
  std::map<std::string, std::string> whole_;
};

TEST_F(FaultsOfRowsOnDisk, AFullDiskEndsTheRunWithTheModelSaved) {
  if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  const Outcome small = in_shell(config_, "mount -t tmpfs -o size=8m none rows || exit 99; timeout 60 $TRAIN", true);
  expect_said(small, 5, {"table 'deep_emb' on rank 0: ", "bytes in 'rows', but ", " is saved as out/_dense_"});
  expect_resumed();
  // Other files fill the disk while the run still adds rows. The run ends when a table cannot extend its file.
  expect_end_and_resume("", "kill -STOP $!; head -c 100M /dev/zero > rows/more; kill -CONT $!", 5,
                        {" rows of table '", "' on rank 0 to the disk", "cannot write ", " at byte ",
                         " of a file in 'rows': No space left on device", " is saved as out/_dense_"},
                        "mount -t tmpfs -o size=12m none rows || exit 99; ");
}

TEST_F(FaultsOfRowsOnDisk, ALimitOfTheDiskEndsTheRunWithTheModelSaved) {
  const std::string limited = with_change(config_, R"("disk": "rows")", R"("disk": "rows", "disk_limit": "8MB")");
  const std::vector<std::string> said = {
      "\"disk_limit\" of \"table_memory\", or the space that is free there when the run starts, must be at least ",
      " is saved as out/_dense_"};
  expect_said(in_shell(limited, "exec timeout 60 $TRAIN"), 5, said);
  expect_resumed();
  // If one of several ranks has no disk space, the other ranks do not block, and all ranks save.
  const std::string two = with_change(with_change(limited, "\"gpu\": [0]", "\"gpu\": [0, 1]"), "5MB", "8MB");
  expect_said(in_shell(two, "rm -rf run ckpt out; exec timeout 60 $TRAIN"), 5, said);
  EXPECT_EQ(files("out").size(), 5u);
}

TEST_F(FaultsOfRowsOnDisk, RowsThatWereCutOrAlteredAreFoundAndTheCheckpointIsWhole) {
  expect_end_and_resume("", "truncate -s 5000 $(rows)", 5,
                        {"rows of table 'deep_emb' on rank 0 from the disk", " at byte ", " of a file in 'rows'"});
  expect_end_and_resume("", "head -c 8M /dev/urandom | dd of=$(rows) bs=1M conv=notrunc status=none", 5,
                        {"rows of table 'deep_emb' on rank 0 from the disk", "the row of key ", ", at byte ",
                         " of a file in 'rows', is damaged", "checkpoints do not depend on this file"});
}

TEST_F(FaultsOfRowsOnDisk, ReadsThatFailEndTheRunAndTheCheckpointIsWhole) {
  if (kSanitized) GTEST_SKIP() << "sanitizers want to be loaded first";
  expect_end_and_resume("export " + faulty_disk() + "/rows/;", "echo EIO > fault", 5,
                        {"rows of table 'deep_emb' on rank 0 from the disk", "cannot read ", " at byte ",
                         " of a file in 'rows': Input/output error"});
}

/// Steps wait for a slow disk and for a stalled disk. A second signal ends the wait.
TEST_F(FaultsOfRowsOnDisk, ASlowDiskIsWaitedFor) {
  if (kSanitized) GTEST_SKIP() << "sanitizers want to be loaded first";
  expect_end_and_resume("export " + faulty_disk() + "/rows/;", "echo slow > fault; sleep 2; rm fault", 0, {});
  expect_end_and_resume("export " + faulty_disk() + "/rows/;",
                        "echo stuck > fault; sleep 0.5; kill -TERM $!; sleep 0.2; kill -TERM $!", 128 + 15, {});
}

TEST_F(Faults, UnderNohupAHangUpIsIgnored) {
  const Outcome outcome = in_shell(endless(),
                                   "trap '' HUP; $TRAIN 2> err & until_runs; kill -HUP $!; sleep 0.2; kill -TERM $!; "
                                   "wait $!; code=$?; cat err >&2; exit $code");
  // The ignored SIGHUP does not count, so SIGTERM is the first signal. A second signal would end the run with exit code
  // 143.
  expect_said(outcome, 75, {"Stopped on request after iteration "});
}

TEST_F(Faults, ThreadsThatCannotStartAreASentence) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need a thread of their own to find leaks";
  const std::string nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups ";
  const Outcome allowed = in_shell(small_config(), "chown -R 65534:65534 . && exec " + nobody + "$PROGRAM --version");
  if (allowed.exit_code != 0) GTEST_SKIP() << "no other user can run the program: " << allowed.err;
  for (const int processes : {1, 2}) {
    const Outcome outcome =
        in_shell(small_config(), cat("exec ", nobody, "/bin/bash -c 'ulimit -u ", processes, "; exec $TRAIN'"));
    expect_said(outcome, 6, {"error (device): ", "thread"});
  }
}

}  // namespace
}  // namespace hctr::test
