// CUB prefix sums for the kernels of this folder.
#pragma once

#include <cub/device/device_scan.cuh>

#include "core/device/launch.cuh"

namespace hctr::ops::cuda {

/// Bytes of `words` 32-bit integers, rounded up to 256. CUB's storage may follow directly.
inline size_t padded_bytes(int64_t words) { return (static_cast<size_t>(words) * sizeof(int32_t) + 255) / 256 * 256; }

/// Bytes of scratch that prefix_sums() needs.
inline size_t prefix_sums_bytes(int64_t count) {
  size_t bytes = 0;
  int32_t* none = nullptr;
  HCTR_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, none, none, static_cast<int>(count), nullptr));
  return bytes;
}

/// sums[i] = the sum of values[0, i). Aliasing: values and sums may be the same memory.
inline void prefix_sums(Context& ctx, const int32_t* values, int32_t* sums, int64_t count, std::byte* scratch) {
  size_t bytes = prefix_sums_bytes(count);
  HCTR_CHECK(cub::DeviceScan::ExclusiveSum(scratch, bytes, values, sums, static_cast<int>(count),
                                           hctr::cuda::stream_of(ctx.stream())));
}

}  // namespace hctr::ops::cuda
