// Collects samples that are parsed row by row, and turns them into a block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/record_shape.h"
#include "data/sample_block.h"

namespace hctr {

/// Used again and again, so its memory is warm.
class RowMajor {
 public:
  explicit RowMajor(const RecordShape& shape);

  /// Memory for the next row's numbers and key counts, and for its keys, which are appended in the order of the slots.
  struct Row {
    float *label, *dense;
    int32_t* nnz;
    std::vector<int64_t>* keys;
  };
  /// Forgets all rows; label and dense will be written into `block`.
  void start(SampleBlock& block);
  Row next();
  /// Keeps the row of the last next(). A row with more keys than the shape allows is not kept: returns what is wrong.
  std::string keep();
  /// Turns the keys into slot order.
  void finish();

 private:
  RecordShape shape_;
  int64_t slots_;
  bool limits_matter_;  // even for one key in each slot
  SampleBlock* block_ = nullptr;
  int64_t rows_ = 0, capacity_ = 0;
  bool one_hot_ = true;
  std::vector<int32_t> nnz_;  // [rows, slots]
  std::vector<int64_t> keys_;
  size_t kept_keys_ = 0;
  std::vector<const std::byte*> row_keys_;
};

}  // namespace hctr
