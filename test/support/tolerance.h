// How far a result may lie from its reference: the one table of all operator tests.
#pragma once

#include "device/dtype.h"

namespace hctr::test {

/// What an operator does to its numbers, as far as rounding is concerned.
enum class Rounding {
  none,      ///< moves or selects: bit for bit
  element,   ///< a short formula per element
  function,  ///< the same with exp, erf, ...
  sum,       ///< sums of many terms, which may cancel
  chain,     ///< numbers scaled by such sums, or one sum alone: what cancelled is not small beside a larger element
  stages,    ///< several operators, each of which rounds its sums to the type
};

struct Tolerance {
  double relative;    ///< to the expected element
  double of_largest;  ///< relative to the largest element: what cancellation leaves
};

/// For results of `dtype` against the f64 (or f32) reference on the same inputs.
Tolerance tolerance(DType dtype, Rounding);

}  // namespace hctr::test
