// Selects the library's algorithm for each GEMM: the first proposal, unless a measurement chose another.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "core/device/op.h"

namespace hctr::ops {

/// The properties that determine the algorithm of a GEMM: shapes, strides, transposes, dtypes, alignments, epilogue.
using ProductKey = std::array<int64_t, 17>;
/// An opaque algorithm of the library, valid only for the same library version on the same device.
using ProductAlgorithm = std::array<uint64_t, 8>;
using ProductAlgorithms = std::map<ProductKey, ProductAlgorithm>;

/// Describes the device and the library version for which algorithms are valid; empty on the CPU.
HCTR_OP(void describe_product_library(Context&, std::string& library))

/// Uses these algorithms for all GEMMs, both planned and new. Recorded steps keep their algorithms. `refused` gets the
/// algorithms that the library does not accept for an already planned GEMM; refused algorithms are not used.
HCTR_OP(void use_algorithms(Context&, const ProductAlgorithms&, ProductAlgorithms& refused))

/// For each planned GEMM without an algorithm from use_algorithms(), measures up to eight proposals of the library,
/// uses the fastest, and adds it to `found`. The first proposal stays unless another proposal takes 3 % less time.
/// Synchronizes the device and allocates memory; no step may be recorded during the call. Errors: Error(device).
HCTR_OP(void search_algorithms(Context&, ProductAlgorithms& found))

}  // namespace hctr::ops
