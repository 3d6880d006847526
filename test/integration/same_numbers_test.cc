// All ways to score a model give equal bits. Each way is one line of a table.
#include <cstring>
#include <functional>
#include <map>

#include "hctr/huge_ctr.h"
#include "hctr/store.h"
#include "infer/served_model.h"
#include "infer/store_models.h"
#include "scores_fixture.h"

namespace hctr::test {
namespace {

class SameNumbers : public ScoresTest {
 protected:
  /// Scores through the C interface, in batches of `size`.
  std::vector<float> by_c(const char* run, const SampleArrays& samples, int64_t size,
                          const hctr_store_view* tables = nullptr) const {
    hctr_model_options options{};
    options.size = sizeof options;
    options.tables = tables;
    options.model = run;
    options.device = HCTR_CPU;
    options.threads = 1;
    hctr_model* model = nullptr;
    EXPECT_EQ(hctr_model_load(&options, &model), HCTR_OK) << hctr_error_message();
    std::vector<float> scores(static_cast<size_t>(samples.samples));
    for (int64_t first = 0; first < samples.samples; first += size) {
      const int64_t count = std::min(size, samples.samples - first);
      const std::vector<int64_t> dense_shape = {count, samples.dense_dim}, score_shape = {count, 1};
      std::vector<std::vector<int64_t>> shapes;
      std::vector<hctr_model_input> inputs;
      const auto array = [&](const void* data, hctr_dtype type, const std::vector<int64_t>& shape) {
        return hctr_array{const_cast<void*>(data), type, static_cast<int32_t>(shape.size()), shape.data(), nullptr, -1};
      };
      shapes.reserve(2 * samples.inputs.size());
      for (const InputView& view : samples.views(first)) {
        hctr_model_input& input = inputs.emplace_back();
        input.size = sizeof input;
        input.name = view.name.data();
        if (view.name == samples.dense_name) {
          input.data = array(view.data, HCTR_F32, dense_shape);
          continue;
        }
        for (const SampleArrays::Keys& keys : samples.inputs) {
          if (keys.name != view.name) continue;
          if (view.offsets) {
            input.data = array(view.data, HCTR_I64, shapes.emplace_back(1, static_cast<int64_t>(keys.keys.size())));
            input.offsets = array(view.offsets, HCTR_I64, shapes.emplace_back(1, count * keys.slots + 1));
          } else {
            input.data = array(view.data, HCTR_I64, shapes.emplace_back(std::vector{count, keys.slots}));
          }
        }
      }
      hctr_model_output output{};
      output.size = sizeof output;
      output.name = "loss";
      output.scores = array(scores.data() + first, HCTR_F32, score_shape);
      EXPECT_EQ(hctr_model_score(model, count, inputs.data(), inputs.size(), &output, 1), HCTR_OK)
          << hctr_error_message();
    }
    hctr_model_destroy(model);
    return scores;
  }

  /// A store with the model of a run. `levels` selects the store's tiers.
  static Store store_of(const char* run, const std::string& levels) {
    const StoreLevelOptions file{.kind = StoreLevelOptions::Kind::file, .folder = levels};
    StoreOptions options;
    if (levels == "file") options.levels = {file};
    if (levels == "both") options.levels = {StoreLevelOptions{}, file};
    if (levels == "cache") options.levels = {StoreLevelOptions{.most_rows = 50}, file};
    Store store(options);
    StoreModelSection section;
    section.name = "m";
    section.model = run;
    store.load(store_model(section, {}, Log::silent()));
    return store;
  }
  /// Scores with tables of a store.
  std::vector<float> from_store(const char* run, const SampleArrays& samples, const std::string& levels) const {
    const Store store = store_of(run, levels);
    LoadOptions options = at(run);
    options.tables = std::make_shared<StoreView>(store.view("m"));
    return score_in(Model(options), samples, {256});
  }
  /// Scores with rows that are read through the reference implementation of the GPU cache. The cache has all rows of a
  /// table, or at most 20.
  std::vector<float> through_cache(const char* run, const SampleArrays& samples, bool whole) const {
    StoreOptions levels;
    levels.cache = {.most_rows = whole ? 0 : 20, .share = whole ? 1.0 : 0.0, .admit_after = 1};
    Store store(levels);
    StoreModelSection section;
    section.name = "m";
    section.model = run;
    store.load(store_model(section, {}, Log::silent()));
    LoadOptions options = at(run);
    options.tables = std::make_shared<StoreView>(store.view("m"));
    return score_in(ServedModel(options, true), samples, {100});
  }
  /// Scores through the C interface, with tables of a store in memory.
  std::vector<float> by_c_from_store(const char* run, const SampleArrays& samples) const {
    hctr_store_options options{};
    options.size = sizeof options;
    options.config_text = "{}";
    hctr_store* store = nullptr;
    EXPECT_EQ(hctr_store_open(&options, &store), HCTR_OK) << hctr_error_message();
    hctr_store_model model{};
    model.size = sizeof model;
    model.name = "m";
    model.model = run;
    EXPECT_EQ(hctr_store_load(store, &model), HCTR_OK) << hctr_error_message();
    hctr_store_view* view = nullptr;
    EXPECT_EQ(hctr_store_view_create(store, "m", &view), HCTR_OK) << hctr_error_message();
    const std::vector<float> scores = by_c(run, samples, 100, view);
    hctr_store_view_destroy(view);
    hctr_store_destroy(store);
    return scores;
  }

