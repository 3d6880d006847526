// CPU GEMMs of the BLAS library.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "hctr/surroundings.h"
#include "ops/gemm/linear.h"

namespace hctr::ops {

/// Loads the BLAS library, once per process. A GEMM also loads the library, but without `Surroundings`.
///
/// OpenBLAS starts one thread per core that the loading thread may use, and ends the process if the system refuses
/// threads or memory. This program does not use these threads. The calling thread is therefore restricted to one core
/// during the load, so that OpenBLAS starts no threads. If another part of the process has already loaded the library,
/// that instance is used unchanged: GEMMs then run with that part's thread count (openblas_set_num_threads), and the
/// last bits of results may differ.
///
/// OpenBLAS also selects its kernels during the load. If OpenBLAS does not know the processor, the library is loaded
/// again with the environment variable OPENBLAS_CORETYPE. The second load requires that `Surroundings` can set
/// variables, and that the variable is not already set. Errors: Error(device) if the library cannot be loaded.
void load_blas(const Surroundings& = {});

/// The name of the OpenBLAS kernels in use, such as "SkylakeX". Empty for another library.
std::string_view blas_kernels();
/// The kernels that OpenBLAS should have selected instead of `chosen`; empty if `chosen` is right. has(name): whether
/// the processor has these instructions. OpenBLAS versions older than the processor select kernels with 128-bit
/// vectors, which are three times slower.
std::string_view better_blas_kernels(std::string_view chosen, const std::function<bool(std::string_view)>& has);

/// Whether an element of a large f32 GEMM has the same bits in every sub-GEMM that computes it. The sub-GEMMs must
/// start at multiples of 16 rows and columns, and have at least kLeastLargeProduct multiplications. The answer depends
/// only on the library and the processor.
bool blas_rounds_alike();
/// Minimum number of multiplications of a large GEMM. The library may compute smaller GEMMs with other kernels, which
/// sum over the whole depth in one pass.
inline constexpr int64_t kLeastLargeProduct = int64_t{1} << 23;

/// A row-major matrix whose rows are `stride` elements apart. op(m) is m or its transpose.
template <class T>
struct BlasMatrix {
  T* data;
  int64_t stride;
  Transpose how = Transpose::no;
};
/// c = op(a) op(b) + beta c, computed in the calling thread; op(a) is [rows, depth] and op(b) [depth, columns].
void gemm(int64_t rows, int64_t columns, int64_t depth, BlasMatrix<const float> a, BlasMatrix<const float> b,
          float beta, BlasMatrix<float> c);
void gemm(int64_t rows, int64_t columns, int64_t depth, BlasMatrix<const double> a, BlasMatrix<const double> b,
          double beta, BlasMatrix<double> c);

}  // namespace hctr::ops
