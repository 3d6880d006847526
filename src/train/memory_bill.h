// How much memory a run will need, by device, from the config.
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
  std::vector<Parts> gpus;                                     ///< of each rank; the same names in one order
  /// Bytes of rows that the config lets a rank have in host memory; none: a share of what is free.
  std::optional<int64_t> most_host_rows{};
  /// Of budgets that state "gpu" or name a disk: bytes that a rank may have in each memory, none: a share of what is
  /// free; and bytes in memory of the host of each row that is on the disk.
  struct Budget {
    std::vector<std::string> tables;
    std::string folder;  ///< empty: no disk
    std::optional<int64_t> most_on_gpu, most_in_memory, most_on_disk;
    int64_t bytes_of_row_there;
    RowMemory::Tiers shared{};  ///< those of the solver, which all that share one grow into as they come
  };
  std::vector<Budget> budgets{};  ///< of the solver, then of tables that have their own
  /// All rows of a table: their numbers, and what stays in memory with those that are not on the disk: keys, index,
  /// statistics; on a GPU also what rows move with.
  struct Rows {
    int64_t numbers = 0, besides = 0, to_move = 0;
    Rows& operator+=(const Rows& other);
  };
  std::vector<std::map<std::string, Rows>> rows;  ///< of each rank, by table
  /// Bytes that each GPU takes more once some of its rows are in host memory, to count their uses and to find them.
  std::vector<int64_t> of_moving_rows;
  /// Bytes that each GPU takes more where ranks are on several hosts: what travels between them is packed first.
  std::vector<int64_t> between_hosts;
  Parts host;  ///< of the process, if it has all ranks
  /// Tables whose rows are known neither from the config nor from data, and the bytes that each row will take.
  std::vector<std::pair<std::string, int64_t>> bytes_of_unknown_rows;
};
int64_t sum_of(const MemoryBill::Parts&);

/// For training on `ranks` GPUs. `distinct`: keys that the data were seen to have, by sparse input and slot; empty:
/// not known. Weights, activations and rows are exact where rows are known, buffers of tables and exchanges estimated.
/// Errors: Error(config) for a placement_file that does not fit; Error(io).
MemoryBill memory_bill(const Config&, int64_t ranks, const std::vector<std::vector<int64_t>>& distinct);

}  // namespace hctr
