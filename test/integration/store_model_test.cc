// A model with tables in a store has the same scores as the model with its own tables.
#include <unistd.h>

#include <atomic>
#include <map>
#include <numeric>
#include <thread>

#include "hctr/store.h"
#include "hctr/store_stream.h"
#include "infer/served_model.h"
#include "infer/store_models.h"
#include "scores_fixture.h"
#include "store/level_plugins.h"
#include "store/table_sources.h"
#include "support/message_of.h"
#include "support/mock_kafka.h"
#include "support/redis_servers.h"

namespace hctr::test {
namespace {

class StoreModelTest : public ScoresTest {
 protected:
  void SetUp() override {
    ScoresTest::SetUp();
    // Tables with identity "key" and "slot_and_key", pooled and not pooled, with 16-bit storage, with a hash index and
    // with direct keys.
    config_ = with_change(config_, R"("combiner": 0}})", R"("combiner": 0, "storage": "fp16"}})");
    config_ = with_change(config_, R"("max_vocabulary_size_per_gpu": 1000, "embedding_vec_size": 5, "combiner": 1}},)",
                          R"("max_vocabulary_size_per_gpu": 1000, "embedding_vec_size": 5, "combiner": 1}},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "wide_data", "top": "direct_emb",
     "sparse_embedding_hparam": {"index": "direct", "slot_size_array": [300], "embedding_vec_size": 2,
                                 "combiner": "none"}},
    {"type": "Reshape", "bottom": "direct_emb", "top": "direct", "leading_dim": 4},)");
    config_ = with_change(config_, R"(["deep", "dense"])", R"(["deep", "direct", "dense"])");
    train(with_batch_norm(config_), {"[0]"}, "one");
    samples_ = samples_of("one.json");
  }

  void load(Store& store, const std::string& version = "1") const {
    StoreModelSection section;
    section.name = "m";
    section.version = version;
    section.model = "one-run";
    store.load(store_model(section, {}, Log::silent()));
  }
  Model served_from(const Store& store) const {
    LoadOptions options = at("one-run");
    options.tables = std::make_shared<StoreView>(store.view("m"));
    return Model(options);
  }
  StoreOptions options_of(const std::string& which) const {
    const StoreLevelOptions file{.kind = StoreLevelOptions::Kind::file, .folder = which};
    if (which == "memory") return {};
    if (which == "file") return {.levels = {file}};
    return {.levels = {StoreLevelOptions{.most_rows = 100}, file}};
  }

  /// Scores all samples while updates change every row of every table. Expects that the scores never mix rows from
  /// before and after an update.
  template <class ModelOrServedModel>
  void expect_one_state(Store& store, ModelOrServedModel& model) const {
    // The updates double every row, then restore the rows.
    std::vector<std::vector<int64_t>> keys(3);
    std::vector<std::vector<int32_t>> slots(3);
    std::vector<std::vector<float>> rows[2];
    StoreModelSection section;
    section.name = "m";
    section.model = "one-run";
    const StoreModel source = store_model(section, {}, Log::silent());
    ASSERT_EQ(source.tables.size(), 3u);
    std::vector<StoreTableUpdate> updates[2];
    for (auto& state : rows) state.resize(3);
    for (size_t t = 0; t < 3; ++t)
      read_table(source.tables[t],
                 [&](std::span<const int32_t> slot, std::span<const int64_t> key, std::span<const float> row) {
                   keys[t].insert(keys[t].end(), key.begin(), key.end());
                   slots[t].insert(slots[t].end(), slot.begin(), slot.end());
                   for (const float value : row) rows[0][t].push_back(value), rows[1][t].push_back(2 * value);
                 });
    for (int state = 0; state < 2; ++state)
      for (size_t t = 0; t < 3; ++t)
        for (size_t i = 0; i < keys[t].size(); ++i)
          updates[state].push_back({.table = source.tables[t].name,
                                    .slot = slots[t].empty() ? 0 : slots[t][i],
                                    .keys = {&keys[t][i], 1},
                                    .rows = rows[state][t].data() + static_cast<int64_t>(i) * source.tables[t].dim});
    const std::vector<float> expected[2] = {score_in(model, samples_, {4096}), [&] {
                                              store.apply("m", 100, updates[1]);
                                              return score_in(model, samples_, {4096});
                                            }()};
    ASSERT_NE(expected[0], expected[1]);
    std::atomic<bool> done{false};
    std::atomic<int64_t> mixed{0}, scored{0};
    const auto score_on = [&] {
      while (!done) {
        const std::vector<float> scores = score(model, samples_, 0, 500);
        mixed += scores != expected[0] && scores != expected[1];
        ++scored;
      }
    };
    std::thread threads[2] = {std::thread(score_on), std::thread(score_on)};
    for (int64_t iteration = 101; iteration < 121; ++iteration) {
      store.apply("m", iteration, updates[iteration % 2]);
      if (iteration == 110) {
        load(store, "2");
        store.activate("m", "2");
        store.activate("m", "1");
      }
    }
    for (const int64_t before = scored; scored < before + 4;) std::this_thread::yield();
    done = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(mixed.load(), 0);
    EXPECT_EQ(score_in(model, samples_, {4096}), expected[0]);
  }

