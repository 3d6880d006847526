// Training that resumes from a checkpoint. On the same ranks, losses, files and state equal those of the uninterrupted
// run; on other ranks they agree within rounding.
#include <gtest/gtest.h>

#include <functional>

#include "every_table.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/checkpoint/state_reader.h"

namespace hctr::test {
namespace {

struct Variant {
  std::string name;
  std::function<std::string(const std::string&)> change;
  std::string gpu = "[0]";
  bool same_code = false;  // sanitizers skip this case, because another case runs the same code
};
/// Marks a variant that sanitizers skip, because it runs the same code as another variant with other values.
Variant same_code(Variant variant) {
  variant.same_code = true;
  return variant;
}

std::string identity(const std::string& config) { return config; }

/// Returns a function that adds `fields` to the deep embedding of a config.
std::function<std::string(const std::string&)> deep(const std::string& fields, bool small_batch = false) {
  return [=](const std::string& config) {
    const std::string table =
        with_change(config, R"("embedding_vec_size": 5)", R"("embedding_vec_size": 5, )" + fields);
    const bool large = table.find("\"batchsize\": 128") != table.npos;
    return small_batch && large ? with_change(table, "\"batchsize\": 128", "\"batchsize\": 16") : table;
  };
}
/// Returns a function that adds `fields` and a limit of 100 rows to the deep table of a config.
std::function<std::string(const std::string&)> full(const std::string& fields) {
  return [=](const std::string& config) {
    return with_change(deep(fields, true)(config), R"("max_vocabulary_size_per_gpu": 1000, "embedding_vec_size": 5)",
                       R"("max_vocabulary_size_per_gpu": 100, "embedding_vec_size": 5)");
  };
}
std::function<std::string(const std::string&)> solver(const std::string& fields) {
  return [=](const std::string& config) { return with_change(config, "\"seed\": 7", "\"seed\": 7, " + fields); };
}
std::function<std::string(const std::string&)> optimizer(const std::string& object) {
  return [=](std::string config) {
    const size_t begin = config.find("\"optimizer\":"), end = config.find("\"layers\":");
    return config.replace(begin, end - begin, "\"optimizer\": " + object + ", ");
  };
}
std::function<std::string(const std::string&)> data(const std::string& fields, const std::string& length = "") {
  return [=](const std::string& config) {
    const std::string read = with_change(config, "\"check\": \"Sum\"", "\"check\": \"Sum\"" + fields);
    return length.empty() ? read : with_change(read, "\"max_iter\": 30", length);
  };
}
/// Returns the config with direct keys, so that every row exists from the start.
std::string direct(const std::string& config) {
  const std::string wide = with_change(config, R"("max_vocabulary_size_per_gpu": 1000, "embedding_vec_size": 1)",
                                       R"("slot_size_array": [300], "embedding_vec_size": 1)");
  return deep(R"("index": "direct", "slot_size_array": [300, 300, 300])")(wide);
}
std::string shared_keys(const std::string& config) {
  return with_change(config, R"("embedding_vec_size": 5)", R"("identity": "key", "embedding_vec_size": 5)");
}

/// The state in a checkpoint, including its base if any: arrays and values by rank and name.
std::map<std::string, std::string> state_in(const fs::path& checkpoint) {
  const Manifest manifest = read_manifest(checkpoint);
  verify_files(checkpoint, manifest);
  const StateReader reader(checkpoint, manifest, false, 0, runtime_of(kCpu).compute_stream());
  std::map<std::string, std::string> state;
  for (size_t rank = 0; rank < manifest.files.size(); ++rank) {
    const StateIndex& index = manifest.files[rank];
    state[cat(rank, " numbers")] = index.values.text();
    for (const StateArray& array : index.arrays) {
      if (array.name.ends_with("/changed_rows")) continue;  // only increments have this array
      std::string& bytes = state[cat(rank, " ", array.name)];
      bytes.resize(static_cast<size_t>(array.bytes()));
      reader.of_rank(static_cast<int>(rank)).read(array, 0, std::as_writable_bytes(std::span(bytes)));
    }
  }
  return state;
}

const std::string kAdam = R"("learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7)";
std::function<std::string(const std::string&)> adam(const std::string& update) {
  return optimizer(cat(R"({"type": "Adam", "update_type": ")", update, R"(", "adam_hparam": {)", kAdam, "}}"));
}
/// Returns a function that sets the placement of the deep table.
std::function<std::string(const std::string&)> placed(const std::string& placement) {
  return [=](const std::string& config) {
    return with_change(config, R"("bottom": "deep_data", "top": "deep_emb",)",
                       cat(R"("bottom": "deep_data", "top": "deep_emb", "placement": ")", placement, "\","));
  };
}

/// Uninterrupted runs, and runs that resume from their checkpoints.
template <class Config>
class Resuming : public Config {
 protected:
  using Config::config_;
  using Config::device_;
  using Config::folder_;
  using Config::metrics;
  using Config::result;

  void SetUp() override {
    Config::SetUp();
    config_ = with_change(config_, "\"max_iter\": 20", "\"max_iter\": 30");
  }

  Outcome run(const std::string& config, const std::string& gpu, const std::string& name,
              const std::vector<std::string>& options, const std::string& checkpoint) {
    const std::string out = with_change(config, "\"out/\"", cat("\"", name, "/\", \"checkpoint\": ", checkpoint));
    write_file(folder_ / (name + ".json"), with_change(out, "\"gpu\": [0]", "\"gpu\": " + gpu));
    for (const char* ending : {"", "-run", "-ckpt"})
      if (name != "whole") fs::remove_all(folder_ / (name + ending));
    std::vector<std::string> arguments = {"--train", name + ".json", "--run-dir", name + "-run", "--device", device_};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_program("huge_ctr", arguments, folder_.path());
  }

  /// Trains without interruption, with a checkpoint every `every` iterations, and keeps all checkpoints.
  void train_whole(const std::string& config, const std::string& gpu, int every = 9) {
    for (const char* folder : {"whole", "whole-run", "whole-ckpt"}) fs::remove_all(folder_ / folder);
    const Outcome done =
        run(config, gpu, "whole", {},
            cat(R"({"every": )", every, R"(, "keep_last": 1000, "folder": "whole-ckpt")", increments_, "}"));
    ASSERT_EQ(done.exit_code, 0) << done.err;
    ASSERT_EQ(done.err.find("could not be saved"), std::string::npos) << done.err;
  }
  std::string checkpoint(int iteration) const {
    return cat("whole-ckpt/iteration_0000", iteration < 10 ? "0" : "", iteration);
  }
  Outcome resume(const std::string& config, const std::string& gpu, int iteration, const std::string& name = "part") {
    return run(config, gpu, name, {"--resume", checkpoint(iteration)}, cat(R"({"folder": ")", name, R"(-ckpt"})"));
  }

