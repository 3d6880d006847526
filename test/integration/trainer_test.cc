// hctr::Trainer: training inside another program, which decides how many steps each call runs.
#include "hctr/trainer.h"

#include <malloc.h>

#include <array>
#include <numeric>
#include <thread>

#include "formats/reader/reader.h"
#include "infer/load_config.h"
#include "ranks_fixture.h"
#include "score/batch_reading.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

/// The samples of a file, as arrays in memory.
struct Arrays {
  int64_t samples = 0, dense_dim = 0;
  std::vector<float> label, dense;
  struct Keys {
    std::string name;
    int64_t slots = 0;
    std::vector<int64_t> keys;
    std::vector<int32_t> offsets = {0};
  };
  std::vector<Keys> inputs;

  /// Views of the samples [first, first + count).
  std::vector<InputView> views(int64_t first) const {
    std::vector<InputView> views = {{.name = "label", .data = label.data() + first},
                                    {.name = "dense", .data = dense.data() + first * dense_dim}};
    for (const Keys& input : inputs)
      views.push_back({.name = input.name,
                       .data = input.keys.data(),
                       .type = ElementType::i64,
                       .offsets = input.offsets.data() + first * input.slots,
                       .offsets_type = ElementType::i32});
    return views;
  }
};

class TrainerTest : public RanksTestInItsFolder {
 protected:
  TrainerOptions options_for(const std::string& config, const std::string& name, const std::string& gpu = "[0]") const {
    TrainerOptions options;
    options.config_text =
        with_change(with_change(config, "\"out/\"", "\"" + name + "/\""), "\"gpu\": [0]", "\"gpu\": " + gpu);
    options.run_dir = name + "-run";
    options.device = device_ == "cpu" ? DeviceChoice::cpu : DeviceChoice::cuda;
    return options;
  }
  static std::string without_source(const std::string& config) {
    return with_change(config, "\"source\": \"train.txt\",", "");
  }
  static std::string with_checkpoint(const std::string& config, const std::string& folder) {
    return with_change(config, "\"seed\": 7",
                       cat(R"("seed": 7, "checkpoint": {"every": 1000, "folder": ")", folder, "\"}"));
  }

  /// Reads the first samples of a source of the config.
  Arrays read(const std::string& config, int64_t most, bool evaluation = false) const {
    const Config of = load_config_text(config, "config", false, Log::silent());
    const BatchLayout layout(batch_shape(of.data, most));
    std::vector<std::byte> memory(layout.bytes);
    ReaderOptions options = reader_options(of, most);
    options.repeat = false;
    Reader reader(of.data, evaluation ? evaluation_source(of.data) : training_source(of.data), layout, {memory.data()},
                  options, Log::silent());
    reader.next();
    const BatchView batch(layout, memory.data());
    Arrays arrays{.samples = batch.state->valid_samples, .dense_dim = of.data.dense.dense_dim};
    arrays.label.assign(batch.label, batch.label + arrays.samples);
    arrays.dense.assign(batch.dense, batch.dense + arrays.samples * arrays.dense_dim);
    for (size_t t = 0; t < batch.tables.size(); ++t) {
      Arrays::Keys& keys = arrays.inputs.emplace_back();
      keys.name = of.data.sparse[t].top;
      keys.slots = of.data.sparse[t].slot_num;
      for (int64_t b = 0; b < arrays.samples; ++b)
        for (int64_t s = 0; s < keys.slots; ++s) {
          const int64_t bag = s * most + b;
          for (int32_t k = batch.tables[t].offset(bag); k < batch.tables[t].offset(bag + 1); ++k)
            keys.keys.push_back(batch.tables[t].key(k));
          keys.offsets.push_back(static_cast<int32_t>(keys.keys.size()));
        }
    }
    return arrays;
  }

  static void expect_equal(const Result& one, const Result& other) {
    EXPECT_EQ(other.losses, one.losses);
    EXPECT_EQ(other.metrics, one.metrics);
    expect_same_model(one, other);
  }
  static void expect_same_model(const Result& one, const Result& other) {
    EXPECT_FALSE(one.dense.empty());
    EXPECT_EQ(other.dense, one.dense);
    EXPECT_EQ(other.rows, one.rows);
  }

  /// Expects equal weights and rows in both models. The later model may have capacity for more rows.
  void expect_untouched(const std::string& before, int64_t iteration, const std::string& after, int64_t later) const {
    EXPECT_EQ(read_file(cat(after, "_dense_", later, ".model")),
              read_file(cat(before, "_dense_", iteration, ".model")));
    for (size_t e = 0; e < tables_.size(); ++e) {
      std::map<std::pair<uint64_t, int64_t>, std::vector<float>> was, is;
      read_rows(read_file(cat(before, e, "_sparse_", iteration, ".model")), tables_[e], was);
      read_rows(read_file(cat(after, e, "_sparse_", later, ".model")), tables_[e], is);
      EXPECT_FALSE(was.empty());
      for (const auto& [key, vector] : was) EXPECT_EQ(is[key], vector) << tables_[e].name;
    }
  }
};

