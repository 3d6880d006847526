// The warp-level MMA instruction, for compute capability 8.0 and later. Reference: NVIDIA, "PTX ISA", section mma.
#pragma once

#include <cstdint>

#include <nv/target>

#include "core/base/dtype.h"
#include "core/base/half.h"

namespace hctr::ops::tensor_cores {

/// sum [16 x 8] += a [16 x K] b [K x 8], where K elements have 32 bytes. A register has two two-byte elements, or one
/// f32 value with its upper 19 bits used (TF32). With i = lane / 4 and j = lane % 4, a lane has the registers (i, j),
/// (i + 8, j), (i, j + 4) and (i + 8, j + 4) of a; the registers (j, i) and (j + 4, i) of b; and the elements (i, 2 j),
/// (i, 2 j + 1), (i + 8, 2 j) and (i + 8, 2 j + 1) of the sum. Does nothing below compute capability 8.0.
template <class T>
__device__ inline void multiply_add(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (sizeof(T) == 4) {
    NV_IF_TARGET(NV_PROVIDES_SM_80,
                 (asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                               "{%8,%9}, {%0,%1,%2,%3};"
                               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));))
  } else if constexpr (kDTypeOf<T> == DType::f16) {
    NV_IF_TARGET(NV_PROVIDES_SM_80,
                 (asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                               "{%8,%9}, {%0,%1,%2,%3};"
                               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));))
  } else {
    NV_IF_TARGET(NV_PROVIDES_SM_80,
                 (asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                               "{%8,%9}, {%0,%1,%2,%3};"
                               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));))
  }
}

}  // namespace hctr::ops::tensor_cores
