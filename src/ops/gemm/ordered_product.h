// CPU GEMMs that compute a row with the same bits for any batch size. Inference needs this: a sample must get the same
// score alone and in a large batch.
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

/// A right operand whose columns are stored in panels of `width` columns, in the layout of the block functions: element
/// (k, j) at data[(j / width * depth + k) * width + j % width]. The last panel is padded with zeros.
struct PanelMatrix {
  const float* data;
  int64_t depth, width;
};

/// The epilogue: adds `addend` unless it is null; rows of the addend are `stride` apart (0: one row for all). Then
/// max(., 0) if `relu`.
struct ProductEnd {
  const float* addend = nullptr;
  int64_t stride = 0;
  bool relu = false;
};

/// c = a b + addend. Shapes: a [rows, depth], b [depth, columns], c [rows, columns], rows c_stride apart. Every element
/// is one chain of fused multiply-adds in the order of the depth, then the addend. The bits of an element depend only
/// on its row of a, its column of b and its addend, not on the processor or the number of threads.
void ordered_product(ThreadPool& threads, StridedMatrix a, StridedMatrix b, ProductEnd end, float* c, int64_t c_stride,
                     int64_t rows, int64_t columns, int64_t depth);
/// Like ordered_product(), but reads b from panels of packed_width() columns, which takes less time. The results have
/// the same bits.
void packed_product(ThreadPool& threads, StridedMatrix a, PanelMatrix b, ProductEnd end, float* c, int64_t c_stride,
                    int64_t rows, int64_t columns, int64_t depth);
/// PanelMatrix::width for this processor.
int64_t packed_width();
/// Elements of the panels of b [depth, columns].
int64_t packed_elements(int64_t depth, int64_t columns);
/// Writes the panels of b [depth, columns] to `panels`.
void pack_columns(StridedMatrix b, int64_t depth, int64_t columns, float* panels);

/// Like ordered_product() above, but computes in the calling thread.
void ordered_product(StridedMatrix a, StridedMatrix b, ProductEnd end, float* c, int64_t c_stride, int64_t rows,
                     int64_t columns, int64_t depth);

}  // namespace hctr::ops
