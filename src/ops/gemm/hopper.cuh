// Wrappers of Hopper (compute capability 9.0) instructions: warp group MMA, TMA copies, and barriers that count bytes.
// The functions have the names of the PTX instructions. ops/gemm/pipeline.cuh combines the barriers into pipelines.
// Sources that include this file are compiled for sm_90a only and have names that end in _sm90a.cu. Reference: NVIDIA,
// "PTX ISA", sections wgmma, cp.async.bulk.tensor and mbarrier.
#pragma once

#include <cuda.h>
#include <cstdint>
#include <type_traits>

#include "core/base/half.h"

namespace hctr::ops::hopper {

__device__ inline uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

// ---- barriers (mbarrier objects) in shared memory

__device__ inline void mbarrier_init(uint64_t* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals));
}

/// Makes initialized barriers visible to the TMA.
__device__ inline void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/// Arrives, and adds `bytes` of TMA copies to the transactions that the current phase waits for.
__device__ inline void mbarrier_arrive_expect_tx(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

__device__ inline void mbarrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

/// Waits until the phase with this parity has completed.
__device__ inline void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
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

// ---- clusters of blocks

/// All threads of a block: arrives at the barrier of the cluster. Earlier stores are visible after wait_for_cluster().
__device__ inline void arrive_at_cluster() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
/// All threads of a block: waits until all threads of the cluster have arrived.
__device__ inline void wait_for_cluster() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

/// Stores `value` in the shared memory of block `block` of the cluster, at the place that `at` has in this block's
/// shared memory.
__device__ inline void store_in_block(const float* at, int block, float value) {
  uint32_t address = 0;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(at)), "r"(block));
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}

/// Synchronizes `threads` threads at the named barrier `barrier`, a number from 1 to 15.
__device__ inline void bar_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// ---- TMA copies of matrix boxes

/// Prefetches a TMA map.
__device__ inline void prefetch_tensormap(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Copies the box at (column, row) of the matrix `from` to shared memory.
__device__ inline void tma_load(void* to, const CUtensorMap& from, int column, int row, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          shared_address(to)),
      "l"(&from), "r"(shared_address(barrier)), "r"(column), "r"(row)
      : "memory");
}

/// Copies a box from shared memory to (column, row) of the matrix `to`. tma_store_commit_group() groups the preceding
/// copies of a thread.
__device__ inline void tma_store(const CUtensorMap& to, int column, int row, const void* from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&to),
               "r"(shared_address(from)), "r"(column), "r"(row)
               : "memory");
}
__device__ inline void tma_store_commit_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/// Waits until the TMA has read the sources of all stores that this thread committed.
__device__ inline void tma_store_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

/// Makes this thread's writes to shared memory visible to the TMA and to matrix instructions.
__device__ inline void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- matrices of 8 x 8 elements of two bytes

/// Stores four 8 x 8 matrices. In two[i], lane l passes the elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of matrix
/// i. As `row`, lane l passes the address of row l % 8 of matrix l / 8.
__device__ inline void stmatrix(void* row, const uint32_t (&two)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
               "r"(two[0]), "r"(two[1]), "r"(two[2]), "r"(two[3])
               : "memory");
}

// ---- warp group MMA

/// Descriptor of a matrix in shared memory with contiguous k. The layout is that of a 128-byte swizzled TMA copy: rows
/// of 128 bytes, and eight rows per atom of 1,024 bytes.
__device__ inline uint64_t matrix_descriptor(const void* at) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  return kSwizzle128 | (uint64_t{1024 >> 4} << 32) | ((shared_address(at) & 0x3FFFF) >> 4);
}

/// Descriptor for a GEMM that sums over the rows of boxes in shared memory. The boxes have 64 columns and at least 16
/// rows, and are `box_bytes` apart. 128-byte swizzled TMA copies write the boxes; eight rows form an atom of 1,024
/// bytes.
__device__ inline uint64_t transposed_matrix_descriptor(const void* at, uint32_t box_bytes) {
  return matrix_descriptor(at) | (uint64_t{box_bytes >> 4} << 16);
}

__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
__device__ inline void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

template <int kRegisters>
__device__ inline void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void setmaxnreg_inc() {
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
#define HCTR_R96                                                                                                \
  HCTR_R64                                                                                                      \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, " \
  "%85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define HCTR_R104 \
  HCTR_R96        \
  ", %96, %97, %98, %99, %100, %101, %102, %103"
#define HCTR_R128                                                                                                  \
  HCTR_R104                                                                                                        \
  ", %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, " \
  "%122, %123, %124, %125, %126, %127"
/// Arguments of the macro: R lists the register names of d. A, B, P, TA and TB are the operand numbers of a, b,
/// `accumulate`, the transpose flag of a and the transpose flag of b.
#define HCTR_WGMMA(N, TYPE, R, A, B, P, TA, TB, ...)                                                     \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #P                                                   \
               ", 0;\n"                                                                                  \
               "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" R "}, %" #A ", %" #B \
               ", p, 1, 1, %" #TA ", %" #TB ";\n}\n"                                                     \
               : __VA_ARGS__                                                                             \
               : "l"(a), "l"(b), "r"(accumulate), "n"(kTransposedA ? 1 : 0), "n"(kTransposedB ? 1 : 0))