  /// Scores the evaluation data of `source` through the C interface.
  std::vector<float> by_c_of_source(const char* run, const char* source) const {
    hctr_model_options options{};
    options.size = sizeof options;
    options.model = run;
    options.device = HCTR_CPU;
    options.threads = 1;
    hctr_model* model = nullptr;
    EXPECT_EQ(hctr_model_load(&options, &model), HCTR_OK) << hctr_error_message();
    std::vector<float> scores;
    const auto add = [](void* user, int64_t rows, const hctr_model_output* outputs, size_t count) {
      const auto* from = static_cast<const float*>(outputs[0].scores.data);
      auto& to = *static_cast<std::vector<float>*>(user);
      to.insert(to.end(), from, from + rows * outputs[0].scores.shape[1]);
      return count == 1 ? 0 : 1;
    };
    EXPECT_EQ(hctr_model_predict(model, source, add, &scores), HCTR_OK) << hctr_error_message();
    EXPECT_EQ(hctr_model_predict(model, "nothing", add, &scores), HCTR_IO);
    hctr_model_destroy(model);
    return scores;
  }
};

TEST_F(SameNumbers, OfScores) {
  train(with_batch_norm(config_), {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  const std::string eval_source = load_config("one.json", false, Log::silent()).data.eval_source;
  const std::map<std::string, std::function<std::vector<float>()>> ways = {
      {"huge_ctr --predict", [&] { return predicted("one-run"); }},
      {"hctr::Model", [&] { return score_in(Model(at("one-run")), samples, {4096}); }},
      {"hctr::Model, one by one", [&] { return score_in(Model(at("one-run")), samples, {1}); }},
      {"hctr_model_score()", [&] { return by_c("one-run", samples, 4096); }},
      {"hctr_model_predict()", [&] { return by_c_of_source("one-run", eval_source.c_str()); }},
      {"hctr_model_score(), seven at a time", [&] { return by_c("one-run", samples, 7); }},
      {"tables in a store's memory", [&] { return from_store("one-run", samples, "memory"); }},
      {"tables in a store's files", [&] { return from_store("one-run", samples, "file"); }},
      {"tables in memory above files", [&] { return from_store("one-run", samples, "both"); }},
      {"some rows in memory, others in files", [&] { return from_store("one-run", samples, "cache"); }},
      {"tables in a cache", [&] { return through_cache("one-run", samples, true); }},
      {"some rows in a cache", [&] { return through_cache("one-run", samples, false); }},
      {"hctr_model_score(), tables in a store", [&] { return by_c_from_store("one-run", samples); }},
  };
  const std::vector<float> expected = predicted("one-run");
  ASSERT_EQ(expected.size(), 500u);
  for (const auto& [way, scores] : ways) {
    const std::vector<float> have = scores();
    ASSERT_EQ(have.size(), expected.size()) << way;
    EXPECT_EQ(std::memcmp(have.data(), expected.data(), have.size() * sizeof(float)), 0) << way;
  }
}

/// The files of a run's final model, by name.
std::map<std::string, std::string> model_of(const fs::path& run) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(run))
    if (entry.path().extension() == ".model") files[entry.path().filename().string()] = read_file(entry.path());
  return files;
}

/// Records the arguments of a trainer's C callbacks.
struct Told {
  int displays = 0;
  double auc = -1;
};

/// Trains through the C interface. Each call of hctr_trainer_fit() trains up to the next iteration in `ends`; 0 means
/// up to the end that the config sets.
Told train_by_c(const char* config, const char* run, const char* change, const std::vector<int64_t>& ends) {
  hctr_trainer_options options{};
  options.size = sizeof options;
  options.config = config;
  options.changes = &change;
  options.change_count = 1;
  options.run_folder = run;
  options.device = HCTR_CPU;
  options.threads = 1;
  hctr_trainer* trainer = nullptr;
  EXPECT_EQ(hctr_trainer_create(&options, &trainer), HCTR_OK) << hctr_error_message();
  Told told;
  const auto display = [](void* user, const hctr_trainer_state* state) {
    ++static_cast<Told*>(user)->displays;
    return state->iteration > 1'000'000 ? 1 : 0;
  };
  const auto metric = [](void* user, const char* name, double value) {
    if (std::string_view(name) == "AUC") static_cast<Told*>(user)->auc = value;
  };
  EXPECT_EQ(hctr_trainer_on_display(trainer, display, &told), HCTR_OK);
  for (const int64_t end : ends) {
    int32_t ended = -1;
    EXPECT_EQ(hctr_trainer_fit(trainer, end, &ended), HCTR_OK) << hctr_error_message();
    EXPECT_EQ(ended, HCTR_REACHED);
  }
  EXPECT_EQ(hctr_trainer_evaluate(trainer, metric, &told), HCTR_OK) << hctr_error_message();
  EXPECT_EQ(hctr_trainer_finish(trainer), HCTR_OK) << hctr_error_message();
  hctr_trainer_destroy(trainer);
  return told;
}

TEST_F(SameNumbers, OfTraining) {
  train(config_, {"[0]"}, "one");
  const auto expected = model_of("one-run");
  ASSERT_FALSE(expected.empty());
  const Told whole = train_by_c("one.json", "c-run", "solver.snapshot_prefix=c/", {0});
  EXPECT_TRUE(model_of("c-run") == expected) << "by hctr_trainer_fit()";
  EXPECT_GT(whole.auc, 0.4);
  const Told pieces = train_by_c("one.json", "d-run", "solver.snapshot_prefix=d/", {3, 11, 0});
  EXPECT_TRUE(model_of("d-run") == expected) << "by hctr_trainer_fit(), three times";
  EXPECT_EQ(pieces.auc, whole.auc);
  EXPECT_EQ(pieces.displays, whole.displays);
}

}  // namespace
}  // namespace hctr::test
