#include "store/store_config.h"

#include <gtest/gtest.h>

#include "core/base/files.h"
#include "hctr/error.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

struct ReadStoreConfig {
  StoreConfig config;
  std::string notes;
};

ReadStoreConfig read_text_as_store(const std::string& text) {
  const TemporaryFolder folder;
  write_text(folder / "s.json", text);
  ReadStoreConfig read;
  std::vector<std::string> notes;
  read.config = read_store_config(folder / "s.json", notes);
  for (const std::string& note : notes) read.notes += note + "\n";
  return read;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

TEST(StoreConfig, NamesLevelsModelsAndSources) {
  const StoreConfig config = read_text_as_store(R"({"folder": "f", "most_rows": 5, "models": [
    {"name": "m", "version": "2", "tables": [{"name": "t", "dim": 4, "file": "t.safetensors", "default_value": 0.5}]},
    {"name": "n", "model": "runs/a", "updates": "out/m"}]})")
                                 .config;
  EXPECT_EQ(config.options().levels.size(), 2u);
  EXPECT_EQ(config.options().levels[0].most_rows, 5);
  EXPECT_EQ(config.models[0].tables[0].default_value, 0.5);
  EXPECT_EQ(config.models[1].model, "runs/a");
}

TEST(StoreConfig, SharedMemoryIsTheOnlyLevel) {
  const StoreOptions options = read_text_as_store(R"({"shared_memory": "ctr"})").config.options();
  ASSERT_EQ(options.levels.size(), 1u);
  EXPECT_EQ(options.levels[0].shared, "ctr");
  for (const char* other :
       {R"("memory": false)", R"("most_rows": 5, "folder": "f")", R"("redis": {})", R"("folder": "f")"}) {
    const std::string text = std::string(R"({"shared_memory": "ctr", )") + other + "}";
    EXPECT_TRUE(contains(message_of(Kind::config, [&] { read_text_as_store(text); }),
                         "/shared_memory: must be the only level of a store"))
        << text;
  }
}

TEST(StoreConfig, UnknownKeysAreErrorsWithTheNearestName) {
  const std::string message = message_of(
      Kind::config, [] { read_text_as_store(R"({"foldr": "f", "models": [{"name": "m", "modle": "x"}]})"); });
  EXPECT_TRUE(contains(message, "\"folder\"")) << message;
  EXPECT_TRUE(contains(message, "\"model\"")) << message;
}

TEST(StoreConfig, ALevelInRocksDbHasItsOwnKeys) {
  const StoreLevelOptions level = read_text_as_store(R"({"memory": false, "rocksdb": {"folder": "db", "open": "follow",
    "own_folder": "mine", "names": "hugectr", "cache_mb": 1}})")
                                      .config.options()
                                      .levels.at(0);
  EXPECT_EQ(level.kind, StoreLevelOptions::Kind::rocksdb);
  EXPECT_EQ(level.rocksdb.opening, StoreRocksOptions::Opening::follow);
  EXPECT_EQ(level.rocksdb.cache_bytes, 1 << 20);
  const auto message_for = [](const char* text) { return message_of(Kind::config, [&] { read_text_as_store(text); }); };
  EXPECT_TRUE(contains(message_for(R"({"rocksdb": {"foldr": "db"}})"), "\"folder\""));
  EXPECT_TRUE(contains(message_for(R"({"folder": "f", "rocksdb": {"folder": "db"}})"), "keep one of them"));
  EXPECT_TRUE(contains(message_for(R"({"rocksdb": {"folder": "db", "open": "follow", "own_folder": "o"}})"),
                       "the memory level would keep rows that the updating process has changed"));
}