  /// Returns the minimum GPU memory for the tables of a rank with all rows in host memory, as stated by the error
  /// message at the start of a run. On a GPU, adds 64 KiB, because the scratch size depends on row addresses, which
  /// vary with the free memory.
  int64_t least_gpu(const std::string& config, const std::string& gpu, const std::string& disk = "") {
    for (int64_t least = 1;;) {
      const std::string tried = cat(R"("table_memory": {"gpu": ")", least, R"(B", "host": "1GB")", disk, "}");
      // On a GPU, increments need some granules for change marks and staging buffers.
      const std::string marks = device_ == "cpu" ? "" : cat(R"(, "every": 9)", increments_);
      const Outcome done = run(solver(tried)(config), gpu, "least", {}, cat(R"({"folder": "least-ckpt")", marks, "}"));
      const size_t at = done.err.find("\"gpu\" of \"table_memory\" must be at least ");
      if (at == std::string::npos) return least + (device_ == "cpu" ? 0 : 1 << 16);
      least = std::stoll(done.err.substr(done.err.find("least ", at) + 6));
    }
  }

  std::string with_wide_rows(const std::string& config) const {
    const int64_t width = device_ == "cpu" ? 1024 : 8192;  // 16 rows (CPU) or 64 rows (GPU) per granule
    return with_change(with_change(config, "\"embedding_vec_size\": 5", cat("\"embedding_vec_size\": ", width)),
                       "\"leading_dim\": 15", cat("\"leading_dim\": ", 3 * width));
  }

  /// The files of the final model; on a CPU also the files of the last checkpoint.
  std::map<std::string, std::string> files(const std::string& name) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_ / (name + "-run")))
      // The manifest is not compared, because it contains the run name and folders.
      if (const std::string file = entry.path().filename();
          file.starts_with("final_") && !file.starts_with("final__model_"))
        files[file] = read_file(entry);
    if (device_ != "cpu") return files;  // on a GPU the row order is not deterministic
    files.merge(state_in(list_checkpoints(folder_ / (name + "-ckpt")).back().path));
    return files;
  }
  void expect_equal_files() const {
    const auto whole = files("whole"), part = files("part");
    ASSERT_GE(whole.size(), 3u);
    for (const auto& [name, bytes] : whole) {
      ASSERT_TRUE(part.contains(name)) << name;
      EXPECT_TRUE(part.at(name) == bytes) << name << " differs";
    }
    EXPECT_EQ(part.size(), whole.size());
  }
  /// Compares the losses of the resumed run with those of the uninterrupted run after iteration `after`.
  void expect_equal_losses(size_t after) const {
    const auto whole = metrics("whole"), part = metrics("part");
    ASSERT_GT(whole.losses.size(), after);
    EXPECT_EQ(part.losses,
              std::vector<double>(whole.losses.begin() + static_cast<std::ptrdiff_t>(after), whole.losses.end()));
  }

  void expect_exact(const Variant& variant, const std::vector<int>& iterations) {
    SCOPED_TRACE(variant.name + " on " + variant.gpu);
    const std::string config = variant.change(config_);
    train_whole(config, variant.gpu, iterations[0]);
    if (testing::Test::HasFatalFailure()) return;
    for (const int iteration : iterations) {
      if (kSanitized && iteration != iterations[0]) continue;  // sanitizers need one case per code path
      SCOPED_TRACE(cat("from iteration ", iteration));
      const Outcome done = resume(config, variant.gpu, iteration);
      ASSERT_EQ(done.exit_code, 0) << done.err;
      expect_equal_files();
      expect_equal_losses(static_cast<size_t>(iteration));
    }
  }
  void expect_exact(const std::vector<Variant>& variants, const std::vector<int>& iterations = {9, 18}) {
    for (const std::string& device : devices_here()) {
      device_ = device;
      for (const Variant& variant : variants) {
        if (kSanitized && variant.same_code) continue;
        expect_exact(variant, iterations);
      }
    }
  }
  static std::vector<std::string> devices_here() {
    std::vector<std::string> names = {"cpu"};
    if (find_gpus().count > 0) names.push_back("cuda");
    return names;
  }

  std::string increments_;  // the config field that enables increments
};

using Resume = Resuming<RanksTest>;

/// Checkpoints of iterations 5 (full), 10, 15, 20, 25 and 30 (increments). Each batch changes some of the rows.
class ResumeFromIncrement : public Resume {
 protected:
  void SetUp() override {
    Resume::SetUp();
    increments_ = R"(, "whole_every": 10)";
    config_ = with_change(adam("Local")(config_), "\"batchsize\": 128", "\"batchsize\": 16");
  }
  /// Counts of rows in the checkpoint of iteration 20: taken from the base, replaced, and added.
  struct Rows {
    int64_t of_base = 0, changed = 0, added = 0;
    int whole = 0;  // number of tables that are stored without a base
  };
  Rows rows_of_increment() const {
    Rows rows;
    const Manifest manifest = read_manifest(folder_ / checkpoint(20));
    EXPECT_EQ(manifest.base.has_value() ? manifest.base->name : "none", "iteration_000005");
    for (const StateIndex& index : manifest.files)
      for (const StateArray& array : index.arrays)
        if (!array.name.ends_with("/vectors")) {
          continue;
        } else if (!array.from_base) {
          ++rows.whole;
        } else {
          rows.of_base += array.from_base->rows;
          rows.changed += array.from_base->count;
          rows.added += array.shape[0] - array.from_base->rows;
        }
    return rows;
  }
  void expect_exact_from_increments(const std::vector<Variant>& variants) {
    for (const std::string& device : devices_here())
      for (const Variant& variant : variants) {
        if ((device != "cpu" && variant.gpu != "[0]") || (kSanitized && variant.same_code)) continue;
        device_ = device;
        SCOPED_TRACE(cat(variant.name, " on ", variant.gpu, ", ", device));
        const std::string config = variant.change(config_);
        train_whole(config, variant.gpu, 5);
        if (HasFatalFailure()) return;
        for (const int iteration : {20, 25}) {
          if (kSanitized && iteration == 25) continue;  // sanitizers need one case per code path
          const Outcome done = resume(config, variant.gpu, iteration);
          ASSERT_EQ(done.exit_code, 0) << done.err;
          expect_equal_files();
          expect_equal_losses(static_cast<size_t>(iteration));
        }
        const Rows rows = rows_of_increment();
        EXPECT_EQ(rows.whole, 0);
        EXPECT_GT(rows.changed, 0);
        EXPECT_LT(rows.changed, rows.of_base) << "no row is taken from the base";
        EXPECT_GT(rows.added, 0);
      }
  }
};
using ResumeEveryTable = Resuming<EveryTable>;

