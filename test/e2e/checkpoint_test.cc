// Runs that are killed, stopped, reconfigured or damaged, and resume from their checkpoints.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <map>
#include <random>
#include <sstream>

#include "core/base/expect.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/checkpoint/manifest.h"
#include "support/devices.h"
#include "support/message_of.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

class Checkpoints : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "data.json", small_config());
    make_data(folder_.path(), "data.json", 3000, 300, {"--vocabulary", "30"});
  }
  /// The small config with this "checkpoint" object, on the ranks of `gpu`.
  static std::string config(const std::string& checkpoint, int iterations = 60, const std::string& gpu = "[0]") {
    const std::string saves = with_change(small_config(), "\"seed\": 7", "\"seed\": 7, \"checkpoint\": " + checkpoint);
    return with_change(with_change(saves, "\"max_iter\": 60", cat("\"max_iter\": ", iterations)), "\"gpu\": [0]",
                       "\"gpu\": " + gpu);
  }
  std::vector<std::string> arguments(const std::string& run, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"--train", "config.json", "--device", device_};
    if (!run.empty()) words.insert(words.end(), {"--run-dir", run});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Outcome train(const std::string& config, const std::string& run, const std::vector<std::string>& more = {}) {
    write_file(folder_ / "config.json", config);
    return run_program("huge_ctr", arguments(run, more), folder_.path());
  }
  void train_well(const std::string& config, const std::string& run, const std::vector<std::string>& more = {}) {
    const Outcome done = train(config, run, more);
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }
  Outcome resume(const std::string& config, const std::string& run = "") {
    return train(config, run, {"--resume", "latest"});
  }
  static void expect_says(const Outcome& outcome, int exit_code, const std::string& text) {
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << "no \"" << text << "\" in:\n" << outcome.err;
  }

  std::vector<int64_t> iterations(const std::string& folder = "ckpt") const {
    std::vector<int64_t> found;
    for (const CheckpointPlace& place : list_checkpoints(folder_ / folder)) found.push_back(place.iteration);
    return found;
  }
  std::map<std::string, std::string> model(const std::string& run) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_ / run))
      if (const std::string name = entry.path().filename();
          // the manifest is left out, because it contains run names and folders
          name.starts_with("final_") && name.find("_model_") == name.npos)
        files[name] = read_file(entry);
    return files;
  }
  /// Expects that run `run` has all final model files of run `whole`, with equal bytes. `run` may also have an earlier
  /// final model.
  void expect_model(const std::string& run, const std::string& whole) const {
    const auto files = model(run);
    EXPECT_GE(model(whole).size(), 3u);
    for (const auto& [name, bytes] : model(whole)) {
      ASSERT_TRUE(files.contains(name)) << name;
      EXPECT_TRUE(files.at(name) == bytes) << name << " differs";
    }
  }
  /// The losses and metrics in metrics.jsonl, one per line, without times and resume lines.
  std::string numbers(const std::string& run) const {
    std::string all;
    std::istringstream lines(read_file(folder_ / run / "metrics.jsonl"));
    for (std::string text; std::getline(lines, text);) {
      const Json line = Json::parse(text, "metrics.jsonl");
      if (*line.find("kind")->string() == "resume") continue;
      for (const char* field : {"kind", "iteration", "epoch", "samples", "loss", "mean_loss", "AUC", "AverageLoss"})
        if (const Json* value = line.find(field)) all += value->text() + " ";
      all += "\n";
    }
    return all;
  }

  /// The number of saved dense weight files, at the prefix and in the run folder.
  int saved_models() const {
    int count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string();
      count += name.find("_dense_") != name.npos && name.ends_with(".model");
    }
    return count;
  }

  /// Local updates change only the rows of a batch, so that increments are smaller than full checkpoints.
  static std::string local_updates(const std::string& config) {
    return with_change(config, "\"update_type\": \"Global\"", "\"update_type\": \"Local\"");
  }
  /// The config with wide rows and small batches, so that memory has capacity for only a few more rows than one batch
  /// needs.
  std::string with_rows_on_disk(const std::string& config) const {
    // a GPU needs wider rows, because its allocator reserves large blocks
    const int width = device_ == "cpu" ? 1024 : 8192;
    const std::string wide = with_change(config, "\"embedding_vec_size\": 5", cat("\"embedding_vec_size\": ", width));
    return with_change(with_change(local_updates(wide), "\"leading_dim\": 15", cat("\"leading_dim\": ", 3 * width)),
                       "\"batchsize\": 128", "\"batchsize\": 8");
  }
  /// Returns `checkpoint` and a "table_memory" with little more GPU memory than the minimum for the tables of a rank.
  /// The error message at the start of a run states the minimum.
  std::string few_rows_on_gpu(const std::string& checkpoint) {
    const auto with = [&](int64_t gpu, const char* host) {
      return cat(checkpoint, R"(, "table_memory": {"gpu": ")", gpu, R"(B", "host": ")", host, R"(", "disk": "rows"})");
    };
    for (int64_t least = 1;;) {
      const Outcome done = train(with_rows_on_disk(config(with(least, "1GB"), 1)), "least");
      const size_t at = done.err.find("\"gpu\" of \"table_memory\" must be at least ");
      if (at == std::string::npos) return with(least + (int64_t{7} << 21), "32MB");
      least = std::stoll(done.err.substr(done.err.find("least ", at) + 6));
    }
  }
  /// For each checkpoint the name of its base checkpoint; "" for a full checkpoint.
  std::vector<std::string> bases() const {
    std::vector<std::string> found;
    for (const CheckpointPlace& place : list_checkpoints(folder_ / "ckpt"))
      found.push_back(base_of(place.path).value_or(""));
    return found;
  }
  void expect_to_survive_kills(int deaths_wanted, int iterations, const std::string& gpu,
                               const std::string& checkpoint = R"({"every": 4})");

  TemporaryFolder folder_;
  std::string device_ = "cpu";
};

