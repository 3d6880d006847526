#include "checkpoint/manifest.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace hctr {
namespace {

// The checksum stands at the end of the object, and covers all before it.
constexpr std::string_view kBefore = ",\n \"crc32\": \"", kAfter = "\"\n}\n";

std::string closing(std::string_view body) {
  return cat(kBefore, crc_text(crc32_of(std::as_bytes(std::span(body)))), kAfter);
}

}  // namespace

void write_manifest(const fs::path& folder, const Manifest& manifest) {
  Json files(Json::Array{});
  for (const StateIndex& index : manifest.files) files.add(to_json(index));
  const Json json(Json::Object{{"schema", kCheckpointSchema},
                               {"about", manifest.about},
                               {"progress", manifest.progress},
                               {"files", std::move(files)}});
  std::string body = json.text(1);
  HCTR_EXPECT(body.ends_with("\n}"), "a manifest is an object");
  body.resize(body.size() - 2);
  write_text(folder / kManifestName, body + closing(body));
}

Manifest read_manifest(const fs::path& folder) {
  const fs::path path = folder / kManifestName;
  const std::string text = read_text(path, "manifest of a checkpoint");
  const size_t end = text.rfind(kBefore);
  if (end == std::string::npos || text.substr(end) != closing(std::string_view(text).substr(0, end)))
    throw Error(Kind::data, cat("'", path.string(), "' is damaged: its content does not have the checksum at its end"));
  const Json json = Json::parse(text, path.string());
  const Json *schema = json.find("schema"), *about = json.find("about"), *progress = json.find("progress"),
             *files = json.find("files");
  if (!schema || !schema->integer() || *schema->integer() != kCheckpointSchema)
    throw Error(Kind::data, cat("'", path.string(), "' has schema ", schema ? schema->text() : "nothing",
                                "; this version reads ", kCheckpointSchema));
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
  std::vector<std::byte> piece(size_t{1} << 20);
  for (const StateIndex& index : manifest.files) {
    const fs::path path = folder / index.file;
    const File file = open_to_read(path, "checkpoint file");
    int64_t bytes = 0;
    uint32_t crc = 0;
    while (const size_t count = std::fread(piece.data(), 1, piece.size(), file.get())) {
      bytes += static_cast<int64_t>(count);
      crc = crc32_of(std::span(piece).first(count), crc);
    }
    if (std::ferror(file.get()))
      throw Error(Kind::io, cat("cannot read checkpoint file '", path.string(), "': ", std::strerror(errno)));
    if (bytes != index.bytes)
      throw Error(Kind::data, cat("'", path.string(), "' is damaged: it has ", bytes, " bytes, and the manifest says ",
                                  index.bytes));
    if (crc != index.crc)
      throw Error(Kind::data, cat("'", path.string(), "' is damaged: its checksum is ", crc_text(crc),
                                  ", and the manifest says ", crc_text(index.crc)));
  }
}

}  // namespace hctr
