// Collects samples that are parsed row by row, and transposes their keys to the slot-major order of a block.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/data/record_shape.h"
#include "formats/data/sample_block.h"

namespace hctr {

/// Collects the rows of one block after another. One object is reused, so its memory stays in the cache.
class RowMajor {
 public:
  explicit RowMajor(const RecordShape& shape);

  /// Memory for the labels, dense values and key counts of one row. Keys are appended in slot order.
  struct Row {
    float *label, *dense;
    double* exact;  ///< dense values before rounding, if SampleBlock::wants_exact; else null
    int32_t* nnz;
    std::vector<int64_t>* keys;
  };
  /// Removes all rows and directs labels, dense values and kept cells to `block`. `passed_on`: indices of the columns
  /// to keep as text; must stay valid while rows are added.
  void start(SampleBlock& block, std::span<const size_t> passed_on = {});
  Row next();
  /// Keeps the row of the last next(). If the row has more keys than the shape allows, drops the row and returns the
  /// problem.
  std::string keep();
  /// Copies the cells of the kept columns of the current row to the block.
  void pass_on(std::span<const std::string_view> cells) {
    for (const size_t column : passed_on_) block_->kept.add(cells[column]);
  }
  int64_t rows() const { return rows_; }
  /// Whether to describe every bad record.
  bool names_bad() const { return block_->names_bad; }
  /// Writes the keys to the block in slot-major order.
  void finish();

 private:
  RecordShape shape_;
  int64_t slots_;
  bool limits_matter_;  // whether even one key per slot can exceed a limit
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
