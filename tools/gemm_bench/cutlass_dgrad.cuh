// CUTLASS: the dgrad GEMM with ReLU's gradient and column sums in its epilogue. The columns are summed per tile; a
// second kernel adds these partial sums, as for our GEMM. CUTLASS can also add them in the GEMM, but its tile counters
// then need a memset before each GEMM, and one block adds all partial sums of a column.
#pragma once

#include <cutlass/epilogue/thread/activation.h>

#include "cutlass_gemm.cuh"

namespace hctr::gemm_bench {

/// y > 0 ? d : 0
template <class T>
struct KeepPositive {
  CUTLASS_HOST_DEVICE T operator()(const T& y, const T& d) const { return y > T(0) ? d : T(0); }
};
template <class T, int kCount>
struct KeepPositive<cutlass::Array<T, kCount>> {
  using Values = cutlass::Array<T, kCount>;
  CUTLASS_HOST_DEVICE Values operator()(const Values& y, const Values& d) const {
    Values kept;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < kCount; ++i) kept[i] = y[i] > T(0) ? d[i] : T(0);
    return kept;
  }
};

template <class T_>
struct Dgrad {
  using T = T_;
  using D = T_;
  using Masked = fusion::Sm90EVT<fusion::Sm90Compute<KeepPositive, T, float, kNearest>, fusion::Sm90SrcFetch<T>,
                                 fusion::Sm90EVT<fusion::Sm90Compute<cutlass::multiplies, float, float, kNearest>,
                                                 fusion::Sm90ScalarBroadcast<float>, fusion::Sm90AccFetch>>;
  // The row reduction accepts only f32. The masked values are converted back to f32 after they were rounded to T.
  template <class Config>
  using Fusion = fusion::Sm90EVT<
      fusion::Sm90RowReduction<cutlass::plus, cutlass::plus, cutlass::plus, 0, typename Config::Tile, float, float,
                               kNearest, cute::Stride<cute::_0, cute::_1, cute::_0>, 4, false, false, false>,
      fusion::Sm90EVT<fusion::Sm90Compute<cutlass::epilogue::thread::Identity, float, float, kNearest>, Masked>>;
  template <class Config>
  using Types =
      KernelTypes<Config, Shape<int, int, int, int>, T, RowMajor, ColumnMajor, T, T, RowMajor, Fusion<Config>>;

  static Shape<int, int, int, int> shape(const Gemm& gemm) { return {gemm.m, gemm.n, gemm.k, 1}; }
  static int64_t stride_a(const Gemm& gemm) { return row_stride(gemm.k); }
  static int64_t stride_b(const Gemm& gemm) { return row_stride(gemm.k); }
  template <class Arguments>
  static void set_epilogue(const Gemm& gemm, Arguments& arguments) {
    arguments.thread = {{{{}, {{{gemm.factor}}, {}, {}}, {}}, {}}, {gemm.sums}};
    arguments.ptr_C = static_cast<const T*>(gemm.y);
    arguments.dC = stride_of<std::remove_cvref_t<decltype(arguments.dC)>>(gemm.n);
  }
};

template <class T, class Config>
std::unique_ptr<Candidate> cutlass_dgrad() {
  return std::make_unique<SingleGemms<Config, Dgrad<T>>>();
}

}  // namespace hctr::gemm_bench
