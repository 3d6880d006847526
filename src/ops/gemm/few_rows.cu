#include "ops/gemm/few_rows.h"

#include "core/device/cuda_runtime_calls.h"
#include "core/device/scoring_scope.h"

namespace hctr::ops {

bool hopper::takes_few_rows(const Tensor& x, const Tensor& w, const Tensor& y) {
  const ScoringRules* const rules = ScoringScope::rules();
  if (!rules || hctr::cuda::compute_capability() != 90) return false;
  const DType dtype = w.dtype();
  if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16) return false;
  const auto whole = [&](int64_t elements) { return static_cast<size_t>(elements) * size_of(dtype) % 16 == 0; };
  return x.dim(0) <= (dtype == DType::f32 ? rules->few_rows_f32 : rules->few_rows_half) && y.elements() > 0 &&
         whole(w.dim(1)) && whole(w.row_stride()) && reinterpret_cast<uintptr_t>(w.bytes()) % 16 == 0;
}

}  // namespace hctr::ops
