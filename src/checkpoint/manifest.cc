#include "checkpoint/manifest.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/checked_json.h"
#include "checkpoint/file_checksum.h"

namespace hctr {

void write_manifest(const fs::path& folder, const Manifest& manifest) {
  Json files(Json::Array{});
  for (const StateIndex& index : manifest.files) files.add(to_json(index));
  const Json json(Json::Object{{"schema", kCheckpointSchema},
                               {"about", manifest.about},
                               {"progress", manifest.progress},
                               {"files", std::move(files)}});
  write_text(folder / kManifestName, with_checksum(json));
}

Manifest read_manifest(const fs::path& folder) {
  const fs::path path = folder / kManifestName;
  const Json json = read_checked_json(path, "manifest of a checkpoint", kCheckpointSchema);
  const Json *about = json.find("about"), *progress = json.find("progress"), *files = json.find("files");
  if (!about || !progress || !files || !files->array() || files->array()->empty())
    throw Error(Kind::data, cat("'", path.string(), "' is no manifest of a checkpoint"));
  Manifest manifest{.about = *about, .progress = *progress, .files = {}};
  in_context([&] { return cat("reading '", path.string(), "'"); },
             [&] {
               for (const Json& file : *files->array()) manifest.files.push_back(state_index(file));
             });
  return manifest;
}

void verify_files(const fs::path& folder, const Manifest& manifest) {
  for (const StateIndex& index : manifest.files)
    expect_checksum(folder / index.file, "checkpoint file", {index.bytes, index.crc});
}

}  // namespace hctr
