// CUTLASS: the forward GEMM with bias and ReLU in its epilogue.
#pragma once

#include <cutlass/epilogue/thread/activation.h>

#include "cutlass_gemm.cuh"

namespace hctr::gemm_bench {

template <class T_>
struct Forward {
  using T = T_;
  using D = T_;
  template <class Config>
  using Fusion = fusion::Sm90EVT<
      fusion::Sm90Compute<cutlass::epilogue::thread::ReLu, T, float, kNearest>,
      fusion::Sm90EVT<fusion::Sm90Compute<cutlass::plus, float, float, kNearest>,
                      fusion::Sm90RowBroadcast<0, typename Config::Tile, T, float>, fusion::Sm90AccFetch>>;
  template <class Config>
  using Types =
      KernelTypes<Config, Shape<int, int, int, int>, T, RowMajor, RowMajor, void, T, RowMajor, Fusion<Config>>;

  static Shape<int, int, int, int> shape(const Gemm& gemm) { return {gemm.m, gemm.n, row_stride(gemm.k), 1}; }
  static int64_t stride_a(const Gemm& gemm) { return row_stride(gemm.k); }
  static int64_t stride_b(const Gemm& gemm) { return gemm.n; }
  template <class Arguments>
  static void set_epilogue(const Gemm& gemm, Arguments& arguments) {
    arguments.thread = {{{static_cast<const T*>(gemm.bias)}, {}, {}}, {}};
  }
};

template <class T, class Config>
std::unique_ptr<Candidate> cutlass_forward() {
  return std::make_unique<SingleGemms<Config, Forward<T>>>();
}

}  // namespace hctr::gemm_bench
