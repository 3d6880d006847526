// hctr::Model: several threads of a process score with one saved model.
#include "hctr/model.h"

#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "config/sections/config.h"
#include "core/base/log.h"
#include "hctr/use_model.h"
#include "infer/load_config.h"
#include "infer/sample_arrays.h"
#include "infer/served_model.h"
#include "scores_fixture.h"

namespace hctr::test {
namespace {

class ModelTest : public ScoresTest {};

TEST_F(ModelTest, ScoresAreThoseOfPredictInBatchesOfAnySize) {
  train(with_batch_norm(config_), {"[0]"}, "one");
  const std::vector<float> expected = predicted("one-run");
  const Model model(at("one-run"));
  const SampleArrays samples = samples_of("one.json");
  ASSERT_EQ(samples.samples, 500);
  ASSERT_EQ(expected.size(), 500u);
  EXPECT_EQ(score_in(model, samples, {4096}), expected);
  EXPECT_EQ(score_in(model, samples, {1}), expected);
  EXPECT_EQ(score_in(model, samples, {7}), expected);
  EXPECT_EQ(score_in(model, samples, {1, 64, 3, 300, 17}), expected);
  EXPECT_EQ(score_in(Model(at("one-run", 3)), samples, {4096}), expected) << "with three threads";
}

/// On a GPU, GEMMs of different sizes sum in different orders. Only batches of equal size give equal bits.
TEST_F(ModelTest, OnAGpuScoresAreThoseOfPredictButForRounding) {
  if (find_gpus().count == 0) GTEST_SKIP() << "needs a GPU";
  device_ = "cuda";
  train(with_batch_norm(config_), {"[0]"}, "one");
  const std::vector<float> expected = predicted("one-run");
  const Model model(at("one-run"));
  const SampleArrays samples = samples_of("one.json");
  for (const int64_t size : {1, 7, 4096}) {
    const std::vector<float> scores = score_in(model, samples, {size});
    EXPECT_EQ(score_in(model, samples, {size}), scores);
    EXPECT_LT(distance_of(expected, scores), 1e-5) << "in batches of " << size;
  }
}

/// The methods by which a session copies and waits change no bit of the scores. The scores of each piece of a split
/// batch equal, bit for bit, those of a batch of the piece's size.
TEST_F(ModelTest, OnAGpuCopiesAndPiecesChangeNoScores) {
  if (find_gpus().count == 0) GTEST_SKIP() << "needs a GPU";
  device_ = "cuda";
  train(config_, {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  ServedModel model(at("one-run"));
  ServedModel by_engines(at("one-run"), false, {.kernel_copy_bytes = 0});
  ServedModel without_polls(at("one-run"), false, {.polls = false});
  ServedModel with_losses(at("one-run"), false, {.forward = {.losses = true}});
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1}, {7}, {64, 500}}) {
    const std::vector<float> expected = score_in(model, samples, sizes);
    EXPECT_EQ(score_in(by_engines, samples, sizes), expected);
    EXPECT_EQ(score_in(without_polls, samples, sizes), expected);
    EXPECT_EQ(score_in(with_losses, samples, sizes), expected);
  }
  ServedModel in_pieces(at("one-run"), false, {.least_piece = 128});
  EXPECT_EQ(score_in(in_pieces, samples, {4096}), score_in(model, samples, {128}));
}

TEST_F(ModelTest, PackedWeightsChangeNoScores) {
  train(with_change(config_, "\"num_output\": 16", "\"num_output\": 80"), {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  ServedModel packed(at("one-run")), plain(at("one-run"), false, {.packs_weights = false});
  EXPECT_EQ(score_in(packed, samples, {1, 64, 3, 300, 17}), score_in(plain, samples, {4096}));
}

TEST_F(ModelTest, PiecesOfABatchHaveItsScores) {
  train(config_, {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  ServedModel whole(at("one-run")), in_pieces(at("one-run"), false, {.least_piece = 32, .pieces_on_cpu = true});
  const std::vector<float> expected = score_in(whole, samples, {4096});
  EXPECT_EQ(score_in(in_pieces, samples, {4096}), expected);
  EXPECT_EQ(score_in(in_pieces, samples, {65, 64, 63, 200}), expected);
  // An error in a later piece of a batch leaves the model usable.
  SampleArrays wrong = samples;
  for (SampleArrays::Keys& input : wrong.inputs) std::swap(input.offsets[400], input.offsets[390]);
  for (SampleArrays::Keys& input : wrong.inputs) input.one_each = false;
  EXPECT_THROW(score_in(in_pieces, wrong, {4096}), Error);
  EXPECT_EQ(score_in(in_pieces, samples, {4096}), expected);
}

TEST_F(ModelTest, IsLoadedFromARunAPrefixAFileAndACheckpoint) {
  train(with_change(config_, "\"seed\": 7", "\"seed\": 7, \"checkpoint\": {\"every\": 20, \"folder\": \"saved\"}"),
        {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  const Model of_run(at("one-run"));
  EXPECT_EQ(of_run.iteration(), 20);
  ASSERT_EQ(of_run.inputs().size(), 3u);
  EXPECT_EQ(of_run.inputs()[2].most_keys, (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(of_run.outputs()[0].shape, (std::vector<int64_t>{-1, 1}));
  const std::vector<float> expected = score_in(of_run, samples, {4096});
  EXPECT_EQ(score_in(Model(at("one-run/final_")), samples, {4096}), expected);
  EXPECT_EQ(score_in(Model(at("one-run/final__dense_20.model")), samples, {4096}), expected);
  LoadOptions checkpoint = at("saved");
  checkpoint.config = "one.json";
  EXPECT_EQ(score_in(Model(checkpoint), samples, {4096}), expected);
}

TEST_F(ModelTest, KeysOfAnyTypeAndRowsApartGiveTheSameScores) {
  const std::string one_key = with_change(with_change(config_, "\"max_feature_num_per_sample\": 2, \"slot_num\": 1",
                                                      "\"nnz_per_slot\": 1, \"slot_num\": 1"),
                                          "\"max_feature_num_per_sample\": 6, \"max_nnz\": 2, \"slot_num\": 3",
                                          "\"nnz_per_slot\": 1, \"slot_num\": 3");
  write_file("data.json", one_key);
  make_data(folder_.path(), "data.json", 3000, 500, {"--vocabulary", "300", "--force"});
  train(one_key, {"[0]"}, "one");
  const Model model(at("one-run"));
  const SampleArrays samples = samples_of("one.json");
  const std::vector<float> expected = score_in(model, samples, {4096});
  const auto scores_of = [&]<class Key>(ElementType type, Key) {
    std::vector<std::vector<Key>> apart;  // keys with one padding key after each sample
    std::vector<InputView> inputs = {{.name = "dense", .data = samples.dense.data()}};
    for (size_t t = 0; t < 2; ++t) {
      const auto slots = static_cast<size_t>(samples.inputs[t].slots);
      std::vector<Key>& keys = apart.emplace_back();
      for (size_t i = 0; i < samples.inputs[t].keys.size(); ++i) {
        keys.push_back(static_cast<Key>(samples.inputs[t].keys[i]));
        if (i % slots == slots - 1) keys.push_back(0);
      }
    }
    for (size_t t = 0; t < 2; ++t)
      inputs.push_back({.name = samples.inputs[t].name,
                        .data = apart[t].data(),
                        .type = type,
                        .stride = samples.inputs[t].slots + 1});
    std::vector<float> scores(2 * 500, -1.0f);
    const OutputView output{.name = "loss", .data = scores.data(), .stride = 2};
    model.score(500, inputs, {&output, 1});
    std::vector<float> every_second;
    for (size_t i = 0; i < 500; ++i) {
      every_second.push_back(scores[2 * i]);
      EXPECT_EQ(scores[2 * i + 1], -1.0f);
    }
    return every_second;
  };
  EXPECT_EQ(scores_of(ElementType::i32, int32_t{}), expected);
  EXPECT_EQ(scores_of(ElementType::u32, uint32_t{}), expected);
  EXPECT_EQ(scores_of(ElementType::i64, int64_t{}), expected);
  EXPECT_EQ(scores_of(ElementType::u64, uint64_t{}), expected);
}

/// A trainer runs concurrently with two models of eight threads each. The results equal those without concurrency.
TEST_F(ModelTest, ThreadsAndATrainerDoNotDisturbEachOther) {
  train(config_, {"[0]"}, "one");
  train(with_change(config_, "\"seed\": 7", "\"seed\": 8"), {"[0]"}, "two");
  const SampleArrays samples = samples_of("one.json");
  const Model one(at("one-run")), two(at("two-run"));
  const std::vector<float> of_one = score_in(one, samples, {4096}), of_two = score_in(two, samples, {4096});
  EXPECT_NE(of_one, of_two);
  std::atomic<bool> stop = false;
  std::atomic<int64_t> wrong = 0, scored = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      const std::vector<int64_t> sizes = {1 + t, 90 + 40 * t};
      do {
        wrong += score_in(t % 2 == 0 ? one : two, samples, sizes) != (t % 2 == 0 ? of_one : of_two);
        ++scored;
      } while (!stop);
    });
  write_file("three.json", with_change(config_, "\"out/\"", "\"three/\""));
  TrainOptions options;
  options.config = "three.json";
  options.run_dir = "three-run";
  options.device = device_ == "cpu" ? DeviceChoice::cpu : DeviceChoice::cuda;
  hctr::train(options);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(scored, 8);
  const Result alone = result("one"), beside = result("three");
  EXPECT_EQ(beside.losses, alone.losses);
  EXPECT_EQ(beside.dense, alone.dense);
  EXPECT_EQ(beside.rows, alone.rows);
}

TEST_F(ModelTest, IsReplacedWhileThreadsScore) {
  train(config_, {"[0]"}, "one");
  train(with_change(config_, "\"seed\": 7", "\"seed\": 8"), {"[0]"}, "two");
  const SampleArrays samples = samples_of("one.json");
  Model model(at("one-run"));
  const std::vector<float> of_one = score_in(model, samples, {4096}),
                           of_two = score_in(Model(at("two-run")), samples, {4096});
  std::atomic<bool> stop = false;
  std::atomic<int64_t> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      do {
        const std::vector<float> scores = score_in(model, samples, {4096});
        wrong += scores != of_one && scores != of_two;
      } while (!stop);
    });
  for (int i = 0; i < 6; ++i) model.replace(at(i % 2 == 0 ? "two-run" : "one-run"));
  model.replace(at("two-run"));
  EXPECT_EQ(score_in(model, samples, {4096}), of_two);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

int entries_of(const char* folder) {
  int entries = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++entries;
  return entries;
}

TEST_F(ModelTest, LeavesNothingBehind) {
  train(config_, {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  struct Use {
    int threads, descriptors;
    size_t bytes;
  };
  const auto use_after = [&](int times) {
    for (int i = 0; i < times; ++i) score_in(Model(at("one-run", 2)), samples, {100});
    ::malloc_trim(0);
    const struct mallinfo2 heap = ::mallinfo2();
    return Use{entries_of("/proc/self/task"), entries_of("/proc/self/fd"), heap.uordblks + heap.hblkhd};
  };
  const Use first = use_after(1), last = use_after(kSanitized ? 10 : 100);
  EXPECT_EQ(last.threads, first.threads);
  EXPECT_EQ(last.descriptors, first.descriptors);
  EXPECT_LE(last.bytes, first.bytes + (size_t{1} << 18)) << "of the heap";
}

/// Resident memory of this process, without free heap memory.
double resident_bytes() {
  ::malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  statm >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

TEST_F(ModelTest, TakesLittleMoreMemoryThanItsFiles) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  std::string config = config_;
  for (const auto& [from, to] :
       {std::pair("\"embedding_vec_size\": 5", "\"embedding_vec_size\": 256"),
        std::pair("\"leading_dim\": 15", "\"leading_dim\": 768"),
        std::pair("\"batchsize\": 128", "\"batchsize\": 8000"), std::pair("\"max_iter\": 20", "\"max_iter\": 3"),
        std::pair("per_gpu\": 1000", "per_gpu\": 1000000"), std::pair("per_gpu\": 1000,", "per_gpu\": 1000000,")})
    config = with_change(config, from, to);
  write_file("data.json", config);
  make_data(folder_.path(), "data.json", 24000, 500, {"--vocabulary", "20000", "--alpha", "0", "--force"});
  const Outcome trained = start(config, {"[0]"}, "one");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  double files = 0;
  for (const auto& entry : fs::directory_iterator("one-run"))
    if (entry.path().extension() == ".model") files += static_cast<double>(entry.file_size());
  EXPECT_GT(files, 40e6);
  { const Model first(at("one-run")); }  // allocates memory that a process needs only once
  const double before = resident_bytes();
  const Model model(at("one-run"));
  EXPECT_LE(resident_bytes() - before, 1.1 * files);
}

TEST_F(ModelTest, WhatDoesNotFitIsNamed) {
  train(config_, {"[0]"}, "one");
  const Model model(at("one-run"));
  const std::vector<float> dense(8);
  const std::vector<int64_t> keys(24), offsets_of_wide = {0, 1, 2}, offsets_of_deep = {0, 1, 2, 3, 4, 5, 6};
  const InputView dense_view{.name = "dense", .data = dense.data()};
  const InputView wide{
      .name = "wide_data", .data = keys.data(), .type = ElementType::i64, .offsets = offsets_of_wide.data()};
  const InputView deep{
      .name = "deep_data", .data = keys.data(), .type = ElementType::i64, .offsets = offsets_of_deep.data()};
  std::vector<float> scores(2);
  const OutputView output{.name = "loss", .data = scores.data()};
  const auto message = [&](const std::vector<InputView>& inputs, const OutputView& to) -> std::string {
    try {
      model.score(2, inputs, {&to, 1});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Kind::usage);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({dense_view, wide, deep}, output), "");
  EXPECT_EQ(message({dense_view, wide}, output),
            "no input 'deep_data'; the model has 'dense', 'wide_data', 'deep_data'");
  EXPECT_EQ(message({dense_view, wide, deep}, {.name = "click", .data = scores.data()}),
            "no output is named 'click'; the model has 'loss'");
  EXPECT_EQ(message({dense_view, dense_view, wide, deep}, output), "input 'dense' is given twice");
  InputView as_floats = wide;
  as_floats.type = ElementType::f32;
  EXPECT_EQ(message({dense_view, as_floats, deep}, output),
            "input 'wide_data': keys must be integers of 32 or 64 bits");
  const std::vector<int64_t> falling = {0, 2, 1}, many = {0, 3, 4};
  InputView wrong = wide;
  wrong.offsets = falling.data();
  EXPECT_EQ(message({dense_view, wrong, deep}, output),
            "input 'wide_data': the offsets of slot 0 of sample 1 decrease");
  wrong.offsets = many.data();
  EXPECT_EQ(message({dense_view, wrong, deep}, output),
            "input 'wide_data': slot 0 of sample 0 has 3 keys, but the model accepts up to 2");
}

}  // namespace
}  // namespace hctr::test
