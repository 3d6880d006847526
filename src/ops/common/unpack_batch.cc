#include "ops/common/unpack_batch.h"

#include <algorithm>
#include <cstring>

#include "ops/common/checks.h"

namespace hctr::ops {
namespace {

constexpr int64_t kKeysOfTask = 1 << 15;

template <class Key>
void widen(Context& ctx, const PackedKeys& packed, const std::byte* batch, int64_t* to) {
  const auto* keys = reinterpret_cast<const Key*>(batch + packed.keys);
  if (packed.slots == 0)
    return ctx.threads().parallel_for(packed.count, kKeysOfTask, [&](int64_t begin, int64_t end) {
      std::copy(keys + begin, keys + end, to + begin);
    });
  const int64_t slots = packed.slots, rows = packed.rows;
  ctx.threads().parallel_for(rows, std::max<int64_t>(1, kKeysOfTask / slots), [&](int64_t begin, int64_t end) {
    constexpr int64_t kRows = 64;  // rows per iteration, so few that their keys stay in the cache
    for (int64_t first = begin; first < end; first += kRows)
      for (int64_t s = 0; s < slots; ++s)
        for (int64_t b = first; b < std::min(end, first + kRows); ++b) to[s * rows + b] = keys[b * slots + s];
  });
}

}  // namespace

void unpack_batch(Context& ctx, const std::byte* batch, std::span<const UnpackedKeys> inputs,
                  const std::optional<UnpackedRows>& dense, int64_t samples) {
  for (const UnpackedKeys& input : inputs) {
    expect_dense_tensor("unpack_batch keys", ctx.device(), input.keys, {input.keys.elements()}, DType::i64);
    expect_dense_tensor("unpack_batch offsets", ctx.device(), input.offsets, {input.offsets.elements()}, DType::i32);
    HCTR_EXPECT(samples > 0 && input.offsets.elements() % samples == 1 % samples,
                "unpack_batch: ", input.offsets.elements(), " offsets cannot be divided among ", samples, " samples");
  }
  if (dense) {
    const Tensor& rows = dense->rows;
    expect_tensor("unpack_batch dense", ctx.device(), rows, {samples, rows.dim(1)}, rows.dtype());
    const int64_t unit = 16 / static_cast<int64_t>(size_of(rows.dtype()));
    HCTR_EXPECT(rows.row_stride() % unit == 0 && reinterpret_cast<uintptr_t>(rows.bytes()) % 16 == 0,
                "unpack_batch: rows of dense values must start at multiples of 16 bytes");
  }
  HCTR_ON_DEVICE(ctx, unpack_batch(ctx, batch, inputs, dense, samples));
}

void cpu::unpack_batch(Context& ctx, const std::byte* batch, std::span<const UnpackedKeys> inputs,
                       const std::optional<UnpackedRows>& dense, int64_t samples) {
  for (const UnpackedKeys& input : inputs) {
    const PackedKeys& packed = *input.packed;
    HCTR_EXPECT(packed.count <= input.keys.elements(), packed.count, " keys do not fit in a tensor of ",
                input.keys.elements());
    if (packed.key_bytes == 8)
      widen<int64_t>(ctx, packed, batch, input.keys.data<int64_t>());
    else if (packed.sign_extends)
      widen<int32_t>(ctx, packed, batch, input.keys.data<int64_t>());
    else
      widen<uint32_t>(ctx, packed, batch, input.keys.data<int64_t>());
    auto* const offsets = input.offsets.data<int32_t>();
    if (packed.offsets != PackedKeys::kOnes)
      std::memcpy(offsets, batch + packed.offsets, static_cast<size_t>(input.offsets.elements()) * sizeof(int32_t));
    else
      for (int64_t i = 0; i < input.offsets.elements(); ++i)
        offsets[i] = static_cast<int32_t>(packed.begin_of_ones(i / samples, i % samples));
  }
  if (!dense) return;
  dispatch_float(dense->rows.dtype(), [&]<class T>() {
    const auto rows = dense->rows.view<T, 2>();
    for (int64_t b = 0; b < samples; ++b) {
      const float* const from = dense->from + b * rows.size(1);
      T* const end = std::transform(from, from + rows.size(1), rows.row(b), [](float x) { return static_cast<T>(x); });
      std::fill(end, rows.row(b) + rows.row_stride, T{});
    }
  });
}

}  // namespace hctr::ops
