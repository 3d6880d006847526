// How far a result may differ from its reference: one table for all operator tests.
#pragma once

#include "core/base/dtype.h"

namespace hctr::test {

/// Kinds of operators by how they round.
enum class Rounding {
  none,      ///< copies or selects: bitwise equal
  element,   ///< a short formula per element
  function,  ///< the same with exp, erf, ...
  sum,       ///< sums of many terms, which may cancel
  chain,     ///< products with such sums, or a single sum: no larger element hides cancellation
  stages,    ///< several operators, each rounding its sums to the dtype
};

struct Tolerance {
  double relative;    ///< relative to the expected element
  double of_largest;  ///< relative to the largest element, for cancellation
};

/// For results of `dtype` against the f64 (or f32) reference on the same inputs.
Tolerance tolerance(DType dtype, Rounding);

}  // namespace hctr::test
