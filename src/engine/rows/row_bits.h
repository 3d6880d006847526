// The number of bits that a sort of a table's row numbers must consider.
#pragma once

#include <cstdint>

#include "engine/rows/row_arrays.h"

namespace hctr {

/// Every row number is below 2^now(). Without follow_memory() the value of now() never changes, so recorded work can
/// use it. After follow_memory(), a value is valid until consume_change() returns true.
class RowBits {
 public:
  /// `most_rows`: maximum number of rows that may be assigned. `arrays` must outlive this object.
  RowBits(const RowArrays& arrays, int64_t most_rows, bool on_disk)
      : arrays_(arrays), most_rows_(most_rows), on_disk_(on_disk) {}

  int now() const;
  /// The value that now() has after follow_memory(). For work that is queued only once, after the rows of its batch are
  /// reserved.
  int of_memory() const;
  /// Makes now() follow the number of rows with allocated memory, because a sort of fewer rows needs fewer passes. Does
  /// nothing if rows may be on disk. The owner must call consume_change() after each reservation of rows.
  void follow_memory();
  /// Whether now() has changed since the last call.
  bool consume_change();

 private:
  const RowArrays& arrays_;
  int64_t most_rows_;
  bool on_disk_, follows_ = false;
  int recorded_ = 0;  // the value of now() that recorded work uses
};

}  // namespace hctr
