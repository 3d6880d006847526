// Small memory sets of a recorded graph as kernels.
#pragma once

#include <cuda_runtime.h>

namespace hctr::cuda {

/// Replaces each node that sets a few bytes by a kernel, such as cuBLASLt's before GEMMs that share a counter. Between
/// two kernels a memory set costs 6 to 10 us on an H100, a kernel 2 to 3. Call it before the graph is instantiated.
void set_memory_by_kernels(cudaGraph_t);

}  // namespace hctr::cuda