TEST_F(Resume, GivesTheSameModelWithEveryOptimizer) {
  expect_exact({{"Adam, Global", identity},
                same_code({"Adam, Local", adam("Local")}),
                {"Adam, LazyGlobal", adam("LazyGlobal")},
                same_code({"AdamW", optimizer(cat(R"({"type": "AdamW", "adamw_hparam": {)", kAdam,
                                                  R"(, "weight_decay": 0.01}})"))}),
                {"momentum", optimizer(R"({"type": "MomentumSGD", "update_type": "Global",
          "momentum_sgd_hparam": {"learning_rate": 0.1, "momentum_factor": 0.9, "warmup_steps": 10,
                                  "decay_start": 15, "decay_steps": 10}})")},
                {"SGD", sgd},
                {"Adagrad by row",
                 optimizer(R"({"type": "AdaGrad", "adagrad_hparam": {"learning_rate": 0.1, "row_wise": true}})")},
                {"Ftrl", optimizer(R"({"type": "Ftrl", "ftrl_hparam": {"learning_rate": 0.1, "lambda1": 0.001}})")}});
}

TEST_F(ResumeFromIncrement, GivesTheSameModelWithEveryOptimizer) {
  expect_exact_from_increments(
      {same_code({"Adam, Local", identity}),
       {"Adam, LazyGlobal", adam("LazyGlobal")},
       same_code({"AdamW", optimizer(cat(R"({"type": "AdamW", "update_type": "Local", "adamw_hparam": {)", kAdam,
                                         R"(, "weight_decay": 0.01}})"))}),
       same_code({"momentum", optimizer(R"({"type": "MomentumSGD", "update_type": "Local",
          "momentum_sgd_hparam": {"learning_rate": 0.1, "momentum_factor": 0.9}})")}),
       {"SGD, Global", optimizer(R"({"type": "SGD", "update_type": "Global", "sgd_hparam": {"learning_rate": 0.3}})")},
       {"Adagrad by row",
        optimizer(R"({"type": "AdaGrad", "adagrad_hparam": {"learning_rate": 0.1, "row_wise": true}})")},
       {"Ftrl", optimizer(R"({"type": "Ftrl", "ftrl_hparam": {"learning_rate": 0.1, "lambda1": 0.001}})")},
       {"rows of two bytes", deep(R"("storage": "bf16", "state_storage": "bf16")")}});
}

TEST_F(ResumeFromIncrement, GivesTheSameModelUnderEveryPolicy) {
  // After evictions or expiry, rows that moved to freed slots count as changed.
  expect_exact_from_increments({{"evict_lru", full(R"("when_full": "evict_lru")")},
                                same_code({"evict_lfu", full(R"("when_full": "evict_lfu")")}),
                                {"ignore", full(R"("when_full": "ignore")")},
                                {"expire_after", deep(R"("expire_after": 4)")},
                                {"rarely expire_after", deep(R"("expire_after": 300)")},
                                same_code({"min_count", deep(R"("min_count": 3)")}),
                                {"few candidates", deep(R"("min_count": 3, "max_candidates": 60)")},
                                {"admit_probability", deep(R"("admit_probability": 0.3)")},
                                {"count_keys", deep(R"("count_keys": true)")},
                                {"keys of all slots", shared_keys}});
}

TEST_F(ResumeFromIncrement, GivesTheSameModelOnSeveralRanks) {
  std::vector<Variant> variants;
  for (const std::string gpu : {"[0, 1]", "[0, 1, 2]"})
    for (const Variant& variant : std::vector<Variant>{{"planned", identity},
                                                       {"spread by key", solver(R"("placement": "distributed")")},
                                                       {"hybrid", placed("hybrid")},
                                                       {"min_count", deep(R"("min_count": 2)")}})
      variants.push_back({variant.name, variant.change, gpu, gpu == "[0, 1]"});
  expect_exact_from_increments(variants);
}

/// A run that resumes in its folder writes the same increments until the next full checkpoint, regardless of the
/// checkpoint it resumed from. On a CPU the increments are equal byte for byte.
TEST_F(ResumeFromIncrement, IsFollowedByIncrements) {
  for (const std::string& device : devices_here())
    for (const Variant& variant : std::vector<Variant>{same_code({"Adam, Local", identity}),
                                                       {"Adam, LazyGlobal", adam("LazyGlobal")},
                                                       {"direct", direct},
                                                       {"evict_lru", full(R"("when_full": "evict_lru")")},
                                                       {"min_count", deep(R"("min_count": 2)"), "[0, 1]"},
                                                       {"hybrid", placed("hybrid"), "[0, 1, 2]"}}) {
      if ((device != "cpu" && variant.gpu != "[0]") || (kSanitized && variant.same_code)) continue;
      device_ = device;
      SCOPED_TRACE(cat(variant.name, " on ", variant.gpu, ", ", device));
      const std::string config = variant.change(config_);
      train_whole(config, variant.gpu, 5);
      if (HasFatalFailure()) return;
      for (const int iteration : {5, 15}) {
        if (kSanitized && iteration == 5) continue;  // sanitizers need one case per code path
        SCOPED_TRACE(cat("from iteration ", iteration));
        fs::remove_all(folder_ / "next-ckpt");
        fs::create_directories(folder_ / "next-ckpt");
        for (int copied = 5; copied <= iteration; copied += 5)
          fs::copy(folder_ / checkpoint(copied), folder_ / "next-ckpt" / fs::path(checkpoint(copied)).filename(),
                   fs::copy_options::recursive);
        const Outcome done = run(config, variant.gpu, "part", {"--resume", "latest"},
                                 R"({"every": 5, "keep_last": 1000, "folder": "next-ckpt", "whole_every": 10})");
        ASSERT_EQ(done.exit_code, 0) << done.err;
        for (const CheckpointPlace& place : list_checkpoints(folder_ / "whole-ckpt")) {
          const fs::path other = folder_ / "next-ckpt" / place.path.filename();
          const Manifest whole = read_manifest(place.path), part = read_manifest(other);
          ASSERT_EQ(part.base.has_value(), whole.base.has_value()) << other;
          ASSERT_EQ(part.base.has_value(), place.iteration != 5) << other;
          if (part.base) {
            EXPECT_EQ(part.base->name, "iteration_000005");
            EXPECT_EQ(part.base->increment, place.iteration / 5 - 1) << other;
          }
          for (const StateIndex& file : whole.files) {
            if (device_ != "cpu") break;  // on a GPU the row order is not deterministic
            EXPECT_TRUE(read_file(other / file.file) == read_file(place.path / file.file)) << other << file.file;
          }
          verify_files(other, part);
        }
        expect_equal_losses(static_cast<size_t>(iteration));
        const Outcome again = run(with_change(config, "\"max_iter\": 30", "\"max_iter\": 31"), variant.gpu, "part",
                                  {"--resume", "next-ckpt/iteration_000030"}, R"({"folder": "part-ckpt"})");
        EXPECT_EQ(again.exit_code, 0) << again.err;
      }
    }
}

/// The next checkpoint is full if the number of ranks changes, or if the base is in another folder.
TEST_F(ResumeFromIncrement, IsFollowedByAWholeOneWhereItCannotBuildOnIt) {
  train_whole(config_, "[0, 1]", 5);
  const auto bases = [&](const std::string& gpu, const std::string& from) {
    const Outcome done = run(config_, gpu, "part", {"--resume", from},
                             R"({"every": 5, "keep_last": 1000, "folder": "next-ckpt", "whole_every": 10})");
    EXPECT_EQ(done.exit_code, 0) << done.err;
    std::vector<std::string> found;
    for (const CheckpointPlace& place : list_checkpoints(folder_ / "next-ckpt"))
      if (place.iteration > 20) found.push_back(base_of(place.path).value_or(""));
    return found;
  };
  const auto copy = [&] {
    fs::remove_all(folder_ / "next-ckpt");
    fs::copy(folder_ / "whole-ckpt", folder_ / "next-ckpt", fs::copy_options::recursive);
  };
  const std::string kOwn = "next-ckpt/iteration_000020", kFirst = "iteration_000005", kThen = "iteration_000025";
  copy();
  EXPECT_EQ(bases("[0, 1]", kOwn), (std::vector{kFirst, kFirst}));
  copy();
  EXPECT_EQ(bases("[0]", kOwn), (std::vector<std::string>{"", kThen}));
  copy();
  EXPECT_EQ(bases("[0, 1]", checkpoint(20)), (std::vector<std::string>{"", kThen}));
  copy();
  fs::rename(folder_ / kOwn, folder_ / "next-ckpt" / "named");
  EXPECT_EQ(bases("[0, 1]", "next-ckpt/named"), (std::vector{kFirst, kFirst})) << "its base has its name";
}

/// With direct keys every row exists from the start, so increments add no row.
TEST_F(ResumeFromIncrement, OfDirectKeysOnSeveralRanksGivesTheSameModel) {
  for (const char* gpu : {"[0]", "[0, 1, 2]"})
    for (const char* placement : {"auto", "data_parallel"}) {
      SCOPED_TRACE(cat(gpu, ", ", placement));
      const std::string config = placed(placement)(direct(config_));
      train_whole(config, gpu, 5);
      if (HasFatalFailure()) return;
      const Outcome done = resume(config, gpu, 20);
      ASSERT_EQ(done.exit_code, 0) << done.err;
      expect_equal_files();
      EXPECT_LT(rows_of_increment().changed, rows_of_increment().of_base);
    }
}

TEST_F(ResumeFromIncrement, OnOtherRanksGivesTheSameModelWithinRounding) {
  for (const auto& [name, config] : {std::pair("hash", sgd(config_)), std::pair("direct", sgd(direct(config_)))})
    for (const std::string from : {"[0]", "[0, 1, 2]"}) {
      train_whole(config, from, 5);
      if (HasFatalFailure()) return;
      const Result whole = result("whole");
      for (const std::string to : {"[0]", "[0, 1]", "[0, 1, 2, 3]"}) {
        if (kSanitized && (to == from || to == "[0, 1]")) continue;  // sanitizers need one case per code path
        SCOPED_TRACE(cat(name, " from ", from, " to ", to));
        const Outcome done = resume(config, to, 20);
        ASSERT_EQ(done.exit_code, 0) << done.err;
        Result part = result("part");
        part.losses.insert(part.losses.begin(), whole.losses.begin(), whole.losses.begin() + 20);
        part.metrics.insert(part.metrics.begin(), whole.metrics.begin(), whole.metrics.end() - part.metrics.size());
        expect_same(whole, part, 1e-5);
      }
    }
}

/// With global updates every row changes in every step, so no checkpoint has a base.
TEST_F(ResumeFromIncrement, OfGlobalUpdatesIsWhole) {
  const std::string config =
      optimizer(cat(R"({"type": "Adam", "update_type": "Global", "adam_hparam": {)", kAdam, "}}"))(config_);
  train_whole(config, "[0]", 5);
  for (const CheckpointPlace& place : list_checkpoints(folder_ / "whole-ckpt"))
    EXPECT_FALSE(read_manifest(place.path).base) << place.path;
  fs::remove_all(folder_ / checkpoint(5));
  const Outcome done = resume(config, "[0]", 20);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  expect_equal_files();
}

TEST_F(Resume, GoesOnInTheDataWhereTheCheckpointWas) {
  // An epoch has 24 batches; the last batch is smaller.
  expect_exact({{"max_iter", identity},
                {"shuffled", data(R"(, "shuffle": 500)")},
                same_code({"epochs", data("", "\"num_epochs\": 2")}),
                {"shuffled epochs", data(R"(, "shuffle": 500, "num_workers": 3)", "\"num_epochs\": 2")},
                {"continued evaluations",
                 [](const std::string& config) {
                   return with_change(
                       solver(R"("compatibility": ["evaluation_continues"], "max_eval_batches": 2)")(config),
                       "\"eval_interval\": 10", "\"eval_interval\": 4");
                 }}},
               {3, 21, 24, 27});
}

/// Changes a byte of every 40th record of a Norm file, which invalidates the record's checksum.
void damage_records(const fs::path& path) {
  std::string bytes = read_file(path);
  int number = 0;
  for (size_t at = 0; at + 4 < bytes.size(); ++number) {
    int32_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    if (number > 0 && number % 40 == 0)
      bytes[at + 4] = static_cast<char>(bytes[at + 4] ^ 1);  // the first block is the header
    at += 4 + static_cast<size_t>(length) + 1;
  }
  write_file(path, bytes);
}

TEST_F(Resume, CountsBadRecordsOnce) {
  std::istringstream list(read_file(folder_ / "train.txt"));
  std::string file;
  for (std::getline(list, file); std::getline(list, file);) damage_records(folder_ / file);
  const auto skipped = [&](const std::string& name) {
    return *Json::read_file(folder_ / (name + "-run") / "summary.json").find("skipped_records")->integer();
  };
  const std::string kEpochs = "\"num_epochs\": 2";
  // An epoch has 23 batches. No batch follows the last checkpoint of the first epoch.
  for (const auto& [length, iterations] :
       {std::pair(std::string("\"max_iter\": 30"), std::vector{3, 24}), std::pair(kEpochs, std::vector{3, 24, 45}),
        std::pair(kEpochs, std::vector{23})}) {
    expect_exact({length, data(R"(, "bad_records": "skip", "max_bad_records": 1000)", length)}, iterations);
    EXPECT_GT(skipped("whole"), 50);
    EXPECT_EQ(skipped("part"), skipped("whole"));
  }
}

TEST_F(Resume, GivesTheSameModelInEveryPrecision) {
  const std::string stored = R"("storage": "bf16", "state_storage": "bf16")";
  expect_exact({{"fp16", solver(R"("mixed_precision": true)")},
                same_code({"fp16, constant scale", solver(R"("mixed_precision": 1024)")}),
                {"bf16", solver(R"("mixed_precision": "bf16")")},
                {"fp8", solver(R"("mixed_precision": "fp8", "fp8_least_width": 16)")},
                {"bf16 rows", deep(stored)},
                {"BatchNorm", with_batch_norm},
                {"PReLU_Dice", with_dice}});
}

/// On a GPU, a resumed run uses the GEMM algorithms of its checkpoint. If the checkpoint lacks the file with the
/// algorithms, a new search might choose others.
TEST_F(Resume, UsesTheAlgorithmsOfItsCheckpoint) {
  const std::string config = solver(R"("algorithm_search": true, "algorithm_file": "kept.txt")")(config_);
  train_whole(config, "[0]");
  const bool searches = device_ != "cpu";
  EXPECT_EQ(fs::exists(folder_ / "kept.txt"), searches);
  const std::string manifest = read_file(folder_ / checkpoint(9) / "manifest.json");
  EXPECT_EQ(manifest.find("huge_ctr algorithms of matrix products") != manifest.npos, searches);
  fs::remove(folder_ / "kept.txt");
  const Outcome resumed = resume(config, "[0]", 9);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_FALSE(fs::exists(folder_ / "kept.txt")) << "measured again";
  expect_equal_files();
}

TEST_F(Resume, GivesTheSameModelUnderEveryPolicy) {
  expect_exact({{"evict_lru", full(R"("when_full": "evict_lru")")},
                same_code({"evict_lfu", full(R"("when_full": "evict_lfu")")}),
                {"ignore", full(R"("when_full": "ignore")")},
                {"expire_after", deep(R"("expire_after": 4)", true)},
                same_code({"min_count", deep(R"("min_count": 3)", true)}),
                {"few candidates", deep(R"("min_count": 3, "max_candidates": 60)", true)},
                {"admit_probability", deep(R"("admit_probability": 0.3)")},
                {"several", full(R"("when_full": "evict_lru", "expire_after": 20, "min_count": 2)")},
                {"direct keys", direct},
                {"keys of all slots", shared_keys}});
}

TEST_F(Resume, GivesTheSameModelWithRowsInHostMemory) {
  std::vector<Variant> variants = {{"Adam, Global", identity},
                                   same_code({"SGD", sgd}),
                                   {"direct", direct},
                                   {"evict", full(R"("when_full": "evict_lru")")},
                                   same_code({"fp16", solver(R"("mixed_precision": true)")})};
  // With two ranks the config states the placement, because an automatic plan depends on measured speeds and may differ
  // in the second run.
  const auto on_two = [&](const Variant& variant) {
    const auto placed = [change = variant.change](const std::string& config) {
      return solver(R"("placement": "distributed")")(change(config));
    };
    return Variant{variant.name, placed, "[0, 1]"};
  };
  for (const std::string& device : devices_here()) {
    device_ = device;
    std::vector<Variant> all = variants;
    if (device == "cpu")
      all.insert(all.end(), {on_two(variants[0]), same_code(on_two(variants[2])), same_code(on_two(variants[3]))});
    for (const Variant& variant : all)
      for (const bool rows_on_gpu : {false, true}) {
        if (kSanitized && variant.same_code) continue;
        SCOPED_TRACE(cat(variant.name, " on ", variant.gpu, " of ", device, rows_on_gpu ? ", rows on the GPU" : ""));
        const std::string given = variant.change(config_);
        // a GPU granule would hold thousands of narrow rows, so rows are wide
        const std::string config = device == "cpu" ? given : with_wide_rows(given);
        const std::string gpu_budget =  // on a CPU, keys and index are also in host memory
            device == "cpu" && !rows_on_gpu ? "0B" : cat(least_gpu(config, variant.gpu) + (rows_on_gpu << 21), "B");
        const std::string with_host =
            solver(cat(R"("table_memory": {"gpu": ")", gpu_budget, R"(", "host": "1GB"})"))(config);
        train_whole(config, variant.gpu);
        if (HasFatalFailure()) return;
        const std::string summary = read_file(folder_ / "whole-run/summary.json");
        EXPECT_EQ(summary.find("in_host_memory"), std::string::npos);
        const Outcome one = run(with_host, variant.gpu, "part", {}, R"({"every": 9, "folder": "part-ckpt"})");
        ASSERT_EQ(one.exit_code, 0) << one.err;
        expect_equal_files();
        expect_equal_losses(0);
        if (!rows_on_gpu) {
          EXPECT_NE(read_file(folder_ / "part-run/summary.json").find("rows_in_host_memory"), std::string::npos);
          EXPECT_NE(one.err.find(" rows in host memory ("), std::string::npos) << one.err;
          EXPECT_NE(read_file(folder_ / "part-run/summary.json").find("bytes_on_gpu"), std::string::npos);
          EXPECT_EQ(one.err.find("bytes on gpu"), std::string::npos) << one.err;
          EXPECT_NE(one.err.find("new rows are placed in host memory"), std::string::npos) << one.err;
        }
        const Outcome done = resume(with_host, variant.gpu, 18);
        ASSERT_EQ(done.exit_code, 0) << done.err;
        expect_equal_files();
        expect_equal_losses(18);
      }
  }
}

/// The arrays of each table sorted by key, because moved rows have other row numbers.
std::map<std::string, std::string> in_key_order(std::map<std::string, std::string> state) {
  const auto values = []<class T>(const std::string& bytes, T) {
    std::vector<T> out(bytes.size() / sizeof(T));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  };
  std::map<std::string, std::vector<size_t>> orders;
  for (const auto& [name, bytes] : state) {
    if (!name.ends_with("/keys")) continue;
    const std::string table = name.substr(0, name.size() - 4);
    const auto keys = values(bytes, int64_t{});
    auto slots =
        state.contains(table + "slots") ? values(state.at(table + "slots"), int32_t{}) : std::vector<int32_t>();
    slots.resize(keys.size());
    std::vector<size_t>& order = orders[table];
    for (size_t row = 0; row < keys.size(); ++row) order.push_back(row);
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return std::pair(slots[a], keys[a]) < std::pair(slots[b], keys[b]); });
  }
  for (auto& [name, bytes] : state) {
    const auto order = orders.find(name.substr(0, name.rfind('/') + 1));
    if (order == orders.end() || order->second.empty() || bytes.size() % order->second.size() != 0) continue;
    const size_t width = bytes.size() / order->second.size();
    std::string sorted;
    for (const size_t row : order->second) sorted += bytes.substr(row * width, width);
    bytes = sorted;
  }
  return state;
}