  SampleArrays samples_;
};

TEST_F(StoreModelTest, ScoresAreThoseOfTheModelWithItsOwnTablesFromEachLevel) {
  const std::vector<float> expected = score_in(Model(at("one-run")), samples_, {4096});
  ASSERT_EQ(expected.size(), 500u);
  for (const char* which : {"memory", "file", "cache"}) {
    Store store(options_of(which));
    load(store);
    const Model model = served_from(store);
    EXPECT_EQ(score_in(model, samples_, {4096}), expected) << which;
    EXPECT_EQ(score_in(model, samples_, {1, 64, 3, 300, 17}), expected) << which;
    EXPECT_LT(store.tables()[0].unique, store.tables()[0].asked) << "keys of a batch are looked up once";
  }
}

TEST_F(StoreModelTest, ScoresAreTheSameFromRocksDbAndRedis) {
  try {
    rocks_plugin();
    redis_plugin();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  if (const std::string why = why_no_redis(); !why.empty()) GTEST_SKIP() << why;
  const RedisServers one, three({.count = 3, .cluster = true});
  const auto redis = [](const RedisServers& servers) {
    return StoreLevelOptions{.kind = StoreLevelOptions::Kind::redis,
                             .redis = {.addresses = servers.addresses(), .timeout_ms = 30000}};
  };
  const auto rocks = [](const char* folder) {
    return StoreLevelOptions{.kind = StoreLevelOptions::Kind::rocksdb, .rocksdb = {.folder = folder}};
  };
  const std::map<std::string, std::vector<StoreLevelOptions>> all = {
      {"RocksDB", {rocks("rocks")}},
      {"Redis", {redis(one)}},
      {"a Redis cluster", {redis(three)}},
      {"a Redis cluster above RocksDB", {redis(three), rocks("below-redis")}},
      {"some rows in memory, all in Redis and RocksDB",
       {StoreLevelOptions{.most_rows = 100}, redis(one), rocks("below-all")}}};
  const std::vector<float> expected = score_in(Model(at("one-run")), samples_, {4096});
  for (const auto& [levels, options] : all) {
    Store store({.levels = options});
    load(store);
    const Model model = served_from(store);
    EXPECT_EQ(score_in(model, samples_, {4096}), expected) << levels;
    EXPECT_EQ(score_in(model, samples_, {1, 64, 3, 300, 17}), expected) << levels;
    const StoreTableStatistics table = store.tables()[0];
    for (const StoreTableStatistics::Level& level : table.levels) EXPECT_EQ(level.failed, 0) << levels;
  }
}

TEST_F(StoreModelTest, ScoresAreTheSameWithRowsOfATopic) {
  HCTR_SKIP_WITHOUT_KAFKA();
  MockKafka kafka({"t:2"});
  StoreModelSection section;
  section.name = "m";
  section.model = "one-run";
  const StoreModel source = store_model(section, {}, Log::silent());
  StreamedAbout about{.run = "run", .iteration = 1};
  StoreModel empty{.name = "m", .version = "1"};
  for (const StoreTableSource& table : source.tables) {
    about.tables.push_back({.name = table.name, .dim = table.dim, .by_slot = table.by_slot});
    empty.tables.push_back(
        {.name = table.name, .dim = table.dim, .by_slot = table.by_slot, .rows = [](const StoreRowSink&) {}});
  }
  DeltaProducer producer(kafka.stream("t"));
  producer.begin(about);
  for (size_t t = 0; t < source.tables.size(); ++t)
    read_table(source.tables[t],
               [&](std::span<const int32_t> slots, std::span<const int64_t> keys, std::span<const float> rows) {
                 producer.rows(t, keys, rows, source.tables[t].by_slot ? slots : slots.first(0));
               });
  producer.end();
  Store store(StoreOptions{});
  store.load(empty);
  StoreStream(store, "m", {.stream = kafka.stream("t")}).catch_up(60);
  EXPECT_EQ(score_in(served_from(store), samples_, {4096}), score_in(Model(at("one-run")), samples_, {4096}));
}

TEST_F(StoreModelTest, StoresThatShareMemoryGiveTheScoresOfOneAlone) {
  const std::vector<float> expected = score_in(Model(at("one-run")), samples_, {4096});
  const StoreOptions shared{.levels = {{.shared = "test-scores-" + std::to_string(::getpid())}}};
  Store first(shared);
  load(first);
  Store second(shared);
  ASSERT_FALSE(second.writable());
  const Model of_first = served_from(first), of_second = served_from(second);
  EXPECT_EQ(score_in(of_first, samples_, {4096}), expected);
  EXPECT_EQ(score_in(of_second, samples_, {1, 64, 3, 300, 17}), expected);
  const StoreView view = first.view("m");
  const StoreView::Table table = view.tables()[0];
  std::vector<int64_t> keys(300);
  std::iota(keys.begin(), keys.end(), 0);
  const std::vector<float> rows(keys.size() * static_cast<size_t>(table.dim), 0.25f);
  const StoreTableUpdate update{.table = table.name, .keys = keys, .rows = rows.data()};
  ASSERT_TRUE(first.apply("m", 1'000'000, {&update, 1}));
  const std::vector<float> updated = score_in(of_first, samples_, {4096});
  EXPECT_NE(updated, expected);
  EXPECT_EQ(score_in(of_second, samples_, {4096}), expected) << "until it refreshes";
  ASSERT_TRUE(second.refresh());
  EXPECT_EQ(score_in(of_second, samples_, {4096}), updated) << "through the existing view";
}

TEST_F(StoreModelTest, FilesOfTablesAreNotNeeded) {
  const std::vector<float> expected = score_in(Model(at("one-run")), samples_, {4096});
  Store store({});
  load(store);
  size_t removed = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::current_path()))
    if (entry.path().filename().string().find("_sparse_") != std::string::npos) removed += fs::remove(entry.path());
  ASSERT_GE(removed, 3u);
  EXPECT_EQ(score_in(served_from(store), samples_, {4096}), expected);
  LoadOptions of_prefix = at("one-run/final_");
  of_prefix.tables = std::make_shared<StoreView>(store.view("m"));
  EXPECT_EQ(score_in(Model(of_prefix), samples_, {4096}), expected);
  EXPECT_NE(message_of(Kind::io, [&] { Model(at("one-run")); }).find("lacks"), std::string::npos);
}

