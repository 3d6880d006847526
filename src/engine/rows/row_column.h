// A column of a table: an array with one element per row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/device/buffer.h"

namespace hctr {

/// An array of a table with one element per row.
struct RowColumn {
  ReservedBuffer memory;
  int64_t bytes_per_row;
  std::string name, type;  // the column's name and type in checkpoints
  int64_t elements_per_row;
  // vectors or optimizer states, which may be in host memory
  bool numbers;
  bool saved = true;                                                // whether checkpoints contain the column
  bool fixed() const { return name == "keys" || name == "slots"; }  // constant while a row keeps its number
  std::vector<int64_t> shape(int64_t rows) const { return {rows, elements_per_row}; }
  std::byte* row(int64_t number) const { return memory.data() + number * bytes_per_row; }
  size_t bytes_to(int64_t rows) const { return static_cast<size_t>((rows + 1) * bytes_per_row); }
  /// bytes_to(rows), rounded up to the allocation granularity of the device; 0 for no rows.
  size_t granules_to(int64_t rows) const {
    const size_t granularity = memory.granularity();
    return rows == 0 ? 0 : (bytes_to(rows) + granularity - 1) / granularity * granularity;
  }
};

}  // namespace hctr