/// Tables with wide rows, of which a small GPU budget holds only some. Rows move between GPU and host after each step.
class ResumeWhileRowsMove : public ResumeFromIncrement {
 protected:
  /// Returns the config with a GPU budget: the minimum, plus some granules for rows. Both tables share the granules; on
  /// a CPU the growing index uses some, too.
  virtual std::string moving(const std::string& config, const std::string& gpu) {
    const int64_t granules = (device_ == "cpu" ? int64_t{10} << 16 : gpu_granules_ << 21);
    return solver(cat(R"("table_memory": {"gpu": ")", least_gpu(config, gpu) + granules,
                      R"(B", "host": "1GB", "move_every": 1})"))(config);
  }
  /// Trains with increasing GPU budgets until rows move. Returns the last config.
  std::string train_while_rows_move(const std::string& config, const std::string& gpu) {
    for (gpu_granules_ = least_granules_;; gpu_granules_ += 2) {
      const std::string with_moves = moving(config, gpu);
      train_whole(with_moves, gpu, 5);
      if (HasFatalFailure() || device_ == "cpu" || rows_moved("whole") > 0 || gpu_granules_ >= 11) return with_moves;
    }
  }
  int64_t least_granules_ = 3, gpu_granules_ = 3;
  /// The name of the table's counter of moved rows.
  virtual std::string count_of_moves() const { return "rows_moved_to_gpu"; }
  int64_t rows_moved(const std::string& name) const {
    const Json summary = Json::read_file((folder_ / (name + "-run/summary.json")).string());
    const Json* const tables = summary.find("tables");
    if (!tables) return 0;
    int64_t moved = 0;
    for (const auto& [table, counts] : *tables->object())
      if (const Json* count = counts.find(count_of_moves())) moved += *count->integer();
    return moved;
  }
  void expect_state(const std::map<std::string, std::string>& expected, const std::string& name) const {
    const auto now = in_key_order(files(name));
    ASSERT_GE(expected.size(), 3u);
    for (const auto& [file, bytes] : expected) {
      ASSERT_TRUE(now.contains(file)) << file;
      EXPECT_TRUE(now.at(file) == bytes) << file << " differs";
    }
    EXPECT_EQ(now.size(), expected.size());
  }
  void expect_the_same_model(const std::vector<Variant>& variants) {
    for (const Variant& variant : variants) {
      if (kSanitized && variant.same_code) continue;
      SCOPED_TRACE(cat(variant.name, " on ", variant.gpu, " of ", device_));
      const std::string config = with_wide_rows(variant.change(config_));
      train_whole(config, variant.gpu, 5);
      if (HasFatalFailure()) return;
      const auto expected = in_key_order(files("whole"));
      EXPECT_EQ(rows_moved("whole"), 0);
      const std::vector<double> losses = metrics("whole").losses;
      const std::string with_moves = train_while_rows_move(config, variant.gpu);
      if (HasFatalFailure()) return;
      EXPECT_EQ(metrics("whole").losses, losses);
      expect_state(expected, "whole");
      EXPECT_GT(rows_moved("whole"), 0);
      // Rows have moved between the base and the increment. Resumes with tables that fit into GPU memory, and with
      // tables that do not fit.
      for (const bool moves : {false, true}) {
        if (kSanitized && !moves) continue;  // sanitizers need one case per code path
        const Outcome done = resume(moves ? with_moves : config, variant.gpu, 20);
        ASSERT_EQ(done.exit_code, 0) << done.err;
        expect_state(expected, "part");
        expect_equal_losses(20);
      }
    }
  }
};