TEST_F(StoreModelTest, ABatchIsScoredWithOneStateOfTheTablesWhileTheyChange) {
  Store store({});
  load(store);
  const Model model = served_from(store);
  expect_one_state(store, model);
}

TEST_F(StoreModelTest, ATableThatTheStoreLacksOrHasOtherwiseIsAnError) {
  Store store({});
  const auto rows = [](const StoreRowSink&) {};
  store.load({.name = "m", .version = "1", .tables = {{.name = "wide_emb", .dim = 3, .rows = rows}}});
  EXPECT_EQ(message_of(Kind::config, [&] { served_from(store); }),
            "table 'wide_emb' cannot come from the store: the store has rows of 3 elements, but the model has rows "
            "of 1");
  store.load({.name = "m",
              .version = "2",
              .tables = {{.name = "wide_emb", .dim = 1, .rows = rows}, {.name = "deep_emb", .dim = 5, .rows = rows}}});
  store.activate("m", "2");
  EXPECT_EQ(message_of(Kind::config, [&] { served_from(store); }),
            "table 'deep_emb' cannot come from the store: rows are identified by key alone in the store, but by "
            "slot and key in the model");
}

TEST_F(StoreModelTest, AStoreThatNeedsAGpuSaysSoOnAMachineWithoutOne) {
  if (find_gpus().count > 0) GTEST_SKIP() << "this machine has a GPU";
  StoreOptions needs_gpu;
  needs_gpu.cache.needs_gpu = true;
  Store store(needs_gpu);
  load(store);
  LoadOptions options = at("one-run");
  options.tables = std::make_shared<StoreView>(store.view("m"));
  EXPECT_EQ(Model(options).device().find("cuda"), std::string::npos) << "the program chose the CPU";
  options.device = DeviceChoice::automatic;
  EXPECT_NE(message_of(Kind::device, [&] { Model model(options); }).find("choose the CPU, or remove \"needs_gpu\""),
            std::string::npos);
}

