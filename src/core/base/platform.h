// Properties of this build and its compiler, as constants and macros. Only half.h, fp8.h and non_temporal.h also have
// an #if: each offers the instructions of some processors as functions that every processor has. Source files for one
// processor are chosen by their name (hctr_room() in src/CMakeLists.txt).
#pragma once

#if defined(__CUDACC__)
#define HCTR_HD __host__ __device__
#else
#define HCTR_HD
#endif

/// Place before a loop whose iterations do not depend on each other. The compiler may then vectorize the loop although
/// pointers may be equal.
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

/// Place before a non-template function. The compiler builds the function for several vector widths, and the program
/// calls the widest version that the processor supports. Results are equal because the compiler fuses no multiply-add.
/// Disabled under a sanitizer, because the resolver's instrumented code would run before the sanitizer is initialized.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__) && \
    !HCTR_SANITIZED
#define HCTR_CLONES_FOR_WIDE_VECTORS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HCTR_CLONES_FOR_WIDE_VECTORS
#endif

/// Place inside a spin loop. Yields execution resources to the core's other hardware thread.
#if defined(__x86_64__)
#define HCTR_PAUSE() __builtin_ia32_pause()
#else
#define HCTR_PAUSE() static_cast<void>(0)
#endif

/// a * b in double, rounded before any addition. A GPU compiler would otherwise contract the product and a following
/// addition to an FMA, which rounds once.
#if defined(__CUDA_ARCH__)
#define HCTR_ROUNDED_PRODUCT(a, b) __dmul_rn(a, b)
#else
#define HCTR_ROUNDED_PRODUCT(a, b) ((a) * (b))
#endif

namespace hctr {

inline constexpr bool kCudaBuild = HCTR_WITH_CUDA;  // set by CMake for every target: 0 or 1
inline constexpr bool kNcclBuild = HCTR_WITH_NCCL;
inline constexpr bool kMpiBuild = HCTR_WITH_MPI;
inline constexpr bool kSanitized = HCTR_SANITIZED;

}  // namespace hctr