/// Starts and kills the run after random times until `deaths_wanted` kills have happened and the run is complete.
void Checkpoints::expect_to_survive_kills(int deaths_wanted, int iterations, const std::string& gpu,
                                          const std::string& checkpoint) {
  const bool increments = checkpoint.find("whole_every") != checkpoint.npos,
             rows_on_disk = checkpoint.find("table_memory") != checkpoint.npos;
  using Clock = std::chrono::steady_clock;
  SCOPED_TRACE(cat(device_, " ", gpu, " ", checkpoint));
  std::mt19937 random(7);
  const auto milliseconds_of = [&](const std::string& text, const std::string& run) {
    fs::remove_all(folder_ / "ckpt");
    const auto begin = Clock::now();
    train_well(text, run);
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
  };
  const auto config_of = [&](int length) {
    const std::string text = config(checkpoint, length, gpu);
    return rows_on_disk ? with_rows_on_disk(text) : increments ? local_updates(text) : text;
  };
  const int64_t start_ms = milliseconds_of(config_of(1), "start");
  const std::string text = config_of(iterations);
  const int64_t whole_ms = milliseconds_of(text, "whole");
  if (HasFatalFailure()) return;
  std::map<std::string, std::string> state;
  for (const StateIndex& file : read_manifest(checkpoint_path(folder_ / "ckpt", iterations)).files)
    state[file.file] = read_file(checkpoint_path(folder_ / "ckpt", iterations) / file.file);
  int deaths = 0, resumed = 0;
  while (deaths < deaths_wanted) {
    fs::remove_all(folder_ / "ckpt");
    fs::remove_all(folder_ / "run");
    for (bool complete = false; !complete;) {
      // Most kills occur during training, some while the program starts or loads the state.
      const int64_t least = start_ms / 2, range = start_ms / 2 + std::max<int64_t>(1, (whole_ms - start_ms) / 3);
      const auto life = std::chrono::milliseconds(least + static_cast<int64_t>(random()) % range);
      const Outcome outcome =
          deaths < deaths_wanted
              ? run_and_kill("huge_ctr", arguments("run", {"--resume", "latest"}), folder_.path(), life)
              : resume(text, "run");
      complete = outcome.exit_code != 128 + SIGKILL;
      deaths += !complete;
      resumed += outcome.err.find("Resuming from ") != std::string::npos;
      if (complete) {
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
      }
      EXPECT_EQ(outcome.err.find("warning"), std::string::npos) << outcome.err;
    }
    expect_model("run", "whole");
    EXPECT_EQ(numbers("run"), numbers("whole"));
    // State files are compared only if their bytes are deterministic, that is, on a CPU, with full checkpoints, and
    // without rows on disk.
    if (device_ != "cpu" || increments || rows_on_disk) continue;
    for (const auto& [file, bytes] : state)
      EXPECT_TRUE(read_file(checkpoint_path(folder_ / "ckpt", iterations) / file) == bytes) << file;
  }
  EXPECT_GT(resumed, deaths_wanted / 4) << "lives were too short";
}

