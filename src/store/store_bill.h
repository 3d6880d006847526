// Predicts the memory and disk space of a store's tables before loading them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/json.h"
#include "store/store_config.h"

namespace hctr {

struct StoreBill {
  struct Table {
    std::string model, version, table;
    int64_t dim = 0;
    int64_t rows = 0;             ///< -1: unknown
    int64_t memory = 0;           ///< bytes of host memory that the memory level uses
    int64_t index = 0, file = 0;  ///< bytes of the file level: `index` in memory, `file` on disk
    int64_t in_memory() const { return memory + index; }
  };
  std::vector<Table> tables;
  std::string shared;       ///< name of the memory that processes share; empty: memory of the process
  int64_t free_memory = 0;  ///< current free memory of this host

  int64_t in_memory() const;
  int64_t on_disk() const;
  std::string text() const;
  Json json() const;
};

/// `models`: the models of the config's sections. If a function passes the rows of a table (StoreTableSource::rows),
/// their number is unknown. Errors: those of count_rows().
StoreBill store_bill(const StoreConfig&, const std::vector<StoreModel>& models);

}  // namespace hctr
