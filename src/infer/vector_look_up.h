// Looks up vectors of single keys in a table of a loaded model.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/device/arena.h"
#include "engine/table/table_reader.h"
#include "infer/loaded_model.h"
#include "infer/store_tables.h"

namespace hctr {

/// Used by one thread at a time. Shares the table with other threads.
class VectorLookUp {
 public:
  /// `tables`: the store of a model without tables of its own; null otherwise. Both must outlive this object.
  VectorLookUp(LoadedModel&, const StoreTables* tables, size_t embedding);

  /// Writes the vector of each key to `vectors`, f32 [keys, dim]; zeros for a key without a row. `reading`: as in
  /// ScoreRequest::tables. Errors: Error(usage) if rows are identified by slot and key, and the key does not determine
  /// its slot.
  void look_up(std::span<const int64_t> keys, const StoreReading* reading, std::span<float> vectors);

 private:
  /// Looks up the keys in slots_ and writes their vectors.
  void flush(std::span<float> vectors);

  const TableSpec& spec_;
  Runtime runtime_;
  int64_t samples_;
  std::vector<int32_t> first_columns_;  // [slots]
  const StoreReading* reading_ = nullptr;
  std::unique_ptr<TableReader> reader_;
  Arena memory_;
  size_t keys_, offsets_, vectors_;  // tickets of memory_
  struct Waiting {
    int64_t key;
    size_t position;  // index in the caller's list of keys
  };
  std::vector<std::vector<Waiting>> slots_;  // [slots] keys that wait for flush(), one per sample
};

}  // namespace hctr
