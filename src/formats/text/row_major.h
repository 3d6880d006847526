// Collects samples parsed row by row, and transposes their keys into the slot-major order of a block.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/data/record_shape.h"
#include "formats/data/sample_block.h"

namespace hctr {

/// Reused for many blocks, so that its memory stays in the cache.
class RowMajor {
 public:
  explicit RowMajor(const RecordShape& shape);

  /// Returns memory for the next row's numbers and key counts. Keys are appended in slot order.
  struct Row {
    float *label, *dense;
    double* exact;  ///< exact dense values, if SampleBlock::wants_exact; else null
    int32_t* nnz;
    std::vector<int64_t>* keys;
  };
  /// Removes all rows. Labels and dense values are written to `block` from now on, as are the cells of the columns
  /// `passed_on`, which outlive the block's rows.
  void start(SampleBlock& block, std::span<const size_t> passed_on = {});
  Row next();
  /// Keeps the row of the last next(). A row with more keys than the shape allows is dropped, and the problem is
  /// returned.
  std::string keep();
  /// Passes on cells of the row that was kept.
  void pass_on(std::span<const std::string_view> cells) {
    for (const size_t column : passed_on_) block_->kept.add(cells[column]);
  }
  int64_t rows() const { return rows_; }
  /// Whether every bad record is to be named.
  bool names_bad() const { return block_->names_bad; }
  /// Writes the keys to the block in slot order.
  void finish();

 private:
  RecordShape shape_;
  int64_t slots_;
  bool limits_matter_;  // whether a row of one key per slot can already exceed the limits
  SampleBlock* block_ = nullptr;
  std::span<const size_t> passed_on_;
  int64_t rows_ = 0, capacity_ = 0;
  bool one_hot_ = true;
  std::vector<int32_t> nnz_;  // [rows, slots]
  std::vector<int64_t> keys_;
  size_t kept_keys_ = 0;
  std::vector<const std::byte*> row_keys_;
};

}  // namespace hctr
