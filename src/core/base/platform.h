// Contents of this build, as constants. Other files have no #ifdef; structure_test lists the exceptions and why.
#pragma once

#if defined(__CUDACC__)
#define HCTR_HD __host__ __device__
#else
#define HCTR_HD
#endif

/// Placed before a loop: no iteration reads what another one writes, so it may be vectorized although pointers may be
/// equal.
#if defined(__clang__)
#define HCTR_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define HCTR_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#else
#define HCTR_INDEPENDENT_ITERATIONS
#endif

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)  // GCC
#define HCTR_SANITIZED 1
#elif defined(__has_feature)  // clang
#define HCTR_SANITIZED (__has_feature(thread_sanitizer) || __has_feature(address_sanitizer))
#else
#define HCTR_SANITIZED 0
#endif

/// Placed before a function that is not a template: it is compiled for several widths of vector registers, and the
/// widest that the processor has is called. Results are equal, as no multiplication is fused with an addition. Not
/// under a sanitizer, whose checks would run before it is set up.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__) && \
    !HCTR_SANITIZED
#define HCTR_CLONES_FOR_WIDE_VECTORS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HCTR_CLONES_FOR_WIDE_VECTORS
#endif

/// In a loop that waits for another thread: leaves the core's other hardware thread more of it.
#if defined(__x86_64__)
#define HCTR_PAUSE() __builtin_ia32_pause()
#else
#define HCTR_PAUSE() static_cast<void>(0)
#endif

/// a * b of doubles, rounded separately: a GPU compiler would otherwise fuse it with a following addition and round
/// once.
#if defined(__CUDA_ARCH__)
#define HCTR_ROUNDED_PRODUCT(a, b) __dmul_rn(a, b)
#else
#define HCTR_ROUNDED_PRODUCT(a, b) ((a) * (b))
#endif

namespace hctr {

inline constexpr bool kCudaBuild = HCTR_WITH_CUDA;  // set by CMake on every target: 0 or 1
inline constexpr bool kNcclBuild = HCTR_WITH_NCCL;
inline constexpr bool kMpiBuild = HCTR_WITH_MPI;
inline constexpr bool kSanitized = HCTR_SANITIZED;

}  // namespace hctr