TEST_F(Checkpoints, SurviveAnyKill) {
  for (const char* gpu : {"[0]", "[0, 1, 2]"}) expect_to_survive_kills(28, 200, gpu);
}

TEST_F(Checkpoints, WithIncrementsSurviveAnyKill) {
  for (const char* gpu : {"[0]", "[0, 1, 2]"})
    expect_to_survive_kills(20, 200, gpu, R"({"every": 4, "whole_every": 5})");
}

TEST_F(Checkpoints, WithRowsOnADiskSurviveAnyKill) {
  make_data(folder_.path(), "data.json", 3000, 300, {"--vocabulary", "300", "--force"});
  for (const char* checkpoint : {R"({"every": 4})", R"({"every": 4, "whole_every": 5})"}) {
    expect_to_survive_kills(10, 80, "[0]", cat(checkpoint, R"(, "table_memory": {"host": "3.5MB", "disk": "rows"})"));
    const Json summary = Json::read_file((folder_ / "whole/summary.json").string());
    EXPECT_GT(*summary.find("tables")->find("deep_emb")->find("rows_from_disk")->integer(), 300);
    EXPECT_GT(*summary.find("tables")->find("deep_emb")->find("rows_from_disk_ahead")->integer(), 0);
  }
}

TEST_F(Checkpoints, SurviveAnyKillOnAGpu) {
  HCTR_SKIP_WITHOUT_GPU();
  device_ = "cuda";
  expect_to_survive_kills(40, 2000, "[0]");
  expect_to_survive_kills(20, 2000, "[0]", R"({"every": 4, "whole_every": 5})");
}

TEST_F(Checkpoints, WithRowsOnADiskSurviveAnyKillOnAGpu) {
  HCTR_SKIP_WITHOUT_GPU();
  device_ = "cuda";
  make_data(folder_.path(), "data.json", 3000, 300, {"--vocabulary", "300", "--force"});
  for (const char* checkpoint : {R"({"every": 4})", R"({"every": 4, "whole_every": 5})"}) {
    expect_to_survive_kills(8, 80, "[0]", few_rows_on_gpu(checkpoint));
    const Json summary = Json::read_file((folder_ / "whole/summary.json").string());
    EXPECT_GT(*summary.find("tables")->find("deep_emb")->find("rows_from_disk")->integer(), 0);
  }
}

/// The config states the placement. Otherwise a run killed before its first checkpoint would repeat the measurement
/// that chooses the placement, and could choose another one.
TEST_F(Checkpoints, SurviveAnyKillOnTwoGpus) {
  HCTR_SKIP_WITHOUT_GPU();
  if (find_gpus().count < 2) GTEST_SKIP() << "there is one GPU";
  device_ = "cuda";
  for (const char* checkpoint :
       {R"({"every": 4}, "placement": "distributed")", R"({"every": 4, "whole_every": 5}, "placement": "distributed")"})
    expect_to_survive_kills(20, 2000, "[0, 1]", checkpoint);
}

