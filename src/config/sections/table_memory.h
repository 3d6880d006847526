// The "table_memory" objects of the solver and of embeddings: memory budgets for rows on GPU, host and disk.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "config/schema.h"
#include "core/comm/communicator.h"
#include "core/device/row_budget.h"

namespace hctr {

/// A size: "auto", a number of bytes such as "20GB", or a fraction of the free memory such as 0.7.
struct MemorySize {
  enum class Kind { automatic, bytes, share };
  Kind kind = Kind::automatic;
  int64_t bytes = 0;
  double share = 0;
  std::string text;  ///< the config's text, for a number of bytes
  /// The size in bytes if `free` bytes are free. `automatic_share`: the fraction for "auto".
  int64_t of(int64_t free, double automatic_share) const;
};
std::string read_value(const Json& value, const Range&, MemorySize& out);
Json to_json(const MemorySize&);
template <>
struct TypeWord<MemorySize> {
  static std::string text() { return "\"auto\", bytes such as \"20GB\", or a share such as 0.7"; }
};

struct TableMemory {
  MemorySize gpu, host;
  std::string disk;  ///< folder for rows on disk; empty: no disk tier
  MemorySize disk_limit;
  int64_t move_every = 128;
};
Schema<TableMemory> table_memory_schema();

/// The separate budget of one embedding. Sizes that the embedding omits come from the solver's budget, which other
/// tables share.
struct OwnTableMemory {
  std::optional<MemorySize> gpu, host, disk_limit;
  std::optional<std::string> disk;  ///< empty text: the table has no disk tier
  /// This budget, with omitted fields taken from the solver's budget.
  TableMemory with(const TableMemory& of_solver) const;
  /// The memory tiers that the table shares with the run's budget, because its own budget does not state them. "disk"
  /// or "disk_limit" gives the table its own disk tier.
  RowMemory::Tiers shared() const { return {!gpu, !host, !disk && !disk_limit}; }
};
Schema<OwnTableMemory> own_table_memory_schema();
/// Makes the checks that need the solver's budget: "disk_limit" requires a "disk" folder. `pointer`: the object's JSON
/// pointer.
void check_table_memory(const OwnTableMemory&, const TableMemory& of_solver, const std::string& pointer, Problems&);

/// The budget of one rank if `ranks_of_host` ranks share the machine's memory. On a CPU, where host and device memory
/// are the same, rows are limited only if the config states a size or a disk folder. Errors: Error(device); Error(io)
/// if the disk folder cannot be created.
RowMemoryLimits row_memory_limits(const TableMemory&, Device, int64_t ranks_of_host);
/// The budget of this rank. Counts the ranks of each host over `comm`. Collective.
RowMemoryLimits row_memory_limits(const TableMemory&, Device, Communicator&);
/// The separate budget of table `top`, which shares some tiers with the run's budget. On a CPU without a budget no tier
/// is shared. Collective. Errors: those of row_memory_limits().
std::shared_ptr<RowMemory> own_row_memory(const OwnTableMemory&, const TableMemory& of_solver, const std::string& top,
                                          RowMemory& of_run, Device, Communicator&);

}  // namespace hctr
