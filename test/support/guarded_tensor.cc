#include "support/guarded_tensor.h"

#include <algorithm>
#include <cstring>

#include "core/device/copy_bytes.h"

namespace hctr::test {
namespace {

constexpr size_t kGuard = 256;
constexpr std::byte kPoison{0xff};

TensorSpec placed(DType dtype, Shape shape, const RowLayout& layout) {
  const TensorSpec dense(dtype, shape);
  const int64_t width = dense.row_elements();
  return TensorSpec(dtype, shape, (width + layout.multiple - 1) / layout.multiple * layout.multiple + layout.extra);
}

template <class Body>
void with_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::i32:
      return body.template operator()<int32_t>();
    case DType::i64:
      return body.template operator()<int64_t>();
    case DType::u32:
      return body.template operator()<uint32_t>();
    default:
      return dispatch_real(dtype, body);
  }
}

}  // namespace

double rounded_to(DType dtype, double value) {
  double out = 0;
  with_type(dtype, [&]<class T>() {
    if constexpr (sizeof(T) == 2)
      out = static_cast<double>(static_cast<float>(T(static_cast<float>(value))));
    else
      out = static_cast<double>(static_cast<T>(value));
  });
  return out;
}

GuardedTensor::GuardedTensor(Device device, DType dtype, Shape shape, const RowLayout& layout)
    : tensor_(nullptr, placed(dtype, shape, layout), device),
      begin_(kGuard + static_cast<size_t>(layout.offset) * size_of(dtype)) {
  buffer_ = Buffer(device, begin_ + tensor_.spec().bytes() + kGuard);
  tensor_ = Tensor(buffer_.data() + begin_, tensor_.spec(), device);
  initial_.assign(buffer_.bytes(), kPoison);
}

template <class Body>
void GuardedTensor::each_element(const Body& body) const {
  const size_t size = size_of(tensor_.dtype());
  size_t number = 0;
  for (int64_t r = 0; r < tensor_.rows(); ++r)
    for (int64_t i = 0; i < tensor_.row_elements(); ++i)
      body(number++, begin_ + static_cast<size_t>(r * tensor_.row_stride() + i) * size);
}

void GuardedTensor::set(const std::vector<double>& values, StreamRef stream) {
  with_type(tensor_.dtype(), [&]<class T>() {
    each_element([&](size_t n, size_t at) {
      T value;
      if constexpr (sizeof(T) == 2)
        value = T(static_cast<float>(values.at(n)));
      else
        value = static_cast<T>(values.at(n));
      std::memcpy(initial_.data() + at, &value, sizeof value);
    });
  });
  restore(stream);
}

void GuardedTensor::poison(StreamRef stream) {
  initial_.assign(buffer_.bytes(), kPoison);
  restore(stream);
}

void GuardedTensor::restore(StreamRef stream) {
  copy_bytes(stream, buffer_.data(), initial_.data(), initial_.size());
  stream.synchronize();
}

void GuardedTensor::fetch(StreamRef stream) {
  now_.resize(buffer_.bytes());
  copy_bytes(stream, now_.data(), buffer_.data(), now_.size());
  stream.synchronize();
}

std::vector<double> GuardedTensor::values() const {
  std::vector<double> out(static_cast<size_t>(tensor_.elements()));
  with_type(tensor_.dtype(), [&]<class T>() {
    each_element([&](size_t n, size_t at) {
      T value;
      std::memcpy(&value, now_.data() + at, sizeof value);
      if constexpr (sizeof(T) == 2)
        out[n] = static_cast<double>(static_cast<float>(value));
      else
        out[n] = static_cast<double>(value);
    });
  });
  return out;
}

std::vector<std::byte> GuardedTensor::element_bytes() const {
  const size_t size = size_of(tensor_.dtype());
  std::vector<std::byte> out(static_cast<size_t>(tensor_.elements()) * size);
  each_element([&](size_t n, size_t at) { std::memcpy(out.data() + n * size, now_.data() + at, size); });
  return out;
}

std::string GuardedTensor::complaint(bool must_be_written, bool must_be_unchanged) const {
  if (must_be_unchanged) return now_ == initial_ ? "" : "an input was written";
  const auto is_poison = [](std::byte b) { return b == kPoison; };
  const auto begin = now_.begin() + static_cast<std::ptrdiff_t>(begin_);
  const auto size = static_cast<std::ptrdiff_t>(size_of(tensor_.dtype()));
  const std::ptrdiff_t width = tensor_.row_elements() * size, stride = tensor_.row_stride() * size;
  auto outside = now_.begin();  // no byte between the last element and the next row may change
  std::string found;
  const auto check_outside = [&](auto end) {
    const auto changed = std::find_if_not(outside, end, is_poison);
    if (changed != end && found.empty())
      found = cat("the byte ", changed - begin, " bytes after the first element, outside the tensor, was written");
  };
  for (int64_t r = 0; r < tensor_.rows() && width > 0; ++r) {
    const auto row = begin + r * stride;
    check_outside(row);
    outside = row + width;
    for (auto element = row; must_be_written && element != outside && found.empty(); element += size)
      if (std::all_of(element, element + size, is_poison))
        found = cat("element ", (element - row) / size, " of row ", r, " was never written");
  }
  check_outside(now_.end());
  return found;
}

}  // namespace hctr::test
