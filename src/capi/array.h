// Checks the arrays of C callers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hctr/arrays.h"
#include "hctr/huge_ctr.h"

namespace hctr::capi {

ElementType element_type(const hctr_array&, const std::string& what);
/// The number of elements over all dimensions. Errors: Error(usage) for a malformed shape.
int64_t elements_of(const hctr_array&, const std::string& what);
/// The data of a contiguous array of `dims` dimensions; `dims` is at least 1. Errors: Error(usage) naming `what`.
const void* contiguous(const hctr_array&, int dims, const std::string& what);
/// The integers of a contiguous one-dimensional array in host memory; u64 values keep their bits. Errors: Error(usage)
/// naming `what`, also for GPU memory.
std::vector<int64_t> keys_of_array(const hctr_array&, const std::string& what);
/// A matrix with contiguous rows: its data, rows, columns, and the elements between the starts of two rows. Errors:
/// Error(usage) naming `what`.
template <class T>
struct RowsOf {
  T* data = nullptr;
  int64_t rows = 0, columns = 0, stride = 0;
};
RowsOf<void> rows_in(const hctr_array&, const std::string& what);
/// A matrix of f32.
using Matrix = RowsOf<float>;
Matrix matrix_of(const hctr_array&, const std::string& what);
/// Copies an array f32 [rows, dim] in host memory to a contiguous vector. Errors: Error(usage) naming `what` and both
/// shapes.
std::vector<float> vectors_of_array(const hctr_array&, int64_t rows, int64_t dim, const std::string& what);

}  // namespace hctr::capi