TEST_F(ResumeWhileRowsMove, GivesTheSameModel) {
  for (const std::string& device : devices_here()) {
    device_ = device;
    expect_the_same_model({same_code({"Adam, Local", identity}),
                           {"Adam, LazyGlobal", adam("LazyGlobal")},
                           {"Adam, Global", adam("Global")},
                           {"direct", direct},
                           {"evict", full(R"("when_full": "evict_lru")")},
                           {"bf16 rows", deep(R"("storage": "bf16", "state_storage": "bf16")")},
                           same_code({"fp16", solver(R"("mixed_precision": true)")})});
  }
}

TEST_F(ResumeWhileRowsMove, GivesTheSameModelOnSeveralRanks) {
  device_ = "cpu";
  const auto placed = [](const std::function<std::string(const std::string&)>& change) {
    return [change](const std::string& config) { return solver(R"("placement": "distributed")")(change(config)); };
  };
  expect_the_same_model({{"Adam, Local", placed(identity), "[0, 1, 2]"},
                         same_code({"SGD", placed(sgd), "[0, 1, 2]"}),
                         same_code({"direct", placed(direct), "[0, 1, 2]"}),
                         {"expire", placed(deep(R"("expire_after": 9)", true)), "[0, 1]"}});
}

TEST_F(ResumeWhileRowsMove, GivesTheSameModelOnTwoGpus) {
  if (find_gpus().count < 2) GTEST_SKIP() << "there are not two GPUs";
  device_ = "cuda";
  const auto placed = solver(R"("placement": "distributed")");
  expect_the_same_model({{"Adam, Local", placed, "[0, 1]"},
                         {"direct", [&](const std::string& config) { return placed(direct(config)); }, "[0, 1]"}});
}

