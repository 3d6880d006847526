// Our kernels as candidates of the benchmark.
#pragma once

#include "candidate.h"
#include "core/device/context.h"

namespace hctr::gemm_bench {

/// Our kernel of an operator, on the compute stream of the context.
std::unique_ptr<Candidate> our_kernel(Context&, Operator, Type);

/// d_bias = the column sums of a dgrad, from partial sums. Errors: Error(device).
void add_column_sums(Context&, const Gemm&, SumLayout);

}  // namespace hctr::gemm_bench
