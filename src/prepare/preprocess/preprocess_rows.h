// From parsed columns to records in bytes.
#pragma once

#include "prepare/preprocess/preprocess.h"
#include "prepare/write/norm_set_writer.h"

namespace hctr {

/// Adds the columns that are made of others: `rows.categories` becomes [slots]. Crosses come before the
/// categories; for Criteo's rows, buckets of integers and then crosses come after them, as in criteo_columns().
void add_derived_columns(const PreprocessOptions&, ParsedRows& rows);

/// Encodes rows whose categories are those of all slots. Kept by one thread at a time; what it knows does not change.
class RowEncoder {
 public:
  RowEncoder(const PreprocessOptions&, const FittedColumns&);

  /// Codes become keys: ids with two passes, else keys in [0, range): of a text without `modulo` scaled_key(), as the
  /// Csv reader's, of others ranged_key(). In Norm the offset of the slot is added.
  void to_keys(ParsedRows& rows) const;
  /// Bytes of the record of row `row`.
  size_t bytes_of(const ParsedRows& rows, size_t row) const;
  /// Appends row `row`, whose codes are keys.
  void append(const ParsedRows& rows, size_t row, EncodedRecords& records) const;
  const NormStyle& style() const { return style_; }

 private:
  size_t keys_of(const ParsedRows& rows, size_t row) const;
  void append_norm(const ParsedRows& rows, size_t row, std::vector<std::byte>& bytes) const;
  void append_raw(const ParsedRows& rows, size_t row, std::vector<std::byte>& bytes) const;
  void to_criteo_keys(uint32_t column, size_t slot, std::span<uint64_t> codes) const;

  const PreprocessOptions& options_;
  const FittedColumns& fitted_;
  NormStyle style_;
  std::vector<DenseScaling> dense_;
  std::vector<size_t> record_;  // the columns of a record, in its order: the first wide_ share a slot
  size_t wide_;
  bool lists_ = false;            // whether records differ in size
  std::vector<bool> texts_;       // [slots] whether codes are hashes of texts
  std::vector<int64_t> offsets_;  // [slots]; zeros in Raw, whose reader adds them
};

}  // namespace hctr