TEST(StoreConfig, ALevelInRedisHasItsOwnKeys) {
  const StoreLevelOptions level = read_text_as_store(R"({"memory": false, "folder": "f", "redis": {"tls": true,
    "addresses": ["a:1", "b:2"], "eviction": "oldest", "most_rows": 7, "ca": "ca.crt"}})")
                                      .config.options()
                                      .levels.at(0);
  EXPECT_EQ(level.kind, StoreLevelOptions::Kind::redis);
  EXPECT_EQ(level.redis.addresses, (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_EQ(level.redis.eviction, StoreRedisOptions::Eviction::oldest);
  EXPECT_EQ(level.redis.most_rows, 7);
  const auto message_for = [](const char* text) { return message_of(Kind::config, [&] { read_text_as_store(text); }); };
  EXPECT_TRUE(contains(message_for(R"({"redis": {"adresses": ["a:1"]}})"), "\"addresses\""));
  EXPECT_TRUE(contains(message_for(R"({"redis": {"ca": "x"}})"), "\"tls\": true"));
  EXPECT_TRUE(contains(message_for(R"({"redis": {"most_rows": 5}})"), "need a level below"));
  EXPECT_TRUE(contains(message_for(R"({"redis": {"names": "hugectr"}})"), "set \"memory\": false"));
}

TEST(StoreConfig, AGpuCacheHasItsOwnKeys) {
  const StoreCacheOptions cache = read_text_as_store(R"({"gpu_cache": {"bytes": 5000, "row_type": "fp8",
    "on_miss": "default", "admit_after": 3, "wait_ms": 7, "needs_gpu": true}})")
                                      .config.options()
                                      .cache;
  EXPECT_EQ(cache.gpu, StoreCacheOptions::kGpuIfAny);
  EXPECT_EQ(cache.bytes, 5000);
  EXPECT_EQ(cache.rows, StoreCacheOptions::Rows::fp8);
  EXPECT_TRUE(cache.default_on_miss);
  EXPECT_EQ(cache.admit_after, 3);
  EXPECT_EQ(cache.wait_ms, 7);
  EXPECT_TRUE(cache.needs_gpu);
  EXPECT_EQ(read_text_as_store(R"({"gpu_cache": {"share": 0.25}})").config.options().cache.share, 0.25);
  EXPECT_EQ(read_text_as_store("{}").config.options().cache.gpu, StoreCacheOptions::kGpuIfAny);
  const auto message_for = [](const char* text) { return message_of(Kind::config, [&] { read_text_as_store(text); }); };
  EXPECT_TRUE(contains(message_for(R"({"gpu_cache": {"byte": 1}})"), "\"bytes\""));
  EXPECT_TRUE(contains(message_for(R"({"gpu_cache": {"bytes": 1, "share": 0.5}})"), "set only one of \"bytes\""));
  EXPECT_TRUE(contains(message_for(R"({"gpu_cache": {"share": 1.5}})"), "/gpu_cache/share"));
  EXPECT_TRUE(contains(message_for(R"({"gpu_cache": {"on_miss": "defaults"}})"), "default"));
  EXPECT_TRUE(contains(message_for(R"({"gpu_cache": {}, "memory": false, "rocksdb": {"folder": "db", "open": "follow",
    "own_folder": "o"}})"),
                       "another program changes the rows"));
}

constexpr const char* kPs = R"({"supportlonglong": true,
  "volatile_db": {"type": "hashmap", "num_partitions": 2, "overflow_margin": 50, "initial_cache_rate": 0.5},
  "persistent_db": {"type": "rocksdb", "path": "db"},
  "models": [{"model": "wdl", "sparse_files": ["a", "b"], "dense_file": "", "num_of_worker_buffer_in_pool": 4,
    "deployed_device_list": [0], "maxnum_catfeature_query_per_table_per_sample": [2, 26], "gpucacheper": 0.5,
    "embedding_vecsize_per_table": [1, 16], "default_value_for_each_table": [0.5], "hit_rate_threshold": 0.9}]})";

