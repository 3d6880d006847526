#include "support/tolerance.h"

namespace hctr::test {

Tolerance tolerance(DType dtype, Rounding rounding) {
  // One rounding changes a value by up to half a unit in the last place: f32 6e-8, f16 4.9e-4, bf16 3.9e-3.
  if (rounding == Rounding::none) return {0, 0};
  if (rounding == Rounding::stages) {  // four times the tolerance of one operator
    const Tolerance one = tolerance(dtype, Rounding::sum);
    return {4 * one.relative, dtype == DType::f16 || dtype == DType::bf16 ? 4 * one.relative : 4 * one.of_largest};
  }
  switch (dtype) {
    case DType::f64:
      return {1e-13, 1e-14};
    // A library GEMM may round twice: before and after adding the bias.
    case DType::f16:
      return {rounding >= Rounding::sum ? 1.1e-3 : 6e-4,
              rounding >= Rounding::sum ? 2e-4 : 3e-5};  // f16 subnormals are 6e-8 apart
    case DType::bf16:
      return {rounding >= Rounding::sum ? 8e-3 : 4.5e-3, rounding >= Rounding::sum ? 5e-4 : 1e-6};
    default:
      break;
  }
  switch (rounding) {
    case Rounding::element:
      return {3e-7, 1e-7};  // only some devices use a fused multiply-add
    case Rounding::function:
      return {2e-6, 3e-7};  // library functions differ by a few units in the last place
    case Rounding::sum:
      return {1e-6, 2e-6};  // devices sum a thousand terms in different orders
    case Rounding::chain:
      return {3e-4, 3e-4};  // cancellation in a sum of a thousand terms loses three digits
    case Rounding::stages:
    case Rounding::none:
      break;
  }
  return {0, 0};
}

}  // namespace hctr::test