/// Models that read rows through the GPU cache of a store. On the CPU the reference implementation of the cache runs.
class CachedModelTest : public StoreModelTest, public testing::WithParamInterface<Device> {
 protected:
  void SetUp() override {
    if (GetParam().is_cuda()) HCTR_SKIP_WITHOUT_GPU();
    if (GetParam().is_cuda()) device_ = "cuda";
    StoreModelTest::SetUp();
  }
  /// A batch is split, so that a call of score() makes several look-ups.
  LoadOptions split(const std::string& model) const {
    LoadOptions options = at(model);
    options.most_samples = 128;
    return options;
  }
  std::unique_ptr<ServedModel> served(const Store& store) const {
    LoadOptions options = split("one-run");
    options.tables = std::make_shared<StoreView>(store.view("m"));
    return std::make_unique<ServedModel>(options, true);
  }
  static StoreOptions partial() { return {.cache = {.most_rows = 30, .admit_after = 1}}; }
};
INSTANTIATE_TEST_SUITE_P(Device, CachedModelTest, testing::Values(kCpu, kGpu),
                         [](const auto& row) { return row.param.is_cuda() ? "cuda" : "cpu"; });

TEST_P(CachedModelTest, ScoresAreThoseOfTheModelWithItsOwnTables) {
  const std::vector<std::vector<int64_t>> sizes = {{4096}, {1, 64, 3, 300, 17}};
  const Model own(split("one-run"));
  for (const bool whole : {true, false}) {
    Store store(whole ? StoreOptions{} : partial());
    load(store);
    const auto model = served(store);
    for (int round = 0; round < 3; ++round)
      for (const std::vector<int64_t>& of : sizes)
        EXPECT_EQ(score_in(*model, samples_, of), score_in(own, samples_, of)) << whole << " round " << round;
    const StoreCacheStatistics statistics = model->cache_statistics().value();
    EXPECT_EQ(statistics.whole_tables.size(), whole ? 3u : 0u);
    EXPECT_EQ(statistics.misses > 0, !whole);
    EXPECT_EQ(statistics.admitted > 0, !whole);
    EXPECT_LT(statistics.misses, statistics.asked) << "some keys are cached";
  }
}

