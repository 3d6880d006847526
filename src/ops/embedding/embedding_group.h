// Groups the keys of a batch by row, so that each row's gradients can be summed in a fixed order.
#pragma once

#include <cstddef>

#include "core/device/op.h"
#include "ops/embedding/key_batch.h"

namespace hctr::ops {

/// Maximum number of occurrences of one row that are summed sequentially. A longer run is split into pieces of kPiece
/// occurrences. Then groups of kPiece partial sums are added, repeatedly, until one sum is left. The summation order
/// does not depend on the number of threads or on the device.
inline constexpr int64_t kPiece = 32;

struct Piece {
  int32_t begin, end;  // positions in RowGroups::rows and RowGroups::bags
};
struct LongRun {
  int32_t run, first_piece, pieces;
};
struct GroupCounts {
  int32_t runs, long_runs, pieces;
};

/// The occurrences (row, bag) of a batch, sorted by row; occurrences of a row keep key order. Padding and keys without
/// a row have row 0 and come first. A key that is not pooled counts as its own bag, numbered like its vector
/// (KeyBatch). All arrays are on one device, at fixed addresses.
struct RowGroups {
  int32_t* rows = nullptr;       // [key_capacity] ascending
  int32_t* bags = nullptr;       // [key_capacity]
  int32_t* run_begin = nullptr;  // [key_capacity] start of each distinct row's run
  LongRun* long_runs = nullptr;  // [most_long_runs] runs longer than kPiece, in any order
  Piece* pieces = nullptr;       // [most_pieces] pieces of the long runs; contiguous per run
  GroupCounts* counts = nullptr;

  HCTR_HD int64_t run_end(int64_t run, int64_t key_capacity) const {
    return run + 1 < counts->runs ? run_begin[run + 1] : key_capacity;
  }
  static int64_t most_long_runs(int64_t key_capacity) { return key_capacity / (kPiece + 1) + 1; }
  static int64_t most_pieces(int64_t key_capacity) { return 2 * (key_capacity / kPiece) + 2; }
};

/// Bytes of scratch that group_by_row needs.
size_t group_scratch_bytes(Device, int64_t key_capacity);
namespace cpu {
size_t group_scratch_bytes(int64_t key_capacity);
}
namespace cuda {
size_t group_scratch_bytes(int64_t key_capacity);
}

/// Groups the keys of the batch by row. Every row number must be below 2^row_bits. Overwrites `scratch`.
HCTR_OP(void group_by_row(Context&, KeyBatch, const int32_t* rows, int row_bits, RowGroups groups, std::byte* scratch))

}  // namespace hctr::ops