/// Tables whose memory holds little more than the rows of a batch; other rows are on disk.
class ResumeWithRowsOnDisk : public ResumeWhileRowsMove {
 protected:
  std::string moving(const std::string& config, const std::string& gpu) override {
    const std::string disk = cat(R"(, "disk": ")", (folder_ / "disk").string(), "\"");
    const std::string on_gpu =
        device_ == "cpu" ? "" : cat(R"("gpu": ")", least_gpu(config, gpu, disk) + (gpu_granules_ << 21), R"(B", )");
    return solver(cat(R"("table_memory": {)", on_gpu, R"("host": ")", host_, "\"", disk, "}"))(config);
  }
  std::string count_of_moves() const override { return "rows_from_disk"; }
  const char* host_ = "4MB";
};

std::string with_adam(const std::string& config, const std::string& update) {
  return optimizer(cat(R"({"type": "Adam", "update_type": ")", update, R"(", "adam_hparam": {)", kAdam, "}}"))(config);
}

TEST_F(ResumeWithRowsOnDisk, GivesTheSameModel) {
  device_ = "cpu";
  const auto local = [](const auto& change) {
    return [change](const std::string& config) { return change(with_adam(config, "Local")); };
  };
  // Builds with a sanitizer skip some policies, which the unit tests of tables with a disk cover.
  expect_the_same_model({same_code({"Adam, Local", local(identity)}),
                         {"Adam, LazyGlobal", [](const auto& config) { return with_adam(config, "LazyGlobal"); }},
                         same_code({"min_count", local(deep(R"("min_count": 2)", true))}),
                         {"expire", local(deep(R"("expire_after": 9)", true))},
                         same_code({"evict", local(full(R"("when_full": "evict_lru")"))}),
                         {"direct", local(direct)},
                         same_code({"fp16", local(solver(R"("mixed_precision": true)"))})});
  host_ = "2.5MB";
  expect_the_same_model({{"bf16 rows", local(deep(R"("storage": "bf16", "state_storage": "bf16")"))}});
  host_ = "1.8MB";
  expect_the_same_model({{"SGD", sgd}});
  const Rows rows = rows_of_increment();
  EXPECT_EQ(rows.whole, 0) << "rows on the disk are in increments too";
  EXPECT_GT(rows.of_base, rows.changed);
}

