#include "capi/model_inputs.h"

#include "capi/array.h"
#include "capi/call.h"
#include "core/base/expect.h"

namespace hctr::capi {

int64_t columns_of(const ModelTensor& tensor) {
  int64_t columns = 1;
  for (size_t d = 1; d < tensor.shape.size(); ++d) columns *= tensor.shape[d];
  return columns;
}

const ModelTensor* find(const std::vector<ModelTensor>& tensors, std::string_view name) {
  for (const ModelTensor& tensor : tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

InputView input_of(const std::vector<ModelTensor>& tensors, const hctr_model_input& from, int64_t samples) {
  expect_given(from.name, "hctr_model_input: name");
  const std::string what = cat("input '", from.name, "'");
  InputView to{.name = from.name, .type = element_type(from.data, what)};
  const ModelTensor* const tensor = find(tensors, from.name);
  if (!tensor) return to;  // the model reports that it has no input of this name
  to.gpu = from.data.gpu < 0 ? -1 : from.data.gpu;
  to.stream = from.stream;
  if (tensor->role != ModelTensor::Role::keys) {
    const Matrix matrix = matrix_of(from.data, what);
    if (matrix.rows < samples || matrix.columns != columns_of(*tensor))
      throw Error(Kind::usage, cat(what, " has shape [", matrix.rows, ", ", matrix.columns, "], expected [", samples,
                                   ", ", columns_of(*tensor), "]"));
    to.data = matrix.data;
    to.stride = matrix.stride;
    return to;
  }
  if (!from.offsets.data) {
    const RowsOf<void> rows = rows_in(from.data, what);
    if (rows.rows < samples || rows.columns != columns_of(*tensor))
      throw Error(Kind::usage, cat(what, " has shape [", rows.rows, ", ", rows.columns, "], expected [", samples, ", ",
                                   columns_of(*tensor), "], or offsets"));
    to.data = rows.data;
    to.stride = rows.stride;
    return to;
  }
  const std::string offsets = "offsets of " + what;
  if (to.gpu >= 0 || from.offsets.gpu >= 0)
    throw Error(Kind::usage, cat(what, " has bags of keys on a GPU: pass keys and offsets in host memory"));
  to.data = contiguous(from.data, 1, what);
  to.offsets = contiguous(from.offsets, 1, offsets);
  to.offsets_type = element_type(from.offsets, offsets);
  const int64_t bags = samples * columns_of(*tensor);
  if (from.offsets.shape[0] != bags + 1)
    throw Error(Kind::usage, cat(offsets, " have ", from.offsets.shape[0], " elements, expected ", bags + 1, " for ",
                                 samples, " samples of ", columns_of(*tensor), " slots"));
  const auto at = [&](int64_t i) {
    return to.offsets_type == ElementType::i32 ? static_cast<const int32_t*>(to.offsets)[i]
                                               : static_cast<const int64_t*>(to.offsets)[i];
  };
  if (at(bags) > from.data.shape[0])
    throw Error(Kind::usage, cat(offsets, " end at ", at(bags), ", but there are only ", from.data.shape[0], " keys"));
  return to;
}

namespace {

hctr_dtype dtype_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return HCTR_F32;
    case ElementType::i32:
      return HCTR_I32;
    case ElementType::u32:
      return HCTR_U32;
    case ElementType::i64:
      return HCTR_I64;
    default:
      return HCTR_U64;
  }
}

}  // namespace

std::vector<GivenInput> given_inputs(const std::vector<ModelTensor>& tensors, std::span<const InputView> views,
                                     int64_t samples) {
  std::vector<GivenInput> inputs;
  for (const InputView& view : views) {
    const ModelTensor* tensor = find(tensors, view.name);
    if (!tensor) continue;  // no layer reads this input
    GivenInput& input = inputs.emplace_back(GivenInput{view, {samples, columns_of(*tensor)}, {0}});
    input.view.name = tensor->name;  // C callers need a null-terminated name, which view.name may not be
    if (!view.offsets) continue;
    input.bounds = {samples * columns_of(*tensor) + 1};
    input.shape[0] = static_cast<const int64_t*>(view.offsets)[input.bounds[0] - 1];
  }
  return inputs;
}

hctr_model_input GivenInput::as_c() const {
  hctr_model_input input{};
  input.size = sizeof input;
  input.name = view.name.data();
  input.data = {const_cast<void*>(view.data), dtype_of(view.type), view.offsets ? 1 : 2, shape.data(), nullptr, -1};
  if (view.offsets)
    input.offsets = {const_cast<void*>(view.offsets), dtype_of(view.offsets_type), 1, bounds.data(), nullptr, -1};
  return input;
}

}  // namespace hctr::capi
