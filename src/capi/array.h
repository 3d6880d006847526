// Checks the arrays of callers.
#pragma once

#include <cstdint>
#include <string>

#include "hctr/arrays.h"
#include "hctr/huge_ctr.h"

namespace hctr::capi {

ElementType element_type(const hctr_array&, const std::string& what);
/// The number of elements over all dimensions. Errors: Error(usage) for a malformed shape.
int64_t elements_of(const hctr_array&, const std::string& what);
/// The data of a contiguous array of `dims` dimensions, at least 1. Errors: Error(usage) naming `what`.
const void* contiguous(const hctr_array&, int dims, const std::string& what);
/// A matrix of f32 whose rows are contiguous: data, rows, columns and row stride in elements. Errors: likewise.
struct Matrix {
  float* data = nullptr;
  int64_t rows = 0, columns = 0, stride = 0;
};
Matrix matrix_of(const hctr_array&, const std::string& what);

}  // namespace hctr::capi
