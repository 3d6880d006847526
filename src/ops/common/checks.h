// Argument checks that several operators share.
#pragma once

#include "core/device/tensor.h"

namespace hctr::ops {

/// The dtype of sums and statistics of a tensor with dtype `of`: f64 for f64, else f32.
inline DType sum_dtype(DType of) { return of == DType::f64 ? DType::f64 : DType::f32; }

/// Throws Error(bug) unless `t` is on `device` and has this shape and dtype. Accepts any row stride.
inline void expect_tensor(const char* what, Device device, const Tensor& t, const Shape& shape, DType dtype) {
  expect_on(what, device, t);
  expect_shape(what, t, shape);
  HCTR_EXPECT(t.dtype() == dtype, what, ": ", name_of(t.dtype()), ", expected ", name_of(dtype));
}

/// Like expect_tensor(); also throws Error(bug) unless the rows are dense.
inline void expect_dense_tensor(const char* what, Device device, const Tensor& t, const Shape& shape, DType dtype) {
  expect_tensor(what, device, t, shape, dtype);
  HCTR_EXPECT(t.dense(), what, ": expected dense rows, found strided rows");
}

}  // namespace hctr::ops
