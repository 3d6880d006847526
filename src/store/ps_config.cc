// The ps.json of HugeCTR's Hierarchical Parameter Server, in the spellings of its versions 3.1 to 24.06.
#include <algorithm>

#include "core/base/expect.h"
#include "store/store_config.h"

namespace hctr {
namespace {

constexpr const char* kOfGpuCache = "belongs to the GPU cache, which this store does not have yet";
constexpr const char* kOfRedis = "belongs to Redis, which this store does not have yet";

struct PsVolatile {
  std::string type = "parallel_hash_map";
  std::optional<int64_t> overflow_margin;
  int64_t num_partitions = 16;
};

struct PsPersistent {
  std::string type = "disabled";
  std::string path;
};

struct PsUpdates {
  std::string type = "null";
};

struct PsModel {
  std::string model;
  std::vector<std::string> sparse_files, embedding_table_names;
  std::vector<int64_t> embedding_vecsize_per_table;
  std::vector<double> default_value_for_each_table;
};

struct PsConfig {
  bool supportlonglong = true;
  std::optional<PsVolatile> volatile_db;
  std::optional<PsPersistent> persistent_db;
  std::optional<PsUpdates> update_source;
  std::vector<PsModel> models;
};

template <class P>
void ignore(Schema<P>& schema, std::initializer_list<const char*> keys, const char* why) {
  for (const char* key : keys) schema.ignored(key, why);
}

Schema<PsVolatile> volatile_schema() {
  Schema<PsVolatile> schema("volatile_db");
  schema.opt("type", &PsVolatile::type, "the database")
      .opt("num_partitions", &PsVolatile::num_partitions, "of each table")
      .opt("overflow_margin", &PsVolatile::overflow_margin, "number of rows of a partition at which rows are evicted");
  ignore(schema,
         {"address", "user_name", "password", "num_node_connections", "enable_tls", "tls_ca_certificate",
          "tls_client_certificate", "tls_client_key", "tls_server_name_identification", "max_get_batch_size",
          "max_set_batch_size", "max_batch_size"},
         kOfRedis);
  ignore(schema, {"allocation_rate"}, "memory is allocated as needed");
  ignore(schema, {"shared_memory_size", "shared_memory_name", "shared_memory_auto_remove"},
         "belongs to memory shared between processes, which this store does not have yet");
  ignore(schema, {"refresh_time_after_fetch", "overflow_policy", "overflow_resolution_target"},
         "rows beyond the limit replace random ones");
  ignore(schema, {"initialize_after_startup"}, "store load fills every level");
  ignore(schema, {"initial_cache_rate"}, "memory is filled up to its limit; HugeCTR only printed this value");
  ignore(schema, {"cache_missed_embeddings"}, "rows that are found are kept in memory, never rows of unknown keys");
  ignore(schema, {"update_filters"}, "updates are applied by model; HugeCTR's default filter matched no topic");
  schema.closed();
  return schema;
}

Schema<PsPersistent> persistent_schema() {
  Schema<PsPersistent> schema("persistent_db");
  schema.opt("type", &PsPersistent::type, "the database").opt("path", &PsPersistent::path, "its folder");
  ignore(schema, {"num_threads", "max_batch_size", "max_get_batch_size", "max_set_batch_size"}, "belongs to RocksDB");
  ignore(schema, {"read_only"}, "one process at a time has the folder");
  ignore(schema, {"initialize_after_startup"}, "store load fills every level");
  ignore(schema, {"update_filters"}, "updates are applied by model");
  schema.closed();
  return schema;
}

Schema<PsUpdates> updates_schema() {
  Schema<PsUpdates> schema("update_source");
  schema.opt("type", &PsUpdates::type, "the source of updates");
  ignore(schema,
         {"brokers", "metadata_refresh_interval_ms", "receive_buffer_size", "poll_timeout_ms", "max_batch_size",
          "failure_backoff_ms", "max_commit_interval"},
         "belongs to Kafka, which this store does not have yet; deltas come from files");
  schema.closed();
  return schema;
}

Schema<PsModel> ps_model_schema() {
  Schema<PsModel> schema("models");
  schema.opt("model", &PsModel::model, "its name")
      .need("sparse_files", &PsModel::sparse_files, "a folder for each table")
      .need("embedding_vecsize_per_table", &PsModel::embedding_vecsize_per_table, "elements of a row")
      .opt("default_value_for_each_table", &PsModel::default_value_for_each_table, "for unknown keys")
      .opt("embedding_table_names", &PsModel::embedding_table_names, "default: sparse_embedding0, ...");
  ignore(schema, {"dense_file", "network_file", "label_dim", "slot_num", "maxnum_des_feature_per_sample"},
         "a store serves tables; a Model takes its dense part from its own files");
  ignore(schema,
         {"num_of_worker_buffer_in_pool", "num_of_refresher_buffer_in_pool", "max_batch_size",
          "maxnum_catfeature_query_per_table_per_sample", "thread_pool_size", "use_context_stream"},
         "requests may have any size, and need no fixed number of buffers");
  ignore(schema,
         {"deployed_device_list", "gpucache", "gpucacheper", "cache_refresh_percentage_per_iteration", "refresh_delay",
          "refresh_interval", "embedding_cache_type", "use_static_table", "use_hctr_cache_implementation", "init_ec",
          "enable_pagelock", "fp8_quant"},
         kOfGpuCache);
  ignore(schema, {"hit_rate_threshold"}, "misses are always answered correctly, never with default rows");
  ignore(schema, {"fuse_embedding_table"}, "tables need not be fused");
  schema.closed();
  return schema;
}

Schema<PsConfig> ps_schema() {
  Schema<PsConfig> schema("ps.json");
  schema.need("supportlonglong", &PsConfig::supportlonglong, "keys are int64; else uint32")
      .part("volatile_db", &PsConfig::volatile_db, volatile_schema(), "level 2")
      .part("persistent_db", &PsConfig::persistent_db, persistent_schema(), "level 3")
      .part("update_source", &PsConfig::update_source, updates_schema(), "Kafka")
      .list("models", &PsConfig::models, ps_model_schema(), "the models");
  ignore(schema, {"fuse_embedding_table"}, "tables need not be fused");
  schema.closed();
  return schema;
}

bool is_word(const std::string& word, std::initializer_list<const char*> words) {
  return std::ranges::find(words, word) != words.end();
}

void read_volatile(const PsConfig& ps, StoreConfig& config, Problems& problems) {
  if (!ps.volatile_db) return;
  const PsVolatile& db = *ps.volatile_db;
  const char* const at = "/volatile_db/type";
  if (is_word(db.type, {"disabled", "disable", "none"})) {
    config.memory = false;
  } else if (is_word(db.type,
                     {"multi_process_hash_map", "multi_process_hashmap", "multi_process_hash", "multi_process_map"})) {
    problems.warn(at, "memory shared between processes is not supported yet: this process has its own rows");
  } else if (is_word(db.type, {"redis_cluster", "redis"})) {
    problems.error(at, "Redis is not supported yet; use parallel_hash_map");
  } else if (!is_word(db.type, {"hash_map", "hashmap", "hash", "map", "parallel_hash_map", "parallel_hashmap",
                                "parallel_hash", "parallel_map"})) {
    problems.error(at, cat("\"", db.type, "\" is not a database",
                           did_you_mean(db.type, {"disabled", "hash_map", "parallel_hash_map"}, 4)));
  }
  if (db.overflow_margin && *db.overflow_margin > 0) config.most_rows = *db.overflow_margin * db.num_partitions;
}

void read_persistent(const PsConfig& ps, StoreConfig& config, Problems& problems) {
  if (!ps.persistent_db) return;
  const PsPersistent& db = *ps.persistent_db;
  if (is_word(db.type, {"disabled", "disable", "none"})) return;
  if (!is_word(db.type, {"rocks_db", "rocksdb", "rocks"}))
    return problems.error("/persistent_db/type",
                          cat("\"", db.type, "\" is not a database", did_you_mean(db.type, {"disabled", "rocks_db"})));
  if (db.path.empty()) return problems.error("/persistent_db/path", "the folder is missing");
  config.folder = db.path;
  problems.warn("/persistent_db/type", "RocksDB is not supported yet: rows go to the store's own files in this folder");
}

void read_model(const PsModel& from, size_t number, StoreConfig& config, Problems& problems) {
  const std::string at = cat("/models/", number);
  const size_t tables = from.sparse_files.size();
  const auto count = [&](const char* name, size_t have, bool may_be_short) {
    if (have > tables || (!may_be_short && have < tables))
      problems.error(cat(at, "/", name), cat("has ", have, " values, but there are ", tables, " sparse_files"));
  };
  count("embedding_vecsize_per_table", from.embedding_vecsize_per_table.size(), false);
  count("default_value_for_each_table", from.default_value_for_each_table.size(), true);
  if (!from.embedding_table_names.empty()) count("embedding_table_names", from.embedding_table_names.size(), false);
  if (from.embedding_vecsize_per_table.size() != tables || problems.any_error()) return;
  StoreModelSection model;
  model.name = from.model;
  if (model.name.empty()) problems.error(at + "/model", "the name is missing");
  for (size_t t = 0; t < tables; ++t) {
    StoreTableSection table;
    table.name = from.embedding_table_names.empty() ? cat("sparse_embedding", t) : from.embedding_table_names[t];
    table.model_file = from.sparse_files[t];
    table.dim = from.embedding_vecsize_per_table[t];
    if (t < from.default_value_for_each_table.size()) table.default_value = from.default_value_for_each_table[t];
    if (table.dim < 1) problems.error(cat(at, "/embedding_vecsize_per_table/", t), "is less than 1");
    model.tables.push_back(std::move(table));
  }
  config.models.push_back(std::move(model));
}

}  // namespace

StoreConfig read_ps_config(const Json& json, Problems& problems) {
  // HugeCTR's documentation has this spelling in examples, but HugeCTR ignores it.
  if (json.find("peristent_db")) problems.error("/peristent_db", "unknown key; did you mean \"persistent_db\"?");
  Json known;
  if (json.object())
    for (const auto& [key, value] : *json.object())
      if (key != "peristent_db") known.set(key, value);
  const PsConfig ps = ps_schema().parse(known, "", problems);
  StoreConfig config;
  if (!ps.supportlonglong)
    problems.note("/supportlonglong", "keys have 64 bits here; keys of files are not truncated to 32");
  read_volatile(ps, config, problems);
  read_persistent(ps, config, problems);
  if (ps.update_source && !is_word(ps.update_source->type, {"null", "none"}))
    problems.error("/update_source/type", "Kafka is not supported yet; deltas come from files: huge_ctr store load");
  if (config.folder.empty() && config.most_rows > 0) {
    problems.warn("/volatile_db/overflow_margin", "without a persistent_db all rows stay in memory");
    config.most_rows = 0;
  }
  if (!config.memory && config.folder.empty())
    problems.error("/volatile_db", "there is no database to answer requests");
  if (!config.memory) config.most_rows = 0;
  for (size_t m = 0; m < ps.models.size(); ++m) read_model(ps.models[m], m, config, problems);
  return config;
}

}  // namespace hctr
