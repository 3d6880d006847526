// What only GPUs of compute capability 9.0 (Hopper) have: matrix instructions of a warp group, copies by the tensor
// memory accelerator, barriers that count bytes. Sources that include this are compiled for sm_90a
// alone (their names end in _sm90a.cu). NVIDIA, "PTX ISA", sections wgmma, cp.async.bulk.tensor and mbarrier.
#pragma once

#include <cuda.h>
#include <cstdint>
#include <type_traits>

#include "base/half.h"

namespace hctr::ops::hopper {

__device__ inline uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

// ---- barriers in shared memory

__device__ inline void init_barrier(uint64_t* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals));
}

/// Makes barriers known to the copy engine.
__device__ inline void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/// Arrives, and lets the current phase wait for so many bytes of copies.
__device__ inline void arrive_and_expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

__device__ inline void arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

/// Waits until the phase of this parity is over.
__device__ inline void wait_for(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "AGAIN:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra DONE;\n"
      "bra AGAIN;\n"
      "DONE:\n}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

/// `threads` threads that name the same barrier, 1 to 15.
__device__ inline void synchronize_group(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// ---- copies of boxes of a matrix

/// Copies the box at (column, row) to shared memory.
__device__ inline void load_box(void* to, const CUtensorMap& from, int column, int row, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          shared_address(to)),
      "l"(&from), "r"(shared_address(barrier)), "r"(column), "r"(row)
      : "memory");
}

// ---- products

/// Describes a matrix in shared memory as 128-byte swizzled copies write it, with k adjacent: rows of 128 bytes, eight
/// of them an atom of 1,024 bytes.
__device__ inline uint64_t describe_matrix(const void* at) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  return kSwizzle128 | (uint64_t{1024 >> 4} << 32) | ((shared_address(at) & 0x3FFFF) >> 4);
}

/// Describes boxes of 64 columns and at least 16 rows in shared memory, `box_bytes` from one to the next, as 128-byte
/// swizzled copies write them, for a product that sums over their rows: eight of them are an atom of 1,024 bytes.
__device__ inline uint64_t describe_transposed(const void* at, uint32_t box_bytes) {
  return describe_matrix(at) | (uint64_t{box_bytes >> 4} << 16);
}

__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
__device__ inline void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

template <int kRegisters>
__device__ inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

#define HCTR_D8(i)                                                                                            \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
#define HCTR_D32(i) HCTR_D8(i), HCTR_D8(i + 8), HCTR_D8(i + 16), HCTR_D8(i + 24)
#define HCTR_R32                                                                                              \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, " \
  "%23, %24, %25, %26, %27, %28, %29, %30, %31"
#define HCTR_R64                                                                                                \
  HCTR_R32                                                                                                      \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, " \
  "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define HCTR_R128                                                                                                      \
  HCTR_R64                                                                                                             \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, "   \
  "%86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, "   \
  "%107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, " \
  "%126, %127"
/// R: the names of the registers of d, AT_A and those after it: of the operands behind them.
#define HCTR_WGMMA(N, TYPE, R, AT_A, AT_B, AT_P, AT_T, ...)                                                    \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #AT_P                                                      \
               ", 0;\n"                                                                                        \
               "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" R "}, %" #AT_A ", %" #AT_B \
               ", p, 1, 1, %" #AT_T ", %" #AT_T ";\n}\n"                                                       \
               : __VA_ARGS__                                                                                   \
               : "l"(a), "l"(b), "r"(accumulate), "n"(kTransposed ? 1 : 0))

/// d = a b, plus d with `accumulate`, for a [64, 16] and b [16, kN], both with k adjacent (describe_matrix), or neither
/// with kTransposed (describe_transposed), as four warps hold d: lane l of warp w has of rows 16 w + l / 4 (elements
/// 4 j, 4 j + 1) and eight further (4 j + 2, 4 j + 3) the columns 8 j + 2 (l % 4) and the one behind.
template <class T, int kN, bool kTransposed = false>
__device__ inline void multiply(float (&d)[kN / 2], uint64_t a, uint64_t b, int accumulate) {
  constexpr bool kBf16 = std::is_same_v<T, BFloat16>;
  static_assert(kN == 64 || kN == 128 || kN == 256);
  if constexpr (kN == 64) {
    if constexpr (kBf16)
      HCTR_WGMMA(64, "bf16", HCTR_R32, 32, 33, 34, 35, HCTR_D32(0));
    else
      HCTR_WGMMA(64, "f16", HCTR_R32, 32, 33, 34, 35, HCTR_D32(0));
  } else if constexpr (kN == 128) {
    if constexpr (kBf16)
      HCTR_WGMMA(128, "bf16", HCTR_R64, 64, 65, 66, 67, HCTR_D32(0), HCTR_D32(32));
    else
      HCTR_WGMMA(128, "f16", HCTR_R64, 64, 65, 66, 67, HCTR_D32(0), HCTR_D32(32));
  } else {
    if constexpr (kBf16)
      HCTR_WGMMA(256, "bf16", HCTR_R128, 128, 129, 130, 131, HCTR_D32(0), HCTR_D32(32), HCTR_D32(64), HCTR_D32(96));
    else
      HCTR_WGMMA(256, "f16", HCTR_R128, 128, 129, 130, 131, HCTR_D32(0), HCTR_D32(32), HCTR_D32(64), HCTR_D32(96));
  }
}

#undef HCTR_WGMMA
#undef HCTR_R128
#undef HCTR_R64
#undef HCTR_R32
#undef HCTR_D32
#undef HCTR_D8

}  // namespace hctr::ops::hopper
