// A stopped or failing run saves a complete model, or reports the last saved one. The exit code identifies the reason.
#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>
#include <cstring>
#include <limits>
#include <sstream>

#include "core/base/expect.h"
#include "core/base/platform.h"
#include "support/norm_file.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

class Ends : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "config.json", small_config());
    make_data(folder_.path(), "config.json", 2000, 500);
  }
  Outcome train(const std::string& config, const std::string& run = "run") {
    write_file(folder_ / "this.json", config);
    return run_program("huge_ctr", words("this.json", run), folder_.path());
  }
  /// Runs a bash script, in which $TRAIN trains with this.json.
  Outcome train_in_shell(const std::string& config, const std::string& script) {
    write_file(folder_ / "this.json", config);
    const std::string program = (bin_dir() / "huge_ctr").string() + " --train this.json --run-dir run --device cpu";
    return run_program("/bin/bash", {"-c", script}, folder_.path(), {{"TRAIN", program}});
  }
  static std::vector<std::string> words(const std::string& config, const std::string& run) {
    return {"--train", config, "--run-dir", run, "--device", "cpu"};
  }
  void write_endless() {
    write_file(folder_ / "endless.json",
               with_change(with_change(small_config(), "\"max_iter\": 60", "\"max_iter\": 100000000"),
                           "\"eval_interval\": 30", "\"eval_interval\": 0"));
  }
  static std::string two_ranks(const std::string& config) {
    return with_change(config, "\"gpu\": [0]", "\"gpu\": [0, 1]");
  }
  /// Overwrites a float in the first record of the first data file of a list. `before`: the number of floats before it
  /// in the record.
  void set_float(const std::string& list, size_t before, float value) {
    set_norm_float(listed_file(folder_ / list, 0), 0, before, value);
  }
  /// The last data file of the list.
  fs::path last_file() const {
    std::istringstream lines(read_file(folder_ / "train.txt"));
    std::string line, last;
    while (std::getline(lines, line))
      if (!line.empty()) last = line;
    return folder_ / last;
  }
  /// Names in folder `in` that contain `part`.
  std::vector<std::string> names(const std::string& in, const std::string& part) const {
    std::vector<std::string> found;
    if (fs::exists(folder_ / in))
      for (const auto& entry : fs::directory_iterator(folder_ / in))
        if (entry.path().filename().string().find(part) != std::string::npos)
          found.push_back(entry.path().filename().string());
    return found;
  }
  static void expect_said(const Outcome& outcome, int code, const std::vector<std::string>& pieces) {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    for (const std::string& piece : pieces)
      EXPECT_NE(outcome.err.find(piece), std::string::npos) << "no \"" << piece << "\" in:\n" << outcome.err;
  }

  TemporaryFolder folder_;
};

TEST_F(Ends, ASmallStackIsRaisedOrNamed) {
  const Outcome raised = train_in_shell(small_config(), "ulimit -S -s 64; exec $TRAIN");
  EXPECT_EQ(raised.exit_code, 0) << raised.err;
  const Outcome named = train_in_shell(small_config(), "ulimit -s 64; exec $TRAIN");
  EXPECT_EQ(named.exit_code, 6) << named.err;
  EXPECT_NE(named.err.find("error (device): the stack is limited to 64 KiB"), std::string::npos) << named.err;
}

TEST_F(Ends, NoNameGetsToATerminalAsItIs) {
  const Outcome done = run_program("huge_ctr", words("config.json", "run\x1b[31m"), folder_.path());
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ((done.out + done.err).find('\x1b'), std::string::npos);
  EXPECT_NE(done.out.find("run folder: run\\x1b[31m\n"), std::string::npos) << done.out;
}

