#include "store/store_config.h"

#include "config/config_file.h"
#include "core/base/expect.h"

namespace hctr {
namespace {

Schema<StoreTableSection> table_schema() {
  using T = StoreTableSection;
  return Schema<T>("tables")
      .need("name", &T::name, "the name that requests give")
      .need("dim", &T::dim, "elements of a row", at_least(1))
      .opt("model_file", &T::model_file,
           "a sparse model file of ours or of HugeCTR, or its folder with key, emb_vector")
      .opt("file", &T::file, "Parquet with columns key and vector, or .safetensors with arrays of these names")
      .opt("keys", &T::keys, "an npy file of integers; with vectors")
      .opt("vectors", &T::vectors, "an npy file with as many rows of floats")
      .opt("in_level", &T::in_level,
           "the lowest level has the rows, as HugeCTR names them; needs its \"names\": \"hugectr\"")
      .opt("by_slot", &T::by_slot, "rows belong to slot and key; of model_file")
      .opt("default_value", &T::default_value, "each element of the row that a key without one gets")
      .together([](T& t, const std::string& pointer, Problems& problems) {
        if (!t.model_file.empty() + !t.file.empty() + !(t.keys.empty() && t.vectors.empty()) + t.in_level != 1 ||
            t.keys.empty() != t.vectors.empty())
          problems.error(pointer,
                         "needs either \"model_file\", \"file\", \"keys\" and \"vectors\", or \"in_level\": true");
      })
      .closed();
}

Schema<StoreModelSection> model_schema() {
  using M = StoreModelSection;
  return Schema<M>("models")
      .need("name", &M::name, "the name that requests give")
      .opt("version", &M::version, "a text; another one is loaded beside it and takes over")
      .opt("model", &M::model, "a run folder, a checkpoint, or a snapshot_prefix, whose tables are served")
      .opt("updates", &M::updates, "a snapshot_prefix whose deltas store load applies")
      .opt("miss_is_error", &M::miss_is_error, "a key without a row is an error; else it gets the default row")
      .list("tables", &M::tables, table_schema(), "tables from files, in place of model", false)
      .together([](M& m, const std::string& pointer, Problems& problems) {
        if (m.model.empty() == m.tables.empty()) problems.error(pointer, "needs either \"model\" or \"tables\"");
      })
      .closed();
}

Schema<StoreRocksSection> rocks_schema() {
  using R = StoreRocksSection;
  return Schema<R>("rocksdb")
      .need("folder", &R::folder, "of the database; made if it is missing")
      .opt("open", &R::open,
           "update: one process at a time. read_only: as it is now. follow: reads, and sees what the updater commits")
      .opt("own_folder", &R::own_folder, "of open follow: a folder of this reader alone, for its log")
      .opt("names", &R::names, "of column families: own, with versions; or hugectr, shared with its parameter server")
      .opt("key_bytes", &R::key_bytes, "8, or 4 as HugeCTR has 32-bit keys", between(4, 8))
      .opt("cache_mb", &R::cache_mb, "of blocks, in memory; 0: none", at_least(0))
      .opt("direct_reads", &R::direct_reads, "read past the page cache")
      .opt("reader_threads", &R::reader_threads, "that wait for the disk, of all requests together", between(0, 1024))
      .opt("background_threads", &R::background_threads, "that compact files", between(1, 1024))
      .together([](R& r, const std::string& pointer, Problems& problems) {
        const bool follows = r.open == StoreRocksOptions::Opening::follow;
        if (follows == r.own_folder.empty())
          problems.error(pointer, "\"open\": \"follow\" and \"own_folder\" need each other");
        if (r.key_bytes != 8 && r.key_bytes != 4) problems.error(pointer + "/key_bytes", "is neither 8 nor 4");
      })
      .closed();
}

void check_levels(StoreConfig& c, const std::string& pointer, Problems& problems) {
  if (c.rocksdb && !c.folder.empty())
    problems.error(pointer + "/folder", "is of a level of files, and there is one in \"rocksdb\": leave one out");
  if (!c.memory && !c.lasts()) problems.error(pointer, "needs a level: \"memory\": true, \"folder\" or \"rocksdb\"");
  if (c.most_rows > 0 && (!c.lasts() || !c.memory))
    problems.error(pointer + "/most_rows", "needs \"memory\" above a \"folder\" or \"rocksdb\"");
  if (c.memory && c.rocksdb && c.rocksdb->open == StoreRocksOptions::Opening::follow)
    problems.error(pointer + "/memory", "would keep rows that the updater has changed; say \"memory\": false");
}

StoreRocksOptions options_of(const StoreRocksSection& from) {
  return {.folder = from.folder,
          .opening = from.open,
          .own_folder = from.own_folder,
          .names = from.names,
          .key_bytes = static_cast<int32_t>(from.key_bytes),
          .cache_bytes = from.cache_mb << 20,
          .direct_reads = from.direct_reads,
          .reader_threads = static_cast<int32_t>(from.reader_threads),
          .background_threads = static_cast<int32_t>(from.background_threads)};
}

}  // namespace

template <>
const Words<StoreRocksOptions::Opening>& EnumWords<StoreRocksOptions::Opening>::table() {
  using Opening = StoreRocksOptions::Opening;
  static const Words<Opening> words = {
      {"update", Opening::update}, {"read_only", Opening::read_only}, {"follow", Opening::follow}};
  return words;
}

template <>
const Words<StoreNames>& EnumWords<StoreNames>::table() {
  static const Words<StoreNames> words = {{"own", StoreNames::own}, {"hugectr", StoreNames::hugectr}};
  return words;
}

const Schema<StoreConfig>& store_schema() {
  using C = StoreConfig;
  static const Schema<C> schema =
      Schema<C>("store")
          .opt("folder", &C::folder, "a folder for the level of files; left out: there is none")
          .opt("memory", &C::memory, "a level in memory, above that of files")
          .opt("most_rows", &C::most_rows, "of each table in memory, others are read from the files; 0: all",
               at_least(0))
          .opt("update_rows_per_second", &C::update_rows_per_second, "the most rows that updates change; 0: no limit",
               at_least(0))
          .part("rocksdb", &C::rocksdb, rocks_schema(), "a level in a RocksDB database, in place of \"folder\"")
          .list("models", &C::models, model_schema(), "the models to load", false)
          .together(check_levels)
          .closed();
  return schema;
}

StoreOptions StoreConfig::options() const {
  StoreOptions options{.levels = {}, .update_rows_per_second = update_rows_per_second};
  if (memory) options.levels.push_back({.most_rows = most_rows});
  if (!folder.empty()) options.levels.push_back({.kind = StoreLevelOptions::Kind::file, .folder = folder});
  if (rocksdb) options.levels.push_back({.kind = StoreLevelOptions::Kind::rocksdb, .rocksdb = options_of(*rocksdb)});
  return options;
}

StoreConfig read_store_config(const std::filesystem::path& path, std::vector<std::string>& notes) {
  const Json json = read_config_file(path);
  Problems problems;
  const StoreConfig config =
      json.find("supportlonglong") ? read_ps_config(json, problems) : store_schema().parse(json, "", problems);
  problems.throw_if_any(path.string());
  for (const auto* list : {&problems.warnings(), &problems.notes()})
    for (const Problems::Entry& one : *list) notes.push_back(cat(path.string(), ": ", one.pointer, ": ", one.message));
  return config;
}

}  // namespace hctr
