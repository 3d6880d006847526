// Writing Norm files: encoding a sample into bytes, and the file that gathers them.
#pragma once

#include <span>
#include <vector>

#include "base/files.h"
#include "data/norm_style.h"
#include "hctr/formats.h"

namespace hctr {

/// Appends one record, framed if the style says so.
/// Shapes: label [label_dim], dense [dense_dim], nnz [slots], keys [sum of nnz], in the order of the slots.
/// Errors: Error(bug) if shapes disagree or a key does not fit its width.
void append_norm_record(const NormStyle&, std::span<const float> label, std::span<const float> dense,
                        std::span<const int32_t> nnz, std::span<const int64_t> keys, std::vector<std::byte>& out);

/// The header of a file of so many records, framed if the style says so.
std::vector<std::byte> norm_header_block(const NormStyle&, int64_t records);

/// One Norm file. Its final name appears with commit() alone. Errors: Error(io).
class NormWriter {
 public:
  NormWriter(fs::path, const NormStyle&);

  /// Appends `records` records that append_norm_record() encoded in this style.
  void append(std::span<const std::byte> bytes, int64_t records);
  int64_t records() const { return records_; }
  const fs::path& path() const { return file_.path(); }
  /// Writes the number of records into the header and gives the file its name.
  void commit();

 private:
  NormStyle style_;
  int64_t records_ = 0;
  AtomicFile file_;
};

}  // namespace hctr
