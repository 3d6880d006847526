// A model's tables that are in a store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/spec/table_spec.h"
#include "engine/table/table.h"
#include "engine/table/table_reader.h"
#include "hctr/store.h"
#include "net/model/replica.h"

namespace hctr {

class BoundVersion;

/// A view of a store, with the index of each embedding's table.
class StoreTables {
 public:
  /// `model`: a model without tables of its own. Errors: Error(config) naming a table that the view lacks, whose shape
  /// differs in the view, or that a store cannot represent.
  StoreTables(std::shared_ptr<const StoreView>, const Config&, const Replica& model);

  /// Reads rows through the GPU cache of the view's version. Errors: those of BoundVersion::shared().
  void use_cache(Device);
  /// Null: rows are read in host memory.
  BoundVersion* cache() const { return cache_.get(); }
  const TableSpec& spec(size_t embedding) const { return model_.table_spec(embedding); }
  /// The index of an embedding's table in the view.
  size_t number(size_t embedding) const { return numbers_[embedding]; }

  StoreReading read() const { return StoreReading(*view_); }
  /// For each key of an embedding: whether the store has a row for it. Errors: those of StoreReading::get().
  std::vector<uint8_t> have_rows(size_t embedding, std::span<const SlotKey> keys) const;
  /// A reader for batches of one size, on the CPU. During a look-up, `reading` must point to the batch's StoreReading.
  std::unique_ptr<TableReader> reader(size_t embedding, int64_t samples, int64_t key_capacity,
                                      const StoreReading* const& reading) const;

 private:
  std::shared_ptr<const StoreView> view_;
  const Replica& model_;
  std::vector<size_t> numbers_;  // [embedding] index of its table in the view
  std::shared_ptr<BoundVersion> cache_;
};

}  // namespace hctr
