// The keys of a batch grouped by row, so that each row's gradients can be summed in one fixed order.
#pragma once

#include <cstddef>

#include "core/device/op.h"
#include "ops/embedding/key_batch.h"

namespace hctr::ops {

/// Occurrences of one row that one worker sums. A longer run is cut into pieces of this length, whose sums are again
/// summed in groups of this many until one is left: the order does not depend on the number of threads or on the
/// device.
inline constexpr int64_t kPiece = 32;

struct Piece {
  int32_t begin, end;  // positions
};
struct LongRun {
  int32_t run, first_piece, pieces;
};
struct GroupCounts {
  int32_t runs, long_runs, pieces;
};

/// The occurrences (row, bag) of a batch sorted by row; those of one row stay in the order of keys. Padding and keys
/// without a row have row 0 and come first. A key that is not pooled is a bag of its own, with the number of its vector
/// (KeyBatch). All on one device, at fixed addresses.
struct RowGroups {
  int32_t* rows = nullptr;       // [key_capacity] ascending
  int32_t* bags = nullptr;       // [key_capacity]
  int32_t* run_begin = nullptr;  // [key_capacity] where each distinct row's run starts
  LongRun* long_runs = nullptr;  // [most_long_runs] runs of more than kPiece, in any order
  Piece* pieces = nullptr;       // [most_pieces] of the long runs; consecutive for each run
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

/// Groups the keys of the batch by their rows. `row_bits`: every row number is below 2^row_bits. Scratch is
/// overwritten.
HCTR_OP(void group_by_row(Context&, KeyBatch, const int32_t* rows, int row_bits, RowGroups groups, std::byte* scratch))

}  // namespace hctr::ops
