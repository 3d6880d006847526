// Predicts the memory of a run by device, from the config.
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
  using Parts = std::vector<std::pair<std::string, int64_t>>;  ///< name and bytes of each part
  /// [rank] all ranks have the same names in the same order
  std::vector<Parts> gpus;
  /// The config's limit in bytes for rows in a rank's host memory. Without a limit, a fraction of the free memory is
  /// used.
  std::optional<int64_t> most_host_rows{};
  /// A budget that states "gpu" or names a disk. Limits are in bytes per tier of a rank; a tier without a limit uses a
  /// fraction of the free memory. bytes_of_row_there: host memory in bytes for each row on disk.
  struct Budget {
    std::vector<std::string> tables;
    std::string folder;  ///< empty: no disk
    std::optional<int64_t> most_on_gpu, most_in_memory, most_on_disk;
    int64_t bytes_of_row_there;
    /// the tiers that belong to the solver's budget. Tables that share such a tier grow until the tier is full
    RowMemory::Tiers shared{};
  };
  std::vector<Budget> budgets{};  ///< the solver's budget, then the budgets of tables that have one
  /// Bytes of all rows of a table. `numbers`: vectors and optimizer states. The other fields are the memory of rows
  /// that are not on disk: keys, index, statistics and, on a GPU, buffers for moving rows.
  struct Rows {
    int64_t numbers = 0, besides = 0, to_move = 0;
    Rows& operator+=(const Rows& other);
  };
  std::vector<std::map<std::string, Rows>> rows;  ///< [rank][table]
  /// [GPU] extra bytes once rows are in host memory: access statistics and positions.
  std::vector<int64_t> of_moving_rows;
  /// [GPU] extra bytes if ranks are on several hosts, to pack messages between hosts.
  std::vector<int64_t> between_hosts;
  Parts host;  ///< host memory of a process that runs all ranks
  /// Name and bytes per row of each table whose number of rows neither the config nor the data determine.
  std::vector<std::pair<std::string, int64_t>> bytes_of_unknown_rows;
};
int64_t sum_of(const MemoryBill::Parts&);

/// For training on `ranks` GPUs. `distinct`: distinct keys counted in the data, by sparse input and slot; empty:
/// unknown. Exact: weights, activations, and rows of tables whose number of rows is known. Estimated: buffers of tables
/// and exchanges. `gpu_bytes`: memory of each GPU, for the plan; 0: unknown. Errors: Error(config) for a placement_file
/// that does not fit; Error(io).
MemoryBill memory_bill(const Config&, int64_t ranks, const std::vector<std::vector<int64_t>>& distinct,
                       double gpu_bytes = 0);

}  // namespace hctr
