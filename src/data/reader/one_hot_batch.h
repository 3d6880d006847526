// A batch buffer into which several threads write rows with one key in each slot, in any order.
#pragma once

#include <vector>

#include "data/batch_layout.h"
#include "data/row_map.h"

namespace hctr {

/// Offsets of such batches depend on the number of rows alone and are written only when it changes, so users of the
/// batch must not write there. Keeps a reference to the layout.
class OneHotBatch {
 public:
  OneHotBatch(const BatchLayout&, std::byte* memory);

  /// A new batch of `rows` rows, as many as the layout has or fewer.
  void start(int64_t rows);
  /// The output columns from row `row` on.
  OneHotRows from(int64_t row) const { return {view_.label, view_.dense, keys_, row}; }
  /// Call it when all rows are written: fills the offsets, and zeros after the rows. Does not write the StepState.
  void finish();
  StepState& state() { return *view_.state; }

 private:
  const BatchShape& shape_;
  BatchView view_;
  std::vector<int64_t*> keys_;  // of row 0, for each slot of the record
  int64_t rows_ = 0;
  int64_t offsets_of_ = -1;  // the number of rows that the offsets are right for
};

}  // namespace hctr
