// The arrays of a trained model in host memory, for exports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "net/model/replica.h"

namespace hctr {

/// Receives consecutive blocks of bytes.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// An array to write to a file. The values may be generated during the write.
struct StoredArray {
  std::string name;
  DType dtype = DType::f32;  ///< f32 or i64
  std::vector<int64_t> dims;
  std::function<void(const ByteSink&)> write;  ///< passes all bytes in order to the sink

  int64_t elements() const;
  int64_t bytes() const { return elements() * static_cast<int64_t>(size_of(dtype)); }
};
/// Makes an array that owns these values.
StoredArray stored(std::string name, std::vector<int64_t> dims, std::vector<float> values);
StoredArray stored(std::string name, std::vector<int64_t> dims, std::vector<int64_t> values);

/// The rows of an embedding, sorted by (slot, key).
struct TableArrays {
  std::string name;
  int64_t dim = 0, slots = 0;    ///< slots: number of slots of the embedding
  std::vector<int64_t> keys;     ///< [rows]
  std::vector<int64_t> slot_of;  ///< [rows]; empty if keys alone identify rows
  bool by_slot = false;
  /// Passes all vectors, [rows, dim], to a sink in blocks of whole rows. Collective, like Replica::export_rows().
  std::function<void(const std::function<void(std::span<const float>)>&)> each_block;

  int64_t rows() const { return static_cast<int64_t>(keys.size()); }
  StoredArray key_array(const std::string& array_name) const { return stored(array_name, {rows()}, keys); }
  StoredArray slot_array(const std::string& array_name) const { return stored(array_name, {rows()}, slot_of); }
  /// An array of `zero_rows` rows of zeros followed by the vectors. The result refers to this table.
  StoredArray vector_array(const std::string& array_name, int64_t zero_rows = 0) const;
};

struct ModelArrays {
  std::vector<StoredArray> weights;     ///< dense weights such as "fc1/weights", in the order of the dense model file
  std::vector<StoredArray> statistics;  ///< layer states such as "bn1/mean"
  std::vector<TableArrays> tables;      ///< in the order of the config

  const StoredArray& find(const std::string& name) const;  ///< searches weights and statistics
};

/// Reads all arrays except the vectors. Vectors are read from `model` only when they are written, so `model` must
/// outlive the result. Supports a single rank only. Errors: Error(data) naming a weight that is not finite.
ModelArrays model_arrays(Replica& model, const Config&, StreamRef);

}  // namespace hctr