TEST_F(Checkpoints, KeepWhatAnIncrementBuildsOn) {
  const std::string text = local_updates(config(R"({"every": 4, "whole_every": 4, "keep_last": 2})", 44));
  train_well(text, "run");
  // Checkpoints 4, 20 and 36 are full. The run keeps the last two, 40 and 44, and their base, 36.
  EXPECT_EQ(iterations(), (std::vector<int64_t>{36, 40, 44}));
  EXPECT_EQ(bases(), (std::vector<std::string>{"", "iteration_000036", "iteration_000036"}));
  train_well(local_updates(config(R"({"every": 4, "whole_every": 4, "keep_last": 2})", 32)), "run");
  EXPECT_EQ(iterations(), (std::vector<int64_t>{20, 28, 32}));

  // A resumed run continues to count the increments since the last full checkpoint. The increments 24, 28 and 32 follow
  // the full checkpoint 20, so checkpoint 36 is full. All older checkpoints can then be removed.
  expect_says(resume(local_updates(config(R"({"every": 4, "whole_every": 4, "keep_last": 1})", 40)), "run"), 0,
              "Resuming from 'ckpt/iteration_000032'");
  EXPECT_EQ(iterations(), (std::vector<int64_t>{36, 40}));
  EXPECT_EQ(bases(), (std::vector<std::string>{"", "iteration_000036"}));
  // A run can resume from an increment although its config no longer requests increments. The new full checkpoint
  // replaces the increment and its base.
  expect_says(resume(local_updates(config(R"({"every": 4, "keep_last": 1})", 44)), "run"), 0, "iteration_000040");
  EXPECT_EQ(iterations(), (std::vector<int64_t>{44}));
}

/// Increments do not contain unchanged rows.
TEST_F(Checkpoints, HoldInIncrementsWhatHasChanged) {
  const std::string many =
      with_change(with_change(local_updates(config(R"({"every": 1, "whole_every": 8, "keep_last": 8})", 8)),
                              R"("max_vocabulary_size_per_gpu": 1000, "embedding_vec_size": 1)",
                              R"("slot_size_array": [20000], "embedding_vec_size": 1)"),
                  R"("max_vocabulary_size_per_gpu": 1000, "embedding_vec_size": 5)",
                  R"("index": "direct", "slot_size_array": [20000, 20000, 20000], "embedding_vec_size": 32)");
  const std::string text = with_change(with_change(many, "\"leading_dim\": 15", "\"leading_dim\": 96"),
                                       "\"batchsize\": 128", "\"batchsize\": 16");
  make_data(folder_.path(), "data.json", 1000, 100, {"--vocabulary", "20000", "--force"});
  train_well(text, "run");
  ASSERT_EQ(iterations().size(), 8u);
  const auto bytes_of = [&](int iteration) {
    return static_cast<int64_t>(fs::file_size(checkpoint_path(folder_ / "ckpt", iteration) / "rank_0.state"));
  };
  constexpr int64_t kRowBytes = int64_t{3} * 32 * 4, kRowsOfBatch = int64_t{16} * 3 * 2;
  const int64_t whole = bytes_of(1);
  EXPECT_GT(whole, 60000 * kRowBytes);
  constexpr int64_t kDense = 100000;  // bytes of the dense weights and the wide table
  for (int iteration = 2; iteration <= 8; ++iteration) {
    EXPECT_LE(bytes_of(iteration), kDense + (iteration - 1) * kRowsOfBatch * (kRowBytes + 4)) << iteration;
    EXPECT_GE(bytes_of(iteration), (iteration - 1) * kRowBytes) << iteration;
  }
  EXPECT_EQ(bases().back(), "iteration_000001");
}

