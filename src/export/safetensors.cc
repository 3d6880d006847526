#include "config/json.h"
#include "export/array_files.h"

namespace hctr {

void write_safetensors(FileSet& set, const fs::path& path, const std::vector<StoredArray>& arrays,
                       const std::vector<std::pair<std::string, std::string>>& metadata) {
  Json head(Json::Object{}), texts(Json::Object{});
  for (const auto& [name, text] : metadata) texts.set(name, text);
  head.set("__metadata__", texts);
  int64_t at = 0;
  for (const StoredArray& array : arrays) {
    Json dims(Json::Array{}), range(Json::Array{});
    for (const int64_t dim : array.dims) dims.add(dim);
    range.add(at);
    at += array.bytes();
    range.add(at);
    head.set(array.name,
             Json(Json::Object{
                 {"dtype", array.dtype == DType::i64 ? "I64" : "F32"}, {"shape", dims}, {"data_offsets", range}}));
  }
  std::string text = head.text();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // pads the header with spaces to align the data to 8 bytes
  AtomicFile& file = set.add(path);
  const auto length = static_cast<uint64_t>(text.size());
  file.write(&length, sizeof length);
  file.write(text);
  for (const StoredArray& array : arrays)
    array.write([&](std::span<const std::byte> bytes) { file.write(bytes.data(), bytes.size()); });
  file.finish();
}

}  // namespace hctr
