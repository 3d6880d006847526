// Reads the ps.json of HugeCTR's Hierarchical Parameter Server, in the spellings of versions 3.1 to 24.06.
#include <algorithm>

#include "core/base/expect.h"
#include "store/store_config.h"

namespace hctr {
namespace {

struct PsVolatile {
  std::string type = "parallel_hash_map";
  std::optional<int64_t> overflow_margin;
  int64_t num_partitions = 16, num_node_connections = 5;
  std::string address = "127.0.0.1:7000", user_name = "default", password;
  bool enable_tls = false, cache_missed_embeddings = false, initialize_after_startup = true;
  std::string tls_ca_certificate = "cacertbundle.crt", tls_client_certificate = "client_cert.pem",
              tls_client_key = "client_key.pem", tls_server_name_identification = "redis.localhost";
  std::string overflow_policy = "evict_random";
  double overflow_resolution_target = 0.8;
};

struct PsPersistent {
  std::string type = "disabled";
  std::string path;
  int64_t num_threads = 16;
  bool read_only = false, initialize_after_startup = true;
};

struct PsUpdates {
  std::string type = "null";
  std::string brokers = "127.0.0.1:9092";
  int64_t metadata_refresh_interval_ms = 30000, receive_buffer_size = 262144;
};

struct PsModel {
  std::string model;
  std::vector<std::string> sparse_files, embedding_table_names;
  std::vector<int64_t> embedding_vecsize_per_table;
  std::vector<double> default_value_for_each_table;
  bool gpucache = true, use_static_table = false, fp8_quant = false;
  double gpucacheper = 0.2;
  std::string embedding_cache_type = "dynamic";

