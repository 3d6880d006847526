#include "core/device/tensor.h"

namespace hctr {

Shape::Shape(std::initializer_list<int64_t> sizes) {
  HCTR_EXPECT(sizes.size() <= kMostDims, "a shape of ", sizes.size(), " dimensions");
  for (const int64_t size : sizes) sizes_[static_cast<size_t>(rank_++)] = size;
}

int64_t Shape::elements() const {
  int64_t n = 1;
  for (int i = 0; i < rank_; ++i) n *= (*this)[i];
  return n;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

TensorSpec::TensorSpec(DType dtype_, Shape shape_) : dtype(dtype_), shape(shape_) { row_stride = row_elements(); }

TensorSpec::TensorSpec(DType dtype_, Shape shape_, int64_t row_stride_)
    : dtype(dtype_), shape(shape_), row_stride(row_stride_) {
  HCTR_EXPECT(row_stride >= row_elements(), "row stride ", row_stride, " for shape ", to_string(shape));
}

size_t TensorSpec::bytes() const { return static_cast<size_t>((rows() + zero_rows) * row_stride) * size_of(dtype); }

void Tensor::expect_type(DType wanted) const {
  HCTR_EXPECT(wanted == dtype(), "tensor of ", name_of(dtype()), " used as ", name_of(wanted));
}

Tensor Tensor::columns(int64_t begin, int64_t end) const {
  HCTR_EXPECT(rank() == 2 && 0 <= begin && begin <= end && end <= dim(1), "columns ", begin, " to ", end, " of ",
              to_string(shape()));
  return Tensor(data_ + static_cast<size_t>(begin) * size_of(dtype()),
                TensorSpec(dtype(), {rows(), end - begin}, row_stride()), device_);
}

Tensor Tensor::row_range(int64_t begin, int64_t end) const {
  HCTR_EXPECT(0 <= begin && begin <= end && end <= rows(), "rows ", begin, " to ", end, " of ", to_string(shape()));
  Shape part = shape();
  part[0] = end - begin;
  TensorSpec spec = spec_;
  spec.shape = part;
  if (end < rows()) spec.zero_rows = 0;
  return Tensor(data_ + static_cast<size_t>(begin * row_stride()) * size_of(dtype()), spec, device_);
}

Tensor Tensor::reshaped(Shape wanted) const {
  HCTR_EXPECT(wanted.elements() == elements(), to_string(shape()), " reshaped to ", to_string(wanted));
  if (dense()) return Tensor(data_, TensorSpec(dtype(), wanted), device_);
  HCTR_EXPECT(wanted[0] == rows(), "strided rows of ", to_string(shape()), " reshaped to ", to_string(wanted));
  return Tensor(data_, TensorSpec(dtype(), wanted, row_stride()), device_);
}

void expect_shape(const char* what, const Tensor& tensor, Shape expected) {
  HCTR_EXPECT(tensor.shape() == expected, what, ": shape ", to_string(tensor.shape()), ", expected ",
              to_string(expected));
}

void expect_on(const char* what, Device device, const Tensor& tensor) {
  HCTR_EXPECT(tensor.device() == device, what, ": a tensor on ", to_string(tensor.device()), " used on ",
              to_string(device));
}

void expect_alike(const char* what, std::initializer_list<Tensor> tensors) {
  const Tensor& first = *tensors.begin();
  for (const Tensor& tensor : tensors)
    HCTR_EXPECT(tensor.dtype() == first.dtype() && tensor.device() == first.device(), what, ": ",
                name_of(first.dtype()), " on ", to_string(first.device()), " together with ", name_of(tensor.dtype()),
                " on ", to_string(tensor.device()));
}

}  // namespace hctr