TEST_F(Ends, EachSignalSavesAndGivesTheExitCodeThatSchedulersKnow) {
  write_endless();
  for (const auto& [number, code] : {std::pair{SIGTERM, 75}, {SIGUSR1, 75}, {SIGHUP, 75}, {SIGINT, 130}}) {
    fs::remove_all(folder_ / "out");
    const Outcome outcome =
        run_and_signal("huge_ctr", words("endless.json", cat("run", number)), folder_.path(), "Iter: 20 ", number);
    expect_said(outcome, code, {"Stopping after the current step", "Stopped on request after iteration "});
    EXPECT_EQ(names("out", ".model").size(), 4u) << "dense with its layout, and two tables";
    EXPECT_EQ(names("out", ".part").size(), 0u);
    EXPECT_EQ(*Json::read_file(folder_ / cat("run", number) / "summary.json").find("interrupted")->boolean(), true);
  }
}

TEST_F(Ends, ASecondSignalEndsAtOnce) {
  // The config is a named pipe without a writer, so opening the config blocks.
  const Outcome outcome = run_program(
      "/bin/bash",
      {"-c", "mkfifo p; exec 4<>p 3<p 4>&-; " + (bin_dir() / "huge_ctr").string() +
                 " --train /dev/fd/3 & pid=$!; sleep 1; kill -TERM $pid; sleep 0.3; kill -TERM $pid; wait $pid"},
      folder_.path());
  expect_said(outcome, 143, {"a second signal stops at once"});
}

TEST_F(Ends, ASignalWhileTheConfigIsStillBeingPassedIsObeyed) {
  const Outcome outcome = run_program(
      "/bin/bash",
      {"-c", "mkfifo p; exec 3<>p; cat config.json >&3; timeout --foreground -s KILL 20 " +
                 (bin_dir() / "huge_ctr").string() +
                 " --train /dev/fd/3 2> said & pid=$!; sleep 0.5; kill -TERM $pid; wait $pid; code=$?; cat said >&2; "
                 "exit $code"},
      folder_.path());
  expect_said(outcome, 75, {"Stopping after", "stopped while '/dev/fd/3' was being read"});
}

TEST_F(Ends, AnEvaluationUnderWayIsLeft) {
  make_data(folder_.path(), "config.json", 2000, 60000, {"--force"});
  const std::string slow =
      with_change(small_config(), "\"eval_interval\": 30", "\"eval_interval\": 1, \"batchsize_eval\": 1");
  for (const bool several : {false, true}) {
    write_file(folder_ / "slow.json", several ? two_ranks(slow) : slow);
    const Outcome outcome =
        run_and_signal("huge_ctr", words("slow.json", several ? "two" : "one"), folder_.path(), "Training on", SIGTERM);
    expect_said(outcome, 75, {"The evaluation is not finished.", "Stopped on request after iteration 1;"});
  }
}

TEST_F(Ends, ABrokenDataFileEndsTheRunWithTheModelSavedOnAnyRankCount) {
  fs::resize_file(last_file(), fs::file_size(last_file()) - 5);
  for (const std::string& config : {small_config(), two_ranks(small_config())}) {
    fs::remove_all(folder_ / "out");
    const Outcome outcome = train(with_change(with_change(config, "\"batchsize\": 128", "\"batchsize\": 16"),
                                              "\"max_iter\": 60", "\"max_iter\": 200"));
    expect_said(outcome, 4, {"truncated", "while training iteration ", " is saved as out/_dense_"});
    EXPECT_EQ(names("out", ".model").size(), 4u);
  }
}

TEST_F(Ends, ASnapshotThatCannotBeWrittenIsLeftOutAndTrainingGoesOn) {
  // With a file size limit of 4 KiB, the dense model and the metrics fit, but the tables do not.
  for (const std::string& config : {small_config(), two_ranks(small_config())}) {
    fs::remove_all(folder_ / "out");
    const Outcome outcome =
        train_in_shell(with_change(config, "\"snapshot\": 1000000", "\"snapshot\": 30"), "ulimit -f 4; exec $TRAIN");
    expect_said(outcome, 5,
                {"warning: the snapshot of iteration 30 is skipped, and training continues: cannot write",
                 "File too large", "Iter: 60 ", "while saving the final model", "no model has been saved"});
    EXPECT_EQ(names("out", "").size(), 0u) << "nothing of the set";
  }
}

