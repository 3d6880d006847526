// GEMMs of a fully connected layer for a small batch, where reading the weights takes most of the time.
#pragma once

#include <cstdint>

#include "core/device/op.h"

namespace hctr::ops {

/// How a kernel divides k. A pass of a block reads kRows rows of the weights; `blocks` blocks of a cluster share the
/// passes. The split depends on k alone, so the order of sums is equal for every batch size.
struct FewRowsSplit {
  static constexpr int kRows = 256;
  int blocks;  ///< 1, 2, 4 or 8
  int passes;  ///< passes per block

  /// The first row of a block's pass.
  constexpr int64_t first_row(int block, int pass) const { return (int64_t{pass} * blocks + block) * kRows; }
};

constexpr FewRowsSplit few_rows_split(int64_t k) {
  int blocks = 1;
  while (blocks < 8 && int64_t{blocks} * FewRowsSplit::kRows < k) blocks *= 2;
  const int64_t rows = int64_t{blocks} * FewRowsSplit::kRows;
  return {blocks, static_cast<int>((k + rows - 1) / rows)};
}

/// The threads of a block: each loads 16 bytes of kLoads rows of the weights in a pass.
template <class T>
struct FewRowsThreads {
  static constexpr int kColumns = 32;                             // columns of the result per block
  static constexpr int kEach = 16 / static_cast<int>(sizeof(T));  // adjacent columns per thread
  static constexpr int kAcross = kColumns / kEach;                // threads that share a row of the weights
  static constexpr int kLoads = 4;
  static constexpr int kGroups = FewRowsSplit::kRows / kLoads;  // rows that the block loads at a time
  static constexpr int kThreads = kGroups * kAcross, kWarps = kThreads / 32;

  /// The row of the weights that a thread reads in load `load`, counted from the first row of the pass.
  static constexpr int row(int thread, int load) { return load * kGroups + thread / kAcross; }
  static constexpr int first_column(int thread) { return thread % kAcross * kEach; }
  /// The column whose sum a lane gets. Each lane first sums several columns; then lanes exchange halves of their
  /// columns, until each lane has the sum of one column over the rows of the warp.
  static constexpr int column_of_lane(int lane) { return lane % kAcross * kEach + lane / kAcross; }
};

namespace hopper {

/// Whether few_rows_linear() should compute this layer. The conditions: a ScoringScope exists whose rules allow
/// x.dim(0) rows; compute capability 9.0; in memory, each row of the weights starts at a multiple of 16 bytes and its
/// size is a multiple of 16 bytes.
bool takes_few_rows(const Tensor& x, const Tensor& w, const Tensor& y);

/// y = x W + bias, or max(x W + bias, 0) if `relu`, like linear(). Products and sums are f32 for every dtype. A row of
/// y has the same bits for every number of rows. W must be constant, because the kernel reads W before the previous
/// kernel has ended.
void few_rows_linear(Context&, Tensor x, Tensor w, Tensor bias, bool relu, Tensor y);

}  // namespace hopper
}  // namespace hctr::ops
