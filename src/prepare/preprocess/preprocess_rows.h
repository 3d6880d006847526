// From parsed columns to records in bytes.
#pragma once

#include "prepare/preprocess/preprocess.h"
#include "prepare/write/norm_set_writer.h"

namespace hctr {

/// Puts the crosses of a row's categories in front of them: `rows.categories` becomes [slots].
void add_crosses(const PreprocessOptions&, ParsedRows& rows);

/// Encodes rows whose categories are those of all slots. Kept by one thread at a time; what it knows does not change.
class RowEncoder {
 public:
  RowEncoder(const PreprocessOptions&, const ColumnsLearned&);

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

  const PreprocessOptions& options_;
  const ColumnsLearned& learned_;
  NormStyle style_;
  std::vector<DenseScaling> dense_;
  bool lists_ = false;            // whether records differ in size
  std::vector<bool> texts_;       // [slots] whether codes are hashes of texts
  std::vector<int64_t> offsets_;  // [slots]; zeros in Raw, whose reader adds them
};

}  // namespace hctr
