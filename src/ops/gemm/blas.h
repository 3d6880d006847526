// GEMMs of the BLAS library, on a CPU.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "hctr/surroundings.h"
#include "ops/gemm/linear.h"

namespace hctr::ops {

/// Loads the library, once in a process. GEMMs do so too, without surroundings.
///
/// OpenBLAS starts a thread for each core that the loading thread may use. These threads are not used here, and
/// OpenBLAS ends the process if the system refuses threads or memory. So the calling thread may use one core while it
/// loads, and OpenBLAS starts none. If another part of the process has loaded the same library before, it is used
/// unchanged: GEMMs then run in as many threads as that part has set (openblas_set_num_threads), and their last bits
/// may differ from those of the programs.
///
/// OpenBLAS selects its kernels once, too. If it does not know the processor, it is loaded again with the variable
/// OPENBLAS_CORETYPE set, if the surroundings can set it and their environment has none. Errors: Error(device) when the
/// library cannot be loaded.
void load_blas(const Surroundings& = {});

/// OpenBLAS's name of the kernels in use, such as "SkylakeX". Empty for another library.
std::string_view blas_kernels();
/// The kernels it should have selected, for a processor that has() these instructions; empty: the selected ones are
/// right. A library older than the processor does not know it and uses kernels of 128-bit vectors, a third as fast.
std::string_view better_blas_kernels(std::string_view chosen, const std::function<bool(std::string_view)>& has);

/// Whether an element of a large GEMM in f32 has the same bits in every part of the GEMM that contains it, if
/// parts begin at multiples of 16 rows and columns and have at least kLeastLargeProduct multiplications. Depends on the
/// library and the processor alone.
bool blas_rounds_alike();
/// Smaller GEMMs may go to other kernels of the library, which sum the whole depth at once.
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
