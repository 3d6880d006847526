// Samples in memory, slot-major: what parsing threads pass on to the assembly of batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

/// Cells that are passed on as texts: those of row 0, in the order of Source::keep, then those of row 1.
struct KeptCells {
  std::string text;
  std::vector<size_t> ends;  ///< end of each cell in the text

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
  /// Adds cells [first, first + count) of another.
  void append(const KeptCells& from, size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) add(from.cell(i));
  }
};

/// `rows` samples. Vectors may be longer than needed: blocks are used again, and are not shrunk.
///   label    [rows, label_dim]
///   dense    [rows, dense_dim]
///   offsets  [slots * rows + 1]: bag (slot s, row r) holds keys offsets[s * rows + r] up to the next
///   keys     32-bit keys are widened as unsigned
/// Where may_pack is set, the parser may leave out what takes time and memory, and is not needed to assemble batches:
///   keys_32  in place of keys, where `narrow` says so: each of them has 32 bits
///   offsets  none where one_hot is set; of a slot with ones[slot] only that of row 0, since each bag holds one key
struct SampleBlock {
  int64_t rows = 0;
  bool one_hot = false;  ///< each bag holds one key: offsets[i] is i, and the assembly of batches need not read them
  std::vector<float> label, dense;
  std::vector<int32_t> offsets;
  std::vector<int64_t> keys;

  bool may_pack = false;  ///< set before parsing: the block is read by fill_batch() alone
  bool narrow = false;
  std::vector<uint32_t> keys_32;
  std::vector<uint8_t> ones;  ///< [slots], or empty: no slot's
  bool fits_32 = false;       ///< each key is known to lie in 0 ... 2^32 - 1

  /// Whether each bag of a slot holds one key.
  bool has_ones(int64_t slot) const { return one_hot || (!ones.empty() && ones[static_cast<size_t>(slot)] != 0); }
  KeptCells kept{};  ///< [rows, Source::keep], where that names columns

  bool names_bad = false;       ///< set before parsing: every bad record is to be reported
  bool wants_exact = false;     ///< set before parsing: dense values are needed before they are rounded to float
  std::vector<double> exact{};  ///< [rows, dense_dim] these, of Csv and Parquet; other formats leave it empty

  /// A dense value, with what its float has lost where that is known.
  double exact_dense(size_t at) const { return exact.empty() ? static_cast<double>(dense[at]) : exact[at]; }
};

}  // namespace hctr
