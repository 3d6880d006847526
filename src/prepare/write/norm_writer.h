// Writing Norm files: encoding a sample into bytes, and the file that gathers them.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "base/files.h"
#include "data/norm_style.h"
#include "hctr/formats.h"

namespace hctr {

/// Bytes of a record with `keys` keys, with its frame.
size_t norm_record_bytes(const NormStyle&, size_t keys);

/// Encodes one record, part after part: the labels and dense values, then each slot: its number of keys and the keys.
class NormRecordEncoder {
 public:
  /// Appends a record with `keys` keys to `out`, whose bytes the calls below fill in order.
  NormRecordEncoder(const NormStyle& style, size_t keys, std::vector<std::byte>& out);
  void number(float value) { put(value); }
  void slot(int32_t nnz) { put(nnz); }
  /// A key that fits the width of the style.
  void key(uint64_t key) {
    if (key_bytes_ == 4)
      put(static_cast<uint32_t>(key));
    else
      put(key);
  }
  /// Frames the record if the style says so. Errors: Error(bug) when it is not full.
  void finish();

 private:
  template <class T>
  void put(T value) {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }

  int key_bytes_;
  bool framed_;
  std::byte *begin_, *at_, *end_;  // of the payload: labels to keys
};

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
