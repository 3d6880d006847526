// Writes Norm files: encodes samples as bytes, and writes the file.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "core/base/files.h"
#include "formats/data/norm_style.h"
#include "hctr/formats.h"

namespace hctr {

/// The size in bytes of a record with `keys` keys, including the frame.
size_t norm_record_bytes(const NormStyle&, size_t keys);

/// Encodes one record in order: the labels and dense values, then the number of keys and the keys of each slot.
class NormRecordEncoder {
 public:
  /// Appends space for a record with `keys` keys to `out`. The following calls, in their order here, fill the space.
  NormRecordEncoder(const NormStyle& style, size_t keys, std::vector<std::byte>& out);
  void number(float value) { put(value); }
  void slot(int32_t nnz) { put(nnz); }
  /// Appends a key. The key must fit the style's key width.
  void key(uint64_t key) {
    if (key_bytes_ == 4)
      put(static_cast<uint32_t>(key));
    else
      put(key);
  }
  /// Adds the frame if the style has checksums. Errors: Error(bug) if the record is incomplete.
  void finish();

 private:
  template <class T>
  void put(T value) {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }

  int key_bytes_;
  bool framed_;
  std::byte *begin_, *at_, *end_;  // begin, write position and end of the payload (the labels to the keys)
};

/// Appends one record, with a frame if the style has checksums. Shapes: label [label_dim], dense [dense_dim], nnz
/// [slots], keys [sum of nnz] in slot order. Errors: Error(bug) if shapes disagree or a key does not fit its width.
void append_norm_record(const NormStyle&, std::span<const float> label, std::span<const float> dense,
                        std::span<const int32_t> nnz, std::span<const int64_t> keys, std::vector<std::byte>& out);

/// The header of a file with `records` records, with a frame if the style has checksums.
std::vector<std::byte> norm_header_block(const NormStyle&, int64_t records);

/// Writes one Norm file, which gets its final name in commit(). Errors: Error(io).
class NormWriter {
 public:
  NormWriter(fs::path, const NormStyle&);

  /// Appends `records` records that append_norm_record() encoded in the same style.
  void append(std::span<const std::byte> bytes, int64_t records);
  int64_t records() const { return records_; }
  const fs::path& path() const { return file_.path(); }
  /// Writes the number of records to the header, and renames the file to its final name.
  void commit();

 private:
  NormStyle style_;
  int64_t records_ = 0;
  AtomicFile file_;
};

}  // namespace hctr
