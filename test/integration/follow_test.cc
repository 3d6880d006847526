// Training on files that are added during the run. The model equals the model of training on all files from the start:
// in every format, on any number of ranks, and after an interruption.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "formats/parquet/parquet_file.h"
#include "ranks_fixture.h"

namespace hctr::test {
namespace {

constexpr int kFiles = 5;

class Follow : public RanksTest {
 protected:
  void SetUp() override {
    const std::string small = with_change(with_change(small_config(), "\"display\": 20", "\"display\": 1"),
                                          "\"eval_interval\": 30", "\"eval_interval\": 10");
    config_ = with_change(small, "\"max_iter\": 60", "\"num_epochs\": 1");
    write_file(folder_ / "data.json", config_);
    make_data(folder_.path(), "data.json", 1500, 300, {"--vocabulary", "300", "--files", std::to_string(kFiles)});
    fs::create_directories(folder_ / "in");
  }

  static std::string followed(const std::string& config, const std::string& source = "in",
                              const std::string& fields = "") {
    return with_change(config, R"("source": "train.txt")",
                       cat(R"("source": ")", source, R"(", "follow": true)", fields));
  }
  void write_config(const std::string& config, const std::string& name, const std::string& gpu = "[0]",
                    const std::string& fields = "") {
    const std::string out = with_change(config, "\"out/\"", cat("\"", name, "/\"", fields));
    write_file(folder_ / (name + ".json"), with_change(out, "\"gpu\": [0]", "\"gpu\": " + gpu));
  }
  static std::vector<std::string> words(const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"--train", name + ".json", "--run-dir", name + "-run", "--device", "cpu"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Outcome run(const std::string& config, const std::string& name, const std::string& gpu = "[0]",
              const std::string& fields = "") {
    write_config(config, name, gpu, fields);
    return run_program("huge_ctr", words(name), folder_.path());
  }
  Started begin(const std::string& config, const std::string& name, const std::string& gpu = "[0]",
                const std::string& fields = "") {
    write_config(config, name, gpu, fields);
    return start_program("huge_ctr", words(name), folder_.path(), {}, name);
  }
  /// Adds a file to the followed folder as a program that writes data does: under a hidden name first, then renamed.
  void add_file(int number) {
    fs::copy_file(folder_ / cat("train.", number, ".data"), folder_ / "in" / ".writing");
    fs::rename(folder_ / "in" / ".writing", folder_ / "in" / cat("part", number, ".data"));
  }
  void add_files(int first, int last) {
    for (int f = first; f < last; ++f) add_file(f);
  }
  void end_files() { write_file(folder_ / "in" / "_END", ""); }
  void append(const std::string& text) { std::ofstream(folder_ / "list.txt", std::ios::app) << text; }
  /// Waits until the run has displayed `iteration`.
  void wait_for_iteration(const Started& run, int iteration) { wait_for_text(run.err, cat("Iter: ", iteration, " ")); }

  /// Writes 300 rows with a label, four dense values and four keys, starting at row `first` of the data set. `format`:
  /// "csv" or "raw".
  void write_rows(const std::string& format, const std::string& file, int first) {
    std::string text = "y,x0,x1,x2,x3,c0,c1,c2,c3\n", bytes;
    const auto add = [&](auto number, bool last = false) {
      text += cat(number, last ? "\n" : ",");
      bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    };
    for (int r = first; r < first + 300; ++r) {
      add(static_cast<float>(r * 7919 % 5 == 0));
      for (int d = 1; d <= 4; ++d) add(static_cast<float>(r * d % 8) / 4);
      for (int s = 0; s < 4; ++s) add(static_cast<uint32_t>(300 * s + r * 104729 % (97 + s)), s == 3);
    }
    write_file(folder_ / file, format == "csv" ? text : bytes);
  }

  void expect_equal_models(const std::string& one, const std::string& other) {
    int compared = 0;
    for (const auto& entry : fs::directory_iterator(folder_ / (one + "-run"))) {
      const std::string file = entry.path().filename();
      // The manifest is not compared, because it contains the run name.
      if (!file.starts_with("final_") || file.starts_with("final__model_")) continue;
      ++compared;
      EXPECT_TRUE(read_file(entry) == read_file(folder_ / (other + "-run") / file)) << file << " differs";
    }
    EXPECT_GE(compared, 3);
    EXPECT_EQ(metrics(one).losses, metrics(other).losses);
    EXPECT_EQ(metrics(one).metrics, metrics(other).metrics);
  }
};

TEST_F(Follow, GivesTheModelOfTheSameFilesAtOnce) {
  for (const char* gpu : {"[0]", "[0, 1, 2]"}) {
    SCOPED_TRACE(gpu);
    for (const char* made : {"whole", "whole-run", "part", "part-run", "in"}) fs::remove_all(folder_ / made);
    fs::create_directories(folder_ / "in");
    ASSERT_EQ(run(config_, "whole", gpu).exit_code, 0);
    const Started run = begin(followed(config_), "part", gpu);
    wait_for_text(run.err, "Waiting for the first file in 'in'");
    add_file(0);
    wait_for_iteration(run, 2);  // the file has 300 samples, so there are two batches of 128
    write_file(folder_ / "in" / "_unfinished", "these are no data");
    write_file(folder_ / "in" / "unfinished.part", "these are no data");
    add_files(1, 3);
    wait_for_iteration(run, 7);
    add_files(3, kFiles);
    end_files();
    const Outcome done = finish_program(run);
    ASSERT_EQ(done.exit_code, 0) << done.err;
    expect_equal_models("whole", "part");
    EXPECT_EQ(done.err.find("s left"), std::string::npos) << "of a run whose end nobody knows: " << done.err;
  }
}

/// Rank 0 sends the file list to every process.
TEST_F(Follow, GivesTheSameModelInSeveralProcesses) {
  if (const std::string why = why_no_mpi(); !why.empty()) GTEST_SKIP() << why;
  const std::string gpu = "[[0, 1], [0]]";
  const auto train = [&](const std::string& config, const std::string& name) {
    write_config(config, name, gpu);
    const Outcome done = run_under_mpi(2, "huge_ctr", words(name), folder_.path());
    EXPECT_EQ(done.exit_code, 0) << done.err;
  };
  train(config_, "whole");
  add_files(0, 2);
  std::thread adding([&] {
    wait_for_text(folder_ / "part-run" / "metrics.jsonl", R"("iteration":4,)");
    add_files(2, kFiles);
    end_files();
  });
  train(followed(config_), "part");
  adding.join();
  expect_equal_models("whole", "part");
}

TEST_F(Follow, ReadsAListThatGrows) {
  ASSERT_EQ(run(config_, "whole").exit_code, 0);
  append("2\ntrain.0.data\n\ntrain.1.data\ntrain.2.da");  // the last line has no newline yet
  const Started run = begin(followed(config_, "list.txt"), "part");
  wait_for_iteration(run, 4);
  append("ta\ntrain.3.data\r\n");
  wait_for_iteration(run, 9);
  append("train.4.data\n_END\nneither read nor looked at\n");
  const Outcome done = finish_program(run);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  expect_equal_models("whole", "part");
}

/// The same data set as Raw, Csv and Parquet files: kFiles files of 300 samples each.
TEST_F(Follow, ReadsEveryFormatOfFiles) {
  const std::string one_key =
      with_change(with_change(config_, "\"max_feature_num_per_sample\": 2", "\"max_feature_num_per_sample\": 1"),
                  "\"max_feature_num_per_sample\": 6, \"max_nnz\": 2", "\"max_feature_num_per_sample\": 3");
  const std::string csv = R"("format": "Csv", "csv": {"labels": ["y"], "dense": [{"columns": ["x0", "x1", "x2", "x3"]}],
                             "slots": [{"columns": ["c0", "c1", "c2", "c3"], "keys": "number"}]})";
  std::vector<std::pair<std::string, std::string>> formats = {{"raw", R"("format": "Raw", "float_label_dense": true)"},
                                                              {"csv", csv}};
  if (why_no_parquet().empty()) formats.emplace_back("parquet", R"("format": "Parquet")");
  for (const auto& [name, fields] : formats) {
    SCOPED_TRACE(name);
    for (const char* made : {"whole", "whole-run", "part", "part-run", "in"}) fs::remove_all(folder_ / made);
    fs::create_directories(folder_ / "in");
    const std::string config = with_change(one_key, "\"check\": \"Sum\"", fields);
    std::string list = cat(kFiles, "\n");
    if (name == "parquet") {
      write_file(folder_ / "data.json", config);
      make_data(folder_.path(), "data.json", 1500, 300, {"--vocabulary", "300", "--files", cat(kFiles), "--force"});
      list = read_file(folder_ / "train.txt");
    } else {
      for (int f = 0; f < kFiles; ++f) {
        write_rows(name, cat(f, ".", name), 300 * f);
        list += cat(f, ".", name, "\n");
      }
      write_rows(name, "eval.txt", 5000);
      write_file(folder_ / "train.txt", list);
    }
    const Outcome whole = run(config, "whole");
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    const Started run = begin(followed(config), "part");
    std::istringstream lines(list);
    std::string file;
    std::getline(lines, file);
    for (int f = 0; std::getline(lines, file); ++f) {
      wait_for_text(run.err, f == 0 ? "Waiting for the first" : "Iter: 2 ");
      if (f == 0 && name == "parquet")
        for (const fs::path& made : {folder_ / file, folder_ / "train.txt"})
          if (const fs::path at = made.parent_path() / "_metadata.json"; fs::exists(at))
            fs::copy_file(at, folder_ / "in" / "_metadata.json", fs::copy_options::skip_existing);
      fs::rename(folder_ / file, folder_ / "in" / fs::path(file).filename());
    }
    end_files();
    const Outcome done = finish_program(run);
    ASSERT_EQ(done.exit_code, 0) << done.err;
    expect_equal_models("whole", "part");
  }
}

/// The checkpoint records the files that were read, and the position in each file.
TEST_F(Follow, GoesOnWhereItWasInterrupted) {
  const auto checkpoints = [](const char* name) {
    return cat(R"(, "checkpoint": {"every": 3, "folder": ")", name, R"(-ckpt"})");
  };
  for (const char* gpu : {"[0]", "[0, 1]"}) {
    SCOPED_TRACE(gpu);
    for (const char* made : {"whole", "whole-run", "whole-ckpt", "part", "part-run", "part-ckpt", "in"})
      fs::remove_all(folder_ / made);
    fs::create_directories(folder_ / "in");
    ASSERT_EQ(run(config_, "whole", gpu, checkpoints("whole")).exit_code, 0);
    add_files(0, 2);
    const Started first = begin(followed(config_), "part", gpu, checkpoints("part"));
    wait_for_iteration(first, 4);
    ASSERT_EQ(::kill(first.process, SIGTERM), 0);  // the run waits for the rest of the fifth batch
    const Outcome stopped = finish_program(first);
    EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
    fs::remove(folder_ / "in" / "part0.data");  // read to the end, so the run no longer needs the file
    add_files(2, kFiles);
    const Started second =
        start_program("huge_ctr", words("part", {"--resume", "latest"}), folder_.path(), {}, "again");
    wait_for_iteration(second, 8);
    ASSERT_EQ(::kill(second.process, SIGKILL), 0);
    finish_program(second);
    end_files();
    const Outcome done = run_program("huge_ctr", words("part", {"--resume", "latest"}), folder_.path());
    ASSERT_EQ(done.exit_code, 0) << done.err;
    expect_equal_models("whole", "part");
  }
}

TEST_F(Follow, TrainsOnWhenFilesComeAfterTheEnd) {
  const std::string fields = R"(, "checkpoint": {"folder": "part-ckpt"})";
  add_files(0, 2);
  end_files();
  ASSERT_EQ(run(followed(config_), "part", "[0]", fields).exit_code, 0);
  fs::remove(folder_ / "in" / "_END");
  add_files(2, 3);
  end_files();
  const Outcome done = run_program("huge_ctr", words("part", {"--resume", "latest"}), folder_.path());
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("900 samples"), std::string::npos) << done.out;
}