TEST_F(TrainerTest, RunsInARowEqualOneRun) {
  const std::string epochs = with_change(config_, "\"max_iter\": 20", "\"num_epochs\": 2");
  for (const std::string& config : {config_, epochs})
    for (const char* gpu : {"[0]", "[0, 1]"}) {
      const Result one = train(config, {gpu}, "one");
      fs::remove_all("three");
      Trainer trainer(options_for(config, "three", gpu));
      EXPECT_EQ(trainer.fit({.iteration = 7}), TrainEnd::reached);
      EXPECT_EQ(trainer.state().iteration, 7);
      EXPECT_EQ(trainer.fit({.iteration = 14}), TrainEnd::reached);
      EXPECT_EQ(trainer.fit(), TrainEnd::reached);
      EXPECT_EQ(trainer.fit(), TrainEnd::reached) << "there is nothing left to do";
      const TrainSummary summary = trainer.finish();
      EXPECT_FALSE(summary.interrupted);
      EXPECT_EQ(summary.final_loss, one.losses.back());
      expect_equal(one, result("three"));
    }
}

TEST_F(TrainerTest, StepsEqualARunAndEndWithAPass) {
  const Result one = train(with_change(config_, "\"max_iter\": 20", "\"num_epochs\": 2"), {"[0]"}, "one");
  Trainer trainer(options_for(with_change(config_, "\"max_iter\": 20", "\"num_epochs\": 2"), "steps"));
  EXPECT_EQ(trainer.step(5), TrainEnd::reached);
  EXPECT_EQ(trainer.step(1000), TrainEnd::pass_ended);
  EXPECT_EQ(trainer.state().iteration, 24) << "3000 samples in batches of 128";
  EXPECT_EQ(trainer.state().passes, 1);
  EXPECT_EQ(trainer.state().samples, 3000);
  EXPECT_TRUE(trainer.state().metrics.empty());
  EXPECT_EQ(trainer.fit({.passes = 2}), TrainEnd::reached);
  EXPECT_EQ(trainer.state().iteration, 48);
  EXPECT_EQ(trainer.state().loss, one.losses.back());
  trainer.finish();
  expect_same_model(one, result("steps"));
}

TEST_F(TrainerTest, SamplesInMemoryEqualThoseOfFiles) {
  const Arrays arrays = read(config_, 20 * 128), evaluation = read(config_, 500, true);
  ASSERT_EQ(arrays.samples, 20 * 128);
  for (const char* gpu : {"[0]", "[0, 1, 2]"}) {
    const Result one = train(config_, {gpu}, "one");
    for (const int64_t at_a_time : {arrays.samples, int64_t{128}}) {
      fs::remove_all("given");
      Trainer trainer(options_for(without_source(config_), "given", gpu));
      for (int64_t first = 0; first < arrays.samples; first += at_a_time)
        EXPECT_EQ(trainer.step({.samples = at_a_time, .inputs = arrays.views(first)}), TrainEnd::reached);
      EXPECT_EQ(trainer.state().iteration, 20);
      EXPECT_EQ(trainer.state().loss, one.losses.back());
      const auto metrics = trainer.evaluate({.samples = 500, .inputs = evaluation.views(0)});
      EXPECT_EQ(metrics, trainer.evaluate());
      EXPECT_EQ(metrics.at("AUC"), one.metrics[3]);
      trainer.finish();
      expect_same_model(one, result("given"));
    }
  }
}

