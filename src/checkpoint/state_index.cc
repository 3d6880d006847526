#include "checkpoint/state_index.h"

#include <limits>
#include <map>

#include "base/error.h"
#include "checkpoint/file_checksum.h"

namespace hctr {
namespace {

const Json& member(const Json& json, const char* name) {
  if (const Json* found = json.find(name)) return *found;
  throw Error(Kind::data, cat("the manifest of a checkpoint needs \"", name, "\" in ", json.text().substr(0, 60)));
}
int64_t natural(const Json& json, const char* name) {
  const int64_t* value = member(json, name).integer();
  if (!value || *value < 0)
    throw Error(Kind::data, cat("the manifest of a checkpoint needs \"", name, "\" to be an integer of at least 0"));
  return *value;
}
const std::string& text(const Json& json, const char* name) {
  const std::string* value = member(json, name).string();
  if (!value) throw Error(Kind::data, cat("the manifest of a checkpoint needs \"", name, "\" to be a string"));
  return *value;
}
const Json::Array& list(const Json& json, const char* name) {
  const Json::Array* value = member(json, name).array();
  if (!value) throw Error(Kind::data, cat("the manifest of a checkpoint needs \"", name, "\" to be an array"));
  return *value;
}

}  // namespace

int64_t state_type_bytes(std::string_view type) {
  static const std::map<std::string_view, int64_t> sizes = {{"f32", 4}, {"f16", 2}, {"bf16", 2}, {"i32", 4},
                                                            {"i64", 8}, {"u32", 4}, {"u8", 1}};
  if (const auto found = sizes.find(type); found != sizes.end()) return found->second;
  throw Error(Kind::data, cat("an array of a checkpoint has the type '", type,
                              "'; this version reads f32, f16, bf16, "
                              "i32, i64, u32 and u8"));
}

std::string describe_array(std::string_view type, std::span<const int64_t> shape) {
  std::string sizes;
  for (const int64_t size : shape) sizes += cat(sizes.empty() ? "" : ",", size);
  return cat(type, " [", sizes, "]");
}

int64_t StateArray::elements() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}
int64_t StateArray::bytes() const { return elements() * state_type_bytes(type); }

Json to_json(const StateIndex& index) {
  Json arrays(Json::Array{});
  for (const StateArray& array : index.arrays) {
    Json shape(Json::Array{});
    for (const int64_t size : array.shape) shape.add(size);
    arrays.add(Json(Json::Object{
        {"name", array.name}, {"type", array.type}, {"shape", std::move(shape)}, {"offset", array.offset}}));
  }
  return Json(Json::Object{{"file", index.file},
                           {"bytes", index.bytes},
                           {"crc32", crc_text(index.crc)},
                           {"values", index.values},
                           {"arrays", std::move(arrays)}});
}

StateIndex state_index(const Json& json) {
  StateIndex index;
  index.file = text(json, "file");
  if (index.file.empty() || index.file.find('/') != std::string::npos || index.file.starts_with("."))
    throw Error(Kind::data, cat("the manifest of a checkpoint names '", index.file, "', which is no file beside it"));
  index.bytes = natural(json, "bytes");
  const std::string& crc = text(json, "crc32");
  const std::optional<uint32_t> number = crc_of_text(crc);
  if (!number) throw Error(Kind::data, cat("the manifest of a checkpoint has '", crc, "' as \"crc32\""));
  index.crc = *number;
  index.values = member(json, "values");
  for (const Json& array : list(json, "arrays")) {
    StateArray& to =
        index.arrays.emplace_back(StateArray{text(array, "name"), text(array, "type"), {}, natural(array, "offset")});
    int64_t left = index.bytes - to.offset;  // the array lies in the file, whatever its shape says
    int64_t bytes = state_type_bytes(to.type);
    for (const Json& size : list(array, "shape")) {
      const int64_t* value = size.integer();
      if (!value || *value < 0 || (*value > 0 && bytes > std::numeric_limits<int64_t>::max() / *value))
        throw Error(Kind::data,
                    cat("the manifest of a checkpoint has ", size.text(), " in the shape of '", to.name, "'"));
      to.shape.push_back(*value);
      bytes *= *value;
    }
    if (bytes > left)
      throw Error(Kind::data, cat("the manifest of a checkpoint has '", to.name, "' end behind '", index.file, "'"));
  }
  return index;
}

}  // namespace hctr
