// The tables of a model in a store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/spec/table_spec.h"
#include "engine/table/table_reader.h"
#include "hctr/store.h"
#include "net/model/replica.h"

namespace hctr {

/// A view, and which of its tables are those of a model.
class StoreTables {
 public:
  /// `model`: without tables of its own. Errors: Error(config) naming a table that the view lacks or has otherwise, or
  /// whose rows a store cannot have.
  StoreTables(std::shared_ptr<const StoreView>, const Config&, const Replica& model);

  StoreReading read() const { return StoreReading(*view_); }
  /// A reader for batches of one size, on the CPU. `reading`: where the StoreReading of a batch is found while it is
  /// looked up.
  std::unique_ptr<TableReader> reader(size_t embedding, int64_t samples, int64_t key_capacity,
                                      const StoreReading* const& reading) const;

 private:
  std::shared_ptr<const StoreView> view_;
  const Replica& model_;
  std::vector<size_t> numbers_;  // of each embedding's table in the view
};

}  // namespace hctr
