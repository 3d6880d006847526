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
    int64_t gpu = 0;              ///< bytes of the GPU cache, which is shared by tables of one dim; -1: unknown
    int64_t in_memory() const { return memory + index; }
  };
  std::vector<Table> tables;
  std::string shared;            ///< name of the memory that processes share; empty: memory of the process
  int64_t free_memory = 0;       ///< current free memory of this host
  bool has_cache = false;        ///< whether the config has a GPU cache
  int64_t free_gpu_memory = -1;  ///< current free memory of GPU 0; -1: there is no GPU, or no cache

  int64_t in_memory() const;
  int64_t on_disk() const;
  int64_t on_gpu() const;
  std::string text() const;
  Json json() const;
};

/// If the config sets no size for the GPU cache, the size follows from the memory of GPU 0. `models`: the models of the
/// config's sections. The number of rows is unknown for a table whose rows are passed by a function
/// (StoreTableSource::rows). Errors: those of count_rows() and plan_cache().
StoreBill store_bill(const StoreConfig&, const std::vector<StoreModel>& models);

}  // namespace hctr
