// The contents of a checkpoint file: arrays, stored contiguously, and small values, all by name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/json.h"

namespace hctr {

/// An array in a file. Rows of dimension 0 are contiguous.
struct StateArray {
  std::string name;
  std::string type;  ///< "f32", "f16", "bf16", "i32", "i64", "u32" or "u8"
  std::vector<int64_t> shape;
  int64_t offset = 0;  ///< offset of its first byte in the file

  /// In an increment: the part of the array that the base has, under the same name.
  struct FromBase {
    int64_t rows = 0;     ///< the base has these first ones
    std::string changed;  ///< the array of this file with the ascending indices of changed rows; or ""
    int64_t count = 0;    ///< how many these are
    bool operator==(const FromBase&) const = default;
  };
  /// If given, the file holds the changed rows, then those from from_base->rows on; else all rows.
  std::optional<FromBase> from_base{};

  int64_t elements() const;
  int64_t bytes() const;  ///< bytes of all rows
  int64_t row_bytes() const;
  int64_t stored_bytes() const;  ///< bytes in the file
  bool operator==(const StateArray&) const = default;
};
/// Bytes of an element. Errors: Error(data) for a type that does not exist.
int64_t state_type_bytes(std::string_view type);
/// "f32 [10,4]", for messages.
std::string describe_array(std::string_view type, std::span<const int64_t> shape);

/// The file of one rank.
struct StateIndex {
  std::string file;  ///< its name in the folder of the checkpoint
  int64_t bytes = 0;
  uint32_t crc = 0;
  std::vector<StateArray> arrays;
  Json values{Json::Object{}};

  const StateArray* find(std::string_view name) const;  ///< null: there is none
};
Json to_json(const StateIndex&);
/// Errors: Error(data) when `json` is not what to_json() writes.
StateIndex state_index(const Json& json);

}  // namespace hctr
