// How many bits the row numbers of a table have, as sorts of them need it.
#pragma once

#include <cstdint>

#include "engine/rows/row_arrays.h"

namespace hctr {

/// Every row number is below 2^now(): now and later, or after follow_memory() until consume_change() returns true.
class RowBits {
 public:
  /// `most_rows`: the largest number of rows that may be assigned. `arrays` must outlive this object.
  RowBits(const RowArrays& arrays, int64_t most_rows, bool on_disk)
      : arrays_(arrays), most_rows_(most_rows), on_disk_(on_disk) {}

  int now() const;
  /// From here on the bits follow the rows that have memory, unless some may be on a disk: a sort of few rows takes
  /// fewer passes. For tables whose owner asks consume_change() after each batch that rows were reserved for.
  void follow_memory();
  /// Whether now() has changed since the last call.
  bool consume_change();

 private:
  const RowArrays& arrays_;
  int64_t most_rows_;
  bool on_disk_, follows_ = false;
  int recorded_ = 0;  // that recorded work has
};

}  // namespace hctr