TEST_F(ResumeWithRowsOnDisk, GivesTheSameModelOnAGpu) {
  if (devices_here().size() == 1) GTEST_SKIP() << "no GPU";
  device_ = "cuda";
  host_ = "32MB";
  least_granules_ = 7;  // with fewer granules, the tables would need more host memory
  const auto local = [](const std::string& config) { return with_adam(config, "Local"); };
  expect_the_same_model(
      {{"Adam, Local", local},
       {"Adam, LazyGlobal", [](const auto& config) { return with_adam(config, "LazyGlobal"); }},
       {"direct", [&](const auto& config) { return direct(local(config)); }},
       {"fp16", [&](const auto& config) { return solver(R"("mixed_precision": true)")(local(config)); }}});
}

TEST_F(ResumeWithRowsOnDisk, GivesTheSameModelOnSeveralRanks) {
  device_ = "cpu";
  const auto placed = [](const std::string& config) {
    return solver(R"("placement": "distributed")")(with_adam(config, "LazyGlobal"));
  };
  host_ = "8MB";
  expect_the_same_model({{"two", placed, "[0, 1]"}});
}

TEST_F(ResumeWithRowsOnDisk, GivesTheSameModelOnTwoGpus) {
  if (find_gpus().count < 2) GTEST_SKIP() << "there are not two GPUs";
  device_ = "cuda";
  host_ = "64MB";  // budget of both ranks together
  least_granules_ = 7;
  const auto placed = [](const std::string& config) {
    return solver(R"("placement": "distributed")")(with_adam(config, "LazyGlobal"));
  };
  expect_the_same_model({{"two", placed, "[0, 1]"}});
}

/// One table has its own memory budget, the other has no limit.
class ResumeWithABudgetOfOneTable : public ResumeWithRowsOnDisk {
 protected:
  std::string moving(const std::string& config, const std::string&) override {
    const std::string table = R"("bottom": "deep_data", "top": "deep_emb",)";
    return with_change(
        config, table,
        cat(table, R"( "table_memory": {"host": "3.5MB", "disk": ")", (folder_ / "disk").string(), R"("},)"));
  }
};

TEST_F(ResumeWithABudgetOfOneTable, GivesTheSameModel) {
  device_ = "cpu";
  expect_the_same_model(
      {{"Adam", [](const std::string& config) { return with_adam(config, "Local"); }},
       same_code({"direct", [](const std::string& config) { return direct(with_adam(config, "Local")); }})});
}

