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

TEST(StoreConfig, UnknownKeysAreErrorsWithTheNearestName) {
  const std::string message = message_of(
      Kind::config, [] { read_text_as_store(R"({"foldr": "f", "models": [{"name": "m", "modle": "x"}]})"); });
  EXPECT_TRUE(contains(message, "\"folder\"")) << message;
  EXPECT_TRUE(contains(message, "\"model\"")) << message;
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
  EXPECT_EQ(read.config.folder, "db");
  EXPECT_EQ(read.config.most_rows, 100);
  const StoreModelSection& model = read.config.models.at(0);
  EXPECT_EQ(model.name, "wdl");
  EXPECT_EQ(model.tables[1].name, "sparse_embedding1");
  EXPECT_EQ(model.tables[1].model_file, "b");
  EXPECT_EQ(model.tables[1].dim, 16);
  EXPECT_EQ(model.tables[0].default_value, 0.5);
  EXPECT_EQ(model.tables[1].default_value, 0);
  for (const char* said : {"/models/0/hit_rate_threshold", "misses are always answered correctly",
                           "/volatile_db/initial_cache_rate", "RocksDB is not supported yet"})
    EXPECT_TRUE(contains(read.notes, said)) << said << read.notes;
}

TEST(StoreConfig, WhatTheOriginalLeftUnsaidInAPsJsonIsAnError) {
  const auto message_with = [](const char* from, const char* to) {
    return message_of(Kind::config, [&] { read_text_as_store(with_text(kPs, from, to)); });
  };
  EXPECT_TRUE(contains(message_with("persistent_db", "peristent_db"), "did you mean \"persistent_db\"?"));
  EXPECT_TRUE(contains(message_with("hashmap", "hashmup"), "\"hashmup\" is not a database"));
  EXPECT_TRUE(contains(message_with("hashmap", "redis"), "Redis is not supported yet"));
  EXPECT_TRUE(contains(message_with("gpucacheper", "gpucachper"), "gpucach"));
  EXPECT_TRUE(contains(message_with("[1, 16]", "[1]"), "has 1 values, but there are 2 sparse_files"));
}

}  // namespace
}  // namespace hctr::test
