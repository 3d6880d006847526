// The contents of one checkpoint file: named arrays, stored contiguously, and named small values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/json.h"

namespace hctr {

/// An array in a checkpoint file, stored row by row.
struct StateArray {
  std::string name;
  std::string type;  ///< "f32", "f16", "bf16", "i32", "i64", "u32" or "u8"
  std::vector<int64_t> shape;
  int64_t offset = 0;  ///< offset of the first byte in the file

  /// Describes an array of an increment whose remaining rows are stored in the base, in an array of the same name.
  struct FromBase {
    int64_t rows = 0;  ///< the base stores rows [0, rows)
    /// name of the array in this file that lists the changed rows' indices, ascending; empty: no changed rows
    std::string changed;
    int64_t count = 0;  ///< number of changed rows
    bool operator==(const FromBase&) const = default;
  };
  /// If set, the file contains the changed rows, followed by the rows from from_base->rows on. If empty, the file
  /// contains all rows.
  std::optional<FromBase> from_base{};

  int64_t elements() const;
  int64_t bytes() const;  ///< bytes of all rows, including rows in the base
  int64_t row_bytes() const;
  int64_t stored_bytes() const;  ///< bytes of the rows that this file stores
  bool operator==(const StateArray&) const = default;
};
/// Bytes per element. Errors: Error(data) for an unknown type.
int64_t state_type_bytes(std::string_view type);
/// The text "f32 [10,4]", for messages.
std::string describe_array(std::string_view type, std::span<const int64_t> shape);

/// The contents of the checkpoint file of one rank.
struct StateIndex {
  std::string file;  ///< file name within the checkpoint's folder
  int64_t bytes = 0;
  uint32_t crc = 0;
  std::vector<StateArray> arrays;
  Json values{Json::Object{}};

  const StateArray* find(std::string_view name) const;  ///< null if absent
};
Json to_json(const StateIndex&);
/// Parses the JSON of to_json(). Errors: Error(data) for any other JSON.
StateIndex state_index(const Json& json);

}  // namespace hctr
