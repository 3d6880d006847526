// Compares our kernel with the best CUTLASS configuration for one case.
#pragma once

#include <string>
#include <vector>

#include "core/device/context.h"
#include "operands.h"

namespace hctr::gemm_bench {

struct Comparison {
  /// microseconds; without_sums: dgrad without the kernel that adds column sums
  double ours = 0, ours_without_sums = 0;
  double cutlass = 0, cutlass_without_sums = 0;
  double library = 0;                ///< cuBLASLt; 0: none
  std::string config;                ///< the configuration of the best CUTLASS kernel; empty: none
  std::vector<std::string> timings;  ///< the times of every configuration
  std::vector<std::string> failures;
  std::string wrong;  ///< what is wrong with our results
};

/// Chooses the fastest candidate of CUTLASS and of the library whose results are right, then times them and our kernel
/// alternately. `thorough`: also tries tile orders and launches without an early start. Errors: Error(device) if the
/// device no longer works.
Comparison compare(Context&, const Case&, const Candidates& cutlass, const Candidates& library, bool thorough);

}  // namespace hctr::gemm_bench
