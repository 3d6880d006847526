#include "export/model_arrays.h"

#include <cmath>
#include <memory>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"

namespace hctr {
namespace {

constexpr size_t kZerosAtOnce = 4096;

template <class T>
StoredArray stored_values(std::string name, DType dtype, std::vector<int64_t> dims, std::vector<T> values) {
  // a shared_ptr, so that a copy of the std::function does not copy the values
  const auto kept = std::make_shared<const std::vector<T>>(std::move(values));
  return {std::move(name), dtype, std::move(dims),
          [kept](const ByteSink& sink) { sink(std::as_bytes(std::span(*kept))); }};
}

void expect_finite(std::span<const float> values, const std::string& name) {
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      throw Error(Kind::data, cat("number ", i, " of '", name, "' is ", values[i],
                                  ": training diverged, and this model is not exported"));
}

std::vector<StoredArray> arrays_of(const std::vector<NamedTensor>& tensors, StreamRef stream) {
  std::vector<StoredArray> arrays;
  for (const NamedTensor& tensor : tensors) {
    std::vector<int64_t> dims;
    for (int d = 0; d < tensor.value.rank(); ++d) dims.push_back(tensor.value.dim(d));
    std::vector<float> values = to_host<float>(stream, tensor.value);
    expect_finite(values, tensor.name);
    arrays.push_back(stored(tensor.name, std::move(dims), std::move(values)));
  }
  return arrays;
}

TableArrays table_of(Replica& model, size_t embedding) {
  const TableSpec& spec = model.table_spec(embedding);
  TableArrays table{.name = spec.name, .dim = spec.dim, .slots = spec.slots, .by_slot = spec.identity_by_slot};
  model.export_rows(embedding, [&](const RowBlock& block) {
    table.keys.insert(table.keys.end(), block.keys.begin(), block.keys.end());
    if (table.by_slot) table.slot_of.insert(table.slot_of.end(), block.slots.begin(), block.slots.end());
  });
  table.each_block = [&model, embedding, name = table.name](const auto& sink) {
    model.export_rows(embedding, [&](const RowBlock& block) {
      expect_finite(block.vectors, name);
      sink(block.vectors);
    });
  };
  return table;
}

}  // namespace

int64_t StoredArray::elements() const {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

StoredArray stored(std::string name, std::vector<int64_t> dims, std::vector<float> values) {
  return stored_values(std::move(name), DType::f32, std::move(dims), std::move(values));
}
StoredArray stored(std::string name, std::vector<int64_t> dims, std::vector<int64_t> values) {
  return stored_values(std::move(name), DType::i64, std::move(dims), std::move(values));
}

StoredArray TableArrays::vector_array(const std::string& array_name, int64_t zero_rows) const {
  return {array_name,
          DType::f32,
          {zero_rows + rows(), dim},
          [this, zeros = static_cast<size_t>(zero_rows * dim)](const ByteSink& sink) {
            const std::vector<float> zero(std::min(zeros, kZerosAtOnce));
            for (size_t done = 0; done < zeros; done += zero.size())
              sink(std::as_bytes(std::span(zero).first(std::min(zero.size(), zeros - done))));
            each_block([&](std::span<const float> block) { sink(std::as_bytes(block)); });
          }};
}

const StoredArray& ModelArrays::find(const std::string& name) const {
  for (const auto* arrays : {&weights, &statistics})
    for (const StoredArray& array : *arrays)
      if (array.name == name) return array;
  throw Error(Kind::bug, cat("the model has no array '", name, "'"));
}

ModelArrays model_arrays(Replica& model, const Config& config, StreamRef stream) {
  ModelArrays arrays{.weights = arrays_of(model.dense_weights(), stream),
                     .statistics = arrays_of(model.layer_statistics(), stream)};
  for (size_t e = 0; e < config.embeddings.size(); ++e) arrays.tables.push_back(table_of(model, e));
  return arrays;
}

}  // namespace hctr
