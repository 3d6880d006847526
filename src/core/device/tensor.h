// Tensor types. TensorSpec has dtype and shape and is used for planning. Tensor also has data and is used by operators.
// View is passed to kernels by value.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/base/dtype.h"
#include "core/base/expect.h"
#include "core/device/device.h"

namespace hctr {

/// The sizes of up to four dimensions.
class Shape {
 public:
  static constexpr int kMostDims = 4;
  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes);
  int rank() const { return rank_; }
  int64_t operator[](int i) const { return sizes_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return sizes_[static_cast<size_t>(i)]; }
  int64_t elements() const;
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMostDims> sizes_{};
  int rank_ = 0;
};
std::string to_string(const Shape&);  ///< "[64,26,16]"

/// Dtype, shape and row stride of a tensor that may not exist yet. Rows are the items of dimension 0. The elements of a
/// row are contiguous; rows are `row_stride` elements apart. Padding after each row and after the last row can be
/// declared to be permanently zero. GEMMs include zero padding to get sizes that run fast on the hardware. Other
/// operators neither read nor write padding.
struct TensorSpec {
  DType dtype = DType::f32;
  Shape shape;
  int64_t row_stride = 0;
  int64_t zero_columns = 0;  ///< zero elements after each row
  int64_t zero_rows = 0;     ///< zero rows after the last row

  TensorSpec() = default;
  TensorSpec(DType, Shape);  // dense
  TensorSpec(DType, Shape, int64_t row_stride);
  int64_t rows() const { return shape.rank() == 0 ? 1 : shape[0]; }
  int64_t row_elements() const { return rows() == 0 ? 0 : shape.elements() / rows(); }
  bool dense() const { return row_stride == row_elements() || rows() <= 1; }
  size_t bytes() const;  ///< bytes from the first element to the end of the last row's stride, including zero_rows
  bool operator==(const TensorSpec&) const = default;
};

/// Pointer, sizes and row stride of a tensor. Passed to kernels by value.
template <class T, int Rank>
struct View {
  T* data;
  int64_t sizes[Rank];
  int64_t row_stride;

  HCTR_HD int64_t size(int i) const { return sizes[i]; }
  HCTR_HD int64_t row_elements() const {
    int64_t n = 1;
    for (int i = 1; i < Rank; ++i) n *= sizes[i];
    return n;
  }
  HCTR_HD T* row(int64_t i) const { return data + i * row_stride; }
  template <class... Rest>
  HCTR_HD T& operator()(int64_t i, Rest... rest) const {
    static_assert(sizeof...(Rest) == Rank - 1);
    const int64_t inner[] = {0, static_cast<int64_t>(rest)...};
    int64_t at = 0;
    for (int d = 1; d < Rank; ++d) at = at * sizes[d] + inner[d];
    return data[i * row_stride + at];
  }
};

/// A tensor whose memory is owned elsewhere. `data` is null only if the tensor has no elements. Cheap to copy.
class Tensor {
 public:
  Tensor(void* data, TensorSpec spec, Device device)
      : data_(static_cast<std::byte*>(data)), spec_(spec), device_(device) {}

  const TensorSpec& spec() const { return spec_; }
  DType dtype() const { return spec_.dtype; }
  const Shape& shape() const { return spec_.shape; }
  int rank() const { return spec_.shape.rank(); }
  int64_t dim(int i) const { return spec_.shape[i]; }
  int64_t rows() const { return spec_.rows(); }
  int64_t row_elements() const { return spec_.row_elements(); }
  int64_t row_stride() const { return spec_.row_stride; }
  int64_t elements() const { return spec_.shape.elements(); }
  bool dense() const { return spec_.dense(); }
  Device device() const { return device_; }

  template <class T>
  T* data() const {
    expect_type(kDTypeOf<std::remove_const_t<T>>);
    return reinterpret_cast<T*>(data_);
  }
  std::byte* bytes() const { return data_; }

  template <class T, int Rank>
  View<T, Rank> view() const {
    HCTR_EXPECT(rank() == Rank, "tensor of shape ", to_string(shape()), " used as a tensor of rank ", Rank);
    View<T, Rank> v{data<T>(), {}, spec_.row_stride};
    for (int i = 0; i < Rank; ++i) v.sizes[i] = dim(i);
    return v;
  }
  /// Views any tensor as a matrix [rows, elements per row].
  template <class T>
  View<T, 2> matrix() const {
    return {data<T>(), {rows(), row_elements()}, spec_.row_stride};
  }

  /// Columns [begin, end) of a matrix, with the same rows and row stride.
  Tensor columns(int64_t begin, int64_t end) const;
  /// Rows [begin, end).
  Tensor row_range(int64_t begin, int64_t end) const;
  /// The same elements with another shape. A tensor that is not dense must keep its dimension 0.
  Tensor reshaped(Shape) const;

 private:
  void expect_type(DType) const;
  std::byte* data_;
  TensorSpec spec_;
  Device device_;
};

/// Throws Error(bug) "<what>: shape ..., expected ..." if the shape is not `expected`.
void expect_shape(const char* what, const Tensor&, Shape expected);
/// Throws Error(bug) if the tensor is not on `device`.
void expect_on(const char* what, Device device, const Tensor&);
/// Throws Error(bug) if the tensors differ in dtype or device.
void expect_alike(const char* what, std::initializer_list<Tensor> tensors);

}  // namespace hctr