TEST_F(Checkpoints, WithADamagedOrMissingBaseAreRefused) {
  const std::string text = local_updates(config(R"({"every": 20, "whole_every": 3, "keep_last": 3})"));
  train_well(text, "run");
  ASSERT_EQ(bases(), (std::vector<std::string>{"", "iteration_000020", "iteration_000020"}));
  const fs::path newest = checkpoint_path(folder_ / "ckpt", 60), base = checkpoint_path(folder_ / "ckpt", 20);
  const auto load = [&] { verify_files(newest, read_manifest(newest)); };
  load();
  // Changes a byte in every array of the increment and of its base, and truncates the file at every array.
  for (const fs::path& folder : {newest, base}) {
    const StateIndex index = read_manifest(folder).files.at(0);
    const std::string whole = read_file(folder / index.file);
    const auto says = [&](const std::string& what) {
      const std::string message = message_of(Kind::data, load);
      EXPECT_NE(message.find((folder / index.file).string()), std::string::npos) << what << ": " << message;
    };
    for (const StateArray& array : index.arrays) {
      if (array.stored_bytes() == 0) continue;
      for (const int64_t at : {array.offset, array.offset + array.stored_bytes() - 1}) {
        std::string flipped = whole;
        flipped[static_cast<size_t>(at)] ^= 4;
        write_file(folder / index.file, flipped);
        says(array.name);
      }
      write_file(folder / index.file, whole.substr(0, static_cast<size_t>(array.offset)));
      says(array.name);
    }
    write_file(folder / index.file, whole);
  }
  load();

  const std::string longer = local_updates(config(R"({"every": 20, "whole_every": 3, "keep_last": 3})", 80));
  const auto refused = [&](int exit_code, const std::string& why) {
    write_file(folder_ / "config.json", longer);
    expect_says(train(longer, "", {"--resume", newest.string()}), exit_code, why);
  };
  // First the base is missing. Then another complete, undamaged checkpoint has the name of the base.
  fs::rename(base, folder_ / "kept");
  refused(5, "ckpt/iteration_000020");
  train_well(
      with_change(local_updates(config(R"({"every": 20, "folder": "other"})", 20)), "\"seed\": 7", "\"seed\": 8"),
      "other-run");
  fs::copy(folder_ / "other" / "iteration_000020", base, fs::copy_options::recursive);
  refused(4, "is not the checkpoint that '");
  fs::remove_all(base);
  fs::rename(folder_ / "kept", base);
  expect_says(resume(longer), 0, "Resuming from 'ckpt/iteration_000060' after iteration 60.");
  train_well(local_updates(config(R"({"folder": "third"})", 80)), "whole");
  expect_model("run", "whole");
}

TEST_F(Checkpoints, AreNeverHalfLoaded) {
  train_well(config(R"({"every": 20, "keep_last": 2})"), "run");
  ASSERT_EQ(iterations(), (std::vector<int64_t>{40, 60}));
  const fs::path newest = checkpoint_path(folder_ / "ckpt", 60);
  const Manifest manifest = read_manifest(newest);
  const auto load = [&] { verify_files(newest, read_manifest(newest)); };
  load();
  for (const StateIndex& index : manifest.files) {
    const std::string whole = read_file(newest / index.file);
    ASSERT_GT(index.arrays.size(), 10u);
    for (const StateArray& array : index.arrays) {
      for (const int64_t at : {array.offset, array.offset + array.bytes() - 1}) {
        std::string flipped = whole;
        flipped[static_cast<size_t>(at)] ^= 4;
        write_file(newest / index.file, flipped);
        EXPECT_NE(message_of(Kind::data, load).find(index.file), std::string::npos) << array.name;
      }
      write_file(newest / index.file, whole.substr(0, static_cast<size_t>(array.offset)));
      EXPECT_NE(message_of(Kind::data, load).find(index.file), std::string::npos) << array.name;
    }
    write_file(newest / index.file, whole);
  }
  load();

  // The program reports the damaged file. With --resume latest it resumes from the previous checkpoint.
  const std::string text = config(R"({"every": 20})", 80), state = read_file(newest / "rank_0.state");
  write_file(newest / "rank_0.state", state.substr(0, state.size() / 2));
  expect_says(train(text, "", {"--resume", newest.string()}), 4, "rank_0.state' is damaged: the file has ");
  const Outcome older = resume(text);
  expect_says(older, 0, "cannot be used: ");
  expect_says(older, 0, "Resuming from 'ckpt/iteration_000040' after iteration 40.");
  EXPECT_TRUE(fs::exists(folder_ / "ckpt" / "iteration_000060.left"));
  train_well(config(R"({"folder": "other"})", 80), "whole");
  expect_model("run", "whole");

  for (const int64_t iteration : iterations())
    fs::remove(checkpoint_path(folder_ / "ckpt", iteration) / "manifest.json");
  expect_says(resume(text), 5, "manifest.json");
  expect_says(train(text, "", {"--resume", "nowhere"}), 5, "'nowhere' contains no checkpoint");
}