TEST_F(Follow, EndsWithMaxIterOrWhenNothingComes) {
  add_files(0, 2);
  const Outcome idle = run(followed(config_, "in", R"(, "follow_idle": 0.01)"), "idle");
  EXPECT_EQ(idle.exit_code, 0) << idle.err;
  EXPECT_NE(idle.err.find("No file has arrived in 'in' for"), std::string::npos) << idle.err;
  EXPECT_EQ(metrics("idle").losses.size(), 5u);
  const Outcome limited = run(with_change(followed(config_), "\"num_epochs\": 1", "\"max_iter\": 3"), "limited");
  EXPECT_EQ(limited.exit_code, 0) << limited.err;
  EXPECT_EQ(metrics("limited").losses.size(), 3u);
}

TEST_F(Follow, NamesTheFileThatIsBad) {
  add_file(0);
  write_file(folder_ / "in" / "part1.data", "these are no data");
  for (const char* gpu : {"[0]", "[0, 1]"}) {
    const Outcome bad = run(followed(config_), "bad", gpu);
    EXPECT_EQ(bad.exit_code, 4) << bad.err;
    EXPECT_NE(bad.err.find("part1.data'"), std::string::npos) << bad.err;
    fs::remove_all(folder_ / "bad-run");
  }
  append("train.0.data\nthere/is/none.data\n");
  const Outcome missing = run(followed(config_, "list.txt"), "missing");
  EXPECT_EQ(missing.exit_code, 5) << missing.err;
  EXPECT_NE(missing.err.find("'list.txt' named the file 'there/is/none.data'"), std::string::npos) << missing.err;
}

