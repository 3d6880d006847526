// How a batch in memory holds the keys of a sparse input.
#pragma once

#include <cstdint>

namespace hctr {

/// Chosen for each batch, and uploaded with it: kernels that read the keys are recorded once for all layouts.
struct PackedKeys {
  static constexpr int64_t kOnes = -1;

  int64_t keys = 0;         ///< byte offset in the batch
  int64_t offsets = kOnes;  ///< byte offset in the batch of i32 [slots * samples + 1]. kOnes: none, since in each slot
                            ///< each of the first `rows` samples has one key, and others have none
  int32_t count = 0;        ///< number of keys
  int32_t rows = 0;
  int16_t key_bytes = 8;     ///< 4 or 8
  int16_t sign_extends = 0;  ///< of keys of 4 bytes: whether they are signed
  int32_t slots = 0;  ///< not 0: keys lie by sample, [rows, slots], each of which has one; 0: by slot, then by sample

  /// Where key i, counted by slot and sample, lies.
  constexpr int64_t place_of(int64_t i) const { return slots == 0 ? i : i % rows * slots + i / rows; }
  /// Where the keys of bag (slot, sample) begin, when offsets is kOnes. `sample` may be one past the last.
  constexpr int64_t begin_of_ones(int64_t slot, int64_t sample) const {
    return slot * rows + (sample < rows ? sample : rows);
  }
};

}  // namespace hctr