TEST_F(Ends, WhereThePrefixFailsTheModelGoesToTheRunFolder) {
  fs::create_directories(folder_ / "out" / "0_sparse_60.model");  // renaming the table file to this folder fails
  const Outcome outcome = train(small_config());
  expect_said(outcome, 5, {"0_sparse_60.model'", "iteration 60 is saved as run/saved_dense_60.model"});
  EXPECT_EQ(names("out", "").size(), 1u) << "nothing of the set";
  EXPECT_EQ(names("run", "saved").size(), 5u) << "dense with its layout, two tables, and the manifest";
}

TEST_F(Ends, AFolderThatCannotBeWrittenIsSaidBeforeTraining) {
  write_file(folder_ / "file", "");
  expect_said(train(with_change(small_config(), "\"out/\"", "\"file/x\"")), 5,
              {"\"snapshot_prefix\" \"file/x\"", "file"});
  expect_said(train(with_change(small_config(), "\"out/\"", "\"/proc/x\"")), 5, {"/proc/x", "snapshot_prefix"});
}

TEST_F(Ends, ARunFolderAndAPrefixHaveOneOwner) {
  write_endless();
  const Outcome outcome = run_program(
      "/bin/bash",
      {"-c",
       "H=" + (bin_dir() / "huge_ctr").string() +
           "; $H --train endless.json --run-dir run --device cpu 2> first & until grep -q 'Iter: 20 ' first; do sleep "
           "0.05; done; $H --train config.json --run-dir new --device cpu 2> second; echo $? >> second; $H --train "
           "config.json "
           "--set solver.snapshot_prefix=other/ --run-dir run --device cpu; code=$?; kill -TERM %1; wait %1; exit "
           "$code"},
      folder_.path());
  expect_said(outcome, 5, {"the run folder 'run' is in use by a running job: name another --run-dir"});
  const std::string second = read_file(folder_ / "second");
  EXPECT_NE(second.find("another process is writing to \"snapshot_prefix\" 'out/' now (process "), std::string::npos)
      << second;
  EXPECT_TRUE(second.ends_with("\n5\n")) << second;
  EXPECT_FALSE(fs::exists(folder_ / "new"));
}

TEST_F(Ends, AModelThatTrainingStartsFromIsNotReplaced) {
  EXPECT_EQ(train(small_config()).exit_code, 0);
  const std::string before = read_file(folder_ / "out" / "_dense_60.model");
  const std::string more = with_change(small_config(), "\"seed\": 7",
                                       R"("seed": 7, "dense_model_file": "out/_dense_60.model",
         "sparse_model_file": ["out/0_sparse_60.model", "out/1_sparse_60.model"])");
  expect_said(train(more), 3, {"the model of iteration 60 would replace 'out/", "snapshot_prefix"});
  // With num_epochs, the run knows its last iteration, here 32, only at the end. Then it must not overwrite the loaded
  // model.
  fs::copy(folder_ / "out" / "_dense_60.model", folder_ / "out" / "_dense_32.model");
  const std::string epochs =
      with_change(with_change(more, "\"max_iter\": 60", "\"num_epochs\": 2"), "_dense_60", "_dense_32");
  const Outcome outcome = train(epochs, "more");
  expect_said(outcome, 0, {"'out/_dense_32.model' is not overwritten, because training started from this file"});
  EXPECT_EQ(read_file(folder_ / "out" / "_dense_32.model"), before);
  EXPECT_EQ(names("more", "saved_dense_32.model").size(), 4u) << "the model, its layout, and their final_ names";
}

TEST_F(Ends, PartsOfADeadRunAreRemovedByTheNext) {
  fs::create_directories(folder_ / "out");
  write_file(folder_ / "out" / "_dense_40.model.2000000000.part", "half");
  write_file(folder_ / "out" / cat("_dense_40.model.", ::getpid(), ".part"), "of a process that lives");
  expect_said(train(small_config()), 0, {"Removed 1 file 'out/*.part'"});
  EXPECT_EQ(names("out", ".part").size(), 1u);
}

