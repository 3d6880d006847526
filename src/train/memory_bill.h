// Predicts the memory of a run, by device, from its config.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/sections/config.h"
#include "engine/placement/placement.h"

namespace hctr {

struct MemoryBill {
  using Parts = std::vector<std::pair<std::string, int64_t>>;  ///< bytes by name
  std::vector<Parts> gpus;                                     ///< by rank; the same names in the same order
  /// The config's limit in bytes for rows in a rank's host memory; none: a share of the free memory.
  std::optional<int64_t> most_host_rows{};
  /// Budgets that state "gpu" or name a disk: limits in bytes for each tier of a rank (none: a share of the free
  /// memory), and the host memory in bytes for each row on disk.
  struct Budget {
    std::vector<std::string> tables;
    std::string folder;  ///< empty: no disk
    std::optional<int64_t> most_on_gpu, most_in_memory, most_on_disk;
    int64_t bytes_of_row_there;
    RowMemory::Tiers shared{};  ///< the solver's: all tables that share it grow until it is full
  };
  std::vector<Budget> budgets{};  ///< the solver's, then those of tables with their own
  /// All rows of a table. `numbers`: their vectors and states. The rest stays in memory for every row that is not on
  /// disk: keys, index, statistics and, on a GPU, buffers for moving rows.
  struct Rows {
    int64_t numbers = 0, besides = 0, to_move = 0;
    Rows& operator+=(const Rows& other);
  };
  std::vector<std::map<std::string, Rows>> rows;  ///< by rank, then by table
  /// Extra bytes on each GPU once some of its rows are in host memory: access statistics and positions.
  std::vector<int64_t> of_moving_rows;
  /// Extra bytes on each GPU if ranks are on several hosts: messages between hosts are packed first.
  std::vector<int64_t> between_hosts;
  Parts host;  ///< of the process, if it runs all ranks
  /// Tables whose number of rows neither the config nor the data give, with the bytes per row.
  std::vector<std::pair<std::string, int64_t>> bytes_of_unknown_rows;
};
int64_t sum_of(const MemoryBill::Parts&);

/// For training on `ranks` GPUs. `distinct`: distinct keys counted in the data, by sparse input and slot; empty:
/// unknown. Weights and activations are exact, and rows too where their number is known; buffers of tables and
/// exchanges are estimates. `gpu_bytes`: memory of each GPU, for the plan; 0: unknown. Errors: Error(config) for a
/// placement_file that does not fit; Error(io).
MemoryBill memory_bill(const Config&, int64_t ranks, const std::vector<std::vector<int64_t>>& distinct,
                       double gpu_bytes = 0);

}  // namespace hctr
