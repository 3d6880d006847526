#include "formats/checkpoint/manifest.h"

#include <algorithm>

#include "config/checked_json.h"
#include "core/base/expect.h"
#include "core/base/file_checksum.h"

namespace hctr {
namespace {

Json files_json(const Manifest& manifest) {
  Json files(Json::Array{});
  for (const StateIndex& index : manifest.files) files.add(to_json(index));
  return files;
}

Json to_json(const Manifest::Base& base) {
  return Json(Json::Object{{"folder", base.name}, {"crc32", crc_text(base.crc)}, {"increment", base.increment}});
}

Manifest::Base base_in(const Json& json, const fs::path& path) {
  const Json *name = json.find("folder"), *crc = json.find("crc32");
  const std::optional<uint32_t> number = crc && crc->string() ? crc_of_text(*crc->string()) : std::nullopt;
  if (!name || !name->string() || name->string()->empty() || name->string()->starts_with(".") ||
      name->string()->find('/') != std::string::npos || !number)
    throw Error(Kind::data, cat("'", path.string(), "' names ", json.text(),
                                " as the base of the increment; expected the name "
                                "of a folder next to this checkpoint"));
  Manifest::Base base{.name = *name->string(), .crc = *number};
  if (const Json* increment = json.find("increment")) {  // absent in manifests of earlier versions
    if (!increment->integer() || *increment->integer() < 1)
      throw Error(Kind::data, cat("'", path.string(), "': it is increment ", increment->text(), " of '", base.name,
                                  "', expected 1 or more"));
    base.increment = *increment->integer();
  }
  return base;
}

/// Reads the manifest without the manifest of its base.
Manifest read_own_manifest(const fs::path& folder) {
  const fs::path path = folder / kManifestName;
  const Json json = read_checked_json(path, "manifest of a checkpoint", kCheckpointSchema);
  const Json *about = json.find("about"), *progress = json.find("progress"), *files = json.find("files");
  if (!about || !progress || !files || !files->array() || files->array()->empty())
    throw Error(Kind::data, cat("'", path.string(), "' is not a manifest of a checkpoint"));
  Manifest manifest{.about = *about, .progress = *progress, .files = {}};
  in_context([&] { return cat("reading '", path.string(), "'"); },
             [&] {
               for (const Json& file : *files->array()) manifest.files.push_back(state_index(file));
             });
  if (const Json* base = json.find("base")) manifest.base = base_in(*base, path);
  return manifest;
}

}  // namespace

uint32_t Manifest::files_crc() const {
  const std::string text = files_json(*this).text();
  return crc32_of(std::as_bytes(std::span(text)));
}

void write_manifest(const fs::path& folder, const Manifest& manifest) {
  Json json(Json::Object{{"schema", kCheckpointSchema}, {"about", manifest.about}, {"progress", manifest.progress}});
  if (manifest.base) json.set("base", to_json(*manifest.base));
  json.set("files", files_json(manifest));
  write_text(folder / kManifestName, with_checksum(json));
}

Manifest read_manifest(const fs::path& folder) {
  Manifest manifest = read_own_manifest(folder);
  if (!manifest.base) {
    expect_fits_base(manifest, folder);
    return manifest;
  }
  Manifest::Base& base = *manifest.base;
  base.folder = (folder / ".." / base.name).lexically_normal();
  in_context([&] { return cat("reading '", base.folder.string(), "', the base of '", folder.string(), "'"); },
             [&] { base.of = std::make_shared<const Manifest>(read_own_manifest(base.folder)); });
  if (base.of->files_crc() != base.crc)
    throw Error(Kind::data, cat("'", base.folder.string(), "' is not the checkpoint that '", folder.string(),
                                "' builds on: the files there have the checksum ", crc_text(base.of->files_crc()),
                                "; expected ", crc_text(base.crc)));
  expect_fits_base(manifest, folder);
  return manifest;
}

void expect_fits_base(const Manifest& manifest, const fs::path& folder) {
  const Manifest* base = manifest.base ? manifest.base->of.get() : nullptr;
  const auto fits = [&](size_t rank, const StateArray& array) {
    if (!base || base->base || rank >= base->files.size()) return false;
    const StateArray* from = base->files[rank].find(array.name);
    return from && !from->from_base && from->type == array.type && !from->shape.empty() &&
           from->shape[0] >= array.from_base->rows && from->row_bytes() == array.row_bytes();
  };
  for (size_t rank = 0; rank < manifest.files.size(); ++rank)
    for (const StateArray& array : manifest.files[rank].arrays)
      if (array.from_base && !fits(rank, array))
        throw Error(Kind::data, cat("'", (folder / kManifestName).string(), "': the first ", array.from_base->rows,
                                    " rows of '", array.name, "' must come from ",
                                    base ? cat("'", manifest.base->folder.string(),
                                               "', which does not contain "
                                               "these rows")
                                         : "a full checkpoint, but the manifest names no base"));
}

std::optional<std::string> base_of(const fs::path& folder) {
  const Manifest manifest = read_own_manifest(folder);
  return manifest.base ? std::optional(manifest.base->name) : std::nullopt;
}

void verify_files(const fs::path& folder, const Manifest& manifest) {
  if (manifest.base) verify_files(manifest.base->folder, *manifest.base->of);
  for (const StateIndex& index : manifest.files)
    expect_checksum(folder / index.file, "checkpoint file", {index.bytes, index.crc});
}

}  // namespace hctr