TEST_F(Ends, AClosedErrorStreamPutsNoTextIntoData) {
  const Outcome outcome = train_in_shell(
      small_config(),
      "$TRAIN <&- >&- 2>&-; code=$?; sed 's/^{.*}$//' run/metrics.jsonl | tr -d '\\n' | wc -c >&2; exit $code");
  expect_said(outcome, 0, {"0\n"});
  EXPECT_EQ(read_file(folder_ / "run" / "final__dense_60.model").size(),
            read_file(folder_ / "out" / "_dense_60.model").size());
}

TEST_F(Ends, OutputThatIsLostIsAnError) {
  const Outcome full = train_in_shell(small_config(), "$TRAIN > /dev/full");
  expect_said(full, 5, {"cannot write the standard output"});
  const Outcome pipe = train_in_shell(small_config(), "$TRAIN 2>&1 | head -1; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(pipe.exit_code, 5) << "a reader that leaves does not end training";
  EXPECT_EQ(names("run", "summary.json").size(), 1u);
}

TEST_F(Ends, WithoutAddressesOrThreadsASentenceSaysSo) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need terabytes of addresses";
  int loaded = 0;
  for (const char* limit : {"40000", "60000", "200000", "20000000"}) {
    // With the smaller limits, a CUDA build cannot even load its libraries.
    const Outcome outcome = train_in_shell(
        small_config(), cat("ulimit -v ", limit, "; ${TRAIN%% *} --version >version.txt 2>&1 || exit 77; exec $TRAIN"));
    if (outcome.exit_code == 77) continue;
    ++loaded;
    expect_said(outcome, 6, {"error (device): ", "ulimit -v"});
  }
  EXPECT_GT(loaded, 0);
}

/// With rows on disk, the program reserves fewer addresses. Addresses then run out later, when the program creates
/// threads, opens files or computes GEMMs.
TEST_F(Ends, WithFewAddressesARunWithRowsOnADiskTrainsOrSaysSo) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need terabytes of addresses";
  fs::create_directories(folder_ / "rows");
  const std::string config =
      with_change(with_change(small_config(), "\"update_type\": \"Global\"", "\"update_type\": \"Local\""),
                  "\"seed\": 7", R"("seed": 7, "table_memory": {"host": "5MB", "disk": "rows"})");
  int loaded = 0;
  for (const char* limit : {"400000", "500000", "700000", "1000000", "1300000", "20000000"}) {
    const Outcome outcome = train_in_shell(config, cat("ulimit -v ", limit,
                                                       "; ${TRAIN%% *} --version >version.txt 2>&1 || exit 77; "
                                                       "exec timeout -s KILL 60 $TRAIN --threads 2"));
    if (outcome.exit_code == 77) continue;
    ++loaded;
    if (outcome.exit_code != 0) expect_said(outcome, 6, {"error (device): ", "ulimit -v"});
  }
  EXPECT_GT(loaded, 0);
}

TEST_F(Ends, PipesAndDevicesAreNoInputFiles) {
  for (const char* place : {"mkfifo train.txt", "ln -s /dev/zero train.txt", "ln -s /dev/null train.txt"}) {
    fs::remove(folder_ / "train.txt");
    expect_said(train_in_shell(small_config(), cat(place, "; exec $TRAIN")), 5,
                {"'train.txt': it is a pipe or a device"});
  }
  fs::remove(folder_ / "train.txt");
  write_file(folder_ / "train.txt", "1\nfifo.data\n");
  expect_said(train_in_shell(small_config(), "mkfifo fifo.data; exec $TRAIN"), 5,
              {"fifo.data': it is a pipe or a device"});
  expect_said(train_in_shell(small_config(), "rm -rf run; mkdir run; mkfifo run/metrics.jsonl; exec $TRAIN"), 5,
              {"run/metrics.jsonl': expected a regular file"});
}