TEST_F(Checkpoints, LetARunGoOnAfterASignal) {
  train_well(config(R"({"folder": "other"})", 400), "whole");
  write_file(folder_ / "config.json", config("{}", 400));
  const Outcome stopped = run_and_signal("huge_ctr", arguments("run", {}), folder_.path(), "Iter: 40 ", SIGTERM);
  EXPECT_NE(stopped.exit_code, 0) << stopped.err;
  ASSERT_EQ(iterations().size(), 1u) << stopped.err;
  EXPECT_LT(iterations()[0], 400);
  expect_says(resume(config("{}", 400)), 0, cat("after iteration ", iterations()[0], "."));
  expect_model("run", "whole");
  EXPECT_EQ(numbers("run"), numbers("whole"));
}

TEST_F(Checkpoints, OfARunThatIsStoppedAgainAndAgainComeWithoutModelsAndWithOneFileOfEvents) {
  // The first run ends with an error and saves a model.
  const std::string endless =
      with_change(config(R"({"every": 2})", 100000000), "\"display\": 20", "\"display\": 20, \"tensorboard\": true");
  std::istringstream names(read_file(folder_ / "train.txt"));
  fs::path last_file;
  for (std::string name; std::getline(names, name);)
    if (!name.empty()) last_file = folder_ / name;
  const std::string data = read_file(last_file);
  write_file(last_file,
             data.substr(0, data.size() / 2) + std::string(data.size() - data.size() / 2, static_cast<char>(-1)));
  expect_says(train(endless, "run"), 4, " is saved as out/_dense_");
  EXPECT_EQ(saved_models(), 1);
  write_file(last_file, data);
  for (int stop = 0; stop < 3; ++stop) {
    const Outcome stopped =
        run_and_signal("huge_ctr", arguments("run", {"--resume", "latest"}), folder_.path(), "Iter: ", SIGTERM);
    const std::string state = checkpoint_path("ckpt", iterations().back()).string();
    expect_says(stopped, 75,
                cat("'", state, "' contains the state after iteration ", iterations().back(),
                    ", so no model is saved: --resume latest resumes from the checkpoint"));
    EXPECT_NE(stopped.out.find(cat("\n  checkpoint: ", state, "\n")), std::string::npos) << stopped.out;
    EXPECT_EQ(saved_models(), 0);
  }
  int events = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "run"))
    events += entry.path().filename().string().starts_with("events.out");
  EXPECT_EQ(events, 1);
  const auto evaluate = [&] {
    return run_program("huge_ctr", {"--eval", "config.json", "--model", "run", "--device", device_}, folder_.path());
  };
  EXPECT_EQ(evaluate().exit_code, 0) << "the run's checkpoint is its model";
  fs::remove_all(checkpoint_path(folder_ / "ckpt", iterations().back()));
  expect_says(evaluate(), 5, "which no longer exists: the run continued. For the newest checkpoint use --model ckpt");
}