#define HCTR_WGMMA_TF32(N, R, A, B, P, ...)                                                                       \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #P                                                            \
               ", 0;\n"                                                                                           \
               "wgmma.mma_async.sync.aligned.m64n" #N "k8.f32.tf32.tf32 {" R "}, %" #A ", %" #B ", p, 1, 1;\n}\n" \
               : __VA_ARGS__                                                                                      \
               : "l"(a), "l"(b), "r"(accumulate))
#define HCTR_PRODUCT(N, R, A, B, P, TA, TB, ...)              \
  do {                                                        \
    if constexpr (std::is_same_v<T, float>)                   \
      HCTR_WGMMA_TF32(N, R, A, B, P, __VA_ARGS__);            \
    else if constexpr (std::is_same_v<T, BFloat16>)           \
      HCTR_WGMMA(N, "bf16", R, A, B, P, TA, TB, __VA_ARGS__); \
    else                                                      \
      HCTR_WGMMA(N, "f16", R, A, B, P, TA, TB, __VA_ARGS__);  \
  } while (false)

/// d = a b, plus d if `accumulate`. a is [64, k] and b is [k, kN], where k is 32 bytes: 16 two-byte elements, or 8 f32
/// values with the upper 19 bits used (TF32). An operand has contiguous k (matrix_descriptor()); a two-byte operand may
/// also be transposed (transposed_matrix_descriptor()). d is distributed over four warps. With r = 16 w + l / 4 and c =
/// 8 j + 2 (l % 4), lane l of warp w has d[r, c] and d[r, c + 1] in elements 4 j and 4 j + 1, and d[r + 8, c] and d[r +
/// 8, c + 1] in elements 4 j + 2 and 4 j + 3.
template <class T, int kN, bool kTransposedA = false, bool kTransposedB = kTransposedA>
__device__ inline void wgmma(float (&d)[kN / 2], uint64_t a, uint64_t b, int accumulate) {
  static_assert(kN == 64 || kN == 128 || kN == 192 || kN == 208 || kN == 256);
  static_assert(sizeof(T) == 2 || !(kTransposedA || kTransposedB));
  if constexpr (kN == 64)
    HCTR_PRODUCT(64, HCTR_R32, 32, 33, 34, 35, 36, HCTR_D32(0));
  else if constexpr (kN == 128)
    HCTR_PRODUCT(128, HCTR_R64, 64, 65, 66, 67, 68, HCTR_D32(0), HCTR_D32(32));
  else if constexpr (kN == 192)
    HCTR_PRODUCT(192, HCTR_R96, 96, 97, 98, 99, 100, HCTR_D32(0), HCTR_D32(32), HCTR_D32(64));
  else if constexpr (kN == 208)
    HCTR_PRODUCT(208, HCTR_R104, 104, 105, 106, 107, 108, HCTR_D32(0), HCTR_D32(32), HCTR_D32(64), HCTR_D8(96));
  else
    HCTR_PRODUCT(256, HCTR_R128, 128, 129, 130, 131, 132, HCTR_D32(0), HCTR_D32(32), HCTR_D32(64), HCTR_D32(96));
}

/// d = a b, plus d if `accumulate`, for TF32 operands: a [64, 8] in the registers of four warps, and b [8, 128] with
/// contiguous k (matrix_descriptor()). With i = lane / 4 and j = lane % 4, a lane of warp w has the elements (16 w + i,
/// j), (16 w + i + 8, j), (16 w + i, j + 4) and (16 w + i + 8, j + 4) of a. The registers of a must not change until
/// the MMA has completed. d is distributed as in wgmma().
__device__ inline void wgmma_registers(float (&d)[64], const uint32_t (&a)[4], uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {" HCTR_R64 "}, {%64, %65, %66, %67}, %68, p, 1, 1;\n}\n"
      : HCTR_D32(0), HCTR_D32(32)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

#undef HCTR_PRODUCT
#undef HCTR_WGMMA_TF32
#undef HCTR_WGMMA
#undef HCTR_R128
#undef HCTR_R104
#undef HCTR_R96
#undef HCTR_R64
#undef HCTR_R32
#undef HCTR_D32
#undef HCTR_D8

}  // namespace hctr::ops::hopper
