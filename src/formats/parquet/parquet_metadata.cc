#include "formats/parquet/parquet_metadata.h"

#include "config/json.h"
#include "core/base/expect.h"

namespace hctr {
namespace {

[[noreturn]] void misfit(const fs::path& path, const std::string& pointer, const char* expected, const Json* found) {
  throw Error(Kind::data, cat("'", path.string(), "': ", pointer, ": expected ", expected, ", found ",
                              found ? found->kind() : "nothing"));
}

const Json::Array& array_of(const Json& json, const fs::path& path, const char* key) {
  const Json* value = json.find(key);
  if (!value || !value->array()) misfit(path, cat("/", key), "an array", value);
  return *value->array();
}

const std::string& name_of(const Json& entry, const fs::path& path, const std::string& pointer, const char* key) {
  const Json* name = entry.find(key);
  if (!name || !name->string()) misfit(path, cat(pointer, "/", key), "a string", name);
  return *name->string();
}

std::vector<ParquetMetadata::Column> columns_of(const Json& json, const fs::path& path, const char* key) {
  std::vector<ParquetMetadata::Column> columns;
  for (const Json& entry : array_of(json, path, key)) {
    const std::string pointer = cat("/", key, "/", columns.size());
    ParquetMetadata::Column& column = columns.emplace_back();
    column.name = name_of(entry, path, pointer, "col_name");
    const Json* index = entry.find("index");
    if (index && !index->integer()) misfit(path, pointer + "/index", "an integer", index);
    if (index) column.index = *index->integer();
  }
  return columns;
}

Json json_of(const std::vector<ParquetMetadata::Column>& columns) {
  Json all(Json::Array{});
  for (const auto& column : columns) all.add(Json::Object{{"col_name", column.name}, {"index", column.index}});
  return all;
}

}  // namespace

std::optional<ParquetMetadata> read_parquet_metadata(const fs::path& folder) {
  ParquetMetadata metadata;
  metadata.path = folder / kParquetMetadata;
  if (std::error_code none; !fs::exists(metadata.path, none)) return {};
  const fs::path& path = metadata.path;
  const Json json = Json::read_file(path);
  size_t at = 0;
  for (const Json& entry : array_of(json, path, "file_stats")) {
    const std::string pointer = cat("/file_stats/", at++);
    const Json* rows = entry.find("num_rows");
    if (!rows || !rows->integer()) misfit(path, pointer + "/num_rows", "an integer", rows);
    metadata.rows[fs::path(name_of(entry, path, pointer, "file_name")).filename().string()] = *rows->integer();
  }
  metadata.labels = columns_of(json, path, "labels");
  metadata.conts = columns_of(json, path, "conts");
  metadata.cats = columns_of(json, path, "cats");
  return metadata;
}

void write_parquet_metadata(const ParquetMetadata& metadata) {
  Json stats(Json::Array{});
  for (const auto& [name, rows] : metadata.rows) stats.add(Json::Object{{"file_name", name}, {"num_rows", rows}});
  Json json;
  json.set("file_stats", std::move(stats))
      .set("cats", json_of(metadata.cats))
      .set("conts", json_of(metadata.conts))
      .set("labels", json_of(metadata.labels));
  write_text(metadata.path, json.text(1) + "\n");
}

}  // namespace hctr
