// Reads the levels and models of a store from store.json, or from the ps.json of HugeCTR's parameter server.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/problems.h"
#include "config/schema.h"
#include "config/sections/stream_section.h"
#include "hctr/store.h"
#include "hctr/store_stream.h"

namespace hctr {

/// A table in store.json. The fields that are set determine the source of its rows.
struct StoreTableSection {
  std::string name, model_file, file, keys, vectors;
  int64_t dim = 0, random_rows = 0, seed = 0;
  bool by_slot = false, in_level = false;
  double default_value = 0;

  /// The number of sources. 0: the table is initially empty.
  int sources() const {
    return !model_file.empty() + !file.empty() + !(keys.empty() && vectors.empty()) + (random_rows > 0) + in_level;
  }
};

/// A level in RocksDB.
struct StoreRocksSection {
  std::string folder, own_folder;
  StoreRocksOptions::Opening open = StoreRocksOptions::Opening::update;
  StoreNames names = StoreNames::own;
  int64_t key_bytes = 8, cache_mb = 64, reader_threads = 8, background_threads = 4;
  bool direct_reads = false;
};
/// A level in Redis.
struct StoreRedisSection {
  std::vector<std::string> addresses = {"127.0.0.1:6379"};
  std::string user, password, ca, certificate, key, server_name;
  bool tls = false, read_replicas = false, keep_rows = false, keep_missed = true, fill = true;
  StoreNames names = StoreNames::own;
  int64_t key_bytes = 8, partitions = 16, connections = 4, timeout_ms = 500, most_rows = 0, expire_seconds = 0;
  StoreRedisOptions::Eviction eviction = StoreRedisOptions::Eviction::random;
  double evict_to = 0.8;
};
/// The GPU cache above the levels.
struct StoreCacheSection {
  enum class Miss { look_up, default_row };
  int64_t bytes = 0, most_rows = 0, admit_after = 2, wait_ms = 100;
  double share = 0;
  StoreCacheOptions::Rows row_type = StoreCacheOptions::Rows::f32;
  Miss on_miss = Miss::look_up;
  bool needs_gpu = false;
};
template <>
const Words<StoreCacheSection::Miss>& EnumWords<StoreCacheSection::Miss>::table();
template <>
const Words<StoreCacheOptions::Rows>& EnumWords<StoreCacheOptions::Rows>::table();
template <>
const Words<StoreRedisOptions::Eviction>& EnumWords<StoreRedisOptions::Eviction>::table();
template <>
const Words<StoreRocksOptions::Opening>& EnumWords<StoreRocksOptions::Opening>::table();
template <>
const Words<StoreNames>& EnumWords<StoreNames>::table();

struct StoreModelSection {
  std::string name;
  std::string version = "1";
  std::string model;      ///< a run folder, a checkpoint or a snapshot_prefix, whose tables are all loaded
  std::string updates;    ///< a snapshot_prefix whose deltas "store load" applies
  ConsumeSection stream;  ///< Kafka source of updates, if `given`
  bool miss_is_error = false;
  std::vector<StoreTableSection> tables;

  StoreStreamOptions stream_options() const;
};

struct StoreConfig {
  std::string folder;  ///< folder of the file level; empty: no such level
  bool memory = true;
  std::string shared_memory;  ///< name of memory that processes share, in place of the memory of this process
  int64_t most_rows = 0;
  int64_t update_rows_per_second = 0;
  std::optional<StoreCacheSection> gpu_cache;
  std::optional<StoreRedisSection> redis;
  std::optional<StoreRocksSection> rocksdb;
  std::vector<StoreModelSection> models;

  StoreOptions options() const;
  /// Whether a level on disk stores the loaded rows.
  bool lasts() const { return !folder.empty() || rocksdb; }
  /// Whether another program changes the rows of the lowest level, so that levels above would return old rows.
  bool changes_elsewhere() const {
    return (redis && !lasts() && redis->names == StoreNames::hugectr) ||
           (rocksdb && rocksdb->open == StoreRocksOptions::Opening::follow);
  }
  bool writable() const { return !rocksdb || rocksdb->open == StoreRocksOptions::Opening::update; }
};

/// The schema of store.json.
const Schema<StoreConfig>& store_schema();

/// Reads store.json or ps.json; a file with "supportlonglong" is a ps.json. Unknown keys are errors that suggest the
/// nearest valid key. `notes` receives the fields without effect here, and differences from HugeCTR. Errors:
/// Error(config) with every problem; Error(io).
StoreConfig read_store_config(const std::filesystem::path&, std::vector<std::string>& notes);
/// Like read_store_config(), for parsed JSON. `name`: the file's name, for messages.
StoreConfig parse_store_config(const Json&, const std::string& name, std::vector<std::string>& notes);
/// Like parse_store_config(), for a ps.json.
StoreConfig read_ps_config(const Json&, Problems&);

}  // namespace hctr
