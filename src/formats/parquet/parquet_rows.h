// Converts values of Parquet columns to a sample block.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/data/sample_block.h"
#include "formats/data/sample_set.h"
#include "formats/parquet/parquet_columns.h"
#include "formats/parquet/parquet_plugin.h"

namespace hctr {

/// Fills a block column by column, in the order of the plan. Each column starts at row 0 and may be added in several
/// parts. finish() removes bad rows.
class ParquetRows {
 public:
  explicit ParquetRows(const ParquetPlan& plan) : plan_(plan) {}

  void start(int64_t rows, SampleBlock& block);
  void add(size_t column, const ParquetField&, const ParquetValues&);
  /// Adds an optional column that the file lacks.
  void add_missing(size_t column);
  /// Completes the block. where(row): describes the row for messages. Returns the bad rows; `first` describes the bad
  /// row with the lowest index, and `records` contain row indices of this block.
  BadRecords finish(const std::function<std::string(int64_t row)>& where);

 private:
  template <class Describe>
  void bad(int64_t row, const ParquetField*, const Describe& describe);
  /// A column of the block's numbers.
  struct NumberColumn {
    bool label;
    float* to;
    double* exact;   ///< null: not wanted
    int64_t stride;  ///< elements between rows
  };
  void add_numbers(const ParquetNumber&, const ParquetField&, const ParquetValues&, const NumberColumn&);
  /// Item i of a text column, after trimming; empty if missing.
  std::string_view text_of(const ParquetField&, const ParquetValues&, int64_t i) const;
  std::string_view value_of(std::string_view text) const;
  std::string why_missing(const ParquetField&, bool null, const char* advice) const;
  static std::string why_no_id(ParquetType, double number);
  class SlotKeys;
  void add_slot(size_t slot, const ParquetField&, const ParquetValues&);
  template <class T>
  bool add_plain_keys(const ParquetSlot&, const T* values, int64_t rows);
  void check_limits(size_t slot, const ParquetField&);
  void check_inputs();
  void leave_out_bad_rows();
  void pass_on_kept_cells();

  const ParquetPlan& plan_;
  SampleBlock* block_ = nullptr;
  int64_t rows_ = 0, keys_ = 0;  // keys_: keys in the block so far
  int64_t added_ = 0;            // rows added to the current column
  bool many_ = false;            // some bag may not have exactly one key
  std::vector<KeptCells> kept_;  // [kept columns] one cell per row
  std::vector<uint8_t> bad_;
  int64_t bad_count_ = 0, first_bad_ = 0;
  std::string first_problem_;
  std::map<int64_t, std::string> problems_;  // description of each bad row, if SampleBlock::names_bad
};

}  // namespace hctr