std::string with_text(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(StoreConfig, ReadsThePsJsonOfTheOriginalAndSaysWhatHasNoEffect) {
  const ReadStoreConfig read = read_text_as_store(kPs);
  ASSERT_TRUE(read.config.rocksdb);
  EXPECT_EQ(read.config.rocksdb->folder, "db");
  EXPECT_EQ(read.config.rocksdb->names, StoreNames::hugectr);
  EXPECT_EQ(read.config.most_rows, 100);
  const StoreModelSection& model = read.config.models.at(0);
  EXPECT_EQ(model.name, "wdl");
  EXPECT_EQ(model.tables[1].name, "sparse_embedding1");
  EXPECT_EQ(model.tables[1].model_file, "b");
  EXPECT_EQ(model.tables[1].dim, 16);
  EXPECT_EQ(model.tables[0].default_value, 0.5);
  EXPECT_EQ(model.tables[1].default_value, 0);
  EXPECT_EQ(read.config.options().cache.share, 0.5);
  for (const char* said :
       {"/models/0/hit_rate_threshold", "misses are always answered correctly", "/volatile_db/initial_cache_rate"})
    EXPECT_TRUE(contains(read.notes, said)) << said << read.notes;
}

TEST(StoreConfig, TheGpuCacheOfAPsJsonIsAShareOfTheRows) {
  const auto cache_of = [](const std::string& fields) {
    return read_text_as_store(with_text(kPs, "\"gpucacheper\": 0.5", fields)).config.gpu_cache;
  };
  EXPECT_EQ(cache_of(R"("gpucache": true)").value().share, 0.2);
  EXPECT_EQ(cache_of(R"("use_static_table": true, "fp8_quant": true)").value().share, 1);
  EXPECT_EQ(cache_of(R"("embedding_cache_type": "uvm")").value().share, 1);
  EXPECT_EQ(cache_of(R"("use_static_table": true, "fp8_quant": true)")->row_type, StoreCacheOptions::Rows::fp8);
  EXPECT_EQ(cache_of(R"("fp8_quant": true)")->row_type, StoreCacheOptions::Rows::f32);
  EXPECT_FALSE(cache_of(R"("gpucache": false)"));
  EXPECT_TRUE(contains(message_of(Kind::config, [&] { cache_of(R"("embedding_cache_type": "dynamc")"); }), "dynamic"));
  const ReadStoreConfig changed_elsewhere = read_text_as_store(with_text(
      with_text(kPs, R"("persistent_db": {"type": "rocksdb", "path": "db"},)", ""), "\"hashmap\"", "\"redis\""));
  EXPECT_FALSE(changed_elsewhere.config.gpu_cache);
  EXPECT_TRUE(contains(changed_elsewhere.notes, "no GPU cache: other programs")) << changed_elsewhere.notes;
}

TEST(StoreConfig, RedisInAPsJsonIsALevelAboveTheDatabaseOnDisk) {
  const StoreConfig config =
      read_text_as_store(
          with_text(kPs, "\"hashmap\"",
                    R"("redis_cluster", "address": "a:1;b:2", "password": "p", "overflow_policy": "evict_oldest")"))
          .config;
  ASSERT_TRUE(config.redis);
  EXPECT_FALSE(config.memory);
  EXPECT_EQ(config.redis->addresses, (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_EQ(config.redis->names, StoreNames::hugectr);
  EXPECT_EQ(config.redis->partitions, 2);
  EXPECT_EQ(config.redis->most_rows, 50);
  EXPECT_EQ(config.redis->eviction, StoreRedisOptions::Eviction::oldest);
  EXPECT_FALSE(config.redis->keep_missed);
  EXPECT_EQ(config.options().levels.size(), 2u);
}

TEST(StoreConfig, WhatTheOriginalLeftUnsaidInAPsJsonIsAnError) {
  const auto message_with = [](const char* from, const char* to) {
    return message_of(Kind::config, [&] { read_text_as_store(with_text(kPs, from, to)); });
  };
  EXPECT_TRUE(contains(message_with("persistent_db", "peristent_db"), "did you mean \"persistent_db\"?"));
  EXPECT_TRUE(contains(message_with("hashmap", "hashmup"), "\"hashmup\" is not a database"));
  EXPECT_TRUE(contains(message_with("hashmap", "redis\", \"overflow_policy\": \"evict_rndom"), "is not a policy"));
  EXPECT_TRUE(contains(message_with("gpucacheper", "gpucachper"), "gpucach"));
  EXPECT_TRUE(contains(message_with("[1, 16]", "[1]"), "has 1 values, but there are 2 sparse_files"));
}

TEST(StoreConfig, AModelMayFollowAStream) {
  const StoreConfig config = read_text_as_store(R"({"models": [{"name": "m", "model": "a", "updates": "b",
    "stream": {"brokers": "h:1,i:2", "topic": "t", "group": "g", "librdkafka": ["security.protocol=ssl"]}}]})")
                                 .config;
  const StoreStreamOptions options = config.models[0].stream_options();
  EXPECT_EQ(options.stream.brokers, "h:1,i:2");
  EXPECT_EQ(options.stream.group, "g");
  EXPECT_EQ(options.stream.librdkafka.at("security.protocol"), "ssl");
  EXPECT_EQ(options.updates, "b");
  EXPECT_FALSE(options.hps);
  const std::string message = message_of(Kind::config, [] {
    read_text_as_store(
        R"({"models": [{"name": "m", "model": "a", "stream": {"brokers": "h:1", "librdkafka": ["x"]}}]})");
  });
  EXPECT_TRUE(contains(message, "name=value")) << message;
  EXPECT_TRUE(contains(message, "/models/0/stream/topic")) << message;
}

TEST(StoreConfig, TheOriginalsKafkaIsTheStreamOfEachModel) {
  const std::string ps = with_text(kPs, "\"models\"", R"("update_source": {"type": "kafka_message_queue",
    "brokers": "a:1;b:2", "max_commit_interval": 3}, "models")");
  const ReadStoreConfig read = read_text_as_store(ps);
  const StoreStreamOptions options = read.config.models.at(0).stream_options();
  EXPECT_TRUE(options.hps);
  EXPECT_EQ(options.key_bytes, 8);
  EXPECT_EQ(options.stream.brokers, "a:1,b:2");
  EXPECT_TRUE(contains(read.notes, "max_commit_interval")) << read.notes;
  const std::string message =
      message_of(Kind::config, [&] { read_text_as_store(with_text(ps, "kafka_message_queue", "kafkaa")); });
  EXPECT_TRUE(contains(message, "kafka")) << message;
}

}  // namespace
}  // namespace hctr::test