TEST_P(CachedModelTest, ABatchIsScoredWithOneStateOfTheTablesWhileTheyChange) {
  for (const bool whole : {true, false}) {
    Store store(whole ? StoreOptions{} : partial());
    load(store);
    const auto model = served(store);
    expect_one_state(store, *model);
    EXPECT_GT(model->cache_statistics()->updated, 0);
  }
}

TEST_P(CachedModelTest, ModelsOfAVersionShareItsCacheAndTheNextVersionStartsWithItsHotKeys) {
  Store store(partial());
  load(store);
  const auto first = served(store);
  const std::vector<float> expected = score_in(*first, samples_, {4096});
  for (int round = 0; round < 1000 && first->cache_statistics()->keys < 40; ++round) score_in(*first, samples_, {4096});
  const auto second = served(store);
  EXPECT_EQ(second->cache_statistics()->requests, first->cache_statistics()->requests);
  EXPECT_GT(second->cache_statistics()->requests, 0);
  load(store, "2");
  store.activate("m", "2");
  const auto next = served(store);
  const StoreCacheStatistics at_start = next->cache_statistics().value();
  EXPECT_EQ(at_start.version, "2");
  EXPECT_EQ(at_start.requests, 0);
  EXPECT_GT(at_start.keys, 20);
  EXPECT_EQ(score_in(*next, samples_, {4096}), expected);
}

TEST_P(CachedModelTest, MissedKeysContributeNothingWhereTheStoreSaysSoAndAreCounted) {
  StoreOptions options = partial();
  options.cache.default_on_miss = true;
  Store store(options), empty({});
  load(store);
  const auto model = served(store);
  const std::vector<float> first = score(*model, samples_, 0, 100);
  const StoreCacheStatistics statistics = model->cache_statistics().value();
  EXPECT_EQ(statistics.misses, statistics.asked);
  EXPECT_EQ(statistics.defaults, statistics.asked);
  // the scores equal those of a model whose tables have no rows
  std::vector<StoreTableSource> tables;
  for (const StoreView::Table& table : store.view("m").tables())
    tables.push_back(
        {.name = table.name, .dim = table.dim, .by_slot = table.by_slot, .rows = [](const StoreRowSink&) {}});
  empty.load({.name = "m", .version = "1", .tables = tables});
  EXPECT_EQ(first, score(*served(empty), samples_, 0, 100));
}

TEST_P(CachedModelTest, AKeyWithoutARowIsAnErrorThatNamesTheKeyWhereTheModelSaysSo) {
  for (const bool whole : {true, false}) {
    Store store(whole ? StoreOptions{} : partial());
    StoreModelSection section;
    section.name = "m";
    section.model = "one-run";
    section.miss_is_error = true;
    store.load(store_model(section, {}, Log::silent()));
    const auto model = served(store);
    SampleArrays changed = samples_;
    for (int64_t& key : changed.inputs[0].keys) key = 1'000'000'007;
    for (int i = 0; i < 20; ++i)  // more calls than look-ups may run at once: each failed call must free its memory
      EXPECT_NE(message_of(Kind::data, [&] { score(*model, changed, 0, 10); }).find("no row of key 1000000007"),
                std::string::npos);
    // A failed batch does not affect the scores of the next batch. Some samples have keys without a row.
    const Model expected(split("one-run"));
    int64_t compared = 0;
    for (int64_t sample = 0; sample < 40; ++sample) try {
        EXPECT_EQ(score(*model, samples_, sample, 1), score(expected, samples_, sample, 1));
        ++compared;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("has no row of key"), std::string::npos);
      }
    EXPECT_GT(compared, 0);
  }
}

}  // namespace
}  // namespace hctr::test
