// Converts parsed columns to the bytes of records.
#pragma once

#include <string>

#include "prepare/preprocess/preprocess.h"
#include "prepare/write/norm_set_writer.h"

namespace hctr {

/// Adds derived columns: `rows.categories` becomes [slots]. Crosses come before the categories. For Criteo rows,
/// buckets of integers and then crosses come after them, as in criteo_columns().
void add_derived_columns(const PreprocessOptions&, ParsedRows& rows);

/// Encodes rows whose categories cover all slots. Immutable after construction.
class RowEncoder {
 public:
  RowEncoder(const PreprocessOptions&, const FittedColumns&);

  /// Replaces codes by keys. With two passes keys are ids. Otherwise they are in [0, range): scaled_key() for a text
  /// without `modulo`, as in the Csv reader, and ranged_key() for all others. In Norm the offset of the slot is added.
  void to_keys(ParsedRows& rows) const;
  /// Returns the record size of row `row` in bytes.
  size_t bytes_of(const ParsedRows& rows, size_t row) const;
  /// Appends row `row`, whose codes have been replaced by keys. False: a scaled dense value is not a finite float, and
  /// nothing was appended.
  bool append(const ParsedRows& rows, size_t row, EncodedRecords& records) const;
  /// Describes that dense value.
  std::string problem_of(const ParsedRows& rows, size_t row) const;
  const NormStyle& style() const { return style_; }

 private:
  size_t keys_of(const ParsedRows& rows, size_t row) const;
  bool append_norm(const ParsedRows& rows, size_t row, std::vector<std::byte>& bytes) const;
  bool append_raw(const ParsedRows& rows, size_t row, std::vector<std::byte>& bytes) const;
  void to_criteo_keys(uint32_t column, size_t slot, std::span<uint64_t> codes) const;

  const PreprocessOptions& options_;
  const FittedColumns& fitted_;
  NormStyle style_;
  std::vector<DenseScaling> dense_;
  std::vector<size_t> record_;  // the columns of a record, in record order; the first wide_ columns share a slot
  size_t wide_;
  bool lists_ = false;            // whether record sizes differ
  std::vector<bool> texts_;       // [slots] whether codes are text hashes
  std::vector<int64_t> offsets_;  // [slots]; zeros in Raw, where the reader adds them
};

}  // namespace hctr
