#include "formats/model/model_manifest.h"

#include <algorithm>
#include <charconv>

#include "config/checked_json.h"
#include "core/base/expect.h"
#include "hctr/formats.h"

namespace hctr {
namespace {

constexpr const char *kManifestOfModel = "manifest of model files", *kMember = "model file";

const Json& needed(const Json& json, const char* name) {
  if (const Json* found = json.find(name)) return *found;
  throw Error(Kind::data, cat("it lacks \"", name, "\""));
}
int64_t natural_number(const Json& json, const char* name) {
  const int64_t* value = needed(json, name).integer();
  if (!value || *value < 0) throw Error(Kind::data, cat("it has ", needed(json, name).text(), " as \"", name, "\""));
  return *value;
}
const std::string& needed_text(const Json& json, const char* name) {
  const std::string* value = needed(json, name).string();
  if (!value) throw Error(Kind::data, cat("it has ", needed(json, name).text(), " as \"", name, "\""));
  return *value;
}
const Json::Array& needed_list(const Json& json, const char* name) {
  const Json::Array* values = needed(json, name).array();
  if (!values) throw Error(Kind::data, cat("it has ", needed(json, name).kind(), " as \"", name, "\""));
  return *values;
}

/// The digits of the iteration in a file name: "60" in "..._60.model". Empty for other names.
std::string_view iteration_digits(std::string_view name) {
  constexpr std::string_view kEnding = ".model";
  if (!name.ends_with(kEnding)) return {};
  name.remove_suffix(kEnding.size());
  const size_t line = name.rfind('_');
  if (line == name.npos) return {};
  const std::string_view digits = name.substr(line + 1);
  return digits.find_first_not_of("0123456789") == digits.npos ? digits : std::string_view();
}

/// The possible prefixes of a model file's name. Digits before "_sparse_" may belong to the prefix or to the table's
/// index, so each split is a candidate.
std::vector<std::string> possible_prefixes(const std::string& file) {
  const std::string_view digits = iteration_digits(file);
  if (digits.empty()) return {};
  const std::string_view rest = std::string_view(file).substr(0, static_cast<size_t>(digits.data() - file.data()));
  std::vector<std::string> prefixes;
  const auto before = [&](std::string_view ending) {
    if (!rest.ends_with(ending)) return std::optional<std::string_view>();
    return std::optional(rest.substr(0, rest.size() - ending.size()));
  };
  for (const std::string_view ending : {"_opt_dense_", "_dense_"})
    if (const auto prefix = before(ending)) prefixes.emplace_back(*prefix);
  for (const std::string_view ending : {"_opt_sparse_", "_sparse_"})
    if (auto prefix = before(ending))
      while (!prefix->empty() && prefix->back() >= '0' && prefix->back() <= '9') {
        prefix->remove_suffix(1);
        prefixes.emplace_back(*prefix);
      }
  return prefixes;
}

ModelManifest read_model_manifest(const fs::path& path, const std::string& prefix) {
  const Json json = read_checked_json(path, kManifestOfModel, formats::kModelManifestSchema);
  ModelManifest manifest{.path = path, .prefix = prefix};
  in_context([&] { return cat("reading the ", kManifestOfModel, " '", path.string(), "'"); },
             [&] {
               manifest.run = needed_text(json, "run");
               if (const Json* folder = json.find("run_folder"); folder && folder->string())
                 manifest.run_folder = *folder->string();
               manifest.iteration = natural_number(json, "iteration");
               manifest.updates = natural_number(json, "updates");
               manifest.config = needed(json, "config");
               manifest.data = needed(json, "data");
               for (const Json& table : needed_list(json, "tables"))
                 manifest.tables.push_back({needed_text(table, "name"), natural_number(table, "embedding_vec_size"),
                                            needed_text(table, "identity") == "slot_and_key"});
               if (const Json* statistics = json.find("statistics"))
                 manifest.statistics = column_statistics(*statistics);
               if (const Json* delta = json.find("delta")) {
                 manifest.delta.emplace(SavedDelta{.base = natural_number(*delta, "base"),
                                                   .key_bytes = static_cast<int>(natural_number(*delta, "key_bytes"))});
                 for (const Json& table : needed_list(*delta, "tables"))
                   manifest.delta->tables.push_back({natural_number(table, "rows"), natural_number(table, "changed"),
                                                     natural_number(table, "removed")});
                 if (manifest.delta->tables.size() != manifest.tables.size())
                   throw Error(Kind::data, cat("the delta has ", manifest.delta->tables.size(),
                                               " tables, but the manifest lists ", manifest.tables.size()));
               }
               for (const Json& member : needed_list(json, "files")) {
                 const std::string& crc = needed_text(member, "crc32");
                 const std::optional<uint32_t> number = crc_of_text(crc);
                 if (!number) throw Error(Kind::data, cat("it has '", crc, "' as \"crc32\""));
                 manifest.members.push_back({needed_text(member, "name"), {natural_number(member, "bytes"), *number}});
               }
             });
  return manifest;
}

}  // namespace

std::string ModelManifest::name_of(const fs::path& file) const {
  const std::string whole = (file / "").parent_path().string();  // strips a trailing slash of a folder's path
  return whole.starts_with(prefix) ? whole.substr(prefix.size()) : "";
}

const SavedTable* ModelManifest::table_of(std::string_view name) const {
  size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && number < tables.size() ? &tables[number] : nullptr;
}

void ModelManifest::verify(std::string_view name) const {
  for (const Member& member : members)
    if (const std::string_view other = member.name;
        other == name || (other.starts_with(name) && (other[name.size()] == '/' || other[name.size()] == '.')))
      in_context(
          [&] {
            return cat("checking the files that '", path.string(),
                       "' lists: a file that differs from the manifest is damaged or belongs to another model");
          },
          [&] { expect_checksum(prefix + member.name, kMember, member.checksum); });
}

void write_model_manifest(FileSet& set, AtomicFile& to, ModelManifest manifest) {
  Json files(Json::Array{}), tables(Json::Array{});
  for (AtomicFile& file : set.files()) {
    if (&file == &to) continue;
    file.finish();
    const FileChecksum sum = checksum_of(file.temporary(), kMember);
    files.add(Json(
        Json::Object{{"name", manifest.name_of(file.path())}, {"bytes", sum.bytes}, {"crc32", crc_text(sum.crc)}}));
  }
  for (const SavedTable& table : manifest.tables)
    tables.add(Json(Json::Object{{"name", table.name},
                                 {"embedding_vec_size", table.dim},
                                 {"identity", table.by_slot ? "slot_and_key" : "key"}}));
  Json json(Json::Object{{"schema", formats::kModelManifestSchema},
                         {"run", manifest.run},
                         {"iteration", manifest.iteration},
                         {"updates", manifest.updates},
                         {"tables", std::move(tables)},
                         {"files", std::move(files)},
                         {"data", manifest.data},
                         {"config", manifest.config}});
  if (!manifest.run_folder.empty()) json.set("run_folder", manifest.run_folder);
  if (!manifest.statistics.empty()) json.set("statistics", to_json(manifest.statistics));
  if (manifest.delta) {
    Json of_tables(Json::Array{});
    for (const SavedDelta::Table& table : manifest.delta->tables)
      of_tables.add(Json(Json::Object{{"rows", table.rows}, {"changed", table.changed}, {"removed", table.removed}}));
    json.set("delta", Json(Json::Object{{"base", manifest.delta->base},
                                        {"key_bytes", int64_t{manifest.delta->key_bytes}},
                                        {"tables", std::move(of_tables)}}));
  }
  to.write(with_checksum(json));
  to.finish();
}

std::optional<ModelManifest> manifest_of(const fs::path& model_file) {
  const std::string file = (model_file / "").parent_path().string();
  std::optional<ModelManifest> other;
  for (const std::string& prefix : possible_prefixes(file)) {
    const fs::path path = formats::model_manifest_name(prefix, iteration_digits(file));
    if (!fs::exists(path)) continue;
    ModelManifest manifest = read_model_manifest(path, prefix);
    const std::string name = manifest.name_of(file);
    const auto belongs = [&](const ModelManifest::Member& member) {
      return member.name == name || member.name.starts_with(name + "/");
    };
    if (std::any_of(manifest.members.begin(), manifest.members.end(), belongs)) return manifest;
    if (!other) other = std::move(manifest);
  }
  if (other)
    throw Error(Kind::data, cat("'", file, "' is not among the files that '", other->path.string(),
                                "' lists: the file belongs to another model"));
  return std::nullopt;
}

ModelManifest delta_manifest(const fs::path& folder) {
  const std::string path = (folder / "").parent_path().string(), digits = path.substr(path.rfind('_') + 1);
  const std::string prefix = path + "/";
  const fs::path file = formats::model_manifest_name(prefix, digits);
  if (!fs::exists(file))
    throw Error(Kind::io, cat("'", folder.string(),
                              "' is not the folder of a delta, \"<prefix>_delta_<iteration>\": the "
                              "folder lacks '",
                              file.string(), "'"));
  ModelManifest manifest = read_model_manifest(file, prefix);
  if (!manifest.delta)
    throw Error(Kind::data, cat("'", file.string(), "' is the manifest of a full model, not of a delta"));
  return manifest;
}

}  // namespace hctr
