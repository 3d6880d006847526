// What the tables of a store will take, before any is loaded.
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
    int64_t rows = 0;             ///< -1: not known
    int64_t memory = 0;           ///< bytes of the level in memory
    int64_t index = 0, file = 0;  ///< of the level of files: of its index, in memory, and on the disk
    int64_t in_memory() const { return memory + index; }
  };
  std::vector<Table> tables;
  int64_t free_memory = 0;  ///< of this host, now

  int64_t in_memory() const;
  int64_t on_disk() const;
  std::string text() const;
  Json json() const;
};

/// `models`: what the sections of the config are; tables whose rows come by call have a number that is not known.
/// Errors: those of count_rows().
StoreBill store_bill(const StoreConfig&, const std::vector<StoreModel>& models);

}  // namespace hctr