TEST_F(Checkpoints, ThatCannotBeWrittenAtAStopLeaveTheModelToBeSaved) {
  write_file(folder_ / "config.json", config("{}", 100000000));
  const Started started = start_program("huge_ctr", arguments("run", {}), folder_.path(), {}, "said");
  wait_for_text(started.err, "Iter: 20 ");
  fs::remove_all(folder_ / "ckpt");
  write_file(folder_ / "ckpt", "a file in the place of the folder");
  ::kill(started.process, SIGTERM);
  const Outcome stopped = finish_program(started);
  expect_says(stopped, 75, "could not be saved: cannot create");
  expect_says(stopped, 75, "The checkpoint could not be saved: saving the model instead.");
  EXPECT_EQ(stopped.err.find("training continues"), std::string::npos) << stopped.err;
  EXPECT_EQ(saved_models(), 2) << "at the prefix, and its link in the run folder";
}

TEST_F(Checkpoints, UnderAnotherNameAreNotTaken) {
  train_well(config(R"({"every": 20})", 40), "run");
  fs::copy(checkpoint_path(folder_ / "ckpt", 20), checkpoint_path(folder_ / "ckpt", 900), fs::copy_options::recursive);
  const Outcome resumed = resume(config(R"({"every": 20})", 60));
  expect_says(resumed, 0,
              "iteration_000900' contains the state of iteration 20: the folder is a copy or was "
              "renamed");
  expect_says(resumed, 0, "after iteration 40.");
}

TEST_F(Checkpoints, DoNotDecideWhereARunWrites) {
  train_well(config(R"({"every": 20})", 40), "run");
  fs::rename(folder_ / "run", folder_ / "moved");
  fs::create_directories(folder_ / "run");
  write_file(folder_ / "run" / "config.json", "mine");
  const Outcome resumed = resume(config(R"({"every": 20})", 60));
  expect_says(resumed, 0, "names the run folder 'run', which belongs to another run: creating a new run folder");
  EXPECT_EQ(read_file(folder_ / "run" / "config.json"), "mine");
  EXPECT_FALSE(fs::exists(folder_ / "run" / "metrics.jsonl"));
  EXPECT_TRUE(fs::exists(fs::directory_iterator(folder_ / "runs")->path() / "summary.json"));
}

TEST_F(Checkpoints, DoTheEvaluationThatASignalHasCutShort) {
  make_data(folder_.path(), "data.json", 3000, 60000, {"--vocabulary", "30", "--force"});
  const auto slow = [&](const std::string& checkpoint) {
    return with_change(config(checkpoint, 3), "\"eval_interval\": 30",
                       "\"eval_interval\": 1, \"batchsize_eval\": 16, \"max_eval_batches\": 2000, "
                       "\"compatibility\": [\"evaluation_continues\"]");
  };
  train_well(slow(R"({"folder": "other"})"), "whole");
  write_file(folder_ / "config.json", slow("{}"));
  const Outcome stopped = run_and_signal("huge_ctr", arguments("run", {}), folder_.path(), "Training on", SIGTERM);
  expect_says(stopped, 75, "The evaluation is not finished.");
  ASSERT_EQ(iterations(), std::vector<int64_t>{1}) << stopped.err;
  expect_says(resume(slow("{}")), 0, "after iteration 1.");
  expect_model("run", "whole");
  EXPECT_EQ(numbers("run"), numbers("whole"));
}

TEST_F(Checkpoints, OfAFinishedRunTrainOnOnlyWithMoreIterations) {
  const std::string text = config(R"({"every": 20})");
  expect_says(resume(text, "run"), 0, "No checkpoint in 'ckpt' to resume from: training starts from the beginning.");
  const auto before = model("run");
  const std::string lines = read_file(folder_ / "run" / "metrics.jsonl");
  const Outcome again = resume(text);
  expect_says(again, 0, "is finished: there is nothing to do. A larger max_iter would train on.");
  EXPECT_NE(again.out.find("run folder: run"), std::string::npos) << again.out;
  EXPECT_EQ(read_file(folder_ / "run" / "metrics.jsonl"), lines);
  EXPECT_TRUE(model("run") == before);

  expect_says(resume(config(R"({"every": 20})", 90)), 0, "Resuming from 'ckpt/iteration_000060' after iteration 60.");
  train_well(config(R"({"folder": "other"})", 90), "whole");
  expect_model("run", "whole");
}

