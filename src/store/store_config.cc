#include "store/store_config.h"

#include "config/config_file.h"
#include "core/base/expect.h"
#include "store/level_sections.h"

namespace hctr {
namespace {

Schema<StoreTableSection> table_schema() {
  using T = StoreTableSection;
  return Schema<T>("tables")
      .need("name", &T::name, "the name in requests")
      .need("dim", &T::dim, "elements of a row", at_least(1))
      .opt("model_file", &T::model_file,
           "a sparse model file of this program or of HugeCTR, or its folder with key, emb_vector")
      .opt("file", &T::file, "Parquet with columns key and vector, or .safetensors with arrays of these names")
      .opt("keys", &T::keys, "an npy file of integers; with vectors")
      .opt("vectors", &T::vectors, "an npy file with as many rows of floats")
      .opt("in_level", &T::in_level,
           "the lowest level has the rows, as HugeCTR names them; needs its \"names\": \"hugectr\"")
      .opt("by_slot", &T::by_slot, "rows belong to slot and key; of model_file")
      .opt("default_value", &T::default_value, "each element of the row that a key without one gets")
      .together([](T& t, const std::string& pointer, Problems& problems) {
        if (t.sources() > 1 || t.keys.empty() != t.vectors.empty())
          problems.error(pointer,
                         "needs either \"model_file\", \"file\", \"keys\" and \"vectors\", or \"in_level\": true");
      })
      .closed();
}

Schema<StoreModelSection> model_schema() {
  using M = StoreModelSection;
  return Schema<M>("models")
      .need("name", &M::name, "the name in requests")
      .opt("version", &M::version, "a text; another version is loaded next to it and takes over")
      .opt("model", &M::model, "a run folder, a checkpoint, or a snapshot_prefix, whose tables to serve")
      .opt("updates", &M::updates, "a snapshot_prefix whose deltas store load applies")
      .part("stream", &M::stream, consume_schema(), "a topic of Kafka that updates come from", false)
      .opt("miss_is_error", &M::miss_is_error, "a key without a row is an error; else it gets the default row")
      .list("tables", &M::tables, table_schema(), "tables from files; replaces model", false)
      .together([](M& m, const std::string& pointer, Problems& problems) {
        if (m.model.empty() == m.tables.empty()) problems.error(pointer, "needs either \"model\" or \"tables\"");
        for (size_t t = 0; t < m.tables.size() && !m.stream.given; ++t)
          if (m.tables[t].sources() == 0)
            problems.error(
                cat(pointer, "/tables/", t),
                "needs either \"model_file\", \"file\", or \"keys\" and \"vectors\"; tables that begin empty "
                "need a \"stream\"");
      })
      .closed();
}

void check_levels(StoreConfig& c, const std::string& pointer, Problems& problems) {
  if (c.rocksdb && !c.folder.empty())
    problems.error(pointer + "/folder", "is of a level of files, and there is one in \"rocksdb\": leave one out");
  if (!c.memory && !c.redis && !c.lasts())
    problems.error(pointer, "needs a level: \"memory\": true, \"redis\", \"folder\" or \"rocksdb\"");
  if (c.most_rows > 0 && (!(c.redis || c.lasts()) || !c.memory))
    problems.error(pointer + "/most_rows", "needs \"memory\" above \"redis\", a \"folder\" or \"rocksdb\"");
  if (c.redis && !c.lasts() && (c.redis->most_rows > 0 || c.redis->expire_seconds > 0))
    problems.error(pointer + "/redis",
                   "\"most_rows\" and \"expire_seconds\" need a level below: \"folder\" or \"rocksdb\"");
  if (c.redis && !c.lasts() && c.memory && c.redis->names == StoreNames::hugectr)
    problems.error(pointer + "/memory", "would keep rows that other programs change in Redis; set \"memory\": false");
  const bool follows = c.rocksdb && c.rocksdb->open == StoreRocksOptions::Opening::follow;
  if (c.redis && follows) problems.error(pointer + "/redis", "would keep rows that the updater has changed");
  if (c.memory && follows)
    problems.error(pointer + "/memory", "would keep rows that the updater has changed; set \"memory\": false");
}

}  // namespace

const Schema<StoreConfig>& store_schema() {
  using C = StoreConfig;
  static const Schema<C> schema =
      Schema<C>("store")
          .opt("folder", &C::folder, "a folder for the level of files; omitted: there is none")
          .opt("memory", &C::memory, "a level in memory, above that of files")
          .opt("most_rows", &C::most_rows, "of each table in memory, others are read from the files; 0: all",
               at_least(0))
          .opt("update_rows_per_second", &C::update_rows_per_second, "the most rows that updates change; 0: no limit",
               at_least(0))
          .part("rocksdb", &C::rocksdb, rocks_schema(), "a level in a RocksDB database, in place of \"folder\"")
          .part("redis", &C::redis, redis_schema(), "a level in Redis, above one on a disk or the lowest")
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
  if (memory) options.levels.push_back({.most_rows = most_rows});
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
