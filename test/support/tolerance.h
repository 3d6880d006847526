// Tolerances for results against the reference: one table for all operator tests.
#pragma once

#include "core/base/dtype.h"

namespace hctr::test {

/// Classifies operators by rounding error.
enum class Rounding {
  none,      ///< copies or selects: bitwise equal
  element,   ///< a short formula per element
  function,  ///< a short formula with exp, erf, ...
  sum,       ///< sums of many terms, with possible cancellation
  chain,     ///< functions of such sums; also results of one element, where `of_largest` cannot help
  stages,    ///< several operators, each of which rounds its sums to the dtype
};

struct Tolerance {
  double relative;    ///< relative to the expected element
  double of_largest;  ///< relative to the largest element: the tolerance for cancellation errors
};

/// The tolerance of results in `dtype` against the f64 (or f32) reference for the same inputs.
Tolerance tolerance(DType dtype, Rounding);

}  // namespace hctr::test