TEST_F(Checkpoints, BelongToOneConfig) {
  train_well(config(R"({"every": 20})", 40), "run");
  const std::string other = with_change(config(R"({"every": 20})", 60), "\"batchsize\": 128", "\"batchsize\": 64");
  expect_says(resume(other), 3, "/solver/batchsize was 128 and is 64");
  write_file(folder_ / "config.json", config(R"({"every": 20})", 60));
  expect_says(train(config(R"({"every": 20})", 60), "", {"--resume", "latest", "--seed", "8"}), 3,
              "/solver/seed was 7 and is 8");
  expect_says(train(small_config(), "", {"--resume", "latest"}), 3, "no \"checkpoint\" in the solver");

  make_data(folder_.path(), "data.json", 3100, 300, {"--vocabulary", "30", "--force"});
  expect_says(resume(config(R"({"every": 20})", 60)), 4, "differ from the training data of the checkpoint");
}

TEST_F(Checkpoints, OfAnotherRunAreMovedAway) {
  train_well(config(R"({"every": 20})", 40), "run");
  fs::create_directories(folder_ / "ckpt" / "iteration_000050.part");
  const Outcome anew = train(config(R"({"every": 20})", 20), "run");
  expect_says(anew, 0, "'ckpt' contained checkpoints of an earlier run, which were moved to 'ckpt.1'");
  EXPECT_EQ(iterations(), (std::vector<int64_t>{20}));
  EXPECT_EQ(iterations("ckpt.1"), (std::vector<int64_t>{20, 40}));
  EXPECT_FALSE(fs::exists(folder_ / "ckpt" / "iteration_000050.part"));

  const FolderLock lock(folder_ / "ckpt");
  expect_says(resume(config("{}")), 5, "another run uses the folder 'ckpt'");
}

TEST_F(Checkpoints, KeepTheLastAndTheBest) {
  const std::string evaluated = with_change(config(R"({"every": 7, "keep_last": 1, "keep_best": "AverageLoss"})", 30),
                                            "\"eval_interval\": 30", "\"eval_interval\": 5");
  // With this learning rate the first evaluations are the best ones.
  train_well(with_change(evaluated, "\"learning_rate\": 0.01", "\"learning_rate\": 3.0"), "run");
  const Json progress = read_manifest(checkpoint_path(folder_ / "ckpt", 30)).progress;
  const int64_t best = *progress.find("best_iteration")->integer();
  EXPECT_EQ(best % 5, 0);
  double least = 1e30;
  int64_t at = -1;
  std::istringstream lines(read_file(folder_ / "run" / "metrics.jsonl"));
  for (std::string text; std::getline(lines, text);) {
    const Json line = Json::parse(text, "metrics.jsonl");
    if (const Json* loss = line.find("AverageLoss"); loss && loss->number() < least) {
      least = loss->number();
      at = *line.find("iteration")->integer();
    }
  }
  EXPECT_EQ(best, at);
  EXPECT_EQ(iterations(), best == 30 ? std::vector<int64_t>({30}) : std::vector<int64_t>({best, 30}));
  expect_says(train(config(R"({"keep_best": "NDCG"})"), "run"), 3, "/solver/checkpoint/keep_best");
}

TEST_F(Checkpoints, MayReplaceTheFinalModel) {
  const auto measured = [](int iterations) {
    return with_change(config(R"({"every": 20})", iterations), "\"seed\": 7", "\"seed\": 7, \"final_snapshot\": false");
  };
  train_well(measured(30), "run");
  EXPECT_TRUE(fs::is_empty(folder_ / "out"));
  EXPECT_TRUE(model("run").empty());
  EXPECT_EQ(Json::read_file(folder_ / "run" / "summary.json").find("model_files")->array()->size(), 0u);
  expect_says(resume(config(R"({"every": 20})", 60), "run"), 0, "/solver/final_snapshot was false and is true");
  train_well(config(R"({"folder": "other"})"), "whole");
  expect_model("run", "whole");
}

}  // namespace
}  // namespace hctr::test
