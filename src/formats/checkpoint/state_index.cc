#include "formats/checkpoint/state_index.h"

#include <algorithm>
#include <limits>
#include <map>

#include "core/base/expect.h"
#include "core/base/file_checksum.h"

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
int64_t StateArray::row_bytes() const {
  int64_t product = state_type_bytes(type);
  for (size_t d = 1; d < shape.size(); ++d) product *= shape[d];
  return product;
}
int64_t StateArray::stored_bytes() const {
  return from_base ? (from_base->count + shape.at(0) - from_base->rows) * row_bytes() : bytes();
}

const StateArray* StateIndex::find(std::string_view name) const {
  const auto found =
      std::find_if(arrays.begin(), arrays.end(), [&](const StateArray& array) { return array.name == name; });
  return found == arrays.end() ? nullptr : &*found;
}

Json to_json(const StateIndex& index) {
  Json arrays(Json::Array{});
  for (const StateArray& array : index.arrays) {
    Json shape(Json::Array{});
    for (const int64_t size : array.shape) shape.add(size);
    Json entry(Json::Object{{"name", array.name}, {"type", array.type}});
    // An array with rows in the base has its shape in "of_base". Older versions, which ignore "of_base", then report a
    // missing shape instead of reading wrong rows.
    if (array.from_base) {
      entry.set("of_base", Json(Json::Object{{"shape", std::move(shape)},
                                             {"rows", array.from_base->rows},
                                             {"changed", array.from_base->changed}}));
    } else {
      entry.set("shape", std::move(shape));
    }
    entry.set("offset", array.offset);
    arrays.add(std::move(entry));
  }
  return Json(Json::Object{{"file", index.file},
                           {"bytes", index.bytes},
                           {"crc32", crc_text(index.crc)},
                           {"values", index.values},
                           {"arrays", std::move(arrays)}});
}

namespace {

/// Parses the "of_base" entry of an array. Needs the array's shape and all arrays that precede it.
StateArray::FromBase from_base(const Json& json, const StateArray& array, const StateIndex& index) {
  StateArray::FromBase from{natural(json, "rows"), text(json, "changed"), 0};
  if (array.shape.empty() || from.rows > array.shape[0])
    throw Error(Kind::data, cat("the manifest of a checkpoint has '", array.name, "' with ",
                                describe_array(array.type, array.shape), ", but the base has ", from.rows, " rows"));
  if (from.changed.empty()) return from;
  const StateArray* changed = index.find(from.changed);
  if (!changed || changed == &array || changed->from_base || changed->type != "i32" || changed->shape.size() != 1 ||
      changed->shape[0] > from.rows)
    throw Error(Kind::data, cat("the manifest of a checkpoint has no list '", from.changed,
                                "' of the changed rows of '", array.name, "'"));
  from.count = changed->shape[0];
  return from;
}

}  // namespace

StateIndex state_index(const Json& json) {
  StateIndex index;
  index.file = text(json, "file");
  if (index.file.empty() || index.file.find('/') != std::string::npos || index.file.starts_with("."))
    throw Error(Kind::data,
                cat("the manifest of a checkpoint names '", index.file, "'; expected a file in the same folder"));
  index.bytes = natural(json, "bytes");
  const std::string& crc = text(json, "crc32");
  const std::optional<uint32_t> number = crc_of_text(crc);
  if (!number) throw Error(Kind::data, cat("the manifest of a checkpoint has '", crc, "' as \"crc32\""));
  index.crc = *number;
  index.values = member(json, "values");
  for (const Json& array : list(json, "arrays")) {
    StateArray& to =
        index.arrays.emplace_back(StateArray{text(array, "name"), text(array, "type"), {}, natural(array, "offset")});
    const Json* of_base = array.find("of_base");
    int64_t bytes = state_type_bytes(to.type);
    for (const Json& size : list(of_base ? *of_base : array, "shape")) {
      const int64_t* value = size.integer();
      if (!value || *value < 0 || (*value > 0 && bytes > std::numeric_limits<int64_t>::max() / *value))
        throw Error(Kind::data,
                    cat("the manifest of a checkpoint has ", size.text(), " in the shape of '", to.name, "'"));
      to.shape.push_back(*value);
      bytes *= *value;
    }
    if (of_base) to.from_base = from_base(*of_base, to, index);
    // The array must end within the file, even if its shape is corrupt.
    if (to.stored_bytes() > index.bytes - to.offset)
      throw Error(Kind::data,
                  cat("by the manifest of a checkpoint, '", to.name, "' ends after the end of '", index.file, "'"));
  }
  return index;
}

}  // namespace hctr