/// List entries that training has read must remain in the list.
TEST_F(Follow, RefusesAListThatChanges) {
  append("train.0.data\n");
  const Started run = begin(followed(config_, "list.txt"), "changed", "[0, 1]");
  wait_for_iteration(run, 2);
  write_file(folder_ / "list.txt", "train.1.data\n");
  const Outcome done = finish_program(run);
  EXPECT_EQ(done.exit_code, 4) << done.err;
  EXPECT_NE(done.err.find("'list.txt' line 1 now names 'train.1.data', but earlier the list named 'train.0.data'"),
            std::string::npos)
      << done.err;
}

TEST_F(Follow, RefusesWhatHasNoMeaning) {
  const auto message = [&](const std::string& config) {
    const Outcome refused = run(config, "refused");
    EXPECT_EQ(refused.exit_code, 3) << refused.err;
    return refused.err;
  };
  EXPECT_NE(
      message(with_change(followed(config_), "\"num_epochs\": 1", "\"num_epochs\": 2")).find("each file is read once"),
      std::string::npos);
  EXPECT_NE(message(followed(config_, "in", ", \"num_samples\": 5")).find("remove num_samples"), std::string::npos);
  EXPECT_NE(message(with_change(followed(config_), "\"learning_rate\": 0.01",
                                "\"learning_rate\": 0.01, \"decay\": \"cosine\""))
                .find("the length of the run"),
            std::string::npos);
  EXPECT_NE(message(with_change(config_, "\"check\": \"Sum\"", "\"check\": \"Sum\", \"follow_idle\": 3"))
                .find("needs \"follow\""),
            std::string::npos);
  EXPECT_EQ(run(followed(config_, "nothing"), "absent").exit_code, 5);
}

}  // namespace
}  // namespace hctr::test