  bool in_gpu_whole() const {
    return use_static_table || embedding_cache_type == "static" || embedding_cache_type == "uvm";
  }
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
      .opt("num_partitions", &PsVolatile::num_partitions, "number of partitions of each table")
      .opt("overflow_margin", &PsVolatile::overflow_margin,
           "number of rows in a partition above which rows are "
           "evicted");
  schema.opt("address", &PsVolatile::address, "host:port of Redis nodes, separated by commas")
      .opt("user_name", &PsVolatile::user_name, "user name for Redis")
      .opt("password", &PsVolatile::password, "password for Redis")
      .opt("num_node_connections", &PsVolatile::num_node_connections, "connections to each Redis node",
           between(1, 1024))
      .opt("enable_tls", &PsVolatile::enable_tls, "use TLS for connections to Redis")
      .opt("tls_ca_certificate", &PsVolatile::tls_ca_certificate,
           "file or folder of certificates that are trusted "
           "for Redis")
      .opt("tls_client_certificate", &PsVolatile::tls_client_certificate, "the client certificate for Redis")
      .opt("tls_client_key", &PsVolatile::tls_client_key, "the private key of the client certificate")
      .opt("tls_server_name_identification", &PsVolatile::tls_server_name_identification,
           "the name that certificates of Redis servers must contain")
      .opt("overflow_policy", &PsVolatile::overflow_policy, "which rows are evicted")
      .opt("overflow_resolution_target", &PsVolatile::overflow_resolution_target,
           "fraction of overflow_margin "
           "that an eviction keeps",
           strictly_between(0, 1))
      .opt("cache_missed_embeddings", &PsVolatile::cache_missed_embeddings,
           "also store rows that were found in the level below")
      .opt("initialize_after_startup", &PsVolatile::initialize_after_startup,
           "true: write the rows at the start; false, without persistent_db: serve the rows that Redis already has");
  ignore(schema, {"max_get_batch_size", "max_set_batch_size", "max_batch_size"}, "requests have any size");
  ignore(schema, {"allocation_rate"}, "memory grows with the rows");
  ignore(schema, {"shared_memory_size", "shared_memory_name", "shared_memory_auto_remove"},
         "configures memory shared by processes: set \"shared_memory\" in a store.json instead");
  ignore(schema, {"refresh_time_after_fetch"}, "overflow_policy decides whether access times are kept");
  ignore(schema, {"initial_cache_rate"}, "memory is filled up to its limit; HugeCTR only prints this value");
  ignore(schema, {"update_filters"}, "all updates of a model are applied; HugeCTR's default filter matches no topic");
  schema.closed();
  return schema;
}

Schema<PsPersistent> persistent_schema() {
  Schema<PsPersistent> schema("persistent_db");
  schema.opt("type", &PsPersistent::type, "the database")
      .opt("path", &PsPersistent::path, "folder of the database")
      .opt("num_threads", &PsPersistent::num_threads, "threads that compact files", between(1, 1024))
      .opt("read_only", &PsPersistent::read_only, "serve the rows of the database without changing them")
      .opt("initialize_after_startup", &PsPersistent::initialize_after_startup,
           "true: write the rows at the start; false: serve the rows that the database already has");
  ignore(schema, {"max_batch_size", "max_get_batch_size", "max_set_batch_size"}, "requests have any size");
  ignore(schema, {"update_filters"}, "all updates of a model are applied");
  schema.closed();
  return schema;
}

Schema<PsUpdates> updates_schema() {
  Schema<PsUpdates> schema("update_source");
  schema.opt("type", &PsUpdates::type, "the source of updates: null or kafka")
      .opt("brokers", &PsUpdates::brokers, "host[:port] of brokers, separated by ; or ,")
      .opt("metadata_refresh_interval_ms", &PsUpdates::metadata_refresh_interval_ms,
           "milliseconds between searches "
           "for new topics",
           at_least(10))
      .opt("receive_buffer_size", &PsUpdates::receive_buffer_size, "maximum size of a message in bytes",
           at_least(1024));
  ignore(schema, {"poll_timeout_ms", "max_batch_size"},
         "rows are applied without delay; an update ends with the message that reaches 8192 rows");
  ignore(schema, {"failure_backoff_ms"}, "a failed write is an error and is not retried");
  ignore(schema, {"max_commit_interval"}, "offsets are stored with each commit of the store");
  schema.closed();
  return schema;
}

Schema<PsModel> ps_model_schema() {
  Schema<PsModel> schema("models");
  schema.opt("model", &PsModel::model, "name of the model")
      .need("sparse_files", &PsModel::sparse_files, "a folder for each table")
      .need("embedding_vecsize_per_table", &PsModel::embedding_vecsize_per_table, "elements of a row")
      .opt("default_value_for_each_table", &PsModel::default_value_for_each_table,
           "for each table the value of every element of the row of an unknown key")
      .opt("embedding_table_names", &PsModel::embedding_table_names,
           "names of the tables; default: sparse_embedding0, sparse_embedding1 and so on")
      .opt("gpucache", &PsModel::gpucache, "whether the model has a GPU cache")
      .opt("gpucacheper", &PsModel::gpucacheper, "fraction of each table's rows in the GPU cache", between(0, 1))
      .opt("embedding_cache_type", &PsModel::embedding_cache_type, "dynamic, static or uvm")
      .opt("use_static_table", &PsModel::use_static_table, "all rows are in the GPU cache")
      .opt("fp8_quant", &PsModel::fp8_quant, "whether a static cache has 8-bit elements");
  ignore(schema, {"dense_file", "network_file", "label_dim", "slot_num", "maxnum_des_feature_per_sample"},
         "a store serves only tables; a Model reads its dense part from its own files");
  ignore(schema,
         {"num_of_worker_buffer_in_pool", "num_of_refresher_buffer_in_pool", "max_batch_size",
          "maxnum_catfeature_query_per_table_per_sample", "thread_pool_size", "use_context_stream"},
         "requests may have any size, and need no fixed number of buffers");
  ignore(schema, {"cache_refresh_percentage_per_iteration", "refresh_delay", "refresh_interval"},
         "updates change rows of the GPU cache immediately");
  ignore(schema, {"deployed_device_list"}, "a Model or a cache names its GPU");
  ignore(schema, {"use_hctr_cache_implementation", "init_ec", "enable_pagelock"}, "there is one kind of GPU cache");
  ignore(schema, {"hit_rate_threshold"}, "misses are always answered correctly, never with default rows");
  ignore(schema, {"fuse_embedding_table"}, "this store does not fuse tables");
  schema.closed();
  return schema;
}

Schema<PsConfig> ps_schema() {
  Schema<PsConfig> schema("ps.json");
  schema.need("supportlonglong", &PsConfig::supportlonglong, "true: keys are int64; false: uint32")
      .part("volatile_db", &PsConfig::volatile_db, volatile_schema(), "level 2")
      .part("persistent_db", &PsConfig::persistent_db, persistent_schema(), "level 3")
      .part("update_source", &PsConfig::update_source, updates_schema(), "Kafka")
      .list("models", &PsConfig::models, ps_model_schema(), "the models");
  ignore(schema, {"fuse_embedding_table"}, "this store does not fuse tables");
  schema.closed();
  return schema;
}

bool is_word(const std::string& word, std::initializer_list<const char*> words) {
  return std::ranges::find(words, word) != words.end();
}

void read_redis(const PsVolatile& db, bool longlong, StoreConfig& config, Problems& problems) {
  config.memory = false;
  StoreRedisSection& redis = config.redis.emplace();
  redis.addresses.clear();
  for (size_t first = 0; first <= db.address.size();) {
    const size_t end = std::min(db.address.find_first_of(",;", first), db.address.size());
    redis.addresses.push_back(db.address.substr(first, end - first));
    first = end + 1;
  }
  redis.user = db.user_name == "default" ? "" : db.user_name;
  redis.password = db.password;
  if (db.enable_tls) {
    redis.tls = true;
    redis.ca = db.tls_ca_certificate;
    redis.certificate = db.tls_client_certificate;
    redis.key = db.tls_client_key;
    redis.server_name = db.tls_server_name_identification;
  }
  redis.names = StoreNames::hugectr;
  redis.key_bytes = longlong ? 8 : 4;
  redis.partitions = db.num_partitions;
  redis.connections = db.num_node_connections;
  redis.keep_rows = true;
  redis.keep_missed = db.cache_missed_embeddings;
  redis.fill = db.initialize_after_startup;
  redis.most_rows = db.overflow_margin.value_or(0);
  redis.evict_to = db.overflow_resolution_target;
  using Eviction = StoreRedisOptions::Eviction;
  if (is_word(db.overflow_policy, {"evict_least_used", "least_used"}))
    redis.eviction = Eviction::least_used;
  else if (is_word(db.overflow_policy, {"evict_oldest", "oldest"}))
    redis.eviction = Eviction::oldest;
  else if (!is_word(db.overflow_policy, {"evict_random", "random"}))
    problems.error("/volatile_db/overflow_policy",
                   cat("\"", db.overflow_policy, "\" is not a policy",
                       did_you_mean(db.overflow_policy, {"evict_random", "evict_least_used", "evict_oldest"}, 4)));
}

void read_volatile(const PsConfig& ps, StoreConfig& config, Problems& problems) {
  if (!ps.volatile_db) return;
  const PsVolatile& db = *ps.volatile_db;
  const char* const at = "/volatile_db/type";
  if (is_word(db.type, {"disabled", "disable", "none"})) {
    config.memory = false;
  } else if (is_word(db.type,
                     {"multi_process_hash_map", "multi_process_hashmap", "multi_process_hash", "multi_process_map"})) {
    problems.warn(at, "this process keeps its own rows: to share them, set \"shared_memory\" in a store.json");
  } else if (is_word(db.type, {"redis_cluster", "redis"})) {
    return read_redis(db, ps.supportlonglong, config, problems);
  } else if (!is_word(db.type, {"hash_map", "hashmap", "hash", "map", "parallel_hash_map", "parallel_hashmap",
                                "parallel_hash", "parallel_map"})) {
    problems.error(at, cat("\"", db.type, "\" is not a database",
                           did_you_mean(db.type, {"disabled", "hash_map", "parallel_hash_map", "redis_cluster"}, 4)));
  }
  if (db.overflow_margin && *db.overflow_margin > 0) config.most_rows = *db.overflow_margin * db.num_partitions;
  if (db.overflow_policy != "evict_random" && config.most_rows > 0)
    problems.note("/volatile_db/overflow_policy", "at the limit each new row replaces a random one");
  if (!db.cache_missed_embeddings && config.most_rows > 0)
    problems.note("/volatile_db/cache_missed_embeddings",
                  "memory keeps rows that were found, never rows of unknown keys");
}

void read_persistent(const PsConfig& ps, StoreConfig& config, Problems& problems) {
  if (!ps.persistent_db) return;
  const PsPersistent& db = *ps.persistent_db;
  if (is_word(db.type, {"disabled", "disable", "none"})) return;
  if (!is_word(db.type, {"rocks_db", "rocksdb", "rocks"}))
    return problems.error("/persistent_db/type",
                          cat("\"", db.type, "\" is not a database", did_you_mean(db.type, {"disabled", "rocks_db"})));
  if (db.path.empty()) return problems.error("/persistent_db/path", "the folder is missing");
  config.rocksdb = StoreRocksSection{
      .folder = db.path,
      .open = db.read_only ? StoreRocksOptions::Opening::read_only : StoreRocksOptions::Opening::update,
      .names = StoreNames::hugectr,
      .key_bytes = ps.supportlonglong ? 8 : 4,
      .background_threads = db.num_threads};
}

/// Whether the store serves the rows that the database already contains.
bool has_rows_already(const PsConfig& ps, const StoreConfig& config) {
  if (config.redis && !config.lasts()) return !config.redis->fill;
  return config.lasts() && (ps.persistent_db->read_only || !ps.persistent_db->initialize_after_startup);
}

/// Makes each model follow the topics of its tables. HugeCTR's topic filters are not used: they apply to models, and
/// the default filter matches none.
void read_updates(const PsConfig& ps, StoreConfig& config, Problems& problems) {
  if (!ps.update_source) return;
  const PsUpdates& from = *ps.update_source;
  if (is_word(from.type, {"null", "none"})) return;
  if (!is_word(from.type, {"kafka_message_queue", "kafka_mq", "kafka"}))
    return problems.error("/update_source/type", cat("\"", from.type, "\" is not a source of updates",
                                                     did_you_mean(from.type, {"null", "kafka"}, 4)));
  for (StoreModelSection& model : config.models) {
    ConsumeSection& stream = model.stream;
    stream.given = true;
    stream.format = StreamFormat::hps;
    stream.key_bytes = ps.supportlonglong ? 8 : 4;
    stream.brokers = from.brokers;
    std::ranges::replace(stream.brokers, ';', ',');
    stream.librdkafka = {cat("topic.metadata.refresh.interval.ms=", from.metadata_refresh_interval_ms),
                         cat("message.max.bytes=", from.receive_buffer_size + 1024)};
  }
}

void read_model(const PsModel& from, size_t number, bool in_level, StoreConfig& config, Problems& problems) {
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
    table.in_level = in_level;
    if (!in_level) table.model_file = from.sparse_files[t];
    table.dim = from.embedding_vecsize_per_table[t];
    if (t < from.default_value_for_each_table.size()) table.default_value = from.default_value_for_each_table[t];
    if (table.dim < 1) problems.error(cat(at, "/embedding_vecsize_per_table/", t), "is less than 1");
    model.tables.push_back(std::move(table));
  }
  config.models.push_back(std::move(model));
}

/// HugeCTR has a cache for each model and table. Here, all models of a store share one cache configuration.
void read_cache(const PsConfig& ps, StoreConfig& config, Problems& problems) {
  StoreCacheSection cache;
  bool differ = false;
  size_t cached = 0, fp8 = 0;
  for (size_t m = 0; m < ps.models.size(); ++m) {
    const PsModel& model = ps.models[m];
    if (!is_word(model.embedding_cache_type, {"dynamic", "static", "uvm", "stochastic"}))
      problems.error(cat("/models/", m, "/embedding_cache_type"),
                     cat("\"", model.embedding_cache_type, "\" is not a type of cache",
                         did_you_mean(model.embedding_cache_type, {"dynamic", "static", "uvm", "stochastic"}, 4)));
    if (!model.gpucache) continue;
    const double share = model.in_gpu_whole() ? 1 : model.gpucacheper;
    differ = differ || (cached > 0 && share != cache.share);
    cache.share = std::max(cache.share, share);
    fp8 += model.fp8_quant && model.in_gpu_whole();
    ++cached;
  }
  if (cached == 0) return;
  if (config.changes_elsewhere())
    return problems.note(
        "/models",
        "models get no GPU cache: other programs may change the rows in Redis, and a cache would keep old rows");
  if (differ) problems.note("/models", cat("the GPU cache of every model has the largest gpucacheper, ", cache.share));
  if (fp8 == cached)
    cache.row_type = StoreCacheOptions::Rows::fp8;
  else if (fp8 > 0)
    problems.note("/models", "fp8_quant has no effect unless it is set for every model");
  config.gpu_cache = cache;
}

}  // namespace

