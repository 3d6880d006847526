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
      .opt("by_slot", &T::by_slot, "rows belong to slot and key; of model_file")
      .opt("default_value", &T::default_value, "each element of the row that a key without one gets")
      .together([](T& t, const std::string& pointer, Problems& problems) {
        if (t.sources() > 1 || t.keys.empty() != t.vectors.empty())
          problems.error(pointer, "needs either \"model_file\", \"file\", or \"keys\" and \"vectors\"");
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
      .part("stream", &M::stream, consume_schema(), "a topic of Kafka that updates come from", false)
      .opt("miss_is_error", &M::miss_is_error, "a key without a row is an error; else it gets the default row")
      .list("tables", &M::tables, table_schema(), "tables from files, in place of model", false)
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

}  // namespace

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
          .list("models", &C::models, model_schema(), "the models to load", false)
          .together([](C& c, const std::string& pointer, Problems& problems) {
            if (!c.memory && c.folder.empty())
              problems.error(pointer, "needs a level: \"memory\": true, or \"folder\"");
            if (c.most_rows > 0 && (c.folder.empty() || !c.memory))
              problems.error(pointer + "/most_rows", "needs \"memory\" above the files in a \"folder\"");
          })
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
  if (!folder.empty()) options.levels.push_back({.kind = StoreLevelOptions::Kind::file, .folder = folder});
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
