// Parsed samples in slot-major order, from which batches are assembled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

/// Cells kept as text: the columns of Source::keep for row 0, then for row 1, and so on.
struct KeptCells {
  std::string text;
  std::vector<size_t> ends;  ///< end offset of each cell in `text`

  void clear() {
    text.clear();
    ends.clear();
  }
  void add(std::string_view cell) {
    text += cell;
    ends.push_back(text.size());
  }
  std::string_view cell(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends[i - 1];
    return std::string_view(text).substr(begin, ends[i] - begin);
  }
  /// Appends cells [first, first + count) of `from`.
  void append(const KeptCells& from, size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) add(from.cell(i));
  }
};

/// `rows` samples. Vectors may be longer than needed, because blocks are reused without shrinking.
///   label    [rows, label_dim]
///   dense    [rows, dense_dim]
///   offsets  [slots * rows + 1]: with i = s * rows + r, the bag of slot s and row r has the keys
///            keys[offsets[i]], ..., keys[offsets[i + 1] - 1]
///   keys     32-bit keys are zero-extended
/// If may_pack is set, the parser may save time and memory:
///   keys_32  replaces keys if `narrow` is set; all keys then have 32 bits
///   offsets  omitted if one_hot is set; for a slot with ones[slot] set, only the offset of row 0 is valid
struct SampleBlock {
  int64_t rows = 0;
  bool one_hot = false;  ///< each bag has one key, so offsets[i] = i
  std::vector<float> label, dense;
  std::vector<int32_t> offsets;
  std::vector<int64_t> keys;

  bool may_pack = false;  ///< set by the caller if only fill_batch() will read the block
  bool narrow = false;
  std::vector<uint32_t> keys_32;
  std::vector<uint8_t> ones;  ///< [slots] nonzero if each bag of the slot has one key; empty: unknown
  bool fits_32 = false;       ///< each key is known to be in [0, 2^32 - 1]

  /// Whether each bag of the slot is known to have one key.
  bool has_ones(int64_t slot) const { return one_hot || (!ones.empty() && ones[static_cast<size_t>(slot)] != 0); }
  KeptCells kept{};  ///< [rows, Source::keep]; empty if no columns are kept

  bool names_bad = false;       ///< set by the caller: describe every bad record
  bool wants_exact = false;     ///< set by the caller: fill `exact`
  std::vector<double> exact{};  ///< [rows, dense_dim] dense values before rounding to float; only Csv and Parquet

  /// A dense value before rounding to float if `exact` is filled, else the rounded value.
  double exact_dense(size_t at) const { return exact.empty() ? static_cast<double>(dense[at]) : exact[at]; }
};

}  // namespace hctr