StoreConfig read_ps_config(const Json& json, Problems& problems) {
  // Some examples in HugeCTR's documentation have this spelling, which HugeCTR ignores.
  if (json.find("peristent_db")) problems.error("/peristent_db", "unknown key; did you mean \"persistent_db\"?");
  Json known;
  if (json.object())
    for (const auto& [key, value] : *json.object())
      if (key != "peristent_db") known.set(key, value);
  const PsConfig ps = ps_schema().parse(known, "", problems);
  StoreConfig config;
  if (!ps.supportlonglong)
    problems.note("/supportlonglong", "keys have 64 bits in this store; keys of files are not truncated to 32 bits");
  read_volatile(ps, config, problems);
  read_persistent(ps, config, problems);
  if (!config.lasts() && config.most_rows > 0) {
    problems.warn("/volatile_db/overflow_margin", "without a persistent_db all rows stay in memory");
    config.most_rows = 0;
  }
  if (config.redis && !config.lasts() && config.redis->most_rows > 0) {
    problems.warn("/volatile_db/overflow_margin", "without a persistent_db all rows stay in Redis");
    config.redis->most_rows = 0;
  }
  if (!config.memory && !config.redis && !config.lasts())
    problems.error("/volatile_db", "volatile_db and persistent_db are both disabled: the store has no level");
  if (!config.memory) config.most_rows = 0;
  for (size_t m = 0; m < ps.models.size(); ++m)
    read_model(ps.models[m], m, has_rows_already(ps, config), config, problems);
  read_updates(ps, config, problems);
  read_cache(ps, config, problems);
  return config;
}

}  // namespace hctr
