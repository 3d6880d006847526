#include "capi/array.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "capi/call.h"
#include "core/base/expect.h"

namespace hctr::capi {
namespace {

constexpr int kMostDims = 4;

void check_shape(const hctr_array& array, const std::string& what) {
  if (array.dims < 0 || array.dims > kMostDims || (array.dims > 0 && !array.shape))
    throw Error(Kind::usage, cat(what, " has ", array.dims, " dimensions", array.shape ? "" : " and no shape"));
  for (int d = 0; d < array.dims; ++d)
    if (array.shape[d] < 0) throw Error(Kind::usage, cat(what, " has ", array.shape[d], " elements in dimension ", d));
}

/// Whether dimensions from `first` on are contiguous. The strides of an array without elements mean nothing.
bool contiguous_from(const hctr_array& array, int first) {
  if (std::find(array.shape, array.shape + array.dims, 0) != array.shape + array.dims) return true;
  int64_t expected = 1;
  for (int d = array.dims - 1; array.strides && d >= first; --d) {
    if (array.shape[d] > 1 && array.strides[d] != expected) return false;
    expected *= array.shape[d];
  }
  return true;
}

std::string shape_text(const hctr_array& array) {
  std::string text = "[";
  for (int d = 0; d < array.dims; ++d) text += cat(d == 0 ? "" : ", ", array.shape[d]);
  return text + "]";
}

}  // namespace

ElementType element_type(const hctr_array& array, const std::string& what) {
  switch (array.dtype) {
    case HCTR_F32:
      return ElementType::f32;
    case HCTR_I32:
      return ElementType::i32;
    case HCTR_U32:
      return ElementType::u32;
    case HCTR_I64:
      return ElementType::i64;
    case HCTR_U64:
      return ElementType::u64;
    default:
      throw Error(Kind::usage, cat(what, " has elements of type ", array.dtype, ", which does not exist"));
  }
}

int64_t elements_of(const hctr_array& array, const std::string& what) {
  check_shape(array, what);
  int64_t all = 1;
  for (int d = 0; d < array.dims; ++d) all *= array.shape[d];
  return all;
}

const void* contiguous(const hctr_array& array, int dims, const std::string& what) {
  check_shape(array, what);
  if (array.dims != dims)
    throw Error(Kind::usage, cat(what, " has shape ", shape_text(array), ", expected ", dims, " dimensions"));
  if (!contiguous_from(array, 0)) throw Error(Kind::usage, cat(what, " is not contiguous"));
  if (!array.data && elements_of(array, what) > 0) throw Error(Kind::usage, cat(what, " has no data"));
  return array.data;
}

std::vector<int64_t> keys_of_array(const hctr_array& array, const std::string& what) {
  const void* const data = contiguous(array, 1, what);
  if (array.gpu >= 0) throw Error(Kind::usage, cat(what, " are on a GPU: pass host memory"));
  const auto copy = [&]<class T>(const T* from) {
    const auto count = static_cast<size_t>(array.shape[0]);
    std::vector<int64_t> to(count);
    for (size_t i = 0; i < count; ++i) to[i] = static_cast<int64_t>(from[i]);
    return to;
  };
  switch (element_type(array, what)) {
    case ElementType::i32:
      return copy(static_cast<const int32_t*>(data));
    case ElementType::u32:
      return copy(static_cast<const uint32_t*>(data));
    case ElementType::i64:
      return copy(static_cast<const int64_t*>(data));
    case ElementType::u64:
      return copy(static_cast<const uint64_t*>(data));
    default:
      throw Error(Kind::usage, cat(what, " must be integers of 32 or 64 bits"));
  }
}

RowsOf<void> rows_in(const hctr_array& array, const std::string& what) {
  check_shape(array, what);
  if (array.dims != 2)
    throw Error(Kind::usage, cat(what, " has shape ", shape_text(array), ", expected two dimensions"));
  if (!contiguous_from(array, 1)) throw Error(Kind::usage, cat(what, ": the elements of a row are not contiguous"));
  const int64_t stride = array.strides && array.shape[0] > 1 ? array.strides[0] : array.shape[1];
  if (stride < array.shape[1])
    throw Error(Kind::usage, cat(what, ": rows are ", stride,
                                 " elements apart, less than the row "
                                 "length ",
                                 array.shape[1]));
  return {array.data, array.shape[0], array.shape[1], stride};
}

Matrix matrix_of(const hctr_array& array, const std::string& what) {
  check_shape(array, what);
  if (array.dtype != HCTR_F32) throw Error(Kind::usage, cat(what, " is not f32"));
  const RowsOf<void> rows = rows_in(array, what);
  return {static_cast<float*>(rows.data), rows.rows, rows.columns, rows.stride};
}

std::vector<float> vectors_of_array(const hctr_array& array, int64_t rows, int64_t dim, const std::string& what) {
  const Matrix matrix = matrix_of(array, what);
  if (array.gpu >= 0) throw Error(Kind::usage, cat(what, " are on a GPU: pass host memory"));
  if (matrix.rows != rows || matrix.columns != dim)
    throw Error(Kind::usage,
                cat(what, " have shape [", matrix.rows, ", ", matrix.columns, "], expected [", rows, ", ", dim, "]"));
  std::vector<float> copy;
  copy.reserve(static_cast<size_t>(rows * dim));
  for (int64_t i = 0; i < rows; ++i)
    copy.insert(copy.end(), matrix.data + i * matrix.stride, matrix.data + i * matrix.stride + dim);
  return copy;
}

}  // namespace hctr::capi
