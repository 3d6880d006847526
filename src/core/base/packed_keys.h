// The layout of a sparse input's keys in a batch in memory.
#pragma once

#include <cstdint>

namespace hctr {

/// The layout is chosen for each batch and uploaded with the batch. Kernels read the layout at run time, so one CUDA
/// graph serves all layouts.
struct PackedKeys {
  static constexpr int64_t kOnes = -1;

  int64_t keys = 0;  ///< byte offset of the keys in the batch
  /// Byte offset of the bag offsets in the batch: i32 [slots * samples + 1]. kOnes: the batch has no offsets; each bag
  /// of the first `rows` samples has one key, and bags of later samples are empty.
  int64_t offsets = kOnes;
  int32_t count = 0;  ///< number of keys
  int32_t rows = 0;
  int16_t key_bytes = 8;     ///< 4 or 8
  int16_t sign_extends = 0;  ///< for keys of 4 bytes: whether they are signed (1) or unsigned (0)
  /// nonzero: keys are ordered by sample, [rows, slots], one key per bag; 0: keys are ordered by slot, then by sample
  int32_t slots = 0;

  /// The position of key i in the batch. The index i counts all keys of slot 0 by sample, then those of slot 1, and so
  /// on.
  constexpr int64_t place_of(int64_t i) const { return slots == 0 ? i : i % rows * slots + i / rows; }
  /// If `offsets` is kOnes, the index of the first key of bag (slot, sample). For the end of the slot, `sample` is the
  /// number of samples.
  constexpr int64_t begin_of_ones(int64_t slot, int64_t sample) const {
    return slot * rows + (sample < rows ? sample : rows);
  }
};

}  // namespace hctr