TEST_F(Resume, GivesTheSameModelOnSeveralRanks) {
  std::vector<Variant> variants;
  for (const std::string gpu : {"[0, 1]", "[0, 1, 2]", "[0, 1, 2, 3]"})
    for (const Variant& variant : std::vector<Variant>{
             {"planned", identity},
             {"spread by key", solver(R"("placement": "distributed")")},
             {"hybrid", [](const std::string& config) {
                return with_change(config, R"("bottom": "deep_data", "top": "deep_emb",)",
                                   R"("bottom": "deep_data", "top": "deep_emb", "placement": "hybrid", )");
              }}})
      variants.push_back({variant.name, variant.change, gpu, gpu != "[0, 1, 2]"});
  variants.push_back({"shuffled epochs", data(R"(, "shuffle": 500)", "\"num_epochs\": 2"), "[0, 1, 2]"});
  variants.push_back({"ignore", full(R"("when_full": "ignore")"), "[0, 1]"});
  variants.push_back({"min_count", deep(R"("min_count": 3)", true), "[0, 1, 2]"});
  variants.push_back({"direct", direct, "[0, 1, 2]"});
  variants.push_back({"fp16", solver(R"("mixed_precision": true)"), "[0, 1]"});
  variants.push_back({"fp8", solver(R"("mixed_precision": "fp8", "fp8_least_width": 16)"), "[0, 1]"});
  device_ = "cpu";
  for (const Variant& variant : variants)
    if (!kSanitized || !variant.same_code) expect_exact(variant, {9, 18});
}

TEST_F(Resume, OnOtherRanksGivesTheSameModelWithinRounding) {
  for (const auto& [name, config] : {std::pair("hash", sgd(config_)), std::pair("direct", sgd(direct(config_))),
                                     std::pair("counted", sgd(deep(R"("min_count": 3)")(config_)))})
    for (const std::string from : {"[0, 1, 2, 3]", "[0]", "[0, 1, 2]"}) {
      if (kSanitized && (from == "[0, 1, 2]" || name == std::string("hash")))
        continue;  // sanitizers need one case per code path
      train_whole(config, from);
      if (testing::Test::HasFatalFailure()) return;
      const Result whole = result("whole");
      for (const std::string to : {"[0]", "[0, 1]", "[0, 1, 2]", "[0, 1, 2, 3]"}) {
        if (kSanitized && (to == from || to == "[0, 1]")) continue;  // sanitizers need one case per code path
        SCOPED_TRACE(cat(name, " from ", from, " to ", to));
        const Outcome done = resume(config, to, 9);
        ASSERT_EQ(done.exit_code, 0) << done.err;
        Result part = result("part");
        part.losses.insert(part.losses.begin(), whole.losses.begin(), whole.losses.begin() + 9);
        expect_same(whole, part, 1e-5);
      }
    }
}

TEST_F(Resume, OnAnotherDeviceGivesTheSameModelWithinRounding) {
  HCTR_SKIP_WITHOUT_GPU();
  for (const auto& [name, config] :
       {std::pair("SGD", sgd(config_)), std::pair("Adam", config_), std::pair("direct", sgd(direct(config_))),
        std::pair("counted", sgd(deep(R"("min_count": 3)")(config_)))})
    for (const auto& [from, to] : {std::pair("cpu", "cuda"), std::pair("cuda", "cpu")}) {
      SCOPED_TRACE(cat(name, " from ", from, " to ", to));
      device_ = from;
      train_whole(config, "[0]");
      if (testing::Test::HasFatalFailure()) return;
      const Result whole = result("whole");
      device_ = to;
      const Outcome done = resume(config, "[0]", 9);
      ASSERT_EQ(done.exit_code, 0) << done.err;
      Result part = result("part");
      part.losses.insert(part.losses.begin(), whole.losses.begin(), whole.losses.begin() + 9);
      expect_same(whole, part, 2e-5, 2e-5);
    }
}

TEST_F(ResumeEveryTable, WithEveryPlacementAndOptimizer) {
  for (const Rule& rule : kRules) {
    const std::string config = with_change(config_, kRules[0].section, rule.section);
    const bool lazy = rule.name == "Adam, lazy", global = rule.name == "Adam, global";
    if (kSanitized && !lazy && !global) continue;  // sanitizers need one case per code path
    for (const char* gpu : {"[0, 1]", "[0, 1, 2]", "[0, 1, 2, 3]"})
      if ((!kSanitized && (lazy || global)) || gpu == kThreads[1].gpu)
        expect_exact({rule.name, [&](const std::string&) { return planned(config, count_of({gpu})); }, gpu}, {3, 12});
  }
}

TEST_F(ResumeEveryTable, FromIncrementsWithEveryPlacement) {
  increments_ = R"(, "whole_every": 20)";
  for (const Rule& rule : kRules) {
    if (rule.name != "AdaGrad" && rule.name != "Adam, lazy") continue;
    if (kSanitized && rule.name == "AdaGrad") continue;  // sanitizers need one case per code path
    const std::string config =
        with_change(with_change(config_, kRules[0].section, rule.section), "\"batchsize\": 61", "\"batchsize\": 7");
    expect_exact({rule.name, [&](const std::string&) { return planned(config, 3); }, "[0, 1, 2]"}, {3, 12});
    const Manifest manifest = read_manifest(folder_ / checkpoint(12));
    ASSERT_TRUE(manifest.base);
    EXPECT_EQ(manifest.base->name, "iteration_000003");
  }
}

TEST_F(ResumeEveryTable, OnOtherRanksWithEveryPlacementAndOptimizer) {
  for (const Rule& rule : kRules) {
    if (rule.name != "SGD" && rule.name != "Adam, lazy" && rule.name != "MomentumSGD") continue;
    if (kSanitized && rule.name != "Adam, lazy") continue;  // sanitizers need one case per code path
    const std::string config = with_change(config_, kRules[0].section, rule.section);
    const auto placed = [&](int ranks) { return ranks == 1 ? config : planned(config, ranks); };
    const char* const gpus[] = {"[0]", "[0, 1]", "[0, 1, 2]", "[0, 1, 2, 3]"};
    for (const int from : {4, 1, 3}) {
      if (kSanitized && from == 3) continue;  // runs that start on 4 ranks and on 1 rank cover the same code
      train_whole(placed(from), gpus[from - 1]);
      if (HasFatalFailure()) return;
      const Result whole = result("whole");
      for (int to = 1; to <= 4; ++to) {
        if (kSanitized && (to == from || to == 2)) continue;  // sanitizers need one case per code path
        SCOPED_TRACE(cat(rule.name, " from ", from, " to ", to));
        const Outcome done = resume(placed(to), gpus[to - 1], 9);
        ASSERT_EQ(done.exit_code, 0) << done.err;
        Result part = result("part");
        part.losses.insert(part.losses.begin(), whole.losses.begin(), whole.losses.begin() + 9);
        // Rounding differs, and a single swapped pair of scores changes the AUC by more than 1e-4.
        expect_same(whole, part, 2e-5, 2e-5, 5e-4);
      }
    }
  }
}

}  // namespace
}  // namespace hctr::test
