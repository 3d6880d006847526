// GEMMs of the BLAS library, on a CPU.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "hctr/surroundings.h"
#include "ops/gemm/linear.h"

namespace hctr::ops {

/// Loads the library, once in a process. Products do so too, without surroundings.
///
/// OpenBLAS starts a thread for each core that the loading thread may use: nothing here uses them, and where the system
/// refuses threads or memory it ends the process. So the calling thread may use one core while it loads, and OpenBLAS
/// starts none. Where another part of the process has loaded the same library before, it stays as it is: products then
/// run in as many threads as that part has said (openblas_set_num_threads), and their last bits may differ from those
/// of the programs.
///
/// OpenBLAS chooses its kernels once, too. Where it does not know the processor, it is loaded again with the variable
/// OPENBLAS_CORETYPE set, if the surroundings can set it and their environment has none. Errors: Error(device) when the
/// library cannot be loaded.
void load_blas(const Surroundings& = {});

/// OpenBLAS's name of the kernels in use, such as "SkylakeX". Empty for another library.
std::string_view blas_kernels();
/// The kernels that it should have chosen, for a processor that has() these instructions; empty: those that it chose. A
/// library that is older than the processor does not know it and takes kernels of 128-bit vectors, a third as fast.
std::string_view better_blas_kernels(std::string_view chosen, const std::function<bool(std::string_view)>& has);

/// Whether an element of a large product in f32 has the same bits in every part of the product that contains it, if
/// parts begin at multiples of 16 rows and columns and have at least kLeastLargeProduct multiplications. Depends on the
/// library and the processor alone.
bool blas_rounds_alike();
/// Smaller products may go to other kernels of the library, which sum the whole depth at once.
inline constexpr int64_t kLeastLargeProduct = int64_t{1} << 23;

/// A matrix in row-major order whose rows are `stride` elements apart; op(m) is m or its transpose.
template <class T>
struct BlasMatrix {
  T* data;
  int64_t stride;
  Transpose how = Transpose::no;
};
/// c = op(a) op(b) + beta c in the calling thread, where op(a) is [rows, depth] and op(b) [depth, columns].
void gemm(int64_t rows, int64_t columns, int64_t depth, BlasMatrix<const float> a, BlasMatrix<const float> b,
          float beta, BlasMatrix<float> c);
void gemm(int64_t rows, int64_t columns, int64_t depth, BlasMatrix<const double> a, BlasMatrix<const double> b,
          double beta, BlasMatrix<double> c);

}  // namespace hctr::ops
