// Selects the library's algorithm for each GEMM: its first proposal, unless a measurement chose another.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "core/device/op.h"

namespace hctr::ops {

/// Everything that the algorithm of a GEMM depends on: shapes, strides, transposes, dtypes, alignments, epilogue.
using ProductKey = std::array<int64_t, 17>;
/// An algorithm in the form of the library, which only the same version on the same device understands.
using ProductAlgorithm = std::array<uint64_t, 8>;
using ProductAlgorithms = std::map<ProductKey, ProductAlgorithm>;

/// The device and the version of the library that algorithms belong to; empty on the CPU, which has none.
HCTR_OP(void describe_product_library(Context&, std::string& library))

/// Computes the GEMMs met so far, and those met from now on, with these algorithms. Steps recorded before keep
/// theirs. `refused`: those that the library does not accept for a GEMM met so far, and which are not used.
HCTR_OP(void use_algorithms(Context&, const ProductAlgorithms&, ProductAlgorithms& refused))

/// Measures up to eight proposals of the library for each GEMM met so far without an algorithm from
/// use_algorithms(), uses the fastest, and adds it to `found`. The first proposal stays unless another takes 3 % less.
/// Waits for the device and allocates memory: no step may be recorded meanwhile. Errors: Error(device).
HCTR_OP(void search_algorithms(Context&, ProductAlgorithms& found))

}  // namespace hctr::ops
