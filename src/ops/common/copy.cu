// Copy kernels. Dense tensors of one dtype are copied as bytes. Long rows of one dtype that do not start at a multiple
// of 16 bytes, like the columns of a Concat, are stored 16 bytes at a time. Every other copy is an element-wise map.
#include "ops/common/copy.h"

#include "core/device/copy_bytes.h"
#include "ops/common/element_loops.cuh"

namespace hctr::ops {
namespace {

struct Same {
  __device__ float operator()(float x) const { return x; }
};

struct ByteRows {
  std::byte* data;
  int64_t stride;
};

constexpr int64_t kLeastShiftedBytes = 128;  // in a shorter row, most bytes would be in the partial packs at its ends

/// A thread stores 16 aligned bytes of y. The thread loads aligned 4-byte words of x and shifts them; the first and
/// last word may include bytes next to the pack. The partial packs at the ends of a row are copied one Element at a
/// time.
template <class Element>
__global__ void copy_shifted_kernel(ByteRows x, int64_t rows, int64_t row_bytes, ByteRows y) {
  constexpr uintptr_t kPack = 16;
  const int64_t per_row = (row_bytes + 15) / 16 + 1;  // + 1, because a row may start inside a pack
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk at = cuda::chunk_at(i, rows, per_row, 1);
    const auto row = reinterpret_cast<uintptr_t>(y.data + at.row * y.stride), row_end = row + row_bytes;
    const uintptr_t pack = row / kPack * kPack + at.column * kPack;
    const uintptr_t begin = max(pack, row), end = min(pack + kPack, row_end);
    if (begin >= end) continue;
    const auto from = reinterpret_cast<uintptr_t>(x.data + at.row * x.stride) + (begin - row);
    if (end - begin == kPack) {
      const auto* words = reinterpret_cast<const uint32_t*>(from / 4 * 4);
      const auto shift = static_cast<uint32_t>(from % 4) * 8;
      uint4 out{words[0], words[1], words[2], words[3]};
      if (shift != 0)
        out = {__funnelshift_r(out.x, out.y, shift), __funnelshift_r(out.y, out.z, shift),
               __funnelshift_r(out.z, out.w, shift), __funnelshift_r(out.w, words[4], shift)};
      *reinterpret_cast<uint4*>(begin) = out;
    } else {
      const auto* elements = reinterpret_cast<const Element*>(from);
      auto* to = reinterpret_cast<Element*>(begin);
      for (uintptr_t j = 0; j < (end - begin) / sizeof(Element); ++j) to[j] = elements[j];
    }
  }
}

bool takes_packs_of_bytes(const ByteRows& rows) {
  return reinterpret_cast<uintptr_t>(rows.data) % 16 == 0 && rows.stride % 16 == 0;
}

/// Copies long rows if some are not aligned to 16 bytes, and returns true. Returns false if the kernel does not apply.
bool copy_shifted(Context& ctx, const Tensor& x, const Tensor& y, const Extent& extent) {
  const auto bytes = static_cast<int64_t>(size_of(x.dtype()));
  const ByteRows from{x.bytes(), x.row_stride() * bytes}, to{y.bytes(), y.row_stride() * bytes};
  const int64_t row_bytes = extent.columns * bytes;
  if (x.dtype() != y.dtype() || row_bytes < kLeastShiftedBytes ||
      (takes_packs_of_bytes(from) && takes_packs_of_bytes(to)))
    return false;
  cuda::launch(ctx, "copy", cuda::grid_for(extent.rows * ((row_bytes + 15) / 16 + 1)),
               bytes == 2 ? copy_shifted_kernel<uint16_t> : copy_shifted_kernel<uint32_t>, from, extent.rows, row_bytes,
               to);
  return true;
}

}  // namespace

void cuda::copy(Context& ctx, Tensor x, Tensor y) {
  const Extent extent = extent_of({x, y});
  if (extent.rows == 1 && x.dtype() == y.dtype())
    return copy_bytes(ctx.stream(), y.bytes(), x.bytes(), static_cast<size_t>(extent.columns) * size_of(x.dtype()));
  if (copy_shifted(ctx, x, y, extent)) return;
  dispatch_float(x.dtype(), [&]<class In>() {
    dispatch_float(y.dtype(), [&]<class Out>() {
      map<Same, In, Out, 1>(ctx, "copy", Same(), {{rows_of<const In>(x, extent)}}, rows_of<Out>(y, extent));
    });
  });
}

}  // namespace hctr::ops
