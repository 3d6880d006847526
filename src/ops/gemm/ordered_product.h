// CPU GEMMs whose rows have the same bits in a batch of any size: for inference, where a sample must get the same score
// alone and in a batch of thousands.
#pragma once

#include <cstdint>

namespace hctr {
class ThreadPool;
}

namespace hctr::ops {

/// An f32 matrix: element (i, j) at data[i * row + j * column].
struct StridedMatrix {
  const float* data;
  int64_t row, column;
};

/// Epilogue of a sum: an addend, unless it is null, whose rows are `stride` apart (0: one for all rows); then max(.,
/// 0).
struct ProductEnd {
  const float* addend = nullptr;
  int64_t stride = 0;
  bool relu = false;
};

/// c = a b + addend. Shapes: a [rows, depth], b [depth, columns], c [rows, columns], rows c_stride apart. Every element
/// is one chain of fused multiply-adds in the order of the depth, then the addend, on every processor and with any
/// number of threads: it depends on its row of a, its column of b and its addend alone.
void ordered_product(ThreadPool& threads, StridedMatrix a, StridedMatrix b, ProductEnd end, float* c, int64_t c_stride,
                     int64_t rows, int64_t columns, int64_t depth);
/// The same in the calling thread.
void ordered_product(StridedMatrix a, StridedMatrix b, ProductEnd end, float* c, int64_t c_stride, int64_t rows,
                     int64_t columns, int64_t depth);

}  // namespace hctr::ops
