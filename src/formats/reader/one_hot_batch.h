// A batch buffer into which several threads write rows with one key in each slot, in any order.
#pragma once

#include <vector>

#include "formats/data/batch_layout.h"
#include "formats/data/row_map.h"

namespace hctr {

/// Keeps a reference to the layout.
class OneHotBatch {
 public:
  /// `narrow`: every key fits 32 bits.
  OneHotBatch(const BatchLayout&, std::byte* memory, bool narrow);

  /// A new batch of `rows` rows, as many as the layout has or fewer.
  void start(int64_t rows);
  /// The output columns from row `row` on.
  OneHotRows from(int64_t row) const { return {view_.label, view_.dense, keys_, row, narrow_}; }
  /// Call it when all rows are written: fills with zeros what is after them. Does not write the StepState.
  void finish();
  const BatchView& view() const { return view_; }
  StepState& state() { return *view_.state; }

 private:
  const BatchShape& shape_;
  BatchView view_;
  bool narrow_;
  std::vector<std::byte*> keys_;  // address for row 0, for each slot of the record
  int64_t rows_ = 0;
};

}  // namespace hctr
