// The "table_memory" objects of the solver and of embeddings: capacity for rows on a GPU, on its host and on disk.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "config/schema.h"
#include "core/comm/communicator.h"
#include "core/device/row_budget.h"

namespace hctr {

/// "auto", a number of bytes such as "20GB", or a share of what is free, such as 0.7.
struct MemorySize {
  enum class Kind { automatic, bytes, share };
  Kind kind = Kind::automatic;
  int64_t bytes = 0;
  double share = 0;
  std::string text;  ///< number of bytes, as given
  /// Bytes of a memory of which `free` are free; `automatic_share` of them where the size is "auto".
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
  std::string disk;  ///< a folder; empty: no rows on a disk
  MemorySize disk_limit;
  int64_t move_every = 128;
};
Schema<TableMemory> table_memory_schema();

/// The budget of one embedding, which it does not share. Sizes that it omits are the solver's, which other tables
/// share.
struct OwnTableMemory {
  std::optional<MemorySize> gpu, host, disk_limit;
  std::optional<std::string> disk;  ///< empty: no rows on a disk
  /// With the solver's values for omitted fields.
  TableMemory with(const TableMemory& of_solver) const;
  /// A folder or limit of its own makes the disk tier its own.
  RowMemory::Tiers shared() const { return {!gpu, !host, !disk && !disk_limit}; }
};
Schema<OwnTableMemory> own_table_memory_schema();
/// Checks that depend on the solver's. `pointer`: of the object.
void check_table_memory(const OwnTableMemory&, const TableMemory& of_solver, const std::string& pointer, Problems&);

/// The budget of one of `ranks_of_host` ranks that share the memory of a machine. On the CPU, where both memories are
/// one, there is a budget only if the config states one. Errors: Error(device); Error(io) if the disk's folder cannot
/// be created.
RowMemoryLimits row_memory_limits(const TableMemory&, Device, int64_t ranks_of_host);
/// Collective: counts the ranks of each host.
RowMemoryLimits row_memory_limits(const TableMemory&, Device, Communicator&);
/// The budget of the table `top` alone, with the tiers it shares with the run's budget. On a CPU without a budget
/// nothing is shared. Collective. Errors: as row_memory_limits().
std::shared_ptr<RowMemory> own_row_memory(const OwnTableMemory&, const TableMemory& of_solver, const std::string& top,
                                          RowMemory& of_run, Device, Communicator&);

}  // namespace hctr