TEST_F(TrainerTest, SamplesInMemoryAndASourceTakeTurns) {
  const Arrays arrays = read(config_, 10 * 128);
  const Result one = train(config_, {"[0]"}, "one");
  // Trains steps 1 to 5 from the source, then on arrays that equal the source's steps 6 to 10.
  Trainer trainer(options_for(config_, "turns"));
  trainer.step(5);
  trainer.step({.samples = 5 * 128, .inputs = arrays.views(5 * 128)});
  EXPECT_EQ(trainer.state().loss, one.losses[9]);
  trainer.step(1);
  EXPECT_EQ(trainer.state().iteration, 11);
  EXPECT_NE(trainer.state().loss, one.losses[10]) << "the source stood still meanwhile";
}

TEST_F(TrainerTest, TwoInTwoThreadsEqualEachAlone) {
  const std::array configs = {config_, with_change(config_, "\"seed\": 7", "\"seed\": 8")};
  const std::array alone = {train(configs[0], {"[0]"}, "one"), train(configs[1], {"[0, 1]"}, "two")};
  const std::array<std::string, 2> names = {"first", "second"}, gpus = {"[0]", "[0, 1]"};
  std::array<std::thread, 2> threads;
  for (size_t i : {0, 1})
    threads[i] = std::thread([&, i] {
      Trainer trainer(options_for(configs[i], names[i], gpus[i]));
      for (int64_t to = 4; to <= 20; to += 4) trainer.fit({.iteration = to});
      trainer.finish();
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t i : {0, 1}) expect_equal(alone[i], result(names[i]));
}

TEST_F(TrainerTest, AStopInACallbackLeavesAWholeCheckpoint) {
  const std::string config = with_checkpoint(config_, "saved");
  for (const char* gpu : {"[0]", "[0, 1]"}) {
    const Result one = train(config_, {gpu}, "one");
    fs::remove_all("saved");
    fs::remove_all("stopped");
    {
      Trainer trainer(options_for(config, "stopped", gpu));
      const auto caller = std::this_thread::get_id();
      std::vector<int64_t> seen;
      trainer.on_display([&](const TrainerState& at) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        EXPECT_THROW(trainer.step(), Error) << "a callback must not call the trainer";
        seen.push_back(at.iteration);
        EXPECT_EQ(at.loss, one.losses[seen.size() - 1]);
        return at.iteration < 6;
      });
      EXPECT_EQ(trainer.fit(), TrainEnd::stopped);
      EXPECT_EQ(seen, (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
      EXPECT_EQ(trainer.state().iteration, 6);
    }
    TrainerOptions again = options_for(config, "stopped", gpu);
    again.resume = "latest";
    Trainer trainer(again);
    EXPECT_EQ(trainer.state().iteration, 6);
    EXPECT_EQ(trainer.fit(), TrainEnd::reached);
    trainer.finish();
    expect_equal(one, result("stopped"));
  }
}

TEST_F(TrainerTest, AfterAStopItEndsAsTheProgramOrGoesOn) {
  const Result one = train(config_, {"[0]"}, "one");
  Trainer trainer(options_for(config_, "stopped"));
  int evaluations = 0;
  trainer.on_evaluation([&](const TrainerState& at) -> bool {
    EXPECT_EQ(at.evaluated_at, 10);
    EXPECT_EQ(at.metrics.at("AUC"), one.metrics[0]);
    if (evaluations++ == 0) throw std::runtime_error("of a callback");
    return true;
  });
  EXPECT_THROW(trainer.fit(), std::runtime_error);
  EXPECT_EQ(trainer.state().iteration, 10);
  trainer.on_evaluation(nullptr);
  EXPECT_EQ(trainer.fit({.iteration = 15}), TrainEnd::reached);
  trainer.on_display([](const TrainerState&) { return false; });
  EXPECT_EQ(trainer.fit(), TrainEnd::stopped);
  const TrainSummary summary = trainer.finish();
  EXPECT_TRUE(summary.interrupted);
  EXPECT_EQ(summary.iterations, 16);
  EXPECT_EQ(summary.stop_signal, 0);
  EXPECT_TRUE(fs::exists("stopped/_dense_16.model"));
  EXPECT_EQ(result("stopped").losses, std::vector<double>(one.losses.begin(), one.losses.begin() + 16));
  EXPECT_NE(message_of(Kind::usage, [&] { trainer.step(); }).find("finish() has ended"), std::string::npos);
}

TEST_F(TrainerTest, GoesOnFromACheckpointWithoutARunFolder) {
  for (const char* gpu : {"[0]", "[0, 1]"}) {
    const Result one = train(config_, {gpu}, "one");
    fs::remove_all("checkpoints");
    fs::remove_all("memory");
    TrainerOptions options = options_for(config_, "memory", gpu);
    options.run_folder = false;
    fs::path saved;
    {
      Trainer trainer(options);
      trainer.fit({.iteration = 5});
      saved = trainer.checkpoint("checkpoints");
      trainer.fit({.iteration = 8});
      EXPECT_NE(trainer.checkpoint("checkpoints"), saved);
    }
    options.resume = saved.string();
    Trainer trainer(options);
    EXPECT_EQ(trainer.state().iteration, 5);
    trainer.fit();
    EXPECT_EQ(trainer.state().loss, one.losses.back());
    EXPECT_EQ(trainer.state().metrics.at("AUC"), one.metrics[3]);
    const std::vector<fs::path> files = trainer.save("copies/model");
    EXPECT_EQ(files.front(), "copies/model_dense_20.model");
    EXPECT_TRUE(fs::exists("copies/model_opt_dense_20.model"));
    EXPECT_EQ(read_file(files.front()), read_file(fs::path("one-run/final__dense_20.model")));
    EXPECT_FALSE(fs::exists("memory-run"));
    EXPECT_FALSE(fs::exists("runs"));
    EXPECT_TRUE(trainer.finish().run_dir.empty());
  }
}

TEST_F(TrainerTest, FrozenPartsStayAndOthersTrainAsWithTheConfigsWord) {
  const Result frozen =
      train(with_change(config_, "\"seed\": 7", R"("seed": 7, "frozen": ["fc1", "deep_emb"])"), {"[0]"}, "one");
  for (const char* gpu : {"[0]", "[0, 1]"}) {
    fs::remove_all("frozen");
    Trainer trainer(options_for(config_, "frozen", gpu));
    trainer.freeze({"fc1", "deep_emb"});
    trainer.fit({.iteration = 20});
    trainer.finish();
    if (gpu == std::string("[0]")) {
      expect_equal(frozen, result("frozen"));
    } else {
      expect_same(frozen, result("frozen"), 1e-4, 1e-5);
    }
  }
  // All layers and tables are frozen for some steps.
  Trainer trainer(options_for(config_, "thawed"));
  trainer.step(5);
  trainer.save("before/m");
  trainer.freeze({"fc1", "fc2", "deep_emb", "wide_emb"});
  trainer.step(5);
  trainer.save("frozen/m");
  expect_untouched("before/m", 5, "frozen/m", 10);
  trainer.unfreeze({"fc1"});
  trainer.step(1);
  trainer.save("after/m");
  EXPECT_NE(read_file("after/m_dense_11.model"), read_file("before/m_dense_5.model"));
  EXPECT_NE(message_of(Kind::usage, [&] { trainer.freeze({"fc9"}); }).find("no layer or table is named 'fc9'"),
            std::string::npos);
  trainer.step(1);
}

TEST_F(TrainerTest, TheRateIsTheCallersUntilItIsGivenBack) {
  Trainer trainer(options_for(config_, "rate"));
  const double of_schedule = trainer.state().learning_rate;
  trainer.step(5);
  trainer.save("before/m");
  trainer.set_learning_rate(0);
  EXPECT_EQ(trainer.state().learning_rate, 0);
  trainer.step(3);
  trainer.save("still/m");
  expect_untouched("before/m", 5, "still/m", 8);
  trainer.set_learning_rate(std::nullopt);
  EXPECT_EQ(trainer.state().learning_rate, of_schedule);
  trainer.step(1);
  trainer.save("after/m");
  EXPECT_NE(read_file("after/m_dense_9.model"), read_file("before/m_dense_5.model"));
  EXPECT_THROW(trainer.set_learning_rate(-1), Error);
}

TEST_F(TrainerTest, LoadedPartsAreThoseOfTheFilesAndOthersStay) {
  for (const char* gpu : {"[0]", "[0, 1]"}) {
    const Result one = train(config_, {gpu}, "one");
    TrainerOptions options = options_for(config_, "loaded", gpu);
    options.run_folder = false;
    options.changes = {"solver.snapshot_prefix=null"};
    Trainer trainer(options);
    trainer.step(10);
    const auto at_10 = trainer.evaluate();
    trainer.save("saved/m");
    const std::map<std::string, std::string> tables = {{"wide_emb", "saved/m0_sparse_10.model"},
                                                       {"deep_emb", "saved/m1_sparse_10.model"}},
                                             states = {{"wide_emb", "saved/m0_opt_sparse_10.model"},
                                                       {"deep_emb", "saved/m1_opt_sparse_10.model"}};
    trainer.step(10);
    EXPECT_EQ(trainer.state().loss, one.losses.back());
    const auto at_20 = trainer.evaluate();
    // Loads one table of iteration 10, and then the same table of iteration 20.
    trainer.save("later/m");
    trainer.load({.tables = {{"deep_emb", "saved/m1_sparse_10.model"}}});
    EXPECT_NE(trainer.evaluate(), at_20);
    trainer.load({.tables = {{"deep_emb", "later/m1_sparse_20.model"}}});
    EXPECT_EQ(trainer.evaluate(), at_20);
    EXPECT_EQ(trainer.state().iteration, 20);
    // Loads the whole model of iteration 10, after a load that fails. Evaluation and the following steps must then give
    // the results of the original run.
    EXPECT_THROW(trainer.load({.dense = "saved/none.model"}), Error);
    trainer.load({.dense = "saved/m_dense_10.model",
                  .dense_states = "saved/m_opt_dense_10.model",
                  .tables = tables,
                  .table_states = states});
    EXPECT_EQ(trainer.evaluate(), at_10);
    trainer.save("again/m");
    EXPECT_EQ(*Json::parse(read_file("again/m_model_20.json"), "manifest").find("updates")->integer(), 10)
        << "t of Adam is that of the files";
    Trainer fresh(options);
    fresh.load({.dense = "again/m_dense_20.model", .tables = {{"wide_emb", "again/m0_sparse_20.model"}}});
    fresh.load({.tables = {{"deep_emb", "again/m1_sparse_20.model"}}});
    EXPECT_EQ(fresh.evaluate(), at_10);
    fresh.step(1);
    EXPECT_EQ(fresh.state().iteration, 1);
    EXPECT_THROW(trainer.load({.tables = {{"other", "x.model"}}}), Error);
  }
}

TEST_F(TrainerTest, AnotherSourceIsReadFromItsBegin) {
  const std::string second =
      with_change(with_change(config_, "\"train.txt\"", "\"other.txt\""), "\"eval.txt\"", "\"other_eval.txt\"");
  write_file("second.json", second);
  make_data(folder_.path(), "second.json", 1500, 300, {"--vocabulary", "300", "--seed", "5"});
  const Arrays other = read(second, 640);
  const Arrays arrays = read(config_, 640);
  for (const char* gpu : {"[0]", "[0, 1]"}) {
    Trainer given(options_for(without_source(config_), "given", gpu));
    given.step({.samples = 640, .inputs = arrays.views(0)});
    given.step({.samples = 640, .inputs = other.views(0)});
    Trainer trainer(options_for(config_, "sources", gpu));
    trainer.step(5);
    EXPECT_THROW(trainer.set_source("missing.txt"), Error);
    trainer.step(0);
    trainer.set_source("other.txt");
    trainer.step(5);
    EXPECT_EQ(trainer.state().loss, given.state().loss);
    EXPECT_EQ(trainer.evaluate(), given.evaluate());
    const auto on_first = trainer.evaluate();
    EXPECT_THROW(trainer.set_evaluation_source("missing.txt"), Error);
    EXPECT_EQ(trainer.evaluate(), on_first);
    trainer.set_evaluation_source("other_eval.txt");
    EXPECT_NE(trainer.evaluate(), on_first);
    fs::remove_all("given-run");
    fs::remove_all("sources-run");
  }
}

TEST_F(TrainerTest, WhatDoesNotFitIsNamedAndChangesNothing) {
  Arrays arrays = read(config_, 128);
  Trainer trainer(options_for(without_source(config_), "given"));
  ASSERT_EQ(trainer.inputs().size(), 4u);
  EXPECT_EQ(trainer.inputs()[0].shape, (std::vector<int64_t>{-1, 1}));
  const auto message = [&](const std::vector<InputView>& views) {
    return message_of(Kind::usage, [&] { trainer.step({.samples = 128, .inputs = views}); });
  };
  std::vector<InputView> views = arrays.views(0);
  views.pop_back();
  EXPECT_EQ(message(views), "no input 'deep_data'; samples have 'label', 'dense', 'wide_data', 'deep_data'");
  views.push_back(views[0]);
  EXPECT_EQ(message(views), "input 'label' is given twice");
  views = arrays.views(0);
  views[2].type = ElementType::f32;
  EXPECT_EQ(message(views), "input 'wide_data': keys must be integers of 32 or 64 bits");
  views = arrays.views(0);
  views[3].name = "deeper";
  EXPECT_EQ(message(views), "no input is named 'deeper'; samples have 'label', 'dense', 'wide_data', 'deep_data'");
  std::vector<int32_t> many = arrays.inputs[0].offsets;
  many[4] += 5;
  views = arrays.views(0);
  views[2].offsets = many.data();
  EXPECT_NE(message_of(Kind::data, [&] { trainer.step({.samples = 128, .inputs = views}); })
                .find("sample 3 of those given: slot 0 (of sparse input \"wide_data\") has"),
            std::string::npos);
  EXPECT_THROW(trainer.step(1), Error) << "there is no source";
  EXPECT_THROW(trainer.fit(), Error);
  EXPECT_EQ(trainer.step({.samples = 128, .inputs = arrays.views(0)}), TrainEnd::reached);
  EXPECT_EQ(trainer.state().iteration, 1);
}

TEST_F(TrainerTest, AnErrorEndsTrainingAndIsThrownAgain) {
  Arrays arrays = read(config_, 128);
  arrays.label[3] = 7;
  for (const char* gpu : {"[0]", "[0, 1]"}) {
    Trainer trainer(options_for(without_source(config_), "given", gpu));
    const std::string first =
        message_of(Kind::data, [&] { trainer.step({.samples = 128, .inputs = arrays.views(0)}); });
    EXPECT_NE(first.find("the samples given"), std::string::npos) << first;
    EXPECT_EQ(message_of(Kind::data, [&] { trainer.state(); }), first);
    EXPECT_EQ(message_of(Kind::data, [&] { trainer.finish(); }), first);
  }
}

TEST_F(TrainerTest, AProgramWithThePublicHeadersAloneTrains) {
  write_file("config.json", config_);
  const Outcome outcome = run_program("library_train", {"config.json", "20", "copy/m"}, folder_.path());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("iteration 20 loss "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("AUC 0."), std::string::npos) << outcome.out;
  EXPECT_TRUE(fs::exists("copy/m_dense_20.model"));
}

int entries_in(const char* folder) {
  int entries = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++entries;
  return entries;
}

TEST_F(TrainerTest, LeavesNothingBehind) {
  for (const char* gpu : {"[0]", "[0, 1]"}) {
    struct Use {
      int threads, descriptors;
    };
    TrainerOptions options = options_for(with_checkpoint(config_, "saved"), "memory", gpu);
    options.run_folder = false;
    options.changes = {"solver.final_snapshot=false"};
    const auto use_after = [&](int times) {
      for (int i = 0; i < times; ++i) {
        Trainer trainer(options);
        trainer.fit({.iteration = 3});
        if (i % 2 == 0) trainer.finish();
      }
      return Use{entries_in("/proc/self/task"), entries_in("/proc/self/fd")};
    };
    const Use first = use_after(1), last = use_after(kSanitized ? 4 : 20);
    EXPECT_EQ(last.threads, first.threads);
    EXPECT_EQ(last.descriptors, first.descriptors);
  }
}

}  // namespace
}  // namespace hctr::test
