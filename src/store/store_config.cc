#include "store/store_config.h"

#include "config/config_file.h"
#include "core/base/expect.h"

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
      .opt("by_slot", &T::by_slot, "rows belong to slot and key; with model_file")
      .opt("default_value", &T::default_value, "value of each element for keys without a row")
      .together([](T& t, const std::string& pointer, Problems& problems) {
        if (!t.model_file.empty() + !t.file.empty() + !(t.keys.empty() && t.vectors.empty()) != 1 ||
            t.keys.empty() != t.vectors.empty())
          problems.error(pointer, "needs either \"model_file\", \"file\", or \"keys\" and \"vectors\"");
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
      .opt("miss_is_error", &M::miss_is_error, "a key without a row is an error; else it gets the default row")
      .list("tables", &M::tables, table_schema(), "tables from files; replaces model", false)
      .together([](M& m, const std::string& pointer, Problems& problems) {
        if (m.model.empty() == m.tables.empty()) problems.error(pointer, "needs either \"model\" or \"tables\"");
      })
      .closed();
}

}  // namespace

const Schema<StoreConfig>& store_schema() {
  using C = StoreConfig;
  static const Schema<C> schema =
      Schema<C>("store")
          .opt("folder", &C::folder, "a folder for the level of files; default: none")
          .opt("memory", &C::memory, "a level in memory, above the files")
          .opt("most_rows", &C::most_rows,
               "maximum rows of each table in memory, others are read from the files; 0: all", at_least(0))
          .opt("update_rows_per_second", &C::update_rows_per_second,
               "maximum rows that updates change per second; 0: no limit", at_least(0))
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
