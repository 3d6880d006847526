// A batch buffer for rows with one key per slot. Several threads write rows in any order.
#pragma once

#include <vector>

#include "formats/data/batch_layout.h"
#include "formats/data/row_map.h"

namespace hctr {

/// The layout must outlive this object.
class OneHotBatch {
 public:
  /// `narrow`: all keys fit 32 bits.
  OneHotBatch(const BatchLayout&, std::byte* memory, bool narrow);

  /// Starts a batch of `rows` rows, at most the layout's capacity.
  void start(int64_t rows);
  /// The output columns for rows from `row` on.
  OneHotRows from(int64_t row) const { return {view_.label, view_.dense, keys_, row, narrow_}; }
  /// Fills unused rows with zeros. Call after all rows are written. Does not write the StepState.
  void finish();
  const BatchView& view() const { return view_; }
  StepState& state() { return *view_.state; }

 private:
  const BatchShape& shape_;
  BatchView view_;
  bool narrow_;
  std::vector<std::byte*> keys_;  // [slots of the record] address of row 0's key
  int64_t rows_ = 0;
};

}  // namespace hctr