TEST_F(Ends, ALossThatIsNotANumberStopsTheRunBeforeAModelOrAnEvaluationHasIt) {
  const std::string config =
      with_change(with_change(small_config(), "\"learning_rate\": 0.01", "\"learning_rate\": 1e38"), "\"display\": 20",
                  "\"display\": 0");
  for (const std::string& diverging : {config, two_ranks(config)}) {
    const Outcome outcome = train(with_change(with_change(diverging, "\"eval_interval\": 30", "\"eval_interval\": 0"),
                                              "\"max_iter\": 60", "\"max_iter\": 100000"));
    expect_said(outcome, 4, {"the loss is not a number at iteration ", "no model has been saved"});
    EXPECT_EQ(names("out", "").size(), 0u);
    EXPECT_EQ(outcome.err.find("Evaluation"), std::string::npos) << outcome.err;
  }
}

TEST_F(Ends, ABatchThatMakesGradientsInfiniteIsSkippedOnRequest) {
  // loss_weight scales all gradients by 1e30. Only gradients of the samples with values of 3e38 overflow.
  for (size_t i = 1; i <= 4; ++i) set_float("train.txt", i, 3e38f);
  const std::string scaled =
      with_change(small_config(), "\"lambda\": 0.001", "\"lambda\": 0.001, \"loss_weight\": 1e30");
  const std::string skipping = with_change(scaled, "\"seed\": 7", "\"seed\": 7, \"on_nan\": \"skip\"");
  expect_said(train(scaled, "stop"), 4, {"the loss is not a number at iteration "});
  for (const std::string& config : {skipping, two_ranks(skipping)}) {
    const Outcome outcome = train(config);
    expect_said(outcome, 0, {" skipped because of infinite or NaN gradients"});
    // 60 batches of 128 are 3.84 passes over 2000 samples, so the first record occurs four times.
    EXPECT_EQ(*Json::read_file(folder_ / "run" / "summary.json").find("skipped_steps")->integer(), 4);
  }
}

TEST_F(Ends, ValuesThatTheLossCannotTakeAreNamedWithTheirPlace) {
  set_float("train.txt", 0, 2.0f);
  const std::string not_taken =
      "'train.txt': sample 1 has 2 as label 0, but 'loss' (BinaryCrossEntropyLoss) takes 0 to 1";
  expect_said(train(small_config()), 4, {not_taken});
  expect_said(train(two_ranks(small_config())), 4, {not_taken, "rank 0 of 2"});
  set_float("train.txt", 0, 1.0f);
  set_float("train.txt", 3, std::numeric_limits<float>::infinity());
  expect_said(train(small_config()), 4, {"record 1 of ", "at byte 69: dense value 2 is inf"});
  const std::string skipping =
      with_change(small_config(), "\"check\": \"Sum\"", "\"check\": \"Sum\", \"bad_records\": \"skip\"");
  expect_said(train(with_change(skipping, "\"max_iter\": 60", "\"num_epochs\": 1")), 0, {"1 bad record was skipped"});
  set_float("train.txt", 3, 0.0f);
  set_float("eval.txt", 0, -1.0f);
  expect_said(train(small_config()), 4, {"'eval.txt': sample 1 has -1 as label 0", "is saved as out/_dense_30.model"});
}

