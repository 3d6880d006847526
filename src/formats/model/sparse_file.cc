#include "formats/model/sparse_file.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>

#include "core/base/expect.h"
#include "core/base/files.h"
#include "core/base/not_finite.h"
#include "formats/model/access_stats_file.h"
#include "formats/model/opt_states_file.h"
#include "formats/model/sparse_reader.h"

namespace hctr {
namespace {

template <class Table>
void import(Table& table, const SparseOrigin& from, const SparseRows& rows, OptStatesReader* states) {
  std::vector<int32_t> slots;
  for (const uint64_t slot : rows.slots)
    slots.push_back(slot < static_cast<uint64_t>(table.spec().slots) ? static_cast<int32_t>(slot)
                                                                     : std::numeric_limits<int32_t>::max());
  RowBlock block{rows.keys, slots, rows.vectors, {}, {}};
  std::vector<int32_t> last_steps;
  if (states) {
    states->add_to(block, rows.slots);
    // lazy optimizers apply the updates that a row has missed since last_steps; loaded rows have missed none
    last_steps.assign(rows.keys.size(), static_cast<int32_t>(from.updates));
    block.last_steps = last_steps;
  }
  in_context([&] { return cat("loading ", kSparseModelFile, " '", from.path.string(), "'"); },
             [&] { table.import_rows(block); });
}

bool fits_u32(int64_t key) { return key >= 0 && key <= std::numeric_limits<uint32_t>::max(); }

}  // namespace

template <class Table>
void save_sparse(FileSet& set, Table& table, const SparseTarget& to) {
  const fs::path stats_path = access_stats_path(to.path);
  std::optional<SparseWriter> rows;
  std::optional<OptStatesWriter> states;
  std::optional<AccessStatsWriter> stats;
  std::exception_ptr failed;
  const auto unless_failed = [&](const auto& body) {
    if (failed) return;
    try {
      body();
    } catch (...) {
      failed = std::current_exception();
    }
  };
  unless_failed([&] {
    rows.emplace(set, to.path, table.spec(), to.format, to.key_bytes);
    if (!to.states.empty()) states.emplace(set, to.states, table.spec(), to.rows);
    if (table.spec().policy.keeps_access_stats())
      stats.emplace(set.add(stats_path), table.spec().policy, table.counted_steps());
    else
      set.remove(stats_path);
  });
  // export_rows() is collective, so an error on this rank must not abort it.
  table.export_rows(!to.states.empty(), [&](const RowBlock& block) {
    unless_failed([&] {
      rows->add(block);
      if (states) states->add(block);
      if (stats) stats->add(block);
    });
  });
  unless_failed([&] {
    rows->finish();
    if (states) states->finish();
    if (stats) stats->finish();
  });
  if (failed) std::rethrow_exception(failed);
}

namespace {

/// `in_model`: number of rows in the model file.
template <class Table>
void load_access_stats(const fs::path& path, Table& table, int64_t in_model) {
  const int64_t rows = table.rows();
  const auto check = [&](const AccessStatsHead& head) {
    if (head.rows != in_model)
      throw Error(Kind::data, cat("'", path.string(), "' has access statistics of ", head.rows,
                                  " keys, but the model file next to it has ", in_model,
                                  " rows: the statistics belong to another "
                                  "model"));
  };
  const auto import_block = [&](const AccessStatsHead& head, std::span<const formats::RowAccess> stats) {
    check(head);
    // A row without a recorded step gets the last step, as if its key had just been seen, so that it is not evicted
    // first.
    const auto unknown = static_cast<uint32_t>(std::max<int64_t>(head.steps - 1, 0));
    std::vector<int64_t> keys;
    std::vector<int32_t> slots;
    std::vector<uint32_t> last_seen, occurrences;
    for (const formats::RowAccess& row : stats) {
      keys.push_back(row.key);
      slots.push_back(row.slot);
      last_seen.push_back(head.last_seen ? row.last_seen : unknown);
      occurrences.push_back(
          static_cast<uint32_t>(std::min<uint64_t>(row.occurrences, std::numeric_limits<uint32_t>::max())));
    }
    table.import_rows({keys, slots, {}, {}, {}, last_seen, occurrences});
  };
  in_context([&] { return cat("loading the access statistics '", path.string(), "'"); },
             [&] {
               const AccessStatsHead head = read_access_stats(path, import_block);
               check(head);
               table.continue_access_stats(head.steps);
               if (const int64_t more = table.rows() - rows; more > 0)
                 throw Error(Kind::data,
                             cat("'", path.string(), "' has access statistics of ", more,
                                 " keys without a row: the statistics do not belong to the model file next to them"));
             });
}

struct Loaded {
  int64_t rows = 0;
  bool wide_keys = false;  ///< some key does not fit 4 bytes
};

template <class Table>
Loaded load_rows(Table& table, const SparseOrigin& from, const Log& log) {
  const fs::path& path = from.path;
  const TableSpec& spec = table.spec();
  const SparseFileShape shape{spec.identity_by_slot, spec.dim, spec.slots, from.key_bytes};
  std::optional<OptStatesReader> states;
  const auto open_states = [&](int64_t rows) {  // the number of rows is known only after the layout is detected
    if (!from.states.empty() && !states) states.emplace(from.states, spec, rows, path);
  };
  const auto twice = [&](int64_t rows, int64_t different) {
    return Error(Kind::data, cat(kSparseModelFile, " '", path.string(), "' has ", rows, " rows, but only ", different,
                                 " different keys"));
  };
  bool wide_keys = false;
  int64_t before = 0;  // number of rows before this part
  const auto load = [&](const SparseRows& part) {
    if (const int64_t at = find_not_finite(part.vectors); at >= 0)
      throw Error(Kind::data, cat(kSparseModelFile, " '", path.string(), "': element ", at % spec.dim, " of row ",
                                  before + at / spec.dim, ", of key ", part.keys[static_cast<size_t>(at / spec.dim)],
                                  ", is ", part.vectors[static_cast<size_t>(at)]));
    if (before == 0) table.reserve_import(part.of);
    before += static_cast<int64_t>(part.keys.size());
    open_states(part.of);
    import(table, from, part, states ? &*states : nullptr);
    wide_keys = wide_keys || !std::all_of(part.keys.begin(), part.keys.end(), fits_u32);
  };
  if (spec.direct.empty()) {
    HCTR_EXPECT(table.rows() == 0, "loading a sparse model file needs an empty table, found ", table.rows(), " rows");
    const int64_t rows = read_sparse(path, shape, load, log);
    open_states(rows);
    if (table.rows() != rows) throw twice(rows, table.rows());
    return {rows, wide_keys};
  }
  const ops::DirectIndex index = spec.direct.index();
  std::vector<bool> loaded(static_cast<size_t>(spec.direct.rows() + 1));
  int64_t repeated = 0;
  const auto load_direct = [&](const SparseRows& part) {
    load(part);
    for (size_t i = 0; i < part.keys.size(); ++i) {
      const int64_t slot = part.slots.empty() ? 0
                                              : static_cast<int64_t>(part.slots[i]) *
                                                    // keys of a column-sharded slot are found by its first piece
                                                    spec.direct.pieces;
      const auto row = static_cast<size_t>(index.row(part.keys[i], static_cast<int32_t>(slot)));
      if (row == 0) continue;  // another rank owns the row
      repeated += loaded[row];
      loaded[row] = true;
    }
  };
  const int64_t rows = read_sparse(path, shape, load_direct, log);
  open_states(rows);
  if (repeated > 0) throw twice(rows, rows - repeated);
  return {rows, wide_keys};
}

}  // namespace

template <class Table>
bool load_sparse(Table& table, const SparseOrigin& from, const Log& log) {
  const Loaded loaded = load_rows(table, from, log);
  if (from.with_access_stats && table.spec().policy.keeps_access_stats())
    load_access_stats(access_stats_path(from.path), table, loaded.rows);
  return loaded.wide_keys;
}

bool has_access_stats(const fs::path& path) { return fs::exists(access_stats_path(path)); }

template void save_sparse(FileSet&, EmbeddingTable&, const SparseTarget&);
template void save_sparse(FileSet&, Embedding&, const SparseTarget&);
template bool load_sparse(EmbeddingTable&, const SparseOrigin&, const Log&);
template bool load_sparse(Embedding&, const SparseOrigin&, const Log&);

}  // namespace hctr
