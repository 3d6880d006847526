// Converts parsed columns to the bytes of records.
#pragma once

#include <string>

#include "prepare/preprocess/preprocess.h"
#include "prepare/write/norm_set_writer.h"

namespace hctr {

/// Adds derived columns, so that `rows.categories` has a column for each slot. Crosses come before the categories. For
/// Criteo rows, the derived columns come after the categories: first the buckets of the integers, then the crosses, as
/// in criteo_columns().
void add_derived_columns(const PreprocessOptions&, ParsedRows& rows);

/// Encodes rows whose categories cover all slots. Immutable and thread-safe.
class RowEncoder {
 public:
  RowEncoder(const PreprocessOptions&, const FittedColumns&);

  /// Replaces codes by keys. With two passes, keys are ids. With one pass, keys are in [0, range): for texts without
  /// `modulo`, scaled_key() as in the Csv reader; otherwise ranged_key(). In Norm, adds the offset of the slot.
  void to_keys(ParsedRows& rows) const;
  /// The size of row `row` as a record, in bytes.
  size_t bytes_of(const ParsedRows& rows, size_t row) const;
  /// Appends row `row`, whose codes have been replaced by keys. Returns false, without appending, if a scaled dense
  /// value is not a finite float.
  bool append(const ParsedRows& rows, size_t row, EncodedRecords& records) const;
  /// Describes the dense value for which append() returns false.
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
  std::vector<size_t> record_;  // columns of a record, in record order; the first wide_ columns share a slot
  size_t wide_;
  bool lists_ = false;            // whether records have different sizes
  std::vector<bool> texts_;       // [slots] whether codes are text hashes
  std::vector<int64_t> offsets_;  // [slots] key offsets; 0 in Raw, where the reader adds them
};

}  // namespace hctr
