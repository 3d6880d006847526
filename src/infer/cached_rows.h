// The rows of a batch's keys, read through the cache of a store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/device/buffer.h"
#include "engine/table/table_reader.h"
#include "infer/store_tables.h"
#include "score/batch_ring.h"

namespace hctr {

/// The memory of one session. A lookup in the cache waits for the device and for rows that the cache lacks, so it
/// cannot be part of a recorded program: look_up() runs before the part of the program that calls the readers.
class CachedRows {
 public:
  /// `tables` has a cache, and outlives this object.
  CachedRows(const StoreTables& tables, Device);

  /// Adds an embedding. Call for each embedding, in order. `capacity`: maximum keys of a batch.
  std::unique_ptr<TableReader> reader(Runtime&, size_t embedding, int64_t samples, int64_t capacity);
  /// Reads the rows of all keys in the ring's batch. The keys must be unpacked on the stream before. `inputs`:
  /// [embedding] the sparse input that the embedding reads. All rows are from the same state of the store. Errors:
  /// those of the store.
  void look_up(const BatchRing&, const std::vector<size_t>& inputs, StreamRef);

 private:
  class Reader;
  const StoreTables& tables_;
  Device device_;
  std::vector<Buffer> rows_;  // [embedding] f32 [1 + capacity, dim]: row 1 + p belongs to key p; row 0 is not used
};

}  // namespace hctr
