#include "store/store_config.h"

#include "config/config_file.h"
#include "core/base/expect.h"
#include "store/level_sections.h"

namespace hctr {
namespace {

Schema<StoreTableSection> table_schema() {
  using T = StoreTableSection;
  return Schema<T>("tables")
      .need("name", &T::name, "name in requests")
      .need("dim", &T::dim, "elements of a row", at_least(1))
      .opt("model_file", &T::model_file,
           "a sparse model file of this program or of HugeCTR, or a folder with the files key and emb_vector")
      .opt("file", &T::file,
           "a Parquet file with the columns key and vector, or a .safetensors file with the "
           "arrays key and vector")
      .opt("keys", &T::keys, "an npy file of integer keys; needs \"vectors\"")
      .opt("vectors", &T::vectors, "an npy file of floats, one row per key of \"keys\"")
      .opt("random_rows", &T::random_rows,
           "for benchmarks: random rows for the keys from 0 up to this number, made in memory from \"seed\"",
           at_least(0))
      .opt("seed", &T::seed, "with \"random_rows\": the same seed makes the same rows", at_least(0))
      .opt("in_level", &T::in_level,
           "true: the lowest level already has the rows, under HugeCTR's names; needs \"names\": \"hugectr\" in "
           "that level")
      .opt("by_slot", &T::by_slot, "with \"model_file\": rows are identified by slot and key")
      .opt("default_value", &T::default_value,
           "value of every element of the default row, which a key without a "
           "row gets")
      .together([](T& t, const std::string& pointer, Problems& problems) {
        if (t.sources() > 1 || t.keys.empty() != t.vectors.empty())
          problems.error(pointer,
                         "needs either \"model_file\", \"file\", \"keys\" and \"vectors\", \"random_rows\", or "
                         "\"in_level\": true");
        if (t.random_rows > 0 && t.by_slot)
          problems.error(pointer + "/by_slot", "\"random_rows\" are identified by the key alone");
        if (t.seed > 0 && t.random_rows == 0) problems.error(pointer + "/seed", "needs \"random_rows\"");
      })
      .closed();
}

Schema<StoreModelSection> model_schema() {
  using M = StoreModelSection;
  return Schema<M>("models")
      .need("name", &M::name, "name in requests")
      .opt("version", &M::version,
           "name of the version; a new version is loaded next to the old version and then "
           "replaces it")
      .opt("model", &M::model, "the run folder, checkpoint or snapshot_prefix whose tables are served")
      .opt("updates", &M::updates, "a snapshot_prefix; `store load` applies its deltas")
      .part("stream", &M::stream, consume_schema(), "the Kafka topic of updates", false)
      .opt("miss_is_error", &M::miss_is_error,
           "true: a key without a row is an error; false: a key without a row "
           "gets the default row")
      .list("tables", &M::tables, table_schema(), "tables from files, instead of \"model\"", false)
      .together([](M& m, const std::string& pointer, Problems& problems) {
        if (m.model.empty() == m.tables.empty()) problems.error(pointer, "needs either \"model\" or \"tables\"");
        for (size_t t = 0; t < m.tables.size() && !m.stream.given; ++t)
          if (m.tables[t].sources() == 0)
            problems.error(
                cat(pointer, "/tables/", t),
                "needs either \"model_file\", \"file\", \"keys\" and \"vectors\", or \"random_rows\"; tables that "
                "begin empty need a \"stream\"");
      })
      .closed();
}

void check_levels(StoreConfig& c, const std::string& pointer, Problems& problems) {
  if (!c.shared_memory.empty() && (!c.memory || c.most_rows > 0 || c.redis || c.lasts()))
    problems.error(pointer + "/shared_memory",
                   "is the only level of a store: it excludes \"memory\": false, \"most_rows\", \"redis\", "
                   "\"folder\" and \"rocksdb\"");
  if (c.rocksdb && !c.folder.empty())
    problems.error(pointer + "/folder", "is a level of files, but \"rocksdb\" is also set: keep one of them");
  if (!c.memory && !c.redis && !c.lasts())
    problems.error(pointer, "needs a level: \"memory\": true, \"redis\", \"folder\" or \"rocksdb\"");
  if (c.most_rows > 0 && (!(c.redis || c.lasts()) || !c.memory))
    problems.error(pointer + "/most_rows", "needs \"memory\" above \"redis\", a \"folder\" or \"rocksdb\"");
  if (c.redis && !c.lasts() && (c.redis->most_rows > 0 || c.redis->expire_seconds > 0))
    problems.error(pointer + "/redis",
                   "\"most_rows\" and \"expire_seconds\" need a level below: \"folder\" or \"rocksdb\"");
  if (c.redis && !c.lasts() && c.memory && c.redis->names == StoreNames::hugectr)
    problems.error(pointer + "/memory",
                   "the memory level would keep old rows, since other programs change the "
                   "rows in Redis; set \"memory\": false");
  if (c.gpu_cache && c.changes_elsewhere())
    problems.error(pointer + "/gpu_cache",
                   "the GPU cache would keep old rows, since another program changes the rows of the lowest level");
  const bool follows = c.rocksdb && c.rocksdb->open == StoreRocksOptions::Opening::follow;
  if (c.redis && follows)
    problems.error(pointer + "/redis",
                   "the Redis level would keep rows that the updating "
                   "process has changed");
  if (c.memory && follows)
    problems.error(pointer + "/memory",
                   "the memory level would keep rows that the updating process has changed; "
                   "set \"memory\": false");
}

}  // namespace

const Schema<StoreConfig>& store_schema() {
  using C = StoreConfig;
  static const Schema<C> schema =
      Schema<C>("store")
          .opt("folder", &C::folder, "folder of the level of files; omitted: no such level")
          .opt("memory", &C::memory, "keep a level in memory, above the other levels")
          .opt("shared_memory", &C::shared_memory,
               "name of a memory level that all processes of this host with this name share: one process loads and "
               "updates, the others read; omitted: memory of this process")
          .opt("most_rows", &C::most_rows,
               "maximum number of rows of each table in memory; other rows are read "
               "from the level below; 0: all rows",
               at_least(0))
          .opt("update_rows_per_second", &C::update_rows_per_second,
               "maximum number of rows per second that "
               "updates change; 0: no limit",
               at_least(0))
          .part(
              "gpu_cache", &C::gpu_cache, cache_schema(),
              "a cache in GPU memory, above all levels, for models and look-ups on a GPU; without it, a model on a GPU "
              "has a cache of default size",
              true)
          .part("rocksdb", &C::rocksdb, rocks_schema(), "a level in a RocksDB database, in place of \"folder\"", true)
          .part("redis", &C::redis, redis_schema(), "a level in Redis: the lowest level, or above a level on disk",
                true)
          .list("models", &C::models, model_schema(), "the models to load", false)
          .together(check_levels)
          .closed();
  return schema;
}

StoreStreamOptions StoreModelSection::stream_options() const {
  return {.stream = stream.options(),
          .updates = updates,
          .hps = stream.format == StreamFormat::hps,
          .key_bytes = static_cast<int>(stream.key_bytes)};
}

StoreOptions StoreConfig::options() const {
  StoreOptions options{.levels = {}, .update_rows_per_second = update_rows_per_second};
  if (gpu_cache) options.cache = options_of(*gpu_cache);
  if (memory) options.levels.push_back({.most_rows = most_rows, .shared = shared_memory});
  if (redis) options.levels.push_back({.kind = StoreLevelOptions::Kind::redis, .redis = options_of(*redis)});
  if (!folder.empty()) options.levels.push_back({.kind = StoreLevelOptions::Kind::file, .folder = folder});
  if (rocksdb) options.levels.push_back({.kind = StoreLevelOptions::Kind::rocksdb, .rocksdb = options_of(*rocksdb)});
  return options;
}

StoreConfig read_store_config(const std::filesystem::path& path, std::vector<std::string>& notes) {
  return parse_store_config(read_config_file(path), path.string(), notes);
}

StoreConfig parse_store_config(const Json& json, const std::string& name, std::vector<std::string>& notes) {
  Problems problems;
  const StoreConfig config =
      json.find("supportlonglong") ? read_ps_config(json, problems) : store_schema().parse(json, "", problems);
  problems.throw_if_any(name);
  for (const auto* list : {&problems.warnings(), &problems.notes()})
    for (const Problems::Entry& one : *list) notes.push_back(cat(name, ": ", one.pointer, ": ", one.message));
  return config;
}

}  // namespace hctr