TEST_F(Ends, ASecondRunReplacesNoModelOfTheFirst) {
  const std::string strict = with_change(small_config(), ", \"replace_models\": true", "");
  expect_said(train(strict, "first"), 0, {});
  const std::string model = read_file(folder_ / "out/_dense_60.model");
  expect_said(train(strict, "again"), 0,
              {"warning: 'out/_dense_60.model' is a model of run 'first', whose folder keeps"});
  EXPECT_EQ(read_file(folder_ / "first/final__dense_60.model"), model);
  for (const std::string& name : names("again", "final_")) fs::remove_all(folder_ / "again" / name);
  expect_said(train(strict, "second"), 3,
              {"/solver/snapshot_prefix \"out/\": 'out/_dense_60.model' is the only copy of a model of run 'again'",
               "solver.snapshot_prefix=null"});
  EXPECT_FALSE(fs::exists(folder_ / "second"));
  const std::string own = with_change(strict, "\"snapshot_prefix\": \"out/\",", "");
  expect_said(train(with_change(own, "\"seed\": 7", "\"seed\": 8"), "second"), 0, {});
  EXPECT_TRUE(fs::exists(folder_ / "second/models/_dense_60.model"));
  EXPECT_EQ(read_file(folder_ / "out/_dense_60.model"), model);
  EXPECT_NE(read_file(folder_ / "second/final__dense_60.model"), model);
  // A shorter run writes to the prefix of a longer run. Then the newest model is ambiguous.
  expect_said(train(with_change(strict, "\"max_iter\": 60", "\"max_iter\": 20"), "third"), 0, {});
  const auto evaluate = [&](const std::string& of) {
    return run_program("huge_ctr", {"--eval", "this.json", "--model", of, "--device", "cpu"}, folder_.path());
  };
  expect_said(evaluate("out/"), 5, {"are of 2 runs", "of run 'third': 20; of run 'again': 60"});
  expect_said(evaluate("out/@20"), 0, {});
  expect_said(evaluate("first"), 0, {"'first', iteration 60"});
  expect_said(evaluate("again"), 0, {"'again', iteration 60"});
  expect_said(train(small_config(), "fourth"), 0, {});
  expect_said(evaluate("again"), 4, {"'out/_dense_60.model' as its model, but this file now belongs to run 'fourth'"});
}

TEST_F(Ends, WeightsThatAreNotNumbersAreNotLoaded) {
  EXPECT_EQ(train(small_config()).exit_code, 0);
  const auto spoil = [&](const std::string& file, size_t at) {
    std::string bytes = read_file(folder_ / file);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(bytes.data() + at, &nan, sizeof nan);
    write_file(folder_ / file, bytes);
  };
  const auto from = [&](const std::string& prefix) {
    return with_change(with_change(small_config(), "\"out/\"", "\"more/\""), "\"seed\": 7",
                       "\"seed\": 7, \"dense_model_file\": \"" + prefix +
                           "_dense_60.model\", \"sparse_model_file\": [\"" + prefix + "0_sparse_60.model\", \"" +
                           prefix + "1_sparse_60.model\"]");
  };
  fs::remove(folder_ / "out" / "_model_60.json");  // otherwise the manifest would detect every change
  fs::copy(folder_ / "out", folder_ / "dense");
  spoil("dense/_dense_60.model", 20);
  expect_said(train(from("dense/")), 4, {"dense/_dense_60.model': weight 5 of 'fc1/weights', at byte 20, is nan"});
  fs::copy(folder_ / "out", folder_ / "table");
  spoil("table/0_sparse_60.model", 12 + 8);  // the second row; each row has a key of 8 bytes and one float
  expect_said(train(from("table/")), 4, {"table/0_sparse_60.model': element 0 of row 1, of key ", ", is nan"});
}

TEST_F(Ends, AMetricOfOneClassSaysWhyItIsNotDefined) {
  const std::string one_sample =
      with_change(small_config(), "\"seed\": 7", "\"seed\": 7, \"batchsize_eval\": 1, \"max_eval_batches\": 1");
  expect_said(train(one_sample), 0, {"Evaluation, AUC: not defined: the only evaluation sample has label "});
  EXPECT_NE(read_file(folder_ / "run" / "metrics.jsonl").find("\"AUC\":null"), std::string::npos);
}

TEST_F(Ends, TheLargestNumbersOfIterationsCount) {
  for (const char* iterations : {"9223372036854775807", "9223372036854775806"}) {
    write_file(folder_ / "long.json",
               with_change(with_change(small_config(), "\"max_iter\": 60", std::string("\"max_iter\": ") + iterations),
                           "\"eval_interval\": 30", "\"eval_interval\": 0"));
    expect_said(run_and_signal("huge_ctr", words("long.json", iterations), folder_.path(), "Iter: 20 ", SIGTERM), 75,
                {"Stopped on request"});
  }
}

}  // namespace
}  // namespace hctr::test
